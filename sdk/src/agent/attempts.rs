//! The attempts that an agent has: which run, which have ended, and whose results the gateway does not have yet.
//! Here it is decided that a second delivery of an attempt does not run, and that an old attempt gives way to a new.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_schemas::call::Working;
use reach_schemas::{FencingToken, TaskId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::outcome::Outcome;

/// How many ended attempts are remembered, so that a late second delivery is known for what it is.
const ENDED_MAX: usize = 4096;
/// How many bytes of results they may hold together.
const ENDED_BYTES_MAX: usize = 32 << 20;
/// How many results may wait for the gateway; no new work is taken on beyond that.
const UNSENT_MAX: u32 = 1024;

/// Names an attempt.
pub(super) type Key = (TaskId, FencingToken);

pub(super) struct Attempts {
    table: Mutex<Table>,
    counts: watch::Sender<Counts>,
    running_max: u32,
    /// Its end is the end of every attempt.
    shutdown: CancellationToken,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<Key, Entry>,
    /// Oldest first.
    ended: VecDeque<Key>,
    ended_bytes: usize,
    unsent: BTreeSet<Key>,
}

enum Entry {
    Running { cancel: CancellationToken, is_stopped: bool },
    Ended(Outcome),
}

/// How much there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) running: u32,
    pub(super) unsent: u32,
}

/// What becomes of a delivery.
pub(super) enum Admission {
    /// It is to run.
    New(Seat),
    /// It is running already.
    Running,
    /// It has run already, and ended so.
    Ended(Outcome),
    /// There is no room.
    Full,
    /// A newer attempt of the task is known, or this one was told to stop.
    Stale,
}

/// Room for one attempt. Dropping it before the attempt has ended forgets that the attempt ever came.
pub(super) struct Seat {
    attempts: Arc<Attempts>,
    pub(super) key: Key,
    pub(super) cancel: CancellationToken,
}

/// The result of one attempt is on its way.
pub(super) struct Reporting {
    attempts: Arc<Attempts>,
    key: Key,
}

impl Attempts {
    pub(super) fn new(running_max: u32, shutdown: CancellationToken) -> Arc<Self> {
        let (counts, _) = watch::channel(Counts::default());
        Arc::new(Self { table: Mutex::default(), counts, running_max: running_max.max(1), shutdown })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides what becomes of a delivery. Older attempts of the same task are told to stop.
    pub(super) fn admit(self: &Arc<Self>, key: Key) -> Admission {
        let mut table = self.lock();
        let (task_id, token) = key;
        let of_task = (task_id, FencingToken(0))..=(task_id, FencingToken(u64::MAX));
        if table.entries.range(of_task.clone()).any(|((_, other), _)| *other > token) {
            return Admission::Stale;
        }
        match table.entries.get(&key) {
            Some(Entry::Ended(Outcome::Stopped) | Entry::Running { is_stopped: true, .. }) => return Admission::Stale,
            Some(Entry::Running { .. }) => return Admission::Running,
            Some(Entry::Ended(outcome)) => return Admission::Ended(outcome.clone()),
            None => {}
        }
        table.entries.range_mut(of_task).for_each(|(_, older)| stop_entry(older));
        let counts = *self.counts.borrow();
        if counts.running >= self.running_max || counts.unsent >= UNSENT_MAX {
            return Admission::Full;
        }
        let cancel = self.shutdown.child_token();
        table.entries.insert(key, Entry::Running { cancel: cancel.clone(), is_stopped: false });
        self.counts.send_modify(|counts| counts.running += 1);
        Admission::New(Seat { attempts: self.clone(), key, cancel })
    }

    /// Tells an attempt to stop; its result will not be reported.
    pub(super) fn stop(&self, key: Key) {
        if let Some(entry) = self.lock().entries.get_mut(&key) {
            stop_entry(entry);
        }
    }

    /// Tells all attempts to stop; none of their results will be reported.
    pub(super) fn stop_all(&self) {
        self.lock().entries.values_mut().for_each(stop_entry);
    }

    /// Attempts that run, and those whose results are on their way: the gateway shall leave them to us.
    pub(super) fn working_on(&self) -> Vec<Working> {
        let table = self.lock();
        let running =
            table.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Running { is_stopped: false, .. }));
        let keys: BTreeSet<Key> = running.map(|(key, _)| *key).chain(table.unsent.iter().copied()).collect();
        keys.into_iter().map(|(task_id, token)| Working { task_id, token }).collect()
    }

    pub(super) fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Waits until there is room, and tells how much.
    pub(super) async fn room(&self) -> u32 {
        let mut counts = self.counts.subscribe();
        let is_free = |counts: &Counts| counts.running < self.running_max && counts.unsent < UNSENT_MAX;
        // The sender lives in `self`, so the channel cannot be closed.
        counts.wait_for(is_free).await.map_or(1, |counts| self.running_max - counts.running)
    }

    /// Waits until nothing runs and every result is with the gateway.
    pub(super) async fn idle(&self) {
        let mut counts = self.counts.subscribe();
        let _never_closed = counts.wait_for(|counts| *counts == Counts::default()).await;
    }

    /// Notes that a result is on its way.
    pub(super) fn reporting(self: &Arc<Self>, key: Key) -> Reporting {
        let mut table = self.lock();
        table.unsent.insert(key);
        self.recount(&table);
        Reporting { attempts: self.clone(), key }
    }

    fn recount(&self, table: &Table) {
        let unsent = u32::try_from(table.unsent.len()).unwrap_or(u32::MAX);
        self.counts.send_modify(|counts| counts.unsent = unsent);
    }
}

