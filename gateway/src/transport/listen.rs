//! The port: takes connections in, up to its limit, and drains when told to stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use reach_schemas::{ErrorCode, Failure, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::HttpSettings;
use super::connection::{self, Place};
use super::peers::Peers;
use super::port::Port;
use super::tls::Tls;
use crate::gateway::Gateway;
use crate::rest::Problem;

/// How long to wait when the system has no more sockets to give.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// How many connections beyond the limit are told so at once; the others are closed without a word.
const TURNED_AWAY_MAX: usize = 64;
/// How long telling one may take.
const TURNED_AWAY_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves JSON-RPC, MCP, WebSocket and REST until `stop` is cancelled, and then until every call in flight is answered.
///
/// # Errors
/// The listener has no address of its own.
pub async fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    settings: HttpSettings,
    stop: CancellationToken,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(settings.connections_max));
    let (peers, per_peer_max) = (Arc::new(Peers::default()), settings.per_peer_max());
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let port = Arc::new(Port::new(gateway, listener.local_addr()?, settings, stop.clone()));
    let app = Arc::clone(&port.app);
    let telling = tokio::spawn({
        let (app, stop) = (Arc::clone(&app), stop.clone());
        async move {
            let watching = async move { tokio::join!(app.mcp.run(), app.servers.watch(&app.gateway)) };
            stop.run_until_cancelled_owned(watching).await
        }
    });
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok((stream, from)) => (stream, from.ip()),
            Err(error) => {
                after_failure(&error).await;
                continue;
            }
        };
        let of_peer = peers.enter(peer, per_peer_max);
        let most = if of_peer.is_some() { Most::Of(app.settings.connections_max) } else { Most::OfPeer(per_peer_max) };
        let permit = of_peer.and_then(|of_peer| Some((Arc::clone(&places).try_acquire_owned().ok()?, of_peer)));
        if let Some((permit, of_peer)) = permit {
            let (token, counted) = (app.connections.token(), app.gateway.metrics().connected());
            let place = Arc::new(Place::new(permit, of_peer, token, counted));
            tokio::spawn(connection::serve(stream, Arc::clone(&port), place));
        } else if let Ok(permit) = Arc::clone(&turned_away).try_acquire_owned() {
            let tls = app.settings.tls.clone();
            tokio::spawn(async move {
                let told = turn_away(stream, tls, most);
                // A peer that does not listen is not told.
                let _ = tokio::time::timeout(TURNED_AWAY_TIMEOUT, told).await;
                drop(permit);
            });
        }
    }
    drop(listener);
    telling.abort();
    port.app.gateway.end_waits();
    app.drain.finish(&app.connections, app.settings.drain_timeout).await;
    Ok(())
}

/// A connection that was reset before it was accepted is nothing; a lack of file descriptors needs a pause.
async fn after_failure(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    if !matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
        tracing::warn!(%error, "no connection can be accepted just now");
        tokio::time::sleep(ACCEPT_RETRY).await;
    }
}

/// Which limit a connection is beyond.
#[derive(Debug, Clone, Copy)]
enum Most {
    Of(usize),
    OfPeer(usize),
}

/// Answers whatever is asked first, and waits for the peer to have the answer.
async fn turn_away(stream: TcpStream, tls: Option<Arc<Tls>>, most: Most) -> io::Result<()> {
    let mut stream = connection::open(stream, tls.as_deref()).await?;
    let message = match most {
        Most::Of(most) => format!("{most} connections are open, as many as may be; nothing was taken on"),
        Most::OfPeer(most) => {
            format!("{most} connections are open from your address, as many as one may have; nothing was taken on")
        }
    };
    let failure = Failure { retry_after: Some(Span::from_secs(1)), ..Failure::new(ErrorCode::Overloaded, message) };
    let body = Problem::from(failure).to_json();
    let head = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // An answer that comes before its request is none to most clients.
    let mut unread = [0; 1024];
    if stream.read(&mut unread).await? == 0 {
        return Ok(());
    }
    stream.write_all(&[head.as_bytes(), &body].concat()).await?;
    stream.shutdown().await?;
    // Closing with unread bytes would reset the connection, and the answer with it.
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}
