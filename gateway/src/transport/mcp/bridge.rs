//! An MCP client over standard input and output, bridged to a gateway that runs elsewhere: a line is a frame of its
//! WebSocket, and back. When the connection is lost it is made again; what was asked and not answered by then is answered
//! with an error, for nobody can tell here what became of it, and the handshake is said again.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderValue, StatusCode, Uri, header};
use reach_schemas::{AgentId, ErrorCode, Secret};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::{PATH, SOCKET_PATH, SUBPROTOCOL};
use crate::envelope::lines::{Line, Lines};
use crate::envelope::{self, Call, Frame, Id, Limits, StrayResponses, refusal};
use crate::mcp::server::AGENT_HEADER;
use crate::mcp::wire::object::Object;
use crate::transport::TEXT_MAX;

/// The shortest and the longest wait before a lost connection is made again.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// For how long that is tried before what is asked meanwhile is answered with an error.
const PATIENCE: Duration = Duration::from_secs(15);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Why there is no bridge.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The address is none that can be bridged to.
    #[error("{0:?} is not the address of a gateway, such as http://127.0.0.1:7340/mcp")]
    Address(String),
    /// The first connection could not be made.
    #[error("there is no gateway at {address}")]
    Unreachable {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: Box<tungstenite::Error>,
    },
    /// The gateway is there, and does not let us in.
    #[error("the gateway at {address} answered {status}: {hint}")]
    Refused {
        /// Where.
        address: String,
        /// With which status.
        status: StatusCode,
        /// What to do.
        hint: &'static str,
    },
    /// The token cannot be read.
    #[error("the token cannot be read")]
    Token(#[source] io::Error),
    /// A stream of this side failed.
    #[error("standard input or output failed")]
    Stdio(#[from] io::Error),
}

/// Reads the token that shows who calls, as it is now. None: there is none.
pub(super) type Token<'a> = dyn Fn() -> io::Result<Option<Secret>> + Send + Sync + 'a;

/// Who calls.
struct Who<'a> {
    agent: Option<&'a AgentId>,
    token: &'a Token<'a>,
}

