//! One TCP connection: HTTP/1.1 with keep-alive, HTTP/2 without TLS, or what an upgrade makes of it.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use http::{Request, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::HttpSettings;
use super::linger::Lingering;
use super::port::Port;
use crate::metrics::Connected;

/// How many requests one HTTP/2 connection may have in flight.
const STREAMS_MAX: u32 = 256;
/// How large the head of a request may be.
const HEAD_MAX: u32 = 32 * 1024;
/// How often a silent HTTP/2 peer is asked whether it is there, and how long it has to answer.
const PING_EVERY: Duration = Duration::from_secs(20);

/// A place among the open connections. Whoever holds it keeps the connection counted, and the drain waiting.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    _token: TaskTrackerToken,
    _counted: Connected,
}

impl Place {
    pub(super) fn new(permit: OwnedSemaphorePermit, token: TaskTrackerToken, counted: Connected) -> Self {
        Self { _permit: permit, _token: token, _counted: counted }
    }
}

/// How connections are spoken on.
pub(super) fn builder(settings: &HttpSettings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.idle_timeout)
        .max_buf_size(HEAD_MAX as usize * 2);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    builder
}

/// Serves a connection to its end.
pub(super) async fn serve(stream: TcpStream, port: Arc<Port>, place: Arc<Place>) {
    // A small answer must not wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let has_asked = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let mut request = request.map(|body| Body::new(Lingering::new(body)));
        if request.headers().contains_key(header::UPGRADE) {
            // The upgraded connection goes on after this function has returned.
            request.extensions_mut().insert(Arc::clone(&place));
        }
        let answer = port.answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut connection = pin!(port.builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let mut first_request = pin!(tokio::time::sleep(port.app.settings.first_request_timeout));
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
