//! Sessions of the handshake era: what was agreed on, and nothing of what was asked. Each is small, their number is
//! bounded, and those that nobody uses are forgotten; a client that comes back is told so and opens another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::in_flight::InFlight;
use super::waits::Waits;
use crate::identity::Speaker;
use crate::mcp::wire::Revision;

mod stream;

use stream::Streams;
pub use stream::{Next, Stream};

/// How often sessions that nobody uses are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(15);
/// How many bytes of chance a session's id has.
const ID_LEN: usize = 24;
/// Which share of all sessions makes way at once when there are as many as may be.
const MAKES_WAY: usize = 16;

/// How many sessions there may be, and for how long.
#[derive(Debug, Clone)]
pub struct SessionLimits {
    /// At most so many. One more makes the ones that were used the longest ago go.
    pub sessions_max: usize,
    /// For how long one is kept after it was used last.
    pub idle_max: Duration,
    /// The same for one in which nothing was asked since it was opened.
    pub unused_max: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            sessions_max: 20_000,
            idle_max: Duration::from_secs(12 * 60 * 60),
            unused_max: Duration::from_secs(5 * 60),
        }
    }
}

/// One client, from its handshake on.
#[derive(Debug)]
pub struct Session {
    id: Box<str>,
    pub(super) speaker: Speaker,
    revision: OnceLock<Revision>,
    pub(super) in_flight: InFlight,
    pub(super) streams: Streams,
    seen_at: AtomicU64,
    asked: AtomicU64,
    agreed: Notify,
    closed: CancellationToken,
}

impl Session {
    /// The session of a connection, which lasts as long as that does. Nothing is agreed on yet.
    #[must_use]
    pub fn of_connection(speaker: Speaker) -> Arc<Self> {
        Arc::new(Self::new(speaker))
    }

    fn new(speaker: Speaker) -> Self {
        Self {
            id: Box::default(),
            speaker,
            revision: OnceLock::new(),
            in_flight: InFlight::default(),
            streams: Streams::default(),
            seen_at: AtomicU64::default(),
            asked: AtomicU64::default(),
            agreed: Notify::default(),
            closed: CancellationToken::default(),
        }
    }

    /// Its id, for a header.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The revision that was agreed on, once it was.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    /// Agrees on a revision. False: there was one already.
    pub(super) fn agree(&self, revision: Revision) -> bool {
        let is_new = self.revision.set(revision).is_ok();
        self.agreed.notify_one();
        is_new
    }

    /// Is done, for one who waits, once a revision was agreed on.
    pub(super) async fn agreed(&self) {
        self.agreed.notified().await;
    }

    /// Ends it: whoever listens is told no more.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Begins a stream that the client can take up again, on which these calls wait.
    #[must_use]
    pub fn begin_stream(&self, waits: Waits) -> Arc<Stream> {
        self.streams.begin(waits)
    }

    /// Is done once the session is over.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

/// All sessions over HTTP.
pub(super) struct Sessions {
    limits: SessionLimits,
    began_at: Instant,
    table: Mutex<HashMap<Box<str>, Arc<Session>>>,
}

impl Sessions {
    pub(super) fn new(limits: SessionLimits) -> Self {
        Self { limits, began_at: Instant::now(), table: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn open(&self, speaker: Speaker, revision: Revision) -> Arc<Session> {
        let session = Arc::new(Session {
            id: new_id(),
            revision: OnceLock::from(revision),
            seen_at: AtomicU64::new(self.now()),
            ..Session::new(speaker)
        });
        let mut table = self.lock();
        if table.len() >= self.limits.sessions_max {
            make_way(&mut table);
        }
        table.insert(session.id.clone(), Arc::clone(&session));
        session
    }

    /// The session of an id, for whoever opened it. None: it is over, or was another's.
    pub(super) fn get(&self, id: &str, speaker: &Speaker) -> Option<Arc<Session>> {
        let session = self.lock().get(id).filter(|session| session.speaker.is_same(speaker)).cloned()?;
        session.seen_at.store(self.now(), Ordering::Relaxed);
        session.asked.fetch_add(1, Ordering::Relaxed);
        Some(session)
    }

    pub(super) fn close(&self, session: &Session) {
        self.lock().remove(&session.id);
        session.close();
    }

    pub(super) async fn sweep(&self) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            self.forget_unused();
        }
    }

