//! Requests over HTTP that the gateway makes of agents and servers: one goes out by a deadline, an answer comes back, whole
//! and of bounded size or as a stream, or nothing, and then it is known whether the request may have left. Connections are pooled and kept alive. Redirects are not
//! followed, proxies of the environment are not used, and nothing is ever sent a second time if it may have been sent.
//!
//! About the last: the pool sends a request again over a new connection when a reused one turns out to be closed, but
//! only if the connection's task never took the request from its queue, so that no byte of it was written (hyper hands
//! the request back only then). The same case, if it is not sent again, is an error that is called cancelled here.

use std::error::Error;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};

use super::{Guard, Resolver};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept. Common servers close theirs after 2 to 5 s: the side that closes first must
/// be this one, or a request meets a closing connection and nobody knows whether it arrived.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// How many unused connections are kept to one agent.
const IDLE_MAX: usize = 256;
/// How large an answer's body may be.
pub(crate) const BODY_MAX: usize = 8 * 1024 * 1024;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// What came after an answer's headers.
#[derive(Debug)]
pub(crate) enum Body {
    /// All of it.
    Whole(Bytes),
    /// More than [`BODY_MAX`].
    TooLarge,
    /// The connection broke in its midst.
    Cut(String),
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Silence {
    /// No byte of the request was sent.
    NeverSent(String),
    /// No byte of the request was sent: the deadline passed before there was a connection.
    NeverConnected,
    /// The request may have been sent, and the connection broke.
    Lost(String),
    /// The request may have been sent, and the deadline passed.
    Late,
}

/// A body that comes as it is sent.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Over TCP.
    Plain(Incoming),
    /// Over TLS.
    Secure(reqwest::Body),
    /// Read already.
    Whole(Option<Bytes>),
}

/// A pool of connections.
pub(crate) struct Client {
    plain: legacy::Client<HttpConnector<Resolver>, Full<Bytes>>,
    /// Made when the first `https` address is met: loading certificates takes a while.
    secure: OnceLock<Result<reqwest::Client, String>>,
    resolver: Resolver,
}

impl Client {
    /// A pool whose connections go where the guard lets them. A request's address is judged by whoever sends it; here,
    /// what a name in it means.
    pub(crate) fn new(guard: Guard) -> Self {
        Self::over(Resolver::new(guard))
    }

    /// The same over a resolver.
    pub(super) fn over(resolver: Resolver) -> Self {
        let mut connector = HttpConnector::new_with_resolver(resolver.clone());
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let plain = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_MAX)
            .build(connector);
        Self { plain, secure: OnceLock::new(), resolver }
    }

    /// Sends a request whose address is absolute, and reads the answer.
    pub(crate) async fn send(&self, request: Request<Bytes>, until: Instant) -> Result<Answered, Silence> {
        let response = self.begin(request, until).await?;
        timeout_at(until, read(response)).await.map_err(|_| Silence::Late)
    }

    /// Sends a request whose address is absolute. The answer's head has come by `until`; its body is a stream.
    pub(crate) async fn begin(&self, request: Request<Bytes>, until: Instant) -> Result<Response<Stream>, Silence> {
        if request.uri().scheme_str() == Some("https") {
            return self.begin_secure(request, until).await;
        }
        let mut request = request.map(Full::new);
        let connection = capture_connection(&mut request);
        let outcome = match timeout_at(until, self.plain.request(request)).await {
            Ok(Ok(response)) => return Ok(response.map(Stream::Plain)),
            Ok(Err(error)) => silence_of(&error),
            Err(_) => Silence::Late,
        };
        // Without a connection, nothing was sent on one.
        let had_connection = connection.connection_metadata().is_some();
        Err(if had_connection { outcome } else { outcome.before_connecting() })
    }

    async fn begin_secure(&self, request: Request<Bytes>, until: Instant) -> Result<Response<Stream>, Silence> {
        let client = self
            .secure
            .get_or_init(|| secure_client(self.resolver.clone()))
            .as_ref()
            .map_err(|why| Silence::NeverSent(why.clone()))?;
        let request = reqwest::Request::try_from(request).map_err(|error| Silence::NeverSent(told(&error)))?;
        let response = timeout_at(until, client.execute(request)).await.map_err(|_| Silence::Late)?;
        let response = response.map_err(|error| silence_of(&error))?;
        Ok(Response::from(response).map(Stream::Secure))
    }
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Plain(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Secure(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Plain(body) => body.is_end_stream(),
            Self::Secure(body) => body.is_end_stream(),
            Self::Whole(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Plain(body) => body.size_hint(),
            Self::Secure(body) => body.size_hint(),
            Self::Whole(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
        }
    }
}

impl Silence {
    fn before_connecting(self) -> Self {
        match self {
            Self::NeverSent(why) | Self::Lost(why) => Self::NeverSent(why),
            Self::Late | Self::NeverConnected => Self::NeverConnected,
        }
    }
}

fn secure_client(resolver: Resolver) -> Result<reqwest::Client, String> {
    // Another part of the process may have chosen a provider before: then that one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .dns_resolver(resolver)
        .http1_only()
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_MAX)
        .build()
        .map_err(|error| format!("TLS cannot be set up: {}", told(&error)))
}

/// What a client's error says about the request.
fn silence_of(error: &(dyn Error + 'static)) -> Silence {
    let is_connect = |cause: &&(dyn Error + 'static)| cause.downcast_ref().is_some_and(legacy::Error::is_connect);
    let is_cancelled = |cause: &&(dyn Error + 'static)| cause.downcast_ref().is_some_and(hyper::Error::is_canceled);
    let is_unsent = chain(error).any(|cause| is_connect(&cause) || is_cancelled(&cause));
    if is_unsent { Silence::NeverSent(told(error)) } else { Silence::Lost(told(error)) }
}

/// Reads a body to its end.
pub(crate) async fn read(response: Response<Stream>) -> Answered {
    let (parts, body) = response.into_parts();
    let body = match Limited::new(body, BODY_MAX).collect().await {
        Ok(collected) => Body::Whole(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Body::TooLarge,
        Err(error) => Body::Cut(told(error.as_ref())),
    };
    Answered { status: parts.status, headers: parts.headers, body }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// An error and its sources in one line.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
    chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_name_that_means_an_address_that_is_not_permitted_is_never_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for scheme in ["http", "https"] {
            // Past the first check, as a name is whose meaning changed after it was named.
            let ask = async |guard: Guard| {
                let request = Request::post(format!("{scheme}://localhost:{port}/")).body(Bytes::new()).unwrap();
                Client::new(guard).send(request, Instant::now() + Duration::from_secs(30)).await.map(drop)
            };
            let refused = ask(Guard::of_endpoints(Vec::new())).await;
            let Err(Silence::NeverSent(why)) = refused else { panic!("{refused:?}") };
            assert!(why.contains("which is not a public address") && why.contains("[endpoints] allow"), "{why}");
            assert!(listener.accept().now_or_never().is_none(), "it was connected to");

            let asked = tokio::spawn(async move {
                let request = Request::post(format!("{scheme}://localhost:{port}/")).body(Bytes::new()).unwrap();
                let client = Client::new(Guard::of_endpoints(Guard::loopback()));
                client.send(request, Instant::now() + Duration::from_secs(30)).await.map(drop)
            });
            tokio::time::timeout(Duration::from_secs(30), listener.accept()).await.unwrap().unwrap();
            asked.abort();
        }
    }
}
