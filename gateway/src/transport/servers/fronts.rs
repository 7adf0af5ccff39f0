//! Sessions that clients have with servers through the gateway. A client keeps its session's id though its server was
//! restarted meanwhile; nobody else has any use of that id. Sessions that nobody uses any more are forgotten, and those
//! whose client may not use the server any more are ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use reach_schemas::{AgentId, AgentName};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::identity::Speaker;
use crate::mcp::wire::header;
use crate::webhook::secret_text;

/// How many sessions there may be at once. One more takes the place of the one that was not used for longest.
const FRONTS_MAX: usize = 10_000;
/// How long a session is kept that nobody uses: no request, and no stream that is open.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// How often idle ones are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// One session: what its client calls it, and what is behind it.
pub(super) struct Front<T> {
    pub(super) id: HeaderValue,
    pub(super) server: AgentName,
    pub(super) behind: T,
    /// Whose it is, by what it has shown last: its tokens change while the session lasts.
    speaker: Mutex<Speaker>,
    used_at: Mutex<Instant>,
    open: AtomicUsize,
    /// Cancelled once the session is over.
    pub(super) over: CancellationToken,
}

/// All sessions of one kind.
pub(super) struct Fronts<T>(Arc<Mutex<Table<T>>>);

struct Table<T> {
    fronts: HashMap<String, Arc<Front<T>>>,
    is_swept: bool,
}

/// A request or a stream of a session, while it is open.
pub(super) struct Open<T>(Arc<Front<T>>);

impl<T> Drop for Open<T> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

impl<T> Front<T> {
    fn touch(&self) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn speaker(&self) -> Speaker {
        self.speaker.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is one's own session.
    fn is_of(&self, speaker: &Speaker) -> bool {
        let mut own = self.speaker.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = own.is_same(speaker);
        if is_own {
            own.clone_from(speaker);
        }
        is_own
    }

    fn used_at(&self) -> Instant {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the session from being idle until what is given back is dropped.
    pub(super) fn open(self: &Arc<Self>) -> Open<T> {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.touch();
        Open(Arc::clone(self))
    }
}

impl<T: Send + Sync + 'static> Fronts<T> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Table { fronts: HashMap::new(), is_swept: false })))
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        lock(&self.0)
    }

    /// Takes a session in, under an id that nobody can guess.
    pub(super) fn put(&self, server: AgentName, speaker: &Speaker, behind: T) -> Arc<Front<T>> {
        let id: String = secret_text().chars().filter(char::is_ascii_alphanumeric).collect();
        let front = Arc::new(Front {
            id: HeaderValue::from_str(&id).expect("letters and digits are a value"),
            server,
            behind,
            speaker: Mutex::new(speaker.clone()),
            used_at: Mutex::new(Instant::now()),
            open: AtomicUsize::new(0),
            over: CancellationToken::new(),
        });
        let mut table = self.lock();
        if table.fronts.len() >= FRONTS_MAX {
            let counts = table.counts();
            table.end_idle(|owner| counts.get(&owner.cloned()).copied());
        }
        table.fronts.insert(id, Arc::clone(&front));
        if !std::mem::replace(&mut table.is_swept, true) {
            tokio::spawn(sweep(Arc::clone(&self.0)));
        }
        front
    }

    /// The session that a request names, if it is one with this server, and of whoever asks.
    pub(super) fn of(&self, server: &str, speaker: &Speaker, headers: &HeaderMap) -> Option<Arc<Front<T>>> {
        let id = headers.get(header::SESSION_ID)?.to_str().ok()?;
        let front = self.lock().fronts.get(id).filter(|front| front.server.as_str() == server).cloned()?;
        front.is_of(speaker).then_some(front)
    }

    /// Ends the session that was not used for longest, of those that no request and no stream is open of, of the owner that
    /// weighs most. None: not of this one.
    pub(super) fn end_idle(&self, weight: impl Fn(Option<&AgentId>) -> Option<usize>) -> bool {
        self.lock().end_idle(weight)
    }

    /// Ends all sessions whose client may not use its server any more.
    pub(super) fn end_unless(&self, may: impl Fn(&Speaker, &str) -> bool) {
        let all: Vec<Arc<Front<T>>> = self.lock().fronts.values().cloned().collect();
        for front in all.into_iter().filter(|front| !may(&front.speaker(), front.server.as_str())) {
            self.remove(&front);
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().fronts.is_empty()
    }

    /// Ends a session.
    pub(super) fn remove(&self, front: &Arc<Front<T>>) {
        if let Ok(id) = front.id.to_str() {
            self.lock().fronts.remove(id);
        }
        front.over.cancel();
    }
}

impl<T> Table<T> {
    fn counts(&self) -> HashMap<Option<AgentId>, usize> {
        let mut counts = HashMap::new();
        for front in self.fronts.values() {
            *counts.entry(front.speaker().agent().cloned()).or_default() += 1;
        }
        counts
    }

