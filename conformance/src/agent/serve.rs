//! The runner's port: what agents of a gateway need of it, over HTTP and WebSocket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use reach_schemas::ErrorCode;
use reach_schemas::error::{Fault, Retry};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::desk::{Connection, Desk, Out, Pending, keep};
use super::links::taken;
use super::methods::{Answered, Call, Caller, Refusal, answer};
use crate::exchange::Way;
use crate::json::spelled;

/// The largest message that is read.
const MESSAGE_MAX: usize = 16 << 20;
/// How many messages wait to be written to an agent.
const OUTBOX_MAX: usize = 1024;
/// How long an agent that floods us is left unread after each message.
const FLOOD_PAUSE: Duration = Duration::from_millis(2);

/// Begins to serve. Answers the address.
pub(crate) async fn listen(address: SocketAddr, desk: Arc<Desk>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let router = Router::new()
        .route("/rpc", post(rpc))
        .route("/rpc/ws", get(socket))
        .route("/agent/register", post(|desk, headers, body| rest(desk, Call::Register, headers, body)))
        .route("/agent/heartbeat", post(|desk, headers, body| rest(desk, Call::Heartbeat, headers, body)))
        .route("/healthz", get(|| async { axum::Json(json!({ "status": "ok" })) }))
        .layer(axum::extract::DefaultBodyLimit::max(MESSAGE_MAX))
        .with_state(desk);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(bound)
}

const fn is_beat(call: Call) -> bool {
    matches!(call, Call::Heartbeat | Call::Claim)
}

fn show(desk: &Desk, call: Option<Call>, way: Way, text: &str) {
    if call.is_some_and(is_beat) {
        desk.exchange.add_beat(way, text);
    } else {
        desk.exchange.add(way, text);
    }
}

async fn rest(Shared(desk): Shared<Arc<Desk>>, call: Call, headers: HeaderMap, body: Bytes) -> Response {
    desk.count_unasked();
    let text = String::from_utf8_lossy(&body).into_owned();
    let path = if call == Call::Register { "/agent/register" } else { "/agent/heartbeat" };
    show(&desk, Some(call), Way::In, &format!("POST {path} {text}"));
    let caller = caller(&headers, None);
    let answered = match caller.may(&desk, Some(call), &text) {
        Ok(()) => answer(&desk, call, &text, &caller).await,
        Err(refusal) => Err(refusal),
    };
    let (status, body) = match &answered {
        Ok(answer) => (200, answer.clone()),
        Err(refusal) => (refusal.code.http_status(), problem(refusal).to_string()),
    };
    show(&desk, Some(call), Way::Out, &format!("{status} {body}"));
    challenged(reply(status, body), answered.err().map(|refusal| refusal.code))
}

/// Who calls, by the headers.
fn caller(headers: &HeaderMap, connection: Option<u64>) -> Caller {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let bearer = header(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned));
    Caller { connection, host: header(header::HOST).unwrap_or_default(), token: bearer }
}

