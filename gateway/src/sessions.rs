//! Connections that agents keep open to the gateway. Over one, the gateway sends notifications and requests, and
//! waits for the answers. It knows nothing of sockets: a transport takes the outgoing messages from a channel.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reach_schemas::{AgentId, RawJson};
use serde::Serialize;
use tokio::sync::{Notify, mpsc, oneshot};

/// How many messages may wait to be sent on one connection; with more, it is too slow and is closed.
pub const OUTGOING_MAX: usize = 1024;

/// Why nothing came back from a connected agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// It has no open connection.
    #[error("the agent has no open connection to the gateway")]
    NotConnected,
    /// The message was sent, and the connection was lost before an answer came.
    #[error("the connection was lost before the agent answered")]
    Lost,
    /// No answer in time.
    #[error("the agent did not answer within {0:?}")]
    Timeout(Duration),
    /// It answered with an error.
    #[error("the agent answered with an error: {0}")]
    Refused(String),
}

/// A connection's number.
pub type SessionId = u64;

/// An answer to a request of ours: the raw result, or the raw error object.
pub type Reply = Result<RawJson, RawJson>;

/// All open connections.
#[derive(Default)]
pub struct Sessions {
    next: AtomicU64,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    sessions: HashMap<SessionId, Session>,
    by_agent: BTreeMap<AgentId, Vec<SessionId>>,
}

struct Session {
    outgoing: mpsc::Sender<String>,
    pending: HashMap<u64, oneshot::Sender<Reply>>,
    /// Told whenever something pending is not so any more.
    settled: Arc<Notify>,
    agents: Vec<AgentId>,
}

impl Session {
    fn take(&mut self, number: u64) -> Option<oneshot::Sender<Reply>> {
        self.settled.notify_waiters();
        self.pending.remove(&number)
    }
}

/// One open connection, as its transport holds it. Dropping it closes the session.
pub struct Handle {
    id: SessionId,
    sessions: Arc<Sessions>,
    settled: Arc<Notify>,
    on_close: Option<Box<dyn FnOnce(Vec<AgentId>) + Send + Sync>>,
}

/// Something that can be sent on one connection from anywhere.
#[derive(Debug, Clone)]
pub struct Sender {
    outgoing: mpsc::Sender<String>,
}

#[derive(Serialize)]
struct Message<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a P,
}

fn message<P: Serialize>(id: Option<u64>, method: &str, params: &P) -> String {
    serde_json::to_string(&Message { jsonrpc: "2.0", id, method, params })
        .expect("messages to agents are made of types that can be written as JSON")
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session. The transport sends what comes out of the receiver; `on_close` hears which agents were bound.
    pub fn open(
        self: &Arc<Self>,
        on_close: impl FnOnce(Vec<AgentId>) + Send + Sync + 'static,
    ) -> (Handle, mpsc::Receiver<String>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (outgoing, receiver) = mpsc::channel(OUTGOING_MAX);
        let settled = Arc::new(Notify::new());
        let session = Session { outgoing, pending: HashMap::new(), settled: Arc::clone(&settled), agents: Vec::new() };
        self.lock().sessions.insert(id, session);
        (Handle { id, sessions: Arc::clone(self), settled, on_close: Some(Box::new(on_close)) }, receiver)
    }

    /// Has an agent reached over this session from now on. False if the session is gone or had the agent already.
    pub fn bind(&self, session: SessionId, agent: &AgentId) -> bool {
        let mut open = self.lock();
        let Some(entry) = open.sessions.get_mut(&session) else { return false };
        if entry.agents.contains(agent) {
            return false;
        }
        entry.agents.push(agent.clone());
        open.by_agent.entry(agent.clone()).or_default().push(session);
        true
    }

    /// How many sessions are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().sessions.len()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many sessions an agent has.
    #[must_use]
    pub fn count(&self, agent: &AgentId) -> usize {
        self.lock().by_agent.get(agent).map_or(0, Vec::len)
    }

    /// Sends a notification to an agent, over its newest session. False if it has none, or that one is choked.
    pub fn notify<P: Serialize>(&self, agent: &AgentId, method: &str, params: &P) -> bool {
        let text = message(None, method, params);
        let open = self.lock();
        let newest = open.by_agent.get(agent).and_then(|sessions| sessions.last());
        newest.and_then(|id| open.sessions.get(id)).is_some_and(|session| session.outgoing.try_send(text).is_ok())
    }

    /// Sends a request to an agent, over its newest session, and waits for the answer.
    ///
    /// # Errors
    /// It is not connected, the connection is lost, or no answer comes in time.
    pub async fn request<P: Serialize>(
        &self,
        agent: &AgentId,
        method: &str,
        params: &P,
        timeout: Duration,
    ) -> Result<RawJson, SessionError> {
        let (session, number, answer) = self.send_request(agent, method, params)?;
        let outcome = tokio::time::timeout(timeout, answer).await;
        match outcome {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(error))) => Err(SessionError::Refused(error.get().to_owned())),
            Ok(Err(_)) => Err(SessionError::Lost),
            Err(_) => {
                if let Some(entry) = self.lock().sessions.get_mut(&session) {
                    entry.take(number);
                }
                Err(SessionError::Timeout(timeout))
            }
        }
    }

    fn send_request<P: Serialize>(
        &self,
        agent: &AgentId,
        method: &str,
        params: &P,
    ) -> Result<(SessionId, u64, oneshot::Receiver<Reply>), SessionError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let text = message(Some(number), method, params);
        let (sender, answer) = oneshot::channel();
        let mut open = self.lock();
        let newest = open.by_agent.get(agent).and_then(|sessions| sessions.last()).copied();
        let session = newest.ok_or(SessionError::NotConnected)?;
        let entry = open.sessions.get_mut(&session).ok_or(SessionError::NotConnected)?;
        entry.outgoing.try_send(text).map_err(|_| SessionError::NotConnected)?;
        entry.pending.insert(number, sender);
        Ok((session, number, answer))
    }

    fn close(&self, session: SessionId) -> Vec<AgentId> {
        let mut open = self.lock();
        let Some(entry) = open.sessions.remove(&session) else { return Vec::new() };
        for agent in &entry.agents {
            if let Some(sessions) = open.by_agent.get_mut(agent) {
                sessions.retain(|id| *id != session);
                if sessions.is_empty() {
                    open.by_agent.remove(agent);
                }
            }
        }
        entry.agents
    }
}

