//! How many processes there may be at once for sessions: in all, for the agents of one namespace, and for one agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_schemas::AgentId;

/// How many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::transport) struct Bounds {
    pub(in crate::transport) all: usize,
    pub(in crate::transport) namespace: usize,
    pub(in crate::transport) caller: usize,
}

/// Which bound is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Caller,
    Namespace,
    All,
}

/// All places. Operators are held to the bound of all only.
pub(super) struct Places {
    bounds: Bounds,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// By agent, and by namespace; no agent's id is the name of a namespace. None: operators.
    by: HashMap<Option<String>, usize>,
}

/// A place that is taken until this is dropped.
pub(super) struct Place {
    owner: Option<AgentId>,
    taken: Arc<Mutex<Taken>>,
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Under what a place is counted beside all.
fn names(owner: Option<&AgentId>) -> Vec<Option<String>> {
    owner.map_or_else(
        || vec![None],
        |agent| vec![Some(agent.as_str().to_owned()), Some(agent.namespace_str().to_owned())],
    )
}

impl Taken {
    fn of(&self, name: Option<&str>) -> usize {
        self.by.get(&name.map(str::to_owned)).copied().unwrap_or_default()
    }
}

impl Places {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, taken: Arc::default() }
    }

    pub(super) const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Takes a place.
    pub(super) fn take(&self, owner: Option<&AgentId>) -> Result<Place, Full> {
        let mut taken = lock(&self.taken);
        if let Some(agent) = owner {
            if taken.of(Some(agent.as_str())) >= self.bounds.caller {
                return Err(Full::Caller);
            }
            if taken.of(Some(agent.namespace_str())) >= self.bounds.namespace {
                return Err(Full::Namespace);
            }
        }
        if taken.all >= self.bounds.all {
            return Err(Full::All);
        }
        taken.all += 1;
        for name in names(owner) {
            *taken.by.entry(name).or_default() += 1;
        }
        Ok(Place { owner: owner.cloned(), taken: Arc::clone(&self.taken) })
    }

    /// How much an owner weighs when a place is wanted for a newcomer: how many it has, if one of them would help, and if it
    /// would then still have as many as the newcomer, or is the newcomer itself. None: it keeps what it has.
    pub(super) fn weight(&self, full: Full, newcomer: Option<&AgentId>, owner: Option<&AgentId>) -> Option<usize> {
        let helps = match full {
            Full::Caller => owner == newcomer,
            Full::Namespace => owner.map(AgentId::namespace_str) == newcomer.map(AgentId::namespace_str),
            Full::All => true,
        };
        let taken = lock(&self.taken);
        let count = |agent: Option<&AgentId>| taken.of(agent.map(AgentId::as_str));
        (helps && (owner == newcomer || count(owner) > count(newcomer) + 1)).then(|| count(owner))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all -= 1;
        for name in names(self.owner.as_ref()) {
            if let Some(count) = taken.by.get_mut(&name) {
                *count -= 1;
                if *count == 0 {
                    taken.by.remove(&name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_and_one_namespace_have_a_share_and_give_back_what_they_had() {
        let places = Places::new(Bounds { all: 5, namespace: 3, caller: 2 });
        let agent = |id: &str| Some(id.parse::<AgentId>().unwrap());
        let (a, b, c) = (agent("a@x"), agent("b@x"), agent("c@y"));
        let take = |who: &Option<AgentId>| places.take(who.as_ref());
        let (first, _second) = (take(&a).ok().unwrap(), take(&a).ok().unwrap());
        assert_eq!(take(&a).err(), Some(Full::Caller));
        let _third = take(&b).ok().unwrap();
        assert_eq!(take(&b).err(), Some(Full::Namespace));
        let weight = |full, newcomer: &Option<AgentId>, owner: &Option<AgentId>| {
            places.weight(full, newcomer.as_ref(), owner.as_ref())
        };
        let new = agent("new@x");
        assert_eq!(weight(Full::Namespace, &new, &a), Some(2), "who has more makes way");
        assert_eq!(weight(Full::Namespace, &b, &b), Some(1), "or the newcomer itself");
        assert_eq!((weight(Full::Namespace, &new, &b), weight(Full::Namespace, &b, &a)), (None, None));
        assert_eq!((weight(Full::Namespace, &c, &a), weight(Full::All, &c, &a)), (None, Some(2)));
        let operators = [take(&None).ok().unwrap(), take(&None).ok().unwrap()];
        assert_eq!((take(&None).err(), take(&c).err()), (Some(Full::All), Some(Full::All)));
        drop((first, operators));
        assert!(take(&a).is_ok());
        assert_eq!(lock(&places.taken).by.len(), 3, "who has none is not remembered");
    }
}
