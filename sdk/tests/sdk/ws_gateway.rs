//! A gateway over WebSocket, led by the hand of the test: it accepts, reads and writes when the test says so.

use std::net::SocketAddr;
use std::time::Duration;

use agent_reach_sdk::Client;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, accept_async};

use crate::soon;

pub(crate) struct WsGateway {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

/// The gateway's end of one connection; dropping it breaks the connection.
pub(crate) struct Peer {
    socket: WebSocketStream<TcpStream>,
    next_id: u64,
}

impl WsGateway {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// A client, and the gateway's end of its connection.
    pub(crate) async fn client(&self) -> (Client, Peer) {
        let connecting = Client::builder().url(self.url()).connect();
        let (client, peer) = tokio::join!(connecting, self.accept());
        (client.unwrap(), peer)
    }

    /// Takes a connection before anything was said on it.
    pub(crate) async fn accept_raw(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    pub(crate) async fn accept(&self) -> Peer {
        let accepted = soon(async {
            let (stream, _) = self.listener.accept().await.unwrap();
            accept_async(stream).await.unwrap()
        });
        Peer { socket: accepted.await, next_id: 1 }
    }
}

impl Peer {
    /// The next message.
    pub(crate) async fn read(&mut self) -> Value {
        soon(async {
            loop {
                match self.socket.next().await.expect("the connection stands").unwrap() {
                    Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                    Message::Ping(_) | Message::Pong(_) => {}
                    other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => {
                        panic!("not a text: {other:?}")
                    }
                }
            }
        })
        .await
    }

    /// Whether nothing comes for a moment.
    pub(crate) async fn is_silent(&mut self) -> bool {
        timeout(Duration::from_millis(30), self.socket.next()).await.is_err()
    }

    /// The next message, which must be a call of this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.read().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(crate) async fn write(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Closes the connection with a reason.
    pub(crate) async fn close(&mut self, code: CloseCode) {
        self.socket.close(Some(CloseFrame { code, reason: "as the test says".into() })).await.unwrap();
    }

    pub(crate) async fn answer(&mut self, call: &Value, result: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": call["id"], "result": result })).await;
    }

    pub(crate) async fn refuse(&mut self, call: &Value, error: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": call["id"], "error": error })).await;
    }

    /// Sends a request of the gateway's own, and answers its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = json!(format!("g{}", self.next_id));
        self.next_id += 1;
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }
}

impl Peer {
    /// Answers the registration, which must come first.
    pub(crate) async fn welcome(&mut self) {
        let register = self.expect("agent/register").await;
        assert_eq!(register["params"]["endpoints"][0]["protocol"], "websocket");
        self.answer(&register, crate::view::registered()).await;
    }
}
