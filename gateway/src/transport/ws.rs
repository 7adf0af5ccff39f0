//! JSON-RPC over WebSocket: `GET /rpc/ws`. One message is one frame, in text or binary.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseCode, CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::{HeaderValue, StatusCode, header};
use reach_schemas::{ErrorCode, Failure};
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite;

use super::app::{App, problem};
use super::connection::{self, Place};
use super::conversation::{Conversation, Outgoing, Text};
use super::door;
use crate::rest::Problem;

/// How often the peer is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(20);
/// A peer from which nothing has come for so long, not even the answer to a ping, is gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long a peer may leave what is sent to it unread before it counts as choked and is cut off.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the peer has to answer that it closes, too.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The peer's token is over or was revoked: it connects again with another.
const NOT_KNOWN: CloseCode = 4401;
/// Another copy of the peer has come: this one is not to connect again.
const SUPERSEDED: CloseCode = 4409;
/// How many messages are handed to the socket at a time.
const AT_ONCE: usize = 64;

impl From<Text> for Message {
    fn from(text: Text) -> Self {
        Utf8Bytes::try_from(text.text.clone()).map_or(Self::Binary(text.text), Self::Text)
    }
}

/// Opens a WebSocket for JSON-RPC, if that is what the request asks for.
pub(super) async fn get(app: Arc<App>, request: Request) -> Response {
    let pass = door::pass_of(request.extensions());
    let host = door::called_by(&app, request.headers()).map(Arc::from);
    let from = connection::from(request.extensions());
    let open = move |app: &App| Conversation::open(&app.gateway, pass, &app.drain, ("websocket", host, from));
    upgrade(app, request, &[], open).await
}

/// Opens a WebSocket for a conversation, if that is what the request asks for, in one of these subprotocols if it names one.
pub(super) async fn upgrade(
    app: Arc<App>,
    mut request: Request,
    protocols: &'static [&'static str],
    open: impl FnOnce(&App) -> Option<(Conversation, Outgoing)> + Send + 'static,
) -> Response {
    let place = request.extensions_mut().remove::<Arc<Place>>();
    let (mut parts, _) = request.into_parts();
    match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => {
            let body_max = app.settings.body_max;
            let upgrade = upgrade.protocols(protocols.iter().copied());
            upgrade.max_message_size(body_max).max_frame_size(body_max).on_upgrade(async move |socket| {
                let cut = app.drain.cut.clone();
                if let Some(opened) = open(&app) {
                    cut.run_until_cancelled_owned(converse(socket, &app, opened)).await;
                }
                drop(place);
            })
        }
        Err(rejection) => {
            let message = format!("this path speaks WebSocket only: {}", rejection.body_text());
            let problem_body = Problem::from(Failure::new(ErrorCode::InvalidRequest, message));
            let mut response = problem(problem_body.with_status(StatusCode::UPGRADE_REQUIRED));
            response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            response
        }
    }
}

/// Talks with a peer until one of both ends it.
async fn converse(socket: WebSocket, app: &App, (conversation, outgoing): (Conversation, Outgoing)) {
    let (sink, mut stream) = socket.split();
    let (close, closing) = oneshot::channel();
    let hearing = async {
        let last = read(&mut stream, &conversation, app.settings.body_max).await;
        if last.as_ref().is_some_and(|last| matches!(last.code, NOT_KNOWN | SUPERSEDED)) {
            conversation.end().await;
        } else {
            drop(conversation);
        }
        // The writer may have ended first.
        let _ = close.send(last);
        stream
    };
    let speaking = write(sink, outgoing, closing);
    tokio::pin!(hearing, speaking);
    let mut stream = tokio::select! {
        stream = &mut hearing => stream,
        () = &mut speaking => return,
    };
    speaking.await;
    // Closing with unread bytes would reset the connection, and the last words with it.
    let _ = timeout(CLOSE_TIMEOUT, async { while let Some(Ok(_)) = stream.next().await {} }).await;
}

