//! One WebSocket connection, from its opening to its loss.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use reach_schemas::{ErrorCode, RawJson, Secret};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use tokio_util::either::Either;

use super::board::Board;
use super::{Event, Greeting};
use crate::error::{Error, Refusal, Result};
use crate::identity::{named_in, unknown};
use crate::transport::{Target, endpoint, rpc, tls};

/// How often we say that we are still here.
const PING_EVERY: Duration = Duration::from_secs(20);
/// A connection over which nothing has come for this long is lost, though nobody has said so.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long the answer to the greeting may take.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// The gateway closes so when another copy of the agent has come.
const SUPERSEDED: u16 = 4409;

/// The largest message that is read.
const MESSAGE_MAX: usize = 64 << 20;

type Stream = Either<TcpStream, TlsStream<TcpStream>>;
pub(super) type Socket = WebSocketStream<Stream>;

/// How a connection ended.
pub(super) enum End {
    /// It broke: connect again.
    Lost(Error),
    /// The gateway will not have us: do not.
    Refused(Error),
}

/// Opens a connection. If another token was got because the gateway did not take ours, that is no failed try: it is opened with
/// the new one.
pub(super) async fn open(target: &Target) -> std::result::Result<Socket, End> {
    let before = target.credentials.token();
    match open_once(target).await {
        Err(End::Lost(_)) if target.credentials.token() != before => open_once(target).await,
        opened => opened,
    }
}

async fn open_once(target: &Target) -> std::result::Result<Socket, End> {
    let url = endpoint(&target.url, "/rpc/ws");
    let broken = |message: String| End::Lost(Error::Transport { message, sent: false, source: None });
    let mut request = url.as_str().into_client_request().map_err(|error| End::Refused(Error::config(error)))?;
    let (token, header) = target.credentials.header().map_err(End::Refused)?.unzip();
    if let Some(value) = header {
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX));
    let opened = async { client_async_with_config(request, stream(target, &url).await?, Some(config)).await };
    match timeout(target.connect_timeout, opened).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(tungstenite::Error::Http(response))) if response.status().as_u16() == 401 => {
            Err(not_known(target, token.as_ref(), &response).await)
        }
        Ok(Err(tungstenite::Error::Http(response))) => Err(of_response(&response)),
        Ok(Err(error)) => Err(match tls::distrust(&error) {
            Some(distrust) => End::Refused(distrust),
            None => End::Lost(Error::not_sent(format!("no connection to {url}: {error}"), error)),
        }),
        Err(_) => Err(broken(format!("no connection to {url} within {:?}", target.connect_timeout))),
    }
}

/// The bytes under the WebSocket.
async fn stream(target: &Target, url: &reqwest::Url) -> std::result::Result<Stream, tungstenite::Error> {
    let unusable = || io::Error::new(io::ErrorKind::InvalidInput, "the URL names no host");
    let host = url.host_str().ok_or_else(unusable)?.trim_start_matches('[').trim_end_matches(']');
    let plain = TcpStream::connect((host, url.port_or_known_default().ok_or_else(unusable)?)).await?;
    // Messages are small and someone waits for each.
    plain.set_nodelay(true)?;
    let Some(config) = &target.tls else { return Ok(Either::Left(plain)) };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connector = TlsConnector::from(Arc::new(tls::speaking(config, &[b"http/1.1"])));
    Ok(Either::Right(connector.connect(name, plain).await?))
}

/// The gateway does not take our token (any more). With another one, the next try may succeed.
async fn not_known(
    target: &Target,
    token: Option<&Secret>,
    response: &tungstenite::http::Response<Option<Vec<u8>>>,
) -> End {
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let code = named_in(challenge);
    let refused = unknown(code, "the gateway does not take our token");
    match target.credentials.renew(target, token, code).await {
        Ok(true) => End::Lost(Error::Transport {
            message: "the gateway did not take our token; we have another one now".to_owned(),
            sent: false,
            source: Some(Arc::new(refused)),
        }),
        Ok(false) => End::Refused(refused),
        Err(error) if error.is_retryable() => End::Lost(error),
        Err(error) => End::Refused(error),
    }
}

/// What a refused handshake means.
fn of_response(response: &tungstenite::http::Response<Option<Vec<u8>>>) -> End {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let refused = |code| Refusal {
        retry_after: retry_after.map(Duration::from_secs),
        ..Refusal::new(code, format!("the gateway answered {status} to the WebSocket handshake"))
    };
    match status.as_u16() {
        403 => End::Refused(refused(ErrorCode::Forbidden).into()),
        429 => End::Lost(refused(ErrorCode::Overloaded).into()),
        503 => End::Lost(refused(ErrorCode::ShuttingDown).into()),
        _ => {
            let message = format!("the gateway answered {status} to the WebSocket handshake");
            End::Lost(Error::Transport { message, sent: false, source: None })
        }
    }
}

