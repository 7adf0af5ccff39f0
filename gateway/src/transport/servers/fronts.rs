//! Sessions that clients have with servers through the gateway. A client keeps its session's id though its server was
//! restarted meanwhile, and sessions that nobody uses any more are forgotten.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use reach_schemas::AgentName;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

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
    pub(super) fn put(&self, server: AgentName, behind: T) -> Arc<Front<T>> {
        let id: String = secret_text().chars().filter(char::is_ascii_alphanumeric).collect();
        let front = Arc::new(Front {
            id: HeaderValue::from_str(&id).expect("letters and digits are a value"),
            server,
            behind,
            used_at: Mutex::new(Instant::now()),
            open: AtomicUsize::new(0),
            over: CancellationToken::new(),
        });
        let mut table = self.lock();
        if table.fronts.len() >= FRONTS_MAX {
            let idle = table.fronts.iter().filter(|(_, front)| front.open.load(Ordering::Relaxed) == 0);
            let oldest = idle.min_by_key(|(_, front)| front.used_at()).map(|(id, _)| id.clone());
            if let Some(front) = oldest.and_then(|id| table.fronts.remove(&id)) {
                front.over.cancel();
            }
        }
        table.fronts.insert(id, Arc::clone(&front));
        if !std::mem::replace(&mut table.is_swept, true) {
            tokio::spawn(sweep(Arc::clone(&self.0)));
        }
        front
    }

    /// The session that a request names, if it is one with this server.
    pub(super) fn of(&self, server: &str, headers: &HeaderMap) -> Option<Arc<Front<T>>> {
        let id = headers.get(header::SESSION_ID)?.to_str().ok()?;
        self.lock().fronts.get(id).filter(|front| front.server.as_str() == server).cloned()
    }

    /// Ends a session.
    pub(super) fn remove(&self, front: &Arc<Front<T>>) {
        if let Ok(id) = front.id.to_str() {
            self.lock().fronts.remove(id);
        }
        front.over.cancel();
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

    #[tokio::test(start_paused = true)]
    async fn a_session_is_forgotten_once_nobody_uses_it() {
        let fronts = Fronts::new();
        let (idle, used) = (fronts.put("a".parse().unwrap(), 1), fronts.put("a".parse().unwrap(), 2));
        let open = used.open();
        let named =
            |front: &Arc<Front<i32>>| HeaderMap::from_iter([(header::SESSION_ID.parse().unwrap(), front.id.clone())]);
        assert_ne!(idle.id, used.id);
        assert_eq!(fronts.of("a", &named(&idle)).unwrap().behind, 1);
        assert!(fronts.of("b", &named(&idle)).is_none(), "it is a session with another server");
        tokio::time::sleep(IDLE + 2 * SWEEP_EVERY).await;
        assert!(fronts.of("a", &named(&idle)).is_none() && idle.over.is_cancelled());
        assert!(fronts.of("a", &named(&used)).is_some());
        drop(open);
        tokio::time::sleep(IDLE + 2 * SWEEP_EVERY).await;
        assert!(fronts.of("a", &named(&used)).is_none() && !fronts.lock().is_swept);
    }
}
