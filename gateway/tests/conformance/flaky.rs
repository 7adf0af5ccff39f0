//! A proxy before a gateway, over HTTP and WebSocket, that breaks one rule and leaves everything else as it is.
#![allow(clippy::wildcard_enum_match_arm, reason = "most places care for one fault of many")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::{SinkExt, StreamExt};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message as Theirs;

/// The rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    /// None at all: an answer is a JSON value, however it is written.
    Respells,
    AnswersBatchesWithoutIds,
    DropsResultsOfABatch,
    RoundsIdsOfResults,
    OverwritesResults,
    TakesStaleFailures,
    AnswersResultsWith500,
    AnswersNotifications,
    RoundsIds,
    BlamesParseErrorOnItself,
    DropsOneOfABatch,
    HidesReplays,
    ForgetsConflicts,
    SharesKeys,
    HandsOutBareKeys,
    DropsErrorData,
    AnswersMoreOverWebSocket,
    TakesStaleReports,
    RewritesNumbers,
    NamesWhatIsBehindTheWall,
    AnswersProblemsWith500,
    LosesCancels,
    ForgetsTraces,
}

#[derive(Clone)]
struct Proxy {
    fault: Fault,
    target: String,
    client: reqwest::Client,
    /// What completed each task, and what was said to do so afterwards.
    over: Arc<Mutex<BTreeMap<String, Value>>>,
}

/// Stands before the gateway at this address. Answers its own.
pub(crate) async fn before(target: &str, fault: Fault) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let proxy = Proxy { fault, target: target.to_owned(), client, over: Arc::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/rpc/ws", get(upgrade)).fallback(any(pass)).with_state(proxy);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn pass(State(proxy): State<Proxy>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let is_rpc = uri.path() == "/rpc";
    let asked = String::from_utf8_lossy(&body).into_owned();
    let sent = if is_rpc && std::str::from_utf8(&body).is_ok() { proxy.out(&asked).into() } else { body };
    let mut request = proxy.client.request(method, format!("{}{uri}", proxy.target)).body(sent);
    for name in ["content-type", "accept", "mcp-session-id", "mcp-protocol-version", "reach-agent"] {
        if let Some(value) = headers.get(name) {
            request = request.header(name, value);
        }
    }
    let answer = request.send().await.unwrap();
    let (mut status, headers) = (answer.status(), answer.headers().clone());
    let mut text = answer.text().await.unwrap();
    if is_rpc {
        let changed = proxy.back(&text, Some(&asked));
        if text.is_empty() && !changed.is_empty() {
            status = StatusCode::OK;
        }
        if proxy.fault == Fault::AnswersResultsWith500 && changed.contains("\"result\":") {
            status = StatusCode::INTERNAL_SERVER_ERROR;
        }
        text = changed;
    } else if proxy.fault == Fault::AnswersProblemsWith500 && text.contains("\"fault\"") {
        status = StatusCode::INTERNAL_SERVER_ERROR;
    }
    let mut response = (status, text).into_response();
    for name in ["content-type", "mcp-session-id"] {
        if let Some(value) = headers.get(name) {
            response.headers_mut().insert(axum::http::HeaderName::from_static(name), value.clone());
        }
    }
    response
}

async fn upgrade(State(proxy): State<Proxy>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| relay(proxy, socket))
}

