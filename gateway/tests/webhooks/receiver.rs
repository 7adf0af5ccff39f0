//! A receiver of webhooks on a real socket, that answers as it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The longest that anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A request as it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// What a receiver answers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    Status(u16),
    RetryAfter(u16, &'static str),
    Location(u16, &'static str),
    Silence,
}

type Script = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

#[derive(Clone)]
struct State {
    script: Script,
    seen: Arc<Mutex<Vec<Seen>>>,
    came: Arc<Notify>,
}

impl State {
    async fn answer(self, uri: Uri, headers: HeaderMap, body: String) -> Response {
        let seen = Seen { path: uri.path().to_owned(), headers, body };
        let reply = (self.script)(&seen);
        self.seen.lock().unwrap().push(seen);
        self.came.notify_waiters();
        let status = |code| StatusCode::from_u16(code).unwrap();
        match reply {
            Reply::Status(code) => (status(code), "thank you").into_response(),
            Reply::RetryAfter(code, after) => (status(code), [("retry-after", after)]).into_response(),
            Reply::Location(code, to) => (status(code), [("location", to)]).into_response(),
            Reply::Silence => std::future::pending().await,
        }
    }
}

/// A receiver. It ends when it is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    state: State,
    served: JoinHandle<std::io::Result<()>>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl Receiver {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), script).await
    }

    pub(crate) async fn start_at(at: SocketAddr, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { script: Arc::new(script), seen: Arc::default(), came: Arc::default() };
        let handler = state.clone();
        let router = Router::new().fallback(move |uri, headers, body| handler.clone().answer(uri, headers, body));
        let served = tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, state, served }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Seen> {
        let come = async {
            loop {
                let came = self.state.came.notified();
                tokio::pin!(came);
                came.as_mut().enable();
                let seen = self.seen();
                if seen.len() >= count {
                    return seen;
                }
                came.await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, come).await;
        seen.unwrap_or_else(|_| panic!("{count} requests were to come, and these came: {:#?}", self.seen()))
    }
}

/// An address of this machine that nobody listens at.
pub(crate) fn nobody() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
