//! A small HTTP server for agents that have none of their own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::http::{HttpAnswer, answer};
use super::worker::Worker;
use crate::error::{Error, Result};

/// The largest delivery that is taken.
const BODY_MAX: usize = 16 << 20;
/// How many connections are served at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 1024;
/// How long the headers of a request may take to come.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| Error::Config(format!("cannot listen on {address}: {error}")))
}

/// Serves until `closed`.
pub(super) async fn listen(
    listener: TcpListener,
    worker: Arc<Worker>,
    answer_within: Duration,
    closed: CancellationToken,
) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(seat) = seats.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closed.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: some will be free in a moment.
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (worker, closed) = (worker.clone(), closed.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = serve(stream, worker, answer_within) => {}
                () = closed.cancelled() => {}
            }
            drop(seat);
        });
    }
}

async fn serve(stream: TcpStream, worker: Arc<Worker>, answer_within: Duration) {
    // Without it the connection works too, only slower.
    let _nagle_stays_on = stream.set_nodelay(true);
    let service = service_fn(move |request| respond(request, worker.clone(), answer_within));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn respond(
    request: Request<Incoming>,
    worker: Arc<Worker>,
    answer_within: Duration,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let answer = match Limited::new(body, BODY_MAX).collect().await {
        Ok(body) => answer(&worker, answer_within, parts.method.as_str(), target, &body.to_bytes()).await,
        Err(_) => {
            HttpAnswer { status: 413, body: r#"{"code":"too_large"}"#.to_owned(), retry_after: None, token_count: None }
        }
    };
    let mut response = Response::new(Full::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = answer.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if let Some(tokens) = answer.token_count {
        response.headers_mut().insert("agent-reach-token-count", tokens.into());
    }
    Ok(response)
}
