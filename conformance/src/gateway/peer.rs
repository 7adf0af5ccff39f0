//! Connections to a gateway, by each of its transports, behind one face: a frame goes out, its answer comes back.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::child::{self, Group};
use crate::exchange::{Exchange, Way, short};

/// How long what is not awaited is listened for, once the frame behind it was answered.
const QUIET: Duration = Duration::from_millis(50);
/// How many pushes are kept.
const PUSHES_MAX: usize = 1000;

/// A connection.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) exchange: Arc<Exchange>,
    timeout: Duration,
    wire: Wire,
    sent: u64,
    /// What the gateway said without being asked.
    pub(crate) pushes: VecDeque<String>,
    /// The first answer over HTTP that had another status than it should.
    pub(crate) odd_status: Option<String>,
}

enum Wire {
    Http { client: reqwest::Client, url: String },
    Socket(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
    Stdio { _group: Box<Group>, stdin: ChildStdin, lines: Lines<BufReader<ChildStdout>> },
}

/// A call's answer: its result, or its error.
pub(crate) type Answer = Result<Value, Value>;

impl Peer {
    fn new(name: &'static str, exchange: Arc<Exchange>, timeout: Duration, wire: Wire) -> Self {
        Self { name, exchange, timeout, wire, sent: 0, pushes: VecDeque::new(), odd_status: None }
    }

    /// Over `POST {url}/rpc`.
    pub(crate) fn http(client: reqwest::Client, url: &str, exchange: Arc<Exchange>, timeout: Duration) -> Self {
        Self::new("HTTP", exchange, timeout, Wire::Http { client, url: format!("{url}/rpc") })
    }

    /// Over the WebSocket `{url}/rpc/ws`.
    pub(crate) async fn socket(url: &str, exchange: Arc<Exchange>, timeout: Duration) -> Result<Self, String> {
        let url = format!("{}/rpc/ws", url.replacen("http", "ws", 1));
        let connecting = tokio::time::timeout(timeout, tokio_tungstenite::connect_async(&url));
        let connected = connecting.await.map_err(|_| format!("{url} did not answer"))?;
        let (socket, _) = connected.map_err(|error| format!("{url}: {error}"))?;
        Ok(Self::new("WebSocket", exchange, timeout, Wire::Socket(Box::new(socket))))
    }

    /// Over the standard input and output of a command.
    pub(crate) fn stdio(line: &str, exchange: Arc<Exchange>, timeout: Duration) -> Result<Self, String> {
        let mut command = child::command(line)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut group = Group::start(&mut command)?;
        let streams = group.leader.stdin.take().zip(group.leader.stdout.take());
        let (stdin, stdout) = streams.ok_or("the command has no standard input or output")?;
        let wire = Wire::Stdio { _group: Box::new(group), stdin, lines: BufReader::new(stdout).lines() };
        Ok(Self::new("stdio", exchange, timeout, wire))
    }