/// Talks over a connection until it ends. `greeted` is called once the gateway has answered the greeting.
pub(super) async fn converse(
    socket: Socket,
    board: &Board,
    greeting: Option<&Greeting>,
    events: Option<&mpsc::Sender<Event>>,
    greeted: impl FnOnce(),
) -> End {
    let connection = board.connected();
    let (sink, stream) = socket.split();
    tokio::select! {
        end = read(stream, board, connection, events) => end,
        end = write(sink, board, greeting, events, greeted) => end,
    }
}

async fn read(
    mut stream: SplitStream<Socket>,
    board: &Board,
    connection: u64,
    events: Option<&mpsc::Sender<Event>>,
) -> End {
    loop {
        let message = match timeout(SILENCE_MAX, stream.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return End::Lost(Error::not_sent(format!("connection lost: {error}"), error)),
            Ok(None) => return End::Lost(Error::maybe_sent("the gateway closed the connection")),
            Err(_) => return End::Lost(Error::maybe_sent(format!("nothing came for {SILENCE_MAX:?}"))),
        };
        let text = match &message {
            Message::Text(text) => text.as_str(),
            Message::Binary(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
            Message::Close(close) => return closed(board, close.as_ref()),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
        };
        let frame = match rpc::Frame::read(text) {
            Ok(frame) => frame,
            Err(error) => {
                tracing::warn!(%error, "skipped a message of the gateway");
                continue;
            }
        };
        take(frame, board, connection, events).await;
    }
}

fn closed(board: &Board, close: Option<&CloseFrame>) -> End {
    let reason = close.map_or("", |close| close.reason.as_str());
    if close.is_some_and(|close| close.code == CloseCode::Size) {
        board.too_large(reason);
    }
    if close.is_some_and(|close| close.code == CloseCode::Library(SUPERSEDED)) {
        return End::Refused(unknown(ErrorCode::Superseded, reason));
    }
    End::Lost(Error::maybe_sent(format!("the gateway closed the connection: {reason}")))
}

async fn take(frame: rpc::Frame<'_>, board: &Board, connection: u64, events: Option<&mpsc::Sender<Event>>) {
    let Some(method) = &frame.method else {
        let id = frame.id.and_then(|id| id.get().parse().ok());
        match id {
            Some(id) => board.answered(id, frame.answer()),
            None => tracing::warn!("skipped an answer to no call of ours"),
        }
        return;
    };
    let params = frame.params.map(|params| RawJson::from(params.to_owned()));
    let event = match frame.id {
        Some(id) => {
            Event::Request { id: id.to_owned().into(), method: method.clone().into_owned(), params, connection }
        }
        None => Event::Notification { method: method.clone().into_owned(), params },
    };
    let unheard = match events {
        Some(events) => events.send(event).await.err().map(|unsent| unsent.0),
        None => Some(event),
    };
    if let Some(Event::Request { id, method, .. }) = unheard {
        let refusal = Refusal::new(ErrorCode::MethodNotFound, format!("nobody here answers {method}"));
        drop(board.reply(connection, rpc::refuse(&id, &refusal)));
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    board: &Board,
    greeting: Option<&Greeting>,
    events: Option<&mpsc::Sender<Event>>,
    greeted: impl FnOnce(),
) -> End {
    let answer = match greeting {
        Some(greeting) => match greet(&mut sink, board, greeting).await {
            Ok(answer) => Some(answer),
            Err(error) if error.is_retryable() => return End::Lost(error),
            Err(error) => return End::Refused(error),
        },
        None => None,
    };
    greeted();
    if let Some(events) = events {
        // Nobody listens any more only when the agent is being dropped.
        let _unheard = events.send(Event::Open(answer)).await;
    }
    match pump(&mut sink, board).await {
        Ok(never) => match never {},
        Err(error) => End::Lost(Error::not_sent(format!("connection lost: {error}"), error)),
    }
}

async fn greet(sink: &mut SplitSink<Socket, Message>, board: &Board, greeting: &Greeting) -> Result<RawJson> {
    let (mut waiting, text) = board.call_now(&greeting())?;
    sink.send(Message::Text(text)).await.map_err(|error| Error::not_sent("the greeting could not be sent", error))?;
    match timeout(GREETING_TIMEOUT, &mut waiting.answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Err(Error::maybe_sent("no answer to the greeting in time")),
    }
}

async fn pump(
    sink: &mut SplitSink<Socket, Message>,
    board: &Board,
) -> std::result::Result<std::convert::Infallible, tungstenite::Error> {
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let batch = tokio::select! {
            batch = board.next_batch() => batch,
            _ = ping.tick() => {
                sink.send(Message::Ping(Default::default())).await?;
                continue;
            }
        };
        let mut written = Vec::new();
        for message in batch {
            sink.feed(Message::Text(message.text)).await?;
            written.extend(message.written);
        }
        sink.flush().await?;
        for sender in written {
            let _nobody_cares = sender.send(());
        }
    }
}
