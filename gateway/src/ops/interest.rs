//! Who still wants a task that several callers asked for under one idempotency key. Any of them may give it up, but only
//! the last one's word calls it off. One who asked and did not stay to give it up may come back for the answer, and so
//! wants it for good.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_schemas::TaskId;

/// Tasks that were asked for with a key, by somebody who stays on the connection. Of a task that is not here, nobody knows
/// who else wants it.
#[derive(Debug, Default)]
pub(crate) struct Interest(Mutex<HashMap<TaskId, Wanted>>);

#[derive(Debug, Default)]
struct Wanted {
    /// How many stay for it.
    stay: usize,
    is_wanted_for_good: bool,
}

/// One caller's say in whether a task goes on.
#[derive(Debug)]
pub(super) enum Say {
    /// Nobody else can know of it: there is no key.
    Alone,
    /// Others may have asked for it as well.
    Among(Share),
    /// It is somebody else's.
    None,
}

/// One who stays for a task. Dropped without a word, it wants the task for good.
#[derive(Debug)]
pub(super) struct Share {
    interest: Arc<Interest>,
    id: TaskId,
    has_spoken: bool,
}

impl Interest {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Wanted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with the one whose task it is.
    pub(super) fn begin(self: &Arc<Self>, id: TaskId) -> Share {
        self.lock().insert(id, Wanted { stay: 1, is_wanted_for_good: false });
        Share { interest: Arc::clone(self), id, has_spoken: false }
    }

    /// Joins one who asked for the same.
    pub(super) fn join(self: &Arc<Self>, id: TaskId) -> Say {
        match self.lock().get_mut(&id) {
            Some(wanted) => {
                wanted.stay += 1;
                Say::Among(Share { interest: Arc::clone(self), id, has_spoken: false })
            }
            None => Say::None,
        }
    }

    /// Notes that somebody wants it who does not stay.
    pub(super) fn keep(&self, id: TaskId) {
        if let Some(wanted) = self.lock().get_mut(&id) {
            wanted.is_wanted_for_good = true;
        }
    }

    fn leave(&self, id: TaskId, is_wanted_for_good: bool) -> bool {
        let mut all = self.lock();
        let Some(wanted) = all.get_mut(&id) else { return false };
        wanted.stay -= 1;
        wanted.is_wanted_for_good |= is_wanted_for_good;
        let (is_last, is_over) = (wanted.stay == 0, !wanted.is_wanted_for_good);
        if is_last {
            all.remove(&id);
        }
        is_last && is_over
    }
}

impl Say {
    /// Gives the task up. True: nobody wants it any more.
    pub(super) fn give_up(&mut self) -> bool {
        match std::mem::replace(self, Self::None) {
            Self::Alone => true,
            Self::Among(mut share) => {
                share.has_spoken = true;
                share.interest.leave(share.id, false)
            }
            Self::None => false,
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if !self.has_spoken {
            self.interest.leave(self.id, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TaskId {
        "01890000-0000-7000-8000-000000000001".parse().unwrap()
    }

    #[test]
    fn the_last_one_to_give_up_calls_the_task_off() {
        let interest = Arc::new(Interest::default());
        let mut first = Say::Among(interest.begin(task()));
        let mut second = interest.join(task());
        assert!(!first.give_up(), "another wants it");
        assert!(!first.give_up(), "nobody speaks twice");
        assert!(second.give_up());
        assert!(interest.lock().is_empty());
        assert!(!interest.join(task()).give_up(), "it is nobody's who is known");
    }

    #[test]
    fn one_who_may_come_back_keeps_the_task() {
        let interest = Arc::new(Interest::default());
        let first = interest.begin(task());
        let mut second = interest.join(task());
        drop(first);
        assert!(!second.give_up());
        let mut first = Say::Among(interest.begin(task()));
        interest.keep(task());
        assert!(!first.give_up());
        assert!(interest.lock().is_empty());
        assert!(Say::Alone.give_up());
    }
}
