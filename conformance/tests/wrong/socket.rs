//! The hand-made agent behind a WebSocket that it opens itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::report::Caller;
use super::{Admission, Agent, Fault};

/// The agent's side of its connection, whichever is open.
pub(crate) struct Link {
    outbox: Mutex<Option<mpsc::UnboundedSender<String>>>,
    pending: Mutex<BTreeMap<u64, oneshot::Sender<Value>>>,
    next: AtomicU64,
    /// How many connections there have been.
    connections: AtomicU64,
}

impl Link {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            outbox: Mutex::default(),
            pending: Mutex::default(),
            next: AtomicU64::new(100),
            connections: AtomicU64::default(),
        })
    }

    fn say(&self, text: String) -> bool {
        self.outbox.lock().unwrap().as_ref().is_some_and(|outbox| outbox.send(text).is_ok())
    }

    /// Calls the gateway. None: there was no answer.
    pub(crate) async fn call(&self, method: &str, params: &str) -> Option<Value> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.pending.lock().unwrap().insert(id, sender);
        if !self.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)) {
            return None;
        }
        tokio::time::timeout(Duration::from_secs(10), answer).await.ok()?.ok()
    }
}

#[derive(serde::Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Connects again and again, until the gateway is gone for good.
pub(crate) async fn join(agent: Arc<Agent>, gateway: String) {
    let url = format!("{}/rpc/ws", gateway.replacen("http", "ws", 1));
    let link = Link::new();
    let caller = Caller::Socket(link.clone());
    let mut is_first = true;
    loop {
        let Some(socket) = connect(&agent, &gateway, &url).await else {
            if agent.papers.is_over() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if agent.has(Fault::ClosesAtOnce) {
            drop(socket);
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        let (outbox, out) = mpsc::unbounded_channel();
        link.connections.fetch_add(1, Ordering::Relaxed);
        *link.outbox.lock().unwrap() = Some(outbox);
        let serving = tokio::spawn(serve(agent.clone(), link.clone(), socket, out));
        let is_quiet = agent.has(Fault::NeverRegisters) || (agent.has(Fault::ComesBackSilently) && !is_first);
        if !is_quiet {
            let card = if is_first { agent.card("") } else { agent.card_again("") };
            let _ = caller.call("agent/register", &card.to_string()).await;
        }
        if is_first && !agent.has(Fault::NeverRegisters) {
            tokio::spawn(agent.clone().beat(caller.clone(), String::new()));
        }
        is_first = false;
        let _ = serving.await;
        *link.outbox.lock().unwrap() = None;
        // Whoever waits for an answer hears that there will be none.
        link.pending.lock().unwrap().clear();
        if agent.has(Fault::NeverComesBack) || agent.papers.is_over() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Opens the connection, with the token. None: it was not opened this time.
async fn connect(agent: &Agent, gateway: &str, url: &str) -> Option<Socket> {
    let mut request = url.into_client_request().unwrap();
    let token = agent.papers.token();
    if let Some(token) = &token {
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    match tokio_tungstenite::connect_async(request).await {
        Ok((socket, _)) => Some(socket),
        Err(Error::Http(response)) => {
            let challenge = response.headers().get("www-authenticate")?.to_str().ok()?;
            let named = challenge.split_once("/errors/")?.1.split('"').next()?;
            let code = reach_schemas::ErrorCode::by_name(named)?.number();
            agent.papers.heed(gateway, token.as_deref(), code.into()).await;
            None
        }
        Err(_) => None,
    }
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn serve(agent: Arc<Agent>, link: Arc<Link>, socket: Socket, mut out: mpsc::UnboundedReceiver<String>) {
    let (mut sink, mut stream) = socket.split();
    let mut floods = agent.has(Fault::Floods) || agent.has(Fault::FloodsBeats);
    let is_of_beats = agent.has(Fault::FloodsBeats);
    // Beats that nobody looks for the answer of: by then, one that was looked at was told to register again.
    let pause = Duration::from_millis(if is_of_beats { 1500 } else { 1 });
    let begins = tokio::time::Instant::now() + pause;
    loop {
        tokio::select! {
            text = out.recv() => {
                let Some(text) = text else { return };
                if sink.send(Message::text(text)).await.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep_until(begins), if floods => {
                floods = false;
                for _ in 0..if is_of_beats { 3000 } else { 2000 } {
                    let note = match is_of_beats {
                        true => r#"{"jsonrpc":"2.0","method":"agent/heartbeat","params":{"agent_id":"hand@made"}}"#,
                        false => r#"{"jsonrpc":"2.0","method":"agent/chatter","params":{}}"#,
                    };
                    if sink.send(Message::text(note)).await.is_err() {
                        return;
                    }
                }
            }
            message = stream.next() => match message {
                Some(Ok(Message::Text(text))) => read(&agent, &link, text.as_str()),
                Some(Ok(Message::Close(Some(frame)))) if u16::from(frame.code) == 4409 => {
                    agent.papers.heed("", None, 1023).await;
                    return;
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
        }
    }
}

fn read(agent: &Arc<Agent>, link: &Arc<Link>, text: &str) {
    let Ok(frame) = serde_json::from_str::<Frame<'_>>(text) else { return };
    let Some(method) = frame.method else {
        let waiting = frame.id.and_then(|id| link.pending.lock().unwrap().remove(&id.get().parse::<u64>().ok()?));
        if let Some(waiting) = waiting {
            let _ = waiting.send(serde_json::from_str(text).unwrap());
        }
        return;
    };
    let params = frame.params.map_or("{}", RawValue::get).to_owned();
    let id = frame.id.map(|id| match id.get().parse::<i64>() {
        Ok(number @ 1_000_000..) if agent.has(Fault::RoundsIds) => json!(number as f64).to_string(),
        Err(_) if agent.has(Fault::EscapesIds) => escaped(id.get()),
        Ok(_) | Err(_) => id.get().to_owned(),
    });
    let (agent, link) = (agent.clone(), link.clone());
    match (method.as_str(), id) {
        ("task/deliver", Some(id)) => drop(tokio::spawn(deliver(agent, link, id, params))),
        ("agent/probe", Some(id)) => {
            tokio::spawn(async move {
                tokio::time::sleep(agent.probe_pause()).await;
                if agent.has(Fault::ProbeFails) {
                    refuse(&link, &id, 2000, json!({}));
                } else {
                    link.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, agent.health()));
                }
            });
        }
        ("task/stop", None) => {
            let named: Value = serde_json::from_str(&params).unwrap();
            agent.call_off(named["task_id"].as_str().unwrap(), named["token"].as_u64().unwrap());
        }
        (_, Some(id)) if agent.has(Fault::AnswersUnknownMethods) => {
            link.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        }
        (_, Some(id)) => refuse(&link, &id, -32601, json!({})),
        (_, None) if agent.has(Fault::AnswersNotifications) => refuse(&link, "null", -32601, json!({})),
        (_, None) => {}
    }
}

/// A text with every character escaped.
fn escaped(text: &str) -> String {
    let plain: String = serde_json::from_str(text).unwrap();
    format!("\"{}\"", plain.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>())
}

fn refuse(link: &Link, id: &str, code: i64, data: Value) {
    let error = json!({ "code": code, "message": "no", "data": data });
    link.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
}

async fn deliver(agent: Arc<Agent>, link: Arc<Link>, id: String, text: String) {
    let caller = Caller::Socket(link.clone());
    let delivery: Value = serde_json::from_str(&text).unwrap();
    let connection = link.connections.load(Ordering::Relaxed);
    let accept = || link.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    let is_count = delivery["capability"] == "count_words";
    let ended = match agent.admit(&delivery) {
        Admission::Run(called_off) => {
            let is_late = match agent.fault {
                Fault::WorksBeforeAccept => true,
                Fault::CompletesBeforeAccept => is_count,
                _ => false,
            };
            if !is_late {
                accept();
            }
            let result = agent.work(&text, called_off).await;
            if agent.has(Fault::WorksBeforeAccept) {
                accept();
            }
            let Some(result) = result else { return };
            Ok(result)
        }
        Admission::Done(result) => {
            accept();
            Ok(result)
        }
        Admission::Running => {
            accept();
            return;
        }
        Admission::Silence | Admission::Odd(_) => return,
        Admission::Stale => return refuse(&link, &id, 1009, json!({ "code": "stale_token" })),
        Admission::Full if agent.has(Fault::NeverSaysWhen) => {
            return refuse(&link, &id, 3001, json!({ "code": "overloaded" }));
        }
        Admission::Full => {
            return refuse(&link, &id, 3001, json!({ "code": "overloaded", "retry_after": "1s" }));
        }
        Admission::Bad(_) if delivery.get("task_id").is_none() => return refuse(&link, &id, -32602, json!({})),
        Admission::Bad(why) => {
            accept();
            Err(why)
        }
        Admission::Broken => return refuse(&link, &id, 2000, json!({})),
    };
    if agent.has(Fault::ForgetsResults) && link.connections.load(Ordering::Relaxed) != connection {
        return;
    }
    agent.report(&caller, &delivery, ended.as_deref().map_err(String::as_str)).await;
    if agent.has(Fault::CompletesBeforeAccept) && is_count {
        accept();
    }
}