/// A refusal for who calls names its error where every client looks.
fn challenged(mut response: Response, code: Option<ErrorCode>) -> Response {
    let code = code.filter(|code| code.http_status() == 401);
    let named = code.map(|code| {
        format!(r#"Bearer realm="reach-conformance", error="invalid_token", error_uri="/errors/{}""#, code.name())
    });
    if let Some(value) = named.and_then(|text| text.parse().ok()) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

fn reply(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

const fn fault(code: ErrorCode) -> &'static str {
    match code.fault() {
        Fault::Caller => "caller",
        Fault::Agent => "agent",
        Fault::Gateway => "gateway",
    }
}

const fn retry(code: ErrorCode) -> &'static str {
    match code.retry() {
        Retry::Never => "never",
        Retry::Later => "later",
        Retry::Judge => "judge",
    }
}

fn problem(refusal: &Refusal) -> Value {
    let Refusal { code, message } = refusal;
    json!({
        "type": format!("/errors/{}", code.name()), "title": code.name(), "status": code.http_status(),
        "detail": message, "code": code.name(), "fault": fault(*code), "retry": retry(*code),
    })
}

/// A frame, as far as it is read. The id is kept as it came.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

fn framed(id: &str, answered: Answered) -> String {
    match answered {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(Refusal { code, message }) => {
            let data = json!({ "code": code.name(), "fault": fault(code), "retry": retry(code) });
            let error = json!({ "code": code.number(), "message": message, "data": data });
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    }
}

/// Answers one request. None: it is a notification. With the error that it is refused with.
async fn answered(
    desk: &Arc<Desk>,
    frame: &Frame<'_>,
    method: &str,
    caller: &Caller,
) -> Option<(String, Option<ErrorCode>)> {
    let params = frame.params.map_or("{}", RawValue::get);
    let call = Call::by_name(method);
    let answered = match (caller.may(desk, call, params), call) {
        (Err(refusal), _) => Err(refusal),
        (Ok(()), Some(call)) => answer(desk, call, params, caller).await,
        (Ok(()), None) => Err(Refusal {
            code: ErrorCode::MethodNotFound,
            message: format!("{method} is no method for agents; the conformance runner answers no other"),
        }),
    };
    let code = answered.as_ref().err().map(|refusal| refusal.code);
    frame.id.map(|id| (framed(id.get(), answered), code))
}

async fn rpc(Shared(desk): Shared<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    desk.count_unasked();
    let text = String::from_utf8_lossy(&body).into_owned();
    let Ok(frame) = serde_json::from_str::<Frame<'_>>(&text) else {
        desk.exchange.add(Way::In, &format!("POST /rpc {text}"));
        let refusal = Refusal { code: ErrorCode::ParseError, message: "one JSON-RPC request is read here".to_owned() };
        return reply(200, framed("null", Err(refusal)));
    };
    let method = frame.method.clone().unwrap_or_default();
    let call = Call::by_name(&method);
    show(&desk, call, Way::In, &format!("POST /rpc {text}"));
    match answered(&desk, &frame, &method, &caller(&headers, None)).await {
        Some((body, code)) => {
            let status = code.map(ErrorCode::http_status).filter(|status| *status == 401).unwrap_or(200);
            show(&desk, call, Way::Out, &format!("{status} {body}"));
            challenged(reply(status, body), code)
        }
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn socket(Shared(desk): Shared<Arc<Desk>>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    let caller = caller(&headers, None);
    if let Err(code) = desk.change(|state| state.tokens.admit(caller.token.as_deref(), true)) {
        desk.exchange.add(Way::Out, &format!("a WebSocket is refused: {}", code.name()));
        let refusal = Refusal { code, message: "who are you? see docs/identity.md".to_owned() };
        return challenged(reply(code.http_status(), problem(&refusal).to_string()), Some(code));
    }
    upgrade.max_message_size(MESSAGE_MAX).on_upgrade(move |socket| serve(desk, socket, caller))
}

async fn serve(desk: Arc<Desk>, socket: WebSocket, caller: Caller) {
    let (sink, mut stream) = socket.split();
    let (sender, outbox) = mpsc::channel(OUTBOX_MAX);
    let number = desk.change(|state| {
        state.connections += 1;
        let number = state.connections;
        state.connection = Some(Connection { number, sender: sender.clone(), is_registered: false });
        number
    });
    desk.exchange.add(Way::Note, &format!("connection {number} was opened"));
    let mut writing = tokio::spawn(write(sink, outbox));
    loop {
        let message = tokio::select! {
            message = stream.next() => message,
            _ = &mut writing => break,
        };
        match message {
            Some(Ok(Message::Text(text))) => {
                let caller = Caller { connection: Some(number), ..caller.clone() };
                read(&desk, caller, &sender, text.as_str().to_owned()).await;
            }
            Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => desk.count_unasked(),
            Some(Ok(Message::Close(_)) | Err(_)) | None => break,
        }
        if desk.is_flooded() {
            tokio::time::sleep(FLOOD_PAUSE).await;
        }
    }
    writing.abort();
    desk.exchange.add(Way::Note, &format!("connection {number} was closed"));
    desk.change(|state| {
        if state.connection.as_ref().is_some_and(|open| open.number == number) {
            state.connection = None;
            // Whoever waits for an answer over it is told by the sender being gone.
            state.pending.clear();
        }
    });
}

async fn write(mut sink: SplitSink<WebSocket, Message>, mut outbox: mpsc::Receiver<Out>) {
    while let Some(out) = outbox.recv().await {
        let message = match out {
            Out::Text(text) => Message::text(text),
            Out::Close(code) => Message::Close(Some(CloseFrame { code, reason: "".into() })),
            Out::Cut => return,
        };
        let is_last = matches!(message, Message::Close(_));
        if sink.send(message).await.is_err() || is_last {
            return;
        }
    }
}

async fn read(desk: &Arc<Desk>, caller: Caller, sender: &mpsc::Sender<Out>, text: String) {
    let stray = |desk: &Desk| {
        desk.count_unasked();
        desk.exchange.add(Way::In, &text);
        desk.change(|state| keep(&mut state.strays, text.chars().take(500).collect()));
    };
    let Ok(frame) = serde_json::from_str::<Frame<'_>>(&text) else { return stray(desk) };
    let Some(method) = frame.method.clone() else {
        let reply = match (frame.result, frame.error) {
            (Some(result), None) => Ok(result.get().to_owned()),
            (None, Some(error)) => Err(error.get().to_owned()),
            (Some(_), Some(_)) | (None, None) => return stray(desk),
        };
        let waiting = frame.id.and_then(|id| desk.change(|state| state.pending.remove(&spelled(id.get()))));
        return match waiting {
            Some(Pending { sender, delivers }) => {
                desk.exchange.add(Way::In, &text);
                if let Some(key) = delivers {
                    desk.note(key, taken(&reply));
                }
                // Whoever gave up waiting does not care.
                let _ = sender.send(reply);
            }
            None => stray(desk),
        };
    };
    desk.count_unasked();
    let call = Call::by_name(&method);
    show(desk, call, Way::In, &text);
    let (desk, sender) = (desk.clone(), sender.clone());
    let respond = respond(desk, caller, method, text, sender);
    // A claim waits; everything else is answered in the order in which it came.
    if call == Some(Call::Claim) {
        tokio::spawn(respond);
    } else {
        respond.await;
    }
}

async fn respond(desk: Arc<Desk>, caller: Caller, method: String, text: String, sender: mpsc::Sender<Out>) {
    let Ok(frame) = serde_json::from_str::<Frame<'_>>(&text) else { return };
    if let Some((body, _)) = answered(&desk, &frame, &method, &caller).await {
        show(&desk, Call::by_name(&method), Way::Out, &body);
        // One that does not read its answers misses them.
        let _ = sender.try_send(Out::Text(body));
    }
}