impl Handle {
    /// The session's number.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Something that can send on this connection from anywhere. None: it is closed.
    #[must_use]
    pub fn sender(&self) -> Option<Sender> {
        self.sessions.lock().sessions.get(&self.id).map(|session| Sender { outgoing: session.outgoing.clone() })
    }

    /// Hands in an answer that came over this connection. False if nobody waits for it.
    pub fn answered(&self, id: &str, reply: Reply) -> bool {
        let Ok(number) = id.parse::<u64>() else { return false };
        let pending = self.sessions.lock().sessions.get_mut(&self.id).and_then(|entry| entry.take(number));
        pending.is_some_and(|waiting| waiting.send(reply).is_ok())
    }

    /// Waits until no request of ours is unanswered on this connection.
    pub async fn all_answered(&self) {
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if self.sessions.lock().sessions.get(&self.id).is_none_or(|entry| entry.pending.is_empty()) {
                return;
            }
            settled.await;
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let agents = self.sessions.close(self.id);
        if let Some(on_close) = self.on_close.take() {
            on_close(agents);
        }
    }
}

impl Sender {
    /// Sends a notification, once there is room for it. False if the connection is closed; a choked one is, in time.
    pub async fn notify<P: Serialize + Sync>(&self, method: &str, params: &P) -> bool {
        self.outgoing.send(message(None, method, params)).await.is_ok()
    }

    /// Whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.outgoing.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_answered_times_out_or_is_lost_with_the_connection() {
        let sessions = Arc::new(Sessions::default());
        let agent: AgentId = "a@n".parse().unwrap();
        let ask = || sessions.request(&agent, "agent/probe", &(), Duration::from_secs(1));
        assert_eq!(ask().await, Err(SessionError::NotConnected));
        let (handle, mut outgoing) = sessions.open(|agents| assert_eq!(agents.len(), 1));
        assert!(sessions.bind(handle.id(), &agent) && !sessions.bind(handle.id(), &agent));
        assert_eq!(ask().await, Err(SessionError::Timeout(Duration::from_secs(1))));
        let id = outgoing.recv().await.and_then(|text| text.split(['"', ':', ',']).find_map(|t| t.parse::<u64>().ok()));
        assert!(!handle.answered(&id.unwrap().to_string(), RawJson::parse("1").map_err(|_| unreachable!())));
        handle.all_answered().await;
        let (lost, ()) = tokio::join!(ask(), async { drop(handle) });
        assert_eq!(lost, Err(SessionError::Lost));
        assert_eq!(sessions.count(&agent), 0);
    }
}