    fn forget_unused(&self) {
        let now = self.now();
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let (idle_max, unused_max) = (ms(self.limits.idle_max), ms(self.limits.unused_max));
        let mut table = self.lock();
        table.retain(|_, session| {
            session.streams.forget_ended();
            // What comes with the handshake is not a use.
            let is_used = session.asked.load(Ordering::Relaxed) > 1;
            let idle_for = now.saturating_sub(session.seen_at.load(Ordering::Relaxed));
            is_held(session) || idle_for < if is_used { idle_max } else { unused_max }
        });
        if table.capacity() > 2 * table.len() {
            table.shrink_to_fit();
        }
    }
}

/// Whether somebody works in it or listens, beside the table that knows it.
fn is_held(session: &Arc<Session>) -> bool {
    Arc::strong_count(session) > 1
}

/// Has a share of the sessions go that were used the longest ago.
fn make_way(table: &mut HashMap<Box<str>, Arc<Session>>) {
    let mut by_age: Vec<(u64, Box<str>)> = table
        .values()
        .filter(|session| !is_held(session))
        .map(|session| (session.seen_at.load(Ordering::Relaxed), session.id.clone()))
        .collect();
    by_age.sort_unstable();
    let count = (by_age.len() / MAKES_WAY).max(1);
    for (_, id) in by_age.into_iter().take(count) {
        table.remove(&id);
    }
    tracing::warn!(
        sessions = table.len(),
        "as many MCP sessions are open as may be; those unused the longest were ended"
    );
}

/// Chance from the operating system: whoever knows the id may speak in the session.
fn new_id() -> Box<str> {
    let mut bytes = [0; ID_LEN];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut bytes).expect("the operating system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator() -> Speaker {
        Speaker::of_own_process(None)
    }

    fn sessions(sessions_max: usize) -> Sessions {
        let seconds = Duration::from_secs;
        Sessions::new(SessionLimits { sessions_max, idle_max: seconds(100), unused_max: seconds(10) })
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_uses_is_forgotten_and_what_is_held_is_kept() {
        let sessions = sessions(10);
        let open = || sessions.open(operator(), Revision::V2025_11_25);
        let (unused, used, held) = (open().id().to_owned(), open().id().to_owned(), open());
        for _ in 0..2 {
            assert!(sessions.get(&used, &operator()).is_some());
        }
        tokio::time::advance(Duration::from_secs(11)).await;
        sessions.forget_unused();
        assert!(sessions.get(&unused, &operator()).is_none() && sessions.len() == 2);
        tokio::time::advance(Duration::from_secs(101)).await;
        sessions.forget_unused();
        assert!(sessions.get(&used, &operator()).is_none() && sessions.get(held.id(), &operator()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn when_there_are_too_many_those_unused_the_longest_go() {
        let sessions = sessions(32);
        let mut ids = Vec::new();
        for _ in 0..33 {
            ids.push(sessions.open(operator(), Revision::V2025_11_25).id().to_owned());
            tokio::time::advance(Duration::from_millis(5)).await;
        }
        assert_eq!(sessions.len(), 31);
        assert!(sessions.get(&ids[0], &operator()).is_none() && sessions.get(&ids[1], &operator()).is_none());
        assert!(sessions.get(&ids[2], &operator()).is_some() && sessions.get(&ids[32], &operator()).is_some());
    }

    #[tokio::test]
    async fn a_session_is_found_by_its_own_agent_only() {
        let sessions = sessions(10);
        let named = |agent: &str| Speaker::of_own_process(agent.parse().ok());
        let (own, other, none) = (named("a@x"), named("b@x"), operator());
        let session = sessions.open(own.clone(), Revision::V2025_06_18);
        assert!(sessions.get(session.id(), &own).is_some());
        assert!(sessions.get(session.id(), &other).is_none() && sessions.get(session.id(), &none).is_none());
        sessions.close(&session);
        session.closed().await;
        assert!(sessions.get(session.id(), &own).is_none());
    }
}