/// Why a connection was not made.
#[derive(Debug, thiserror::Error)]
enum NotConnected {
    #[error("the token cannot be read")]
    Token(#[source] io::Error),
    #[error("the gateway cannot be reached")]
    Socket(#[from] tungstenite::Error),
}

impl NotConnected {
    fn at(self, address: &str) -> BridgeError {
        let hint = "set AGENT_REACH_TOKEN or --token-file to a token that it takes";
        match self {
            Self::Token(source) => BridgeError::Token(source),
            Self::Socket(tungstenite::Error::Http(response)) => {
                BridgeError::Refused { address: address.to_owned(), status: response.status(), hint }
            }
            Self::Socket(source) => BridgeError::Unreachable { address: address.to_owned(), source: Box::new(source) },
        }
    }
}

/// What must be said again on a new connection, and what is still to be answered.
#[derive(Default)]
struct Memory {
    /// The client's `initialize`, and its id.
    opening: Option<(Bytes, String)>,
    initialized: Option<Bytes>,
    /// The ids of what was asked.
    asked: BTreeSet<String>,
    /// The answer to the opening that was said again is not the client's to see.
    is_reopening: bool,
}

/// Bridges a client at the other end of two streams to the gateway at an address, until the input ends.
///
/// # Errors
/// The address is wrong, there is no gateway at first, or a stream fails.
pub async fn bridge<R, W>(
    address: &str,
    agent: Option<&AgentId>,
    token: &Token<'_>,
    reader: R,
    mut writer: W,
) -> Result<(), BridgeError>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let url = socket_url(address)?;
    let who = Who { agent, token };
    let mut socket = Some(connect(&url, &who).await.map_err(|failed| failed.at(address))?);
    let mut lines = Lines::new(reader, TEXT_MAX);
    let mut memory = Memory::default();
    let mut is_ending = false;
    while !(is_ending && memory.asked.is_empty()) {
        let Some(open) = socket.as_mut() else {
            socket = reconnect(&url, &who, &mut memory, &mut writer).await?;
            if socket.is_none() {
                tracing::warn!(%url, "the gateway cannot be reached");
            }
            continue;
        };
        let is_open = tokio::select! {
            line = lines.next(), if !is_ending => match line? {
                Line::Text(text) if text.trim_ascii().is_empty() => true,
                Line::Text(text) => {
                    memory.hear(&text);
                    send(open, text).await
                }
                Line::TooLong => {
                    let message = format!("the line has more than the {TEXT_MAX} bytes that are allowed; send less");
                    write(&mut writer, &envelope::refused(refusal(ErrorCode::TooLarge, message))).await?;
                    true
                }
                Line::End => {
                    is_ending = true;
                    true
                }
            },
            frame = open.next() => match frame {
                Some(Ok(Message::Text(text))) => {
                    let text = Bytes::from(text);
                    if memory.is_for_client(&text) {
                        write(&mut writer, &text).await?;
                    }
                    true
                }
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => true,
                Some(Ok(Message::Close(_)) | Err(_)) | None => false,
            },
        };
        if !is_open {
            socket = None;
            memory.fail_asked(&mut writer).await?;
        }
    }
    if let Some(mut socket) = socket {
        // The gateway may be gone.
        let _ = socket.close(None).await;
    }
    Ok(())
}

/// The address of the WebSocket beside an endpoint.
fn socket_url(address: &str) -> Result<String, BridgeError> {
    let wrong = || BridgeError::Address(address.to_owned());
    let uri: Uri = address.parse().map_err(|_| wrong())?;
    let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(wrong()) };
    match uri.path().trim_end_matches('/') {
        "" | PATH => Ok(format!("ws://{authority}{SOCKET_PATH}")),
        _ => Err(wrong()),
    }
}

async fn connect(url: &str, who: &Who<'_>) -> Result<Socket, NotConnected> {
    let token = (who.token)().map_err(NotConnected::Token)?;
    Ok(open(url, who.agent, token.as_ref()).await?)
}

async fn open(url: &str, agent: Option<&AgentId>, token: Option<&Secret>) -> Result<Socket, tungstenite::Error> {
    let mut request = url.into_client_request()?;
    let headers = request.headers_mut();
    headers.insert("sec-websocket-protocol", HeaderValue::from_static(SUBPROTOCOL));
    if let Some(agent) = agent {
        headers.insert(AGENT_HEADER, HeaderValue::from_str(agent.as_str())?);
    }
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(connect_async(request).await?.0)
}

/// Makes a lost connection again. None: there is no gateway for now; what was asked meanwhile is answered so.
async fn reconnect<W: AsyncWrite + Unpin>(
    url: &str,
    who: &Who<'_>,
    memory: &mut Memory,
    writer: &mut W,
) -> io::Result<Option<Socket>> {
    let mut wait = RETRY_MIN;
    let until = tokio::time::Instant::now() + PATIENCE;
    while tokio::time::Instant::now() < until {
        if let Ok(mut socket) = connect(url, who).await
            && memory.say_again(&mut socket).await
        {
            return Ok(Some(socket));
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_MAX);
    }
    memory.fail_asked(writer).await?;
    Ok(None)
}

async fn send(socket: &mut Socket, text: Bytes) -> bool {
    match String::from_utf8(text.to_vec()) {
        Ok(text) => socket.send(Message::text(text)).await.is_ok(),
        Err(error) => socket.send(Message::binary(error.into_bytes())).await.is_ok(),
    }
}

async fn write<W: AsyncWrite + Unpin>(writer: &mut W, text: &[u8]) -> io::Result<()> {
    let line: Vec<u8> = text.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect();
    writer.write_all(&line).await?;
    writer.write_all(b"\n").await?;
    writer.flush().await
}

