//! One connection: HTTP/1.1 with keep-alive, HTTP/2, or what an upgrade makes of it; inside TLS, if the port speaks that.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use http::{Extensions, Request, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::HttpSettings;
use super::linger::Lingering;
use super::peers::PeerPlace;
use super::port::Port;
use super::tls::Tls;
use crate::metrics::Connected;

/// How many requests one HTTP/2 connection may have in flight.
const STREAMS_MAX: u32 = 256;
/// What hyper needs at least to read with.
const HTTP1_BUFFER_MIN: u32 = 8192;
/// How often a silent HTTP/2 peer is asked whether it is there, and how long it has to answer.
const PING_EVERY: Duration = Duration::from_secs(20);

/// A place among the open connections. Whoever holds it keeps the connection counted, and the drain waiting.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    of_peer: PeerPlace,
    _token: TaskTrackerToken,
    _counted: Connected,
}

impl Place {
    pub(super) fn new(
        permit: OwnedSemaphorePermit,
        of_peer: PeerPlace,
        token: TaskTrackerToken,
        counted: Connected,
    ) -> Self {
        Self { _permit: permit, of_peer, _token: token, _counted: counted }
    }
}

/// Whom a request comes from: an address, or a network that stands for one.
#[derive(Debug, Clone, Copy)]
struct CameFrom(IpAddr);

/// Whom a request comes from.
pub(super) fn from(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get().map(|CameFrom(from)| *from)
}

/// How connections are spoken on.
pub(super) fn builder(settings: &HttpSettings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.idle_timeout)
        .max_headers(settings.headers_max)
        .max_buf_size(settings.head_max.max(HTTP1_BUFFER_MIN) as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(settings.head_max)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    builder
}

/// What bytes pass over: a socket, or TLS on one.
pub(super) type Stream = Either<TcpStream, TlsStream<TcpStream>>;

/// Speaks the handshake, if there is one.
pub(super) async fn open(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Stream> {
    // A small answer must not wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    match tls {
        None => Ok(Either::Left(stream)),
        Some(tls) => Ok(Either::Right(tls.accept(stream).await?)),
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(stream: TcpStream, port: Arc<Port>, place: Arc<Place>) {
    let settings = &port.app.settings;
    let mut first_request = pin!(tokio::time::sleep(settings.first_request_timeout));
    let stream = tokio::select! {
        opened = open(stream, settings.tls.as_deref()) => opened,
        () = first_request.as_mut() => return tracing::debug!("a connection was closed that did not finish its handshake"),
        () = port.app.drain.stop.cancelled() => return,
    };
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "a connection was closed whose handshake failed"),
    };
    let has_asked = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let mut request = request.map(|body| Body::new(Lingering::new(body)));
        request.extensions_mut().insert(CameFrom(place.of_peer.peer()));
        if request.headers().contains_key(header::UPGRADE) {
            // The upgraded connection goes on after this function has returned.
            request.extensions_mut().insert(Arc::clone(&place));
        }
        let answer = port.answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut connection = pin!(port.builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let (mut is_new, mut is_stopping) = (true, false);
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error, "a connection broke");
                }
                return;
            }
            () = first_request.as_mut(), if is_new => {
                is_new = false;
                if !has_asked.load(Ordering::Relaxed) {
                    tracing::debug!("a connection was closed that asked for nothing in time");
                    return;
                }
            }
            () = port.app.drain.stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = port.app.drain.cut.cancelled() => return,
        }
    }
}
