//! Someone who speaks JSON-RPC with a gateway, over any of its transports.

use std::collections::VecDeque;

use futures_util::{SinkExt, StreamExt};
use reach_gateway::transport::serve_stdio;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::CancellationToken;

use super::Running;

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Http,
    WebSocket,
    Stdio,
}

impl Over {
    pub(crate) const ALL: [Self; 3] = [Self::Http, Self::WebSocket, Self::Stdio];
}

/// One who asks.
pub(crate) enum Peer {
    Http { client: reqwest::Client, url: String },
    WebSocket(Box<Socket>),
    Stdio { writer: WriteHalf<DuplexStream>, lines: Lines<BufReader<ReadHalf<DuplexStream>>>, stop: CancellationToken },
}

/// A client that goes to no proxy.
pub(crate) fn client() -> reqwest::Client {
    // A second call finds it done.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Opens a WebSocket to a gateway.
pub(crate) async fn connect(running: &Running) -> Socket {
    connect_async(format!("ws://{}/rpc/ws", running.address)).await.unwrap().0
}

impl Peer {
    /// Connects to a gateway.
    pub(crate) async fn connect(running: &Running, over: Over) -> Self {
        match over {
            Over::Http => Self::Http { client: client(), url: running.url("/rpc") },
            Over::WebSocket => Self::WebSocket(Box::new(connect(running).await)),
            Over::Stdio => {
                let (ours, theirs) = tokio::io::duplex(64 * 1024);
                let (reader, writer) = tokio::io::split(theirs);
                let stop = running.stop.child_token();
                tokio::spawn(serve_stdio(running.gateway.clone(), reader, writer, stop.clone()));
                let (reader, writer) = tokio::io::split(ours);
                Self::Stdio { writer, lines: BufReader::new(reader).lines(), stop }
            }
        }
    }

    /// Sends a frame. Over HTTP, what comes back is the answer.
    pub(crate) async fn send(&mut self, frame: &[u8]) -> Option<String> {
        match self {
            Self::Http { client, url } => {
                let request = client.post(url.as_str()).header("content-type", "application/json");
                let response = request.body(frame.to_vec()).send().await.unwrap();
                let status = response.status().as_u16();
                let text = response.text().await.unwrap();
                assert_eq!(status, if text.is_empty() { 204 } else { 200 }, "{text}");
                Some(text).filter(|text| !text.is_empty())
            }
            Self::WebSocket(socket) => {
                let message = match std::str::from_utf8(frame) {
                    Ok(text) => Message::text(text),
                    Err(_) => Message::binary(frame.to_vec()),
                };
                socket.send(message).await.unwrap();
                None
            }
            Self::Stdio { writer, .. } => {
                writer.write_all(frame).await.unwrap();
                writer.write_all(b"\n").await.unwrap();
                None
            }
        }
    }

    /// The next text that comes over a connection that stays open.
    pub(crate) async fn read(&mut self) -> String {
        match self {
            Self::Http { .. } => panic!("HTTP answers in place"),
            Self::WebSocket(socket) => loop {
                match socket.next().await.unwrap().unwrap() {
                    Message::Text(text) => return text.as_str().to_owned(),
                    Message::Ping(_) | Message::Pong(_) => {}
                    other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => panic!("{other:?}"),
                }
            },
            Self::Stdio { lines, .. } => lines.next_line().await.unwrap().unwrap(),
        }
    }

    /// The next answer that comes over a connection that stays open. Pushes are passed over.
    pub(crate) async fn read_answer(&mut self) -> String {
        loop {
            let text = self.read().await;
            if !text.contains(r#""method":"task/"#) {
                return text;
            }
        }
    }

    /// Sends a frame and gives what it is answered with. That nothing comes is known by a second frame being
    /// answered, for frames are begun in order, and that one is done at once.
    pub(crate) async fn ask(&mut self, frame: &[u8]) -> Option<String> {
        let answer = self.send(frame).await;
        if matches!(self, Self::Http { .. }) {
            return answer;
        }
        let mark = r#"{"jsonrpc":"2.0","method":"no/such/mark","id":"mark"}"#;
        self.send(mark.as_bytes()).await;
        let mut came = VecDeque::new();
        loop {
            let text = self.read().await;
            if text.contains(r#""id":"mark""#) {
                break;
            }
            if !text.contains(r#""method":"task/"#) {
                came.push_back(text);
            }
        }
        assert!(came.len() <= 1, "{came:?}");
        came.pop_front()
    }

    /// Calls a method and gives its answer, whole. What comes before that is passed over.
    pub(crate) async fn call(&mut self, id: u64, method: &str, params: &Value) -> Value {
        let frame = serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        if let Some(text) = self.send(frame.to_string().as_bytes()).await {
            return serde_json::from_str(&text).unwrap();
        }
        loop {
            let answer: Value = serde_json::from_str(&self.read().await).unwrap();
            if answer["id"] == id && answer.get("method").is_none() {
                return answer;
            }
        }
    }
}