fn limits() -> Limits {
    Limits { stray_responses: StrayResponses::Ignore, ..Limits::default() }
}

fn calls<'a>(frame: &'a Frame<'a>) -> impl Iterator<Item = &'a Call<'a>> {
    let messages = match frame {
        Frame::Single(message) => std::slice::from_ref(message),
        Frame::Batch(messages) => messages.as_slice(),
    };
    messages.iter().filter_map(|message| match message {
        envelope::Message::Call(call) => Some(call),
        envelope::Message::Response(_) | envelope::Message::Invalid(_) => None,
    })
}

impl Memory {
    /// Notes what the client says.
    fn hear(&mut self, text: &Bytes) {
        let limits = limits();
        let frame = Frame::parse(text, &limits);
        for call in calls(&frame) {
            match (call.id.map(Id::get), call.method.as_ref()) {
                (Some(id), "initialize") => self.opening = Some((text.clone(), id.to_owned())),
                (None, "notifications/initialized") => self.initialized = Some(text.clone()),
                (Some(_) | None, _) => {}
            }
            self.asked.extend(call.id.map(|id| id.get().to_owned()));
        }
    }

    /// Notes what the gateway says, and whether the client is to hear it.
    fn is_for_client(&mut self, text: &Bytes) -> bool {
        let limits = limits();
        let mut frame = Frame::parse(text, &limits);
        for response in frame.take_responses() {
            let id = response.id.get();
            if self.is_reopening && self.opening.as_ref().is_some_and(|(_, opening)| opening == id) {
                self.is_reopening = false;
                return false;
            }
            self.asked.remove(id);
        }
        true
    }

    /// Says the handshake again, if there was one. False: the connection is lost again.
    async fn say_again(&mut self, socket: &mut Socket) -> bool {
        let Some((opening, _)) = self.opening.clone() else { return true };
        self.is_reopening = true;
        let is_opened = send(socket, opening).await;
        match (is_opened, self.initialized.clone()) {
            (true, Some(initialized)) => send(socket, initialized).await,
            (is_opened, _) => is_opened,
        }
    }

    /// Answers what was asked that the connection was lost.
    async fn fail_asked<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> io::Result<()> {
        for id in std::mem::take(&mut self.asked) {
            let message =
                "the connection to the gateway was lost; a call with an idempotency key can be sent again safely";
            let error = serde_json::json!({ "code": ErrorCode::ShuttingDown.number(), "message": message });
            let answer = Object::default().with("jsonrpc", "2.0").raw("id", &id).with("error", &error);
            write(writer, answer.into_text().as_bytes()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_beside_the_endpoint() {
        for address in ["http://127.0.0.1:7340/mcp", "http://127.0.0.1:7340", "http://127.0.0.1:7340/mcp/"] {
            assert_eq!(socket_url(address).unwrap(), "ws://127.0.0.1:7340/mcp/ws");
        }
        for address in ["https://x/mcp", "127.0.0.1:7340", "http://x/other", ""] {
            assert!(socket_url(address).is_err(), "{address}");
        }
    }

    #[test]
    fn what_is_asked_is_known_until_it_is_answered() {
        let mut memory = Memory::default();
        memory.hear(&Bytes::from_static(br#"{"jsonrpc":"2.0","id":"a","method":"initialize"}"#));
        memory.hear(&Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        memory.hear(&Bytes::from_static(br#"[{"jsonrpc":"2.0","id":7,"method":"tools/call"}]"#));
        assert_eq!(memory.asked.len(), 2);
        assert!(memory.is_for_client(&Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#)));
        assert_eq!(memory.asked.iter().map(String::as_str).collect::<Vec<_>>(), [r#""a""#]);
        memory.is_reopening = true;
        let reopened = Bytes::from_static(br#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
        assert!(!memory.is_for_client(&reopened) && memory.is_for_client(&reopened));
    }
}
