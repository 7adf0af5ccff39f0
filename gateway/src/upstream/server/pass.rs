//! What others say to a server, passed on as it came.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::envelope::Call;
use crate::mcp::wire::Era;
use crate::outbound::Stream;
use crate::upstream::http::relay::Relay;
use crate::upstream::reply::Fault;
use crate::upstream::spec;
use crate::upstream::stdio::{Passed, Running, Shares, start};

impl Server {
    /// Whether it is reached over HTTP; else it is a process.
    #[must_use]
    pub const fn is_http(&self) -> bool {
        self.uri.is_some()
    }

    /// The headers of the configuration, read once, and anew when it is met.
    pub(super) fn headers(&self, is_anew: bool) -> Result<Arc<HeaderMap>, Fault> {
        if let Some(headers) = self.headers.load_full().filter(|_| !is_anew) {
            return Ok(headers);
        }
        let headers = Arc::new(spec::headers(&self.spec).map_err(Fault::NeverSent)?);
        self.headers.store(Some(Arc::clone(&headers)));
        Ok(headers)
    }

    /// Passes another's request on to a server over HTTP, as it came. The answer's head has come by `until`.
    ///
    /// # Errors
    /// There is no answer: why, and whether the request may have arrived.
    pub(crate) async fn pass(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
        until: Instant,
    ) -> Result<Response<Stream>, Fault> {
        let own = self.headers(false)?;
        self.relay(&own)?.pass(method, headers, body, until).await
    }

    /// Opens another's session again, as its client opened it, and gives the id of the new one.
    ///
    /// # Errors
    /// The server does not open it.
    pub(crate) async fn reopen(
        &self,
        headers: &HeaderMap,
        initialize: &Bytes,
        until: Instant,
    ) -> Result<HeaderValue, Fault> {
        let own = self.headers(false)?;
        self.relay(&own)?.reopen(headers, initialize, until).await
    }

    /// Says something again in another's session.
    ///
    /// # Errors
    /// It could not be said.
    pub(crate) async fn say(&self, headers: &HeaderMap, body: &Bytes, until: Instant) -> Result<(), Fault> {
        let own = self.headers(false)?;
        self.relay(&own)?.say(headers, body, until).await
    }

    fn relay<'a>(&'a self, headers: &'a HeaderMap) -> Result<Relay<'a>, Fault> {
        let uri = self.uri.as_ref().ok_or_else(|| Fault::NeverSent("it is not reached over HTTP".to_owned()))?;
        Ok(Relay { client: &self.shared.client, uri, headers })
    }

    /// Starts a process of its own for one client. It ends when `stop` is cancelled.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start_own(&self, stop: CancellationToken) -> Result<Running, Fault> {
        start(&self.spec, stop).map_err(Fault::NeverSent)
    }

    /// The era of the server, once it was met.
    ///
    /// # Errors
    /// It cannot be met.
    pub(crate) async fn era(&self, until: Instant) -> Result<Era, Fault> {
        Ok(self.link(until).await?.era())
    }

    /// Passes another's request on to a process that many share, in the stateless era. What is said about it comes by
    /// `passed`, under the ids that its client gave. It is called off when what is given back is dropped.
    ///
    /// # Errors
    /// It certainly did not reach the server.
    pub(crate) async fn share(
        &self,
        call: &Call<'_>,
        passed: mpsc::Sender<Passed>,
        until: Instant,
    ) -> Result<Shares, Fault> {
        self.link(until).await?.share(call, passed).await
    }
}