    /// Sends a frame and gives what it is answered with. None: nothing. Whether there will be something is known by a
    /// second frame being answered, where the connection stays open.
    pub(crate) async fn ask(&mut self, frame: &[u8]) -> Result<Option<String>, String> {
        self.exchange.add(Way::Out, &format!("{}: {}", self.name, String::from_utf8_lossy(frame)));
        if let Wire::Http { client, url } = &self.wire {
            let (status, text) = post(client, url, frame, self.timeout).await?;
            self.exchange.add(Way::In, &format!("{}: {status} {text}", self.name));
            self.look_at(status, &text);
            return Ok(Some(text).filter(|text| !text.trim().is_empty()));
        }
        self.write(frame).await?;
        self.sent += 1;
        let behind = format!("behind-{}", self.sent);
        self.write(format!(r#"{{"jsonrpc":"2.0","id":"{behind}","method":"no/such/method"}}"#).as_bytes()).await?;
        let (mut answer, mut is_behind) = (None, false);
        let until = Instant::now() + self.timeout;
        loop {
            let limit = if is_behind { until.min(Instant::now() + QUIET) } else { until };
            match timeout_at(limit, self.read_answer()).await {
                Err(_) if is_behind => return Ok(answer),
                Err(_) => return Err(format!("{}: no answer within {} s", self.name, self.timeout.as_secs())),
                Ok(text) => {
                    let text = text?;
                    if has_id(&text, &behind) {
                        is_behind = true;
                    } else {
                        self.exchange.add(Way::In, &format!("{}: {text}", self.name));
                        answer = Some(text);
                    }
                    if is_behind && answer.is_some() {
                        return Ok(answer);
                    }
                }
            }
        }
    }

    /// Calls a method, and waits for its answer.
    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> Result<Answer, String> {
        self.call_raw(method, &params.to_string()).await.map(|(answer, _)| answer)
    }

    /// Calls a method with params as they are written. Answers the text too.
    pub(crate) async fn call_raw(&mut self, method: &str, params: &str) -> Result<(Answer, String), String> {
        self.sent += 1;
        let id = format!("call-{}", self.sent);
        let frame = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#);
        self.exchange.add(Way::Out, &format!("{}: {frame}", self.name));
        let text = if let Wire::Http { client, url } = &self.wire {
            let (status, text) = post(client, url, frame.as_bytes(), self.timeout * 2).await?;
            self.look_at(status, &text);
            text
        } else {
            self.write(frame.as_bytes()).await?;
            let until = Instant::now() + self.timeout * 2;
            loop {
                let read = timeout_at(until, self.read_answer()).await;
                let text = read.map_err(|_| format!("{}: no answer to {method}", self.name))??;
                if has_id(&text, &id) {
                    break text;
                }
            }
        };
        self.exchange.add(Way::In, &format!("{}: {text}", self.name));
        let answer: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}: {text}", self.name))?;
        let taken = match (answer.get("result"), answer.get("error")) {
            (Some(result), None) => Ok(result.clone()),
            (None, Some(error)) => Err(error.clone()),
            (Some(_), Some(_)) | (None, None) => {
                return Err(format!("{}: neither result nor error: {text}", self.name));
            }
        };
        Ok((taken, text))
    }

    /// Sends a frame, and waits for nothing.
    pub(crate) async fn say(&mut self, frame: &str) -> Result<(), String> {
        self.exchange.add(Way::Out, &format!("{}: {frame}", self.name));
        self.write(frame.as_bytes()).await
    }

    /// The next message of the gateway's own that has this method.
    pub(crate) async fn pushed(&mut self, method: &str) -> Result<String, String> {
        let is_such = |push: &String| serde_json::from_str::<Value>(push).is_ok_and(|push| push["method"] == method);
        let until = Instant::now() + self.timeout;
        loop {
            if let Some(at) = self.pushes.iter().position(is_such) {
                let push = self.pushes.remove(at).unwrap_or_default();
                self.exchange.add(Way::In, &format!("{}: {push}", self.name));
                return Ok(push);
            }
            let read = timeout_at(until, self.read()).await;
            let text = read.map_err(|_| format!("no {method} within {} s", self.timeout.as_secs()))??;
            self.keep(text);
        }
    }

    /// An answer over HTTP has status 200, and where there is none, 202 or 204.
    fn look_at(&mut self, status: u16, text: &str) {
        let is_right = if text.trim().is_empty() { matches!(status, 202 | 204) } else { status == 200 };
        if !is_right && self.odd_status.is_none() {
            self.odd_status = Some(format!("status {status} with {:?}", short(text)));
        }
    }

    fn keep(&mut self, text: String) {
        if self.pushes.len() < PUSHES_MAX {
            self.pushes.push_back(text);
        }
    }

    async fn write(&mut self, frame: &[u8]) -> Result<(), String> {
        let name = self.name;
        let lost = |error: &dyn std::fmt::Display| format!("{name}: the connection is lost: {error}");
        match &mut self.wire {
            Wire::Http { .. } => Err("HTTP has no open connection".to_owned()),
            Wire::Socket(socket) => {
                let message = match std::str::from_utf8(frame) {
                    Ok(text) => Message::text(text),
                    Err(_) => Message::binary(frame.to_vec()),
                };
                socket.send(message).await.map_err(|error| lost(&error))
            }
            Wire::Stdio { stdin, .. } => {
                let line = [frame, b"\n"].concat();
                stdin.write_all(&line).await.map_err(|error| lost(&error))?;
                stdin.flush().await.map_err(|error| lost(&error))
            }
        }
    }

    /// The next text.
    async fn read(&mut self) -> Result<String, String> {
        let lost = || format!("{}: the connection was closed", self.name);
        match &mut self.wire {
            Wire::Http { .. } => Err("HTTP has no open connection".to_owned()),
            Wire::Socket(socket) => loop {
                match socket.next().await {
                    Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(lost()),
                }
            },
            Wire::Stdio { lines, .. } => match lines.next_line().await {
                Ok(Some(line)) => Ok(line),
                Ok(None) | Err(_) => Err(lost()),
            },
        }
    }

    /// The next answer; what the gateway says of its own is kept.
    async fn read_answer(&mut self) -> Result<String, String> {
        loop {
            let text = self.read().await?;
            let is_own = serde_json::from_str::<Value>(&text).is_ok_and(|value| value.get("method").is_some());
            if !is_own {
                return Ok(text);
            }
            self.keep(text);
        }
    }
}

/// Whether this answer is to the request with this id, however it is written.
fn has_id(text: &str, id: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|answer| answer["id"] == id)
}

async fn post(client: &reqwest::Client, url: &str, frame: &[u8], within: Duration) -> Result<(u16, String), String> {
    let request = client.post(url).header("content-type", "application/json").body(frame.to_vec());
    let response = request.timeout(within).send().await.map_err(|error| format!("HTTP: no answer: {error}"))?;
    let status = response.status().as_u16();
    let text = response.text().await.map_err(|error| format!("HTTP: the answer broke off: {error}"))?;
    Ok((status, text))
}