    fn end_idle(&mut self, weight: impl Fn(Option<&AgentId>) -> Option<usize>) -> bool {
        let idle = self.fronts.iter().filter(|(_, front)| front.open.load(Ordering::Relaxed) == 0);
        let weighed = idle.filter_map(|(id, front)| Some((weight(front.speaker().agent())?, front.used_at(), id)));
        let first = weighed.max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1))).map(|(_, _, id)| id.clone());
        let ended = first.and_then(|id| self.fronts.remove(&id));
        if let Some(front) = &ended {
            front.over.cancel();
        }
        ended.is_some()
    }
}

fn lock<T>(table: &Mutex<Table<T>>) -> MutexGuard<'_, Table<T>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets idle sessions, until there are none.
async fn sweep<T>(table: Arc<Mutex<Table<T>>>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let now = Instant::now();
        let mut table = lock(&table);
        table.fronts.retain(|_, front| {
            let is_kept = front.open.load(Ordering::Relaxed) > 0 || now - front.used_at() < IDLE;
            if !is_kept {
                front.over.cancel();
            }
            is_kept
        });
        if table.fronts.is_empty() {
            table.fronts.shrink_to_fit();
            table.is_swept = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<T>(front: &Arc<Front<T>>) -> HeaderMap {
        HeaderMap::from_iter([(header::SESSION_ID.parse().unwrap(), front.id.clone())])
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_its_clients_own_and_ends_when_the_server_is_closed_to_it() {
        let fronts = Fronts::new();
        let speaker = |agent: &str| Speaker::of_own_process(agent.parse().ok());
        let (own, other) = (speaker("a@x"), speaker("b@x"));
        let mine = fronts.put("s".parse().unwrap(), &own, ());
        assert!(fronts.of("s", &other, &named(&mine)).is_none());
        assert!(fronts.of("s", &Speaker::of_own_process(None), &named(&mine)).is_none());
        assert!(fronts.of("s", &own, &named(&mine)).is_some());
        let theirs = fronts.put("s".parse().unwrap(), &other, ());
        fronts.end_unless(|speaker, server| server == "s" && !speaker.is_same(&own));
        assert!(mine.over.is_cancelled() && fronts.of("s", &own, &named(&mine)).is_none());
        assert!(!theirs.over.is_cancelled() && fronts.of("s", &other, &named(&theirs)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn way_is_made_by_who_weighs_most_with_what_was_not_used_for_longest() {
        let fronts = Fronts::new();
        let speaker = |agent: &str| Speaker::of_own_process(agent.parse().ok());
        let mut all = Vec::new();
        for agent in ["a@x", "b@x", "b@x", "b@x"] {
            all.push(fronts.put("s".parse().unwrap(), &speaker(agent), ()));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let open = all[1].open();
        let weight = |owner: Option<&AgentId>| Some(if owner?.name() == "b" { 3 } else { 1 });
        let gone = || all.iter().map(|front| front.over.is_cancelled()).collect::<Vec<_>>();
        assert!(fronts.end_idle(weight));
        assert_eq!(gone(), [false, false, true, false], "one that is in use stays");
        assert!(!fronts.end_idle(|_| None));
        drop(open);
        assert!(fronts.end_idle(weight) && fronts.end_idle(weight) && fronts.end_idle(weight));
        assert!(!fronts.end_idle(weight) && fronts.is_empty() && !gone().contains(&false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_forgotten_once_nobody_uses_it() {
        let fronts = Fronts::new();
        let who = Speaker::of_own_process(None);
        let (idle, used) = (fronts.put("a".parse().unwrap(), &who, 1), fronts.put("a".parse().unwrap(), &who, 2));
        let open = used.open();
        assert_ne!(idle.id, used.id);
        assert_eq!(fronts.of("a", &who, &named(&idle)).unwrap().behind, 1);
        assert!(fronts.of("b", &who, &named(&idle)).is_none(), "it is a session with another server");
        tokio::time::sleep(IDLE + 2 * SWEEP_EVERY).await;
        assert!(fronts.of("a", &who, &named(&idle)).is_none() && idle.over.is_cancelled());
        assert!(fronts.of("a", &who, &named(&used)).is_some());
        drop(open);
        tokio::time::sleep(IDLE + 2 * SWEEP_EVERY).await;
        assert!(fronts.of("a", &who, &named(&used)).is_none() && !fronts.lock().is_swept);
    }
}