async fn relay(proxy: Proxy, socket: WebSocket) {
    let url = format!("{}/rpc/ws", proxy.target.replacen("http", "ws", 1));
    let (theirs, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let ((mut up, mut down), (mut sink, mut stream)) = (theirs.split(), socket.split());
    loop {
        tokio::select! {
            message = stream.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let is_notice = serde_json::from_str::<Value>(text.as_str()).is_ok_and(|value| is_notification(&value));
                    if proxy.fault == Fault::AnswersNotifications && is_notice {
                        let answer = r#"{"jsonrpc":"2.0","id":null,"result":null}"#;
                        let _ = sink.send(Message::text(answer)).await;
                    }
                    if up.send(Theirs::text(proxy.out(text.as_str()))).await.is_err() {
                        return;
                    }
                }
                Some(Ok(Message::Binary(bytes))) => drop(up.send(Theirs::binary(bytes)).await),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
            message = down.next() => match message {
                Some(Ok(Theirs::Text(text))) => {
                    let changed = proxy.back(text.as_str(), None);
                    let more = proxy.fault == Fault::AnswersMoreOverWebSocket;
                    let changed = if more { changed.replacen("\"result\":{", "\"result\":{\"extra\":true,", 1) } else { changed };
                    if !changed.is_empty() && sink.send(Message::text(changed)).await.is_err() {
                        return;
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
        }
    }
}

fn is_notification(value: &Value) -> bool {
    value.is_object() && value["method"].is_string() && value.get("id").is_none()
}

impl Proxy {
    /// What goes to the gateway.
    fn out(&self, text: &str) -> String {
        match self.fault {
            // Everybody's keys are the same caller's.
            Fault::SharesKeys if text.contains("idempotency_key") => text.replace("other@keys", "caller@keys"),
            Fault::ForgetsTraces => {
                text.replace("0af7651916cd43dd8448eb211c80319c", "11111111111111111111111111111111")
            }
            _ => text.to_owned(),
        }
    }

    /// What comes back. `asked` is the request, where there was one.
    fn back(&self, text: &str, asked: Option<&str>) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else {
            let asked: Value = asked.and_then(|asked| serde_json::from_str(asked).ok()).unwrap_or_default();
            let answers = self.fault == Fault::AnswersNotifications && is_notification(&asked);
            return if answers { r#"{"jsonrpc":"2.0","id":null,"result":null}"#.to_owned() } else { text.to_owned() };
        };
        let code = value["error"]["data"]["code"].as_str().unwrap_or_default().to_owned();
        let asked_for: Value = asked.and_then(|asked| serde_json::from_str(asked).ok()).unwrap_or_default();
        match self.fault {
            Fault::Respells => respelled(text),
            Fault::AnswersBatchesWithoutIds if value.is_array() => {
                value.as_array_mut().unwrap().iter_mut().for_each(|answer| answer["id"] = Value::Null);
                value.to_string()
            }
            Fault::DropsResultsOfABatch if value.is_array() => {
                value.as_array_mut().unwrap().retain(|answer| answer["error"].is_object());
                value.to_string()
            }
            Fault::RoundsIdsOfResults if value["result"].is_object() => {
                text.replace("9007199254740993", "9007199254740992")
            }
            Fault::OverwritesResults => self.overwritten(text, value, &asked_for),
            Fault::TakesStaleFailures if code == "stale_token" && asked_for["method"] == "task/fail" => {
                json!({ "jsonrpc": "2.0", "id": value["id"], "result": { "phase": "failed" } }).to_string()
            }
            Fault::RoundsIds => text.replace("9007199254740993,\"error", "9007199254740992,\"error"),
            Fault::BlamesParseErrorOnItself => text.replace("-32700", "-32603"),
            Fault::DropsOneOfABatch if value.as_array().is_some_and(|answers| answers.len() > 1) => {
                value.as_array_mut().unwrap().pop();
                value.to_string()
            }
            Fault::HidesReplays => text.replace("\"replayed\":true,", ""),
            Fault::ForgetsConflicts if code == "idempotency_key_reused" => {
                json!({ "jsonrpc": "2.0", "id": value["id"], "result": { "task_id": "-" } }).to_string()
            }
            Fault::HandsOutBareKeys => {
                let tasks = value["result"]["tasks"].as_array().into_iter().flatten();
                let scoped = tasks.filter_map(|task| task["idempotency_key"].as_str()?.split_once('/'));
                scoped.fold(text.to_owned(), |text, (scope, _)| text.replace(&format!("\"{scope}/"), "\""))
            }
            Fault::DropsErrorData if value["error"]["data"].is_object() => {
                value["error"].as_object_mut().unwrap().remove("data");
                value.to_string()
            }
            Fault::TakesStaleReports
                if code == "stale_token" && asked.is_some_and(|asked| asked.contains("\"late\"")) =>
            {
                json!({ "jsonrpc": "2.0", "id": value["id"], "result": { "phase": "completed" } }).to_string()
            }
            Fault::RewritesNumbers if text.contains("\"task/deliver\"") => value.to_string(),
            Fault::NamesWhatIsBehindTheWall if code == "agent_not_found" && text.contains("keeper@") => {
                text.replace("there is no agent", "you may not call the agent")
            }
            Fault::LosesCancels if text.contains("\"task/stop\"") => String::new(),
            _ => text.to_owned(),
        }
    }

    /// A second end of a task is taken, and is its result from then on.
    fn overwritten(&self, text: &str, mut value: Value, asked: &Value) -> String {
        let mut over = self.over.lock().unwrap();
        let task = |named: &Value| named["task_id"].as_str().unwrap_or_default().to_owned();
        if asked["method"] == "task/complete" && value["error"]["data"]["code"] == "wrong_phase" {
            over.insert(task(&asked["params"]), asked["params"]["result"].clone());
            return json!({ "jsonrpc": "2.0", "id": value["id"], "result": { "phase": "completed" } }).to_string();
        }
        match over.get(&task(&value["result"])) {
            Some(result) => {
                value["result"]["result"] = result.clone();
                value.to_string()
            }
            None => text.to_owned(),
        }
    }
}

/// The same answer with blanks, in another order, and with every character of a text for an id escaped. What is within a
/// result stays byte for byte.
fn respelled(text: &str) -> String {
    if let Ok(answers) = serde_json::from_str::<Vec<&RawValue>>(text) {
        let answers: Vec<String> = answers.into_iter().rev().map(|answer| respelled(answer.get())).collect();
        return format!("[ {} ]", answers.join(" , "));
    }
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else { return text.to_owned() };
    let member = |(name, value): (&String, &&RawValue)| match serde_json::from_str::<String>(value.get()) {
        Ok(text) if name == "id" => {
            let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{name}\" : \"{escaped}\"")
        }
        _ => format!("\"{name}\" : {}", value.get()),
    };
    let members: Vec<String> = members.iter().rev().map(member).collect();
    format!("{{ {} }}", members.join(" , "))
}