/// Hears until there is nothing more to hear, and says with which words to close. None: the peer closes or is gone.
async fn read(
    stream: &mut SplitStream<WebSocket>,
    conversation: &Conversation,
    message_max: usize,
) -> Option<CloseFrame> {
    let ended = conversation.ended();
    tokio::pin!(ended);
    loop {
        let next = tokio::select! {
            next = timeout(SILENCE_MAX, stream.next()) => next,
            ended = &mut ended => {
                let code = if ended.is_superseded { SUPERSEDED } else { NOT_KNOWN };
                return close(code, &ended.failure.message);
            }
            () = conversation.is_drained() => return close(close_code::AWAY, "the gateway is about to stop"),
        };
        let frame = match next {
            Ok(Some(Ok(Message::Text(text)))) => Bytes::from(text),
            Ok(Some(Ok(Message::Binary(bytes)))) => bytes,
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
            Ok(Some(Ok(Message::Close(_))) | None) => return None,
            Ok(Some(Err(error))) => return after_failure(error, message_max),
            Err(_) => return close(close_code::POLICY, "nothing came for a minute, not even the answer to a ping"),
        };
        conversation.hear(frame).await;
    }
}

fn close(code: CloseCode, reason: &str) -> Option<CloseFrame> {
    Some(CloseFrame { code, reason: Utf8Bytes::from(reason) })
}

fn after_failure(error: axum::Error, message_max: usize) -> Option<CloseFrame> {
    tracing::debug!(%error, "a WebSocket broke");
    match error.into_inner().downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(_)) => {
            close(close_code::SIZE, &format!("a message may have {message_max} bytes"))
        }
        Some(tungstenite::Error::Utf8(_)) => close(close_code::INVALID, "a text message is UTF-8"),
        Some(tungstenite::Error::Protocol(
            tungstenite::error::ProtocolError::ResetWithoutClosingHandshake
            | tungstenite::error::ProtocolError::SendAfterClosing
            | tungstenite::error::ProtocolError::ReceivedAfterClosing,
        )) => None,
        Some(tungstenite::Error::Protocol(_)) => close(close_code::PROTOCOL, "that is not WebSocket"),
        Some(_) | None => None,
    }
}

/// Sends what there is to send, and pings, until told with which words to close.
async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut outgoing: Outgoing,
    mut closing: oneshot::Receiver<Option<CloseFrame>>,
) {
    let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let sending = tokio::select! {
            text = outgoing.next() => timeout(WRITE_TIMEOUT, write_some(&mut sink, text.into(), &mut outgoing)).await,
            _ = pings.tick() => timeout(WRITE_TIMEOUT, sink.send(Message::Ping(Bytes::new()))).await,
            last = &mut closing => {
                // A peer that is gone does not hear it.
                let _ = timeout(WRITE_TIMEOUT, write_last(&mut sink, last.ok().flatten(), &mut outgoing)).await;
                return;
            }
        };
        match sending {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return tracing::debug!(%error, "a WebSocket broke"),
            Err(_) => {
                return tracing::warn!(
                    "a WebSocket was cut off: its peer left {WRITE_TIMEOUT:?} long unread what it was sent"
                );
            }
        }
    }
}

async fn write_some(
    sink: &mut SplitSink<WebSocket, Message>,
    first: Message,
    outgoing: &mut Outgoing,
) -> Result<(), axum::Error> {
    sink.feed(first).await?;
    for _ in 1..AT_ONCE {
        let Some(text) = outgoing.try_next() else { break };
        sink.feed(text.into()).await?;
    }
    sink.flush().await
}

/// Sends what was still to be said, and then that this is all.
async fn write_last(
    sink: &mut SplitSink<WebSocket, Message>,
    close: Option<CloseFrame>,
    outgoing: &mut Outgoing,
) -> Result<(), axum::Error> {
    if close.is_some() {
        while let Some(text) = outgoing.try_next() {
            sink.feed(text.into()).await?;
        }
        sink.feed(Message::Close(close)).await?;
    }
    sink.flush().await
}
