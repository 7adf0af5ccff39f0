//! What the runner knows as the agent's gateway: who registered, what became of each attempt, what waits in the queue,
//! and what it will answer. Everything is bounded, however much the agent says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

use super::tokens::Tokens;
use super::work::{Event, Key, Work};
use crate::exchange::Exchange;

/// How many heartbeats, claims and registrations are kept, of each.
const KEPT_MAX: usize = 2000;
/// How many events of one attempt are kept.
const EVENTS_MAX: usize = 200;
/// How many messages of its own an agent may send in a second.
pub(crate) const CALM_MAX: u32 = 200;

/// A registration.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    pub(crate) at: Instant,
    pub(crate) card: String,
    /// The connection that it came over. None: HTTP.
    pub(crate) connection: Option<u64>,
}

/// A heartbeat.
#[derive(Debug, Clone)]
pub(crate) struct Beat {
    pub(crate) at: Instant,
    /// What is wrong with it.
    pub(crate) wrong: Option<String>,
    pub(crate) load: u64,
}

/// A claim.
#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub(crate) at: Instant,
    pub(crate) wrong: Option<String>,
    /// Whether it waits for work.
    pub(crate) is_patient: bool,
}

/// How a report is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The gateway cannot take it just now.
    Unavailable,
    /// Another attempt has taken over.
    Stale,
    /// Its lease is lost: what is said of it is not noted.
    Lost,
}

/// A message to a connected agent.
pub(crate) enum Out {
    Text(String),
    /// The connection is cut, without a word.
    Cut,
    /// The connection is closed with this code.
    Close(u16),
}

/// An agent's open connection.
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) sender: mpsc::Sender<Out>,
    pub(crate) is_registered: bool,
}

/// What a connected agent answered.
pub(crate) type Reply = Result<String, String>;

/// A request to a connected agent that is not answered yet.
pub(crate) struct Pending {
    pub(crate) sender: oneshot::Sender<Reply>,
    /// The attempt that it delivers: what is said of it is noted in the order in which it comes.
    pub(crate) delivers: Option<Key>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) registrations: Vec<Registration>,
    pub(crate) beats: VecDeque<Beat>,
    pub(crate) pulls: VecDeque<Pull>,
    pub(crate) attempts: BTreeMap<Key, Vec<(Instant, Event)>>,
    pub(crate) queue: VecDeque<Work>,
    pub(crate) answers: BTreeMap<Key, VecDeque<Answer>>,
    pub(crate) tokens: Tokens,
    /// How long the lease of each attempt is that was pulled.
    pub(crate) leases: BTreeMap<Key, Duration>,
    /// Attempts whose lease is lost: nothing that is said of them counts.
    pub(crate) lost: BTreeSet<Key>,
    /// Attempts that are called off, for the next heartbeat's answer.
    pub(crate) stops: Vec<Key>,
    /// Reports that fit no schema or no attempt.
    pub(crate) wrong_reports: Vec<String>,
    /// How many reports came that were in order.
    pub(crate) good_reports: usize,
    /// Ends that were told of one attempt, by `task/complete` and `task/fail`.
    pub(crate) ends_told: BTreeMap<Key, usize>,
    /// `agent/drain` and `agent/deregister`.
    pub(crate) farewells: Vec<Instant>,
    /// The next heartbeat is answered that the agent is not known.
    pub(crate) disown_next: bool,
    /// The heartbeat that was. It is kept, however many come after it.
    pub(crate) disowned: Option<Beat>,
    /// The first whose answer had members that nobody knows.
    pub(crate) puzzled: Option<Beat>,
    pub(crate) connection: Option<Connection>,
    pub(crate) connections: u64,
    /// The id of the last request to a connected agent.
    pub(crate) next_id: u64,
    pub(crate) pending: BTreeMap<String, Pending>,
    /// Frames from a connected agent that are neither request, notification nor an awaited answer.
    pub(crate) strays: VecDeque<String>,
    window: Option<(Instant, u32)>,
    /// The most messages of its own in one second.
    pub(crate) peak: u32,
}

impl State {
    /// Whether nobody has said anything, or connected.
    pub(crate) fn has_heard_nothing(&self) -> bool {
        self.peak == 0 && self.connections == 0 && self.tokens.shown.is_empty()
    }
}

/// The desk.
pub(crate) struct Desk {
    pub(crate) exchange: Arc<Exchange>,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

impl Desk {
    /// Nobody has come yet.
    pub(crate) fn new(exchange: Arc<Exchange>) -> Arc<Self> {
        Arc::new(Self { exchange, state: Mutex::default(), changed: watch::channel(0).0 })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what is known.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Changes what is known, and wakes whoever waits for it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
        changed
    }

    /// Waits until there is something to see. None: it took too long.
    pub(crate) async fn wait<T>(&self, within: Duration, mut look: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let mut changed = self.changed.subscribe();
        let seen = async {
            loop {
                if let Some(seen) = look(&self.lock()) {
                    return seen;
                }
                // The sender lives in `self`.
                let _ = changed.changed().await;
            }
        };
        tokio::time::timeout(within, seen).await.ok()
    }

    /// Notes what became of an attempt.
    pub(crate) fn note(&self, key: Key, event: Event) {
        self.change(|state| {
            let events = state.attempts.entry(key).or_default();
            if events.len() < EVENTS_MAX {
                events.push((Instant::now(), event));
            }
        });
    }

    /// What became of an attempt so far.
    pub(crate) fn events(&self, key: Key) -> Vec<(Instant, Event)> {
        self.look(|state| state.attempts.get(&key).cloned().unwrap_or_default())
    }

    /// Counts a message that nobody asked for.
    pub(crate) fn count_unasked(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        let count = match state.window {
            Some((since, count)) if now.duration_since(since) < Duration::from_secs(1) => {
                state.window = Some((since, count.saturating_add(1)));
                count.saturating_add(1)
            }
            Some(_) | None => {
                state.window = Some((now, 1));
                1
            }
        };
        state.peak = state.peak.max(count);
    }

    /// Whether the agent floods us: then it is read more slowly.
    pub(crate) fn is_flooded(&self) -> bool {
        self.look(|state| state.window.is_some_and(|(_, count)| count > 2 * CALM_MAX))
    }
}

/// Adds one, and forgets the oldest beyond what is kept.
pub(crate) fn keep<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == KEPT_MAX {
        list.pop_front();
    }
    list.push_back(item);
}