fn stop_entry(entry: &mut Entry) {
    if let Entry::Running { cancel, is_stopped } = entry {
        *is_stopped = true;
        cancel.cancel();
    }
}

impl Seat {
    /// Whether the gateway had it stopped.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.attempts.lock().entries.get(&self.key), Some(Entry::Running { is_stopped: true, .. }))
    }

    /// The attempt has ended: its seat is free. From here until the answer of `Reporting`, the result is on its way.
    pub(super) fn end(self, outcome: Outcome) -> Reporting {
        let reporting = self.attempts.reporting(self.key);
        let mut table = self.attempts.lock();
        table.ended.push_back(self.key);
        table.ended_bytes += outcome.size();
        table.entries.insert(self.key, Entry::Ended(outcome));
        while table.ended.len() > ENDED_MAX || table.ended_bytes > ENDED_BYTES_MAX && table.ended.len() > 1 {
            let Some(oldest) = table.ended.pop_front() else { break };
            if let Some(Entry::Ended(outcome)) = table.entries.remove(&oldest) {
                table.ended_bytes -= outcome.size();
            }
        }
        drop(table);
        reporting
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.attempts.lock();
        if matches!(table.entries.get(&self.key), Some(Entry::Running { .. })) {
            table.entries.remove(&self.key);
        }
        drop(table);
        self.attempts.counts.send_modify(|counts| counts.running = counts.running.saturating_sub(1));
    }
}

impl Reporting {
    pub(super) fn key(&self) -> Key {
        self.key
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        let mut table = self.attempts.lock();
        table.unsent.remove(&self.key);
        self.attempts.recount(&table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(task: u64, token: u64) -> Key {
        (TaskId::from_parts(task, 1), FencingToken(token))
    }

    fn done() -> Outcome {
        Outcome::Completed(reach_schemas::RawJson::parse("1").unwrap(), None)
    }

    #[track_caller]
    fn admitted(attempts: &Arc<Attempts>, key: Key) -> Seat {
        match attempts.admit(key) {
            Admission::New(seat) => seat,
            Admission::Running | Admission::Ended(_) | Admission::Full | Admission::Stale => panic!("not admitted"),
        }
    }

    fn attempts(max: u32) -> Arc<Attempts> {
        Attempts::new(max, CancellationToken::new())
    }

    #[test]
    fn an_attempt_runs_once_however_often_it_comes() {
        let attempts = attempts(4);
        let seat = admitted(&attempts, key(1, 1));
        assert!(matches!(attempts.admit(key(1, 1)), Admission::Running));
        drop(seat.end(done()));
        assert!(matches!(attempts.admit(key(1, 1)), Admission::Ended(_)));
        assert_eq!(attempts.counts(), Counts::default());
    }

    #[test]
    fn a_new_attempt_stops_the_old_one_and_the_old_one_cannot_come_back() {
        let attempts = attempts(4);
        let old = admitted(&attempts, key(1, 1));
        let new = admitted(&attempts, key(1, 2));
        assert!(old.is_stopped() && old.cancel.is_cancelled());
        assert!(!new.is_stopped() && !new.cancel.is_cancelled());
        drop(old);
        assert!(matches!(attempts.admit(key(1, 1)), Admission::Stale));
        drop(admitted(&attempts, key(2, 1)));
    }

    #[test]
    fn what_was_never_accepted_is_forgotten() {
        let attempts = attempts(1);
        drop(admitted(&attempts, key(1, 1)));
        drop(admitted(&attempts, key(1, 1)));
    }

    #[test]
    fn there_is_room_for_so_many_and_a_result_on_its_way_takes_none() {
        let attempts = attempts(1);
        let seat = admitted(&attempts, key(1, 1));
        assert!(matches!(attempts.admit(key(2, 1)), Admission::Full));
        let _reporting = seat.end(Outcome::Stopped);
        assert_eq!(attempts.working_on().len(), 1);
        drop(admitted(&attempts, key(2, 1)));
    }

    #[test]
    fn memory_of_ended_attempts_is_bounded() {
        let attempts = attempts(1);
        for task in 0..=ENDED_MAX as u64 {
            drop(admitted(&attempts, key(task, 1)).end(done()));
        }
        assert!(matches!(attempts.admit(key(1, 1)), Admission::Ended(_)));
        assert!(matches!(attempts.admit(key(0, 1)), Admission::New(_)));
    }
}
