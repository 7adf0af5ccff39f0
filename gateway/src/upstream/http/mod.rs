//! One MCP server over Streamable HTTP: requests of ours posted to its address, and what it streams back. In the handshake
//! era this is one session; in the stateless era there is nothing to remember but that.

mod exchange;
mod head;
mod listen;
pub(in crate::upstream) mod relay;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::ask::{self, Ask};
use super::greeting::Greeting;
use super::reply::{Fault, Hears, Reply};
use crate::mcp::wire::{Era, Revision, header};
use crate::outbound::{Client, Stream};

pub(crate) use head::is_session_gone;
pub(super) use listen::Ended;

/// How long a word that needs no answer may take: a cancellation, an answer to the server, the end of a session.
const WORD_TIMEOUT: Duration = Duration::from_secs(5);

/// The way to one server.
#[derive(Clone)]
pub(super) struct HttpLink(Arc<Way>);

struct Way {
    client: Arc<Client>,
    uri: Uri,
    headers: HeaderMap,
    era: Era,
    revision: Revision,
    session: Option<HeaderValue>,
    ids: AtomicU64,
}

impl HttpLink {
    /// Finds out which era a server is of, and opens a session where it has them (2026-07-28, Versioning).
    pub(super) async fn open(
        client: &Arc<Client>,
        uri: &Uri,
        headers: &HeaderMap,
        until: Instant,
    ) -> Result<(Self, Greeting), Fault> {
        let way = |era, revision, session| {
            let (client, uri, headers) = (Arc::clone(client), uri.clone(), headers.clone());
            Self(Arc::new(Way { client, uri, headers, era, revision, session, ids: AtomicU64::new(1) }))
        };
        let modern = way(Era::Stateless, Revision::NEWEST, None);
        let discover = Ask { method: "server/discover", ..Ask::default() };
        match modern.request(&discover, until, &mut |_| {}).await {
            Ok(Reply::Result(result)) => {
                if let Some(greeting) = Greeting::discovered(&result) {
                    return Ok((modern, greeting));
                }
            }
            Ok(Reply::Refused(rejection)) if rejection.is_of_the_stateless_era() => {
                tracing::debug!(
                    code = rejection.code,
                    "a server of the stateless era that does not speak our revision"
                );
            }
            Ok(Reply::Refused(_)) => {}
            // An older server may answer what it does not know with anything.
            Err(Fault::Status { status, .. }) if status != 401 && status != 403 => {}
            Err(fault) => return Err(fault),
        }
        let asking = way(Era::Handshake, Revision::NEWEST_BY_HANDSHAKE, None);
        let members = ask::initialize();
        let initialize = Ask { method: "initialize", members: &members, ..Ask::default() };
        let (head, reply) = asking.exchange(&initialize, until, &mut |_| {}).await?;
        let greeting = Greeting::initialized(reply)?;
        let link = way(Era::Handshake, greeting.revision, head.get(header::SESSION_ID).cloned());
        link.say(ask::notice::<()>("notifications/initialized", None)).await?;
        Ok((link, greeting))
    }

    /// Sends a request and waits for its answer. `hears` is told of every notice on the way. A request of the handshake era
    /// whose future is dropped is called off; in the stateless era the end of the stream says so.
    pub(super) async fn request(&self, ask: &Ask<'_>, until: Instant, hears: Hears<'_>) -> Result<Reply, Fault> {
        self.exchange(ask, until, hears).await.map(|(_, reply)| reply)
    }

    async fn exchange(&self, ask: &Ask<'_>, until: Instant, hears: Hears<'_>) -> Result<(HeaderMap, Reply), Fault> {
        let id = self.0.ids.fetch_add(1, Ordering::Relaxed);
        let body = ask::frame(ask, id, self.0.era);
        let mut open = Open { link: (self.0.era == Era::Handshake).then(|| self.clone()), id };
        let response = self.post(body, ask, until).await;
        let answered = match response {
            Ok(response) => exchange::answer(self, response, id, until, hears).await,
            Err(fault) => Err(fault),
        };
        if !matches!(answered, Err(Fault::Late)) {
            open.link = None;
        }
        answered
    }

    /// Sends what needs no answer.
    pub(super) async fn say(&self, text: String) -> Result<(), Fault> {
        let response = self.post(text, &Ask::default(), Instant::now() + WORD_TIMEOUT).await?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(exchange::refused(self, response).await) }
    }

    /// Ends the session, if there is one.
    pub(super) async fn close(&self) {
        if self.0.session.is_some() {
            let request = self.request_to(Method::DELETE, Bytes::new(), &Ask::default());
            // A server need not let its clients end sessions.
            let _ = self.0.client.begin(request, Instant::now() + WORD_TIMEOUT).await;
        }
    }

    pub(super) fn era(&self) -> Era {
        self.0.era
    }

    async fn post(&self, body: String, ask: &Ask<'_>, until: Instant) -> Result<Response<Stream>, Fault> {
        let request = self.request_to(Method::POST, Bytes::from(body), ask);
        Ok(self.0.client.begin(request, until).await?)
    }

    fn request_to(&self, method: Method, body: Bytes, ask: &Ask<'_>) -> Request<Bytes> {
        let mut request = Request::new(body);
        *request.headers_mut() = head::of(&self.0, &method, ask);
        *request.method_mut() = method;
        *request.uri_mut() = self.0.uri.clone();
        request
    }
}

/// A request that has no answer yet. Dropped, it calls it off.
struct Open {
    link: Option<HttpLink>,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let (Some(link), Ok(runtime)) = (self.link.take(), Handle::try_current()) {
            let text = ask::cancelled(self.id);
            // Whoever is gone needs not be told.
            runtime.spawn(async move { link.say(text).await.is_ok() });
        }
    }
}
