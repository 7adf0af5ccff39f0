//! MCP servers that the gateway is a client of: over Streamable HTTP or as a process of its own, of every revision. What
//! they say is carried as they wrote it. Each server is met when it is first needed, and met again when it was lost, with
//! waits in between that grow; no server waits for another.

pub mod ask;
pub(crate) mod broken;
pub mod card;
pub mod catalogue;
pub mod greeting;
mod http;
mod link;
mod mirror;
pub mod reply;
pub mod server;
pub mod spec;
mod stdio;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use reach_schemas::{AgentName, FencingToken, RawJson, ServerSpec, TaskId};
use tokio::sync::{Notify, Semaphore, mpsc};

pub(crate) use self::http::is_session_gone;
use self::server::{Server, Shared};
pub(crate) use self::stdio::{Outgoing, Passed, Running};
use crate::clock::Clock;
use crate::outbound::{Client, Guard};

/// How many servers are met at once, not counting those that take long to say anything.
const MEETING_MAX: usize = 64;
/// How many servers that agents named by address are remembered.
const NAMED_MAX: usize = 1024;
/// How many notices of progress may wait to be stored; more are dropped, for the next one says more.
const PROGRESS_MAX: usize = 1024;

/// Progress of one attempt, as its server tells it.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Of which task.
    pub task_id: TaskId,
    /// Of which attempt.
    pub token: FencingToken,
    /// The params of the notice.
    pub told: RawJson,
}

/// All servers.
pub struct Upstreams {
    shared: Arc<Shared>,
    servers: RwLock<BTreeMap<AgentName, Arc<Server>>>,
    named: Mutex<BTreeMap<String, Arc<Server>>>,
    /// Rung when a server comes or goes.
    pub(crate) bell: Notify,
    progress: mpsc::Sender<Progress>,
    heard: Mutex<Option<mpsc::Receiver<Progress>>>,
}

impl Upstreams {
    /// No servers yet; they are gone to where the guard lets them be. Must be used within a Tokio runtime.
    #[must_use]
    pub fn new(clock: Clock, guard: Guard) -> Self {
        let (progress, heard) = mpsc::channel(PROGRESS_MAX);
        let shared = Shared { clock, client: Arc::new(Client::new(guard)), meeting: Semaphore::new(MEETING_MAX) };
        Self {
            shared: Arc::new(shared),
            servers: RwLock::default(),
            named: Mutex::default(),
            bell: Notify::new(),
            progress,
            heard: Mutex::new(Some(heard)),
        }
    }

    /// Takes a server in. One of the same name that was there is given back, and is the caller's to close.
    pub fn put(&self, spec: ServerSpec, is_configured: bool) -> (Arc<Server>, Option<Arc<Server>>) {
        let name = spec.name.clone();
        let server = Server::new(spec, is_configured, &self.shared);
        let old = self.servers.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::clone(&server));
        self.bell.notify_one();
        (server, old)
    }

    /// A server by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Server>> {
        let name: AgentName = name.parse().ok()?;
        self.servers.read().unwrap_or_else(PoisonError::into_inner).get(&name).cloned()
    }

    /// All of them, in the order of their names.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Forgets a server that came to nothing and ends it; what stood in its place before stands there again.
    pub async fn put_back(&self, server: &Arc<Server>, old: Option<Arc<Server>>) {
        if let Some(old) = old {
            let name = old.spec().name.clone();
            self.servers.write().unwrap_or_else(PoisonError::into_inner).insert(name, old);
        }
        self.remove(server).await;
    }

    /// Forgets a server and ends it.
    pub async fn remove(&self, server: &Arc<Server>) {
        {
            let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
            let name = &server.spec().name;
            if servers.get(name).is_some_and(|known| Arc::ptr_eq(known, server)) {
                servers.remove(name);
            }
        }
        server.close().await;
    }

    /// The server at an address that an agent named.
    ///
    /// # Errors
    /// It is no address of a server.
    pub fn at(&self, url: &str) -> Result<Arc<Server>, String> {
        spec::address(url)?;
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = named.get(url) {
            return Ok(Arc::clone(server));
        }
        if named.len() >= NAMED_MAX {
            // Whoever is asked again is met again.
            named.pop_first();
        }
        let spec = serde_json::json!({ "name": "agent", "url": url });
        let spec: ServerSpec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
        let server = Server::new(spec, false, &self.shared);
        named.insert(url.to_owned(), Arc::clone(&server));
        Ok(server)
    }

    /// Tells of progress. It is dropped where it finds no room.
    pub fn tell(&self, progress: Progress) {
        // The next one says more.
        let _ = self.progress.try_send(progress);
    }

    /// Where progress is heard; given once.
    pub(crate) fn progress(&self) -> Option<mpsc::Receiver<Progress>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends all of them.
    pub async fn close(&self) {
        let named: Vec<Arc<Server>> =
            std::mem::take(&mut *self.named.lock().unwrap_or_else(PoisonError::into_inner)).into_values().collect();
        let closing = self.all().into_iter().chain(named).map(|server| async move { server.close().await });
        futures_util::future::join_all(closing).await;
    }
}
