//! Agents over HTTP: a scripted web service on the loopback, and sockets that break at chosen moments.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use reach_core::task::event::Trace;
use reach_gateway::adapter::http::HttpAdapter;
use reach_gateway::adapter::{Adapter, Delivered};
use reach_gateway::clock::Clock;
use reach_gateway::outbound::Guard;
use reach_schemas::call::HealthReport;
use reach_schemas::{Effect, ErrorCode, FencingToken, Protocol, RawJson, Span, TaskId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::contract::{LONG, PARAMS, Peers, agent, delivery, done, endpoint, failed, probing};

/// One request as the scripted agent saw it.
type Seen = (Method, Uri, HeaderMap, Bytes);

#[derive(Clone, Default)]
struct Script {
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Script {
    async fn answer(self, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
        let path = uri.path().to_owned();
        self.seen.lock().unwrap().push((method, uri, headers, body.clone()));
        let json = |status: u16, text: &'static str| (StatusCode::from_u16(status).unwrap(), text).into_response();
        match path.as_str() {
            "/echo" => {
                let delivery: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&body).unwrap();
                assert_eq!(delivery["capability"], "do_it");
                let params: Params = serde_json::from_slice(&body).unwrap();
                params.params.get().to_owned().into_response()
            }
            "/accepted" => json(202, "thank you"),
            "/nothing" => json(204, ""),
            "/empty" => json(200, " \n"),
            "/created" => json(201, "[1]"),
            "/counted" => (StatusCode::OK, [("agent-reach-token-count", "17")], "[1]").into_response(),
            "/miscounted" => (StatusCode::OK, [("agent-reach-token-count", "-1")], "[1]").into_response(),
            "/words" => json(200, "all went well"),
            "/huge" => format!("\"{}\"", "x".repeat(9 * 1024 * 1024)).into_response(),
            "/busy" => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3")], "later").into_response(),
            "/draining" => json(503, ""),
            "/no" => json(422, r#"{"title":"Wrong","detail":"the amount is below zero","amount":-1}"#),
            "/text" => (StatusCode::BAD_REQUEST, "wrong \u{e9} ".repeat(1000)).into_response(),
            "/unwilling" => json(503, r#"{"code":"agent_refused","detail":"not on Sundays"}"#),
            "/slow-request" => json(408, ""),
            "/broken" => json(500, r#"{"error":{"message":"a bug"}}"#),
            "/unbegun" => json(502, r#"{"error":"no worker","started":false}"#),
            "/moved" => (StatusCode::TEMPORARY_REDIRECT, [("location", "/echo")], "").into_response(),
            "/see-other" => (StatusCode::SEE_OTHER, [("location", "/done")], "").into_response(),
            "/silent" => std::future::pending().await,
            "/healthz" => json(200, r#"{"queue_depth":4,"more":true}"#),
            other => panic!("no script for {other}"),
        }
    }
}

#[derive(serde::Deserialize)]
struct Params {
    params: RawJson,
}

/// Serves until the test's runtime ends.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

async fn scripted() -> (Script, String) {
    let script = Script::default();
    let handler = script.clone();
    let router = Router::new()
        .fallback(move |method, uri, headers, body| handler.clone().answer(method, uri, headers, body))
        .layer(axum::extract::DefaultBodyLimit::disable());
    (script, serve(router).await)
}

/// Reads one whole request with a body; nothing if the peer closed instead.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return Some(whole);
            }
        }
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    }
}

/// A listener whose connections are each handled by `handle`; it counts the requests that came whole.
async fn raw<F>(handle: impl Fn(TcpStream, Arc<Mutex<usize>>) -> F + Send + 'static) -> (String, Arc<Mutex<usize>>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream, Arc::clone(&counted)));
        }
    });
    (address, count)
}

/// How a connection ends.
#[derive(Clone, Copy)]
enum End {
    /// By a reset.
    Reset,
    /// In good order.
    Close,
}

/// Answers so many requests of a connection, reads one more, and ends the connection.
async fn ending(end: End, answered: usize) -> (String, Arc<Mutex<usize>>) {
    raw(move |mut stream, count| async move {
        for number in 0..=answered {
            if read_request(&mut stream).await.is_none() {
                return;
            }
            *count.lock().unwrap() += 1;
            if number < answered {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1").await.unwrap();
            }
        }
        if let End::Reset = end {
            stream.set_zero_linger().unwrap();
        }
    })
    .await
}

/// A listener that is too busy to take a connection, and the connections that keep it so.
async fn choked() -> (String, TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
        waiting.push(stream.unwrap());
        assert!(waiting.len() < 64, "the backlog has no end");
    }
    (format!("http://{address}/"), listener, waiting)
}

/// An address at which nobody listens.
async fn refused() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

fn guard() -> Guard {
    Guard::of_endpoints(Guard::loopback())
}

async fn peers(origin: &str) -> Peers {
    let clock = Clock::start();
    let http = |address: String| endpoint(Protocol::Http, address);
    Peers {
        adapter: Arc::new(HttpAdapter::new(clock, guard())),
        clock,
        well: (http(format!("{origin}/echo")), done(PARAMS)),
        silent: http(format!("{origin}/silent")),
        dying: http(ending(End::Close, 0).await.0),
        absent: http(refused().await),
    }
}

async fn ask(path: &str, effect: Effect) -> Delivered {
    let (_, origin) = scripted().await;
    peers(&origin).await.deliver(&endpoint(Protocol::Http, format!("{origin}{path}")), effect, LONG).await
}

#[tokio::test]
async fn http_keeps_the_contract() {
    let (_, origin) = scripted().await;
    peers(&origin).await.keep_the_contract().await;
}

#[tokio::test]
async fn the_status_alone_decides_what_a_success_is() {
    assert_eq!(ask("/accepted", Effect::Write).await, Delivered::Accepted);
    assert_eq!(ask("/nothing", Effect::Write).await, done("null"));
    assert_eq!(ask("/empty", Effect::Write).await, done("null"));
    assert_eq!(ask("/created", Effect::Write).await, done("[1]"));
}

#[tokio::test]
async fn a_refusal_is_told_with_its_reason_and_what_it_means_for_the_work() {
    use ErrorCode::{AgentFailed, AgentRefused, InvalidResult, Overloaded};
    let table = [
        ("/words", Effect::Read, InvalidResult, Trace::FailedRetryable, "is not JSON"),
        ("/words", Effect::Write, InvalidResult, Trace::FailedForGood, "is not JSON"),
        ("/huge", Effect::Read, InvalidResult, Trace::FailedForGood, "larger than 8388608 bytes"),
        ("/busy", Effect::Write, Overloaded, Trace::NotStarted, "429 Too Many Requests: later"),
        ("/draining", Effect::Write, Overloaded, Trace::NotStarted, "503"),
        ("/unwilling", Effect::Write, AgentRefused, Trace::NotStarted, "not on Sundays"),
        ("/no", Effect::Read, AgentFailed, Trace::FailedForGood, "422 Unprocessable Entity: the amount is below zero"),
        ("/text", Effect::Read, AgentFailed, Trace::FailedForGood, "400 Bad Request: wrong é wrong"),
        ("/slow-request", Effect::Write, AgentFailed, Trace::NotStarted, "408"),
        ("/broken", Effect::Read, AgentFailed, Trace::FailedRetryable, "a bug"),
        ("/broken", Effect::IdempotentWrite, AgentFailed, Trace::FailedRetryable, "a bug"),
        ("/broken", Effect::Write, AgentFailed, Trace::Unknown, "a bug"),
        ("/unbegun", Effect::Write, AgentFailed, Trace::NotStarted, "no worker"),
        ("/moved", Effect::Write, AgentFailed, Trace::NotStarted, "redirects are not followed"),
        ("/see-other", Effect::Write, AgentFailed, Trace::Unknown, "redirects are not followed"),
        ("/see-other", Effect::Read, AgentFailed, Trace::FailedRetryable, "303 See Other to \"/done\""),
    ];
    for (path, effect, code, trace, words) in table {
        let (failure, known) = failed(ask(path, effect).await);
        assert_eq!((failure.code, known), (code, trace), "{path} {effect:?}: {failure:?}");
        assert!(failure.message.contains(words), "{path}: {}", failure.message);
        assert!(failure.message.len() < 2200, "{path}: a message of {} bytes", failure.message.len());
    }
    assert_eq!(failed(ask("/busy", Effect::Read).await).0.retry_after, Some(Span::from_secs(3)));
    let data = failed(ask("/no", Effect::Read).await).0.data;
    assert!(data.is_some_and(|data| data.get().contains("-1")));
}

#[tokio::test]
async fn a_delivery_says_who_it_is_in_headers_and_body() {
    let (script, origin) = scripted().await;
    let peers = peers(&origin).await;
    let delivery = delivery(peers.clock, Effect::Write, PARAMS, LONG);
    assert_eq!(peers.adapter.deliver(&peers.well.0, delivery.clone()).await, done(PARAMS));
    peers.adapter.cancel(&peers.well.0, &agent(), delivery.task_id, delivery.token).await;

    let seen = script.seen.lock().unwrap().clone();
    let (method, _, headers, body) = &seen[0];
    assert_eq!(*method, Method::POST);
    assert_eq!(*body, serde_json::to_vec(&delivery).unwrap());
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("idempotency-key"), "order 17");
    assert_eq!(header("agent-reach-task-id"), delivery.task_id.to_string());
    assert_eq!(header("agent-reach-token"), "7");
    assert_eq!(header("traceparent").parse().ok(), delivery.traceparent);

    let (method, uri, ..) = &seen[1];
    assert_eq!((method, uri.to_string()), (&Method::DELETE, format!("/echo/{}?token=7", delivery.task_id)));
}

#[tokio::test]
async fn a_refused_connection_never_started() {
    let (_, origin) = scripted().await;
    let peers = peers(&origin).await;
    let unspeakable =
        ["ftp://127.0.0.1/", "http//nowhere", "http://no-such-host.invalid/", &origin.replace("http", "https")];
    for address in unspeakable {
        let (failure, trace) = failed(peers.deliver(&endpoint(Protocol::Http, address), Effect::Write, LONG).await);
        assert_eq!((failure.code, trace), (ErrorCode::Unreachable, Trace::NotStarted), "{address}: {failure:?}");
    }
    let (failure, _) = failed(peers.deliver(&peers.absent, Effect::Write, LONG).await);
    assert!(failure.message.contains("Connection refused"), "{}", failure.message);
}

#[tokio::test]
async fn a_connection_that_does_not_open_in_time_never_started() {
    let (address, _listener, _waiting) = choked().await;
    let (_, origin) = scripted().await;
    let peers = peers(&origin).await;
    let delivered = peers.deliver(&endpoint(Protocol::Http, address), Effect::Write, Span::from_ms(300)).await;
    let (failure, trace) = failed(delivered);
    assert_eq!((failure.code, trace), (ErrorCode::Timeout, Trace::NotStarted), "{failure:?}");
}

#[tokio::test]
async fn a_reset_after_the_request_was_sent_is_unknown() {
    for end in [End::Reset, End::Close] {
        let (address, count) = ending(end, 0).await;
        let (_, origin) = scripted().await;
        let peers = peers(&origin).await;
        let (failure, trace) = failed(peers.deliver(&endpoint(Protocol::Http, address), Effect::Write, LONG).await);
        assert_eq!((failure.code, trace), (ErrorCode::AgentLost, Trace::Unknown), "{failure:?}");
        assert_eq!(*count.lock().unwrap(), 1);
    }
}

#[tokio::test]
async fn a_request_that_was_sent_on_a_reused_connection_is_not_sent_again() {
    for end in [End::Reset, End::Close] {
        let (address, count) = ending(end, 1).await;
        let (_, origin) = scripted().await;
        let peers = peers(&origin).await;
        let agent = endpoint(Protocol::Http, address);
        assert_eq!(peers.deliver(&agent, Effect::Write, LONG).await, done("1"));
        let (failure, trace) = failed(peers.deliver(&agent, Effect::Write, LONG).await);
        assert_eq!((failure.code, trace), (ErrorCode::AgentLost, Trace::Unknown), "{failure:?}");
        assert_eq!(*count.lock().unwrap(), 2);
    }
}

#[tokio::test]
async fn a_connection_that_the_agent_closed_after_an_answer_is_not_used_again() {
    let (address, count) = raw(|mut stream, count| async move {
        read_request(&mut stream).await.unwrap();
        *count.lock().unwrap() += 1;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1").await.unwrap();
    })
    .await;
    let (_, origin) = scripted().await;
    let peers = peers(&origin).await;
    let agent = endpoint(Protocol::Http, address);
    for _ in 0..20 {
        assert_eq!(peers.deliver(&agent, Effect::Write, LONG).await, done("1"));
        // The close is on its way; a request that meets it halfway is another story.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(*count.lock().unwrap(), 20);
}

#[tokio::test]
async fn an_answer_that_breaks_in_its_midst_is_unknown() {
    let (address, _) = raw(|mut stream, _| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[1,2").await.unwrap();
    })
    .await;
    let (_, origin) = scripted().await;
    let peers = peers(&origin).await;
    let (failure, trace) = failed(peers.deliver(&endpoint(Protocol::Http, address), Effect::Write, LONG).await);
    assert_eq!((failure.code, trace), (ErrorCode::AgentLost, Trace::Unknown), "{failure:?}");
}

#[tokio::test]
async fn a_delivery_that_is_given_up_closes_its_connection() {
    let (closed, mut on_closed) = tokio::sync::mpsc::channel(1);
    let (address, count) = raw(move |mut stream, count| {
        let closed = closed.clone();
        async move {
            read_request(&mut stream).await.unwrap();
            *count.lock().unwrap() += 1;
            closed.send(read_request(&mut stream).await.is_none()).await.unwrap();
        }
    })
    .await;
    let (_, origin) = scripted().await;
    let peers = peers(&origin).await;
    let agent = endpoint(Protocol::Http, address);
    let given_up = timeout(Duration::from_millis(200), peers.deliver(&agent, Effect::Write, LONG)).await;
    assert!(given_up.is_err());
    assert_eq!(on_closed.recv().await, Some(true));
    assert_eq!(*count.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_probe_reads_the_report_and_takes_an_agent_without_one_as_well() {
    let clock = Clock::start();
    let adapter = HttpAdapter::new(clock, guard());
    let probe =
        async |address: String| adapter.probe(&endpoint(Protocol::Http, address), &agent(), &probing(LONG)).await;
    let (script, origin) = scripted().await;
    let report = HealthReport { queue_depth: Some(4), ..HealthReport::default() };
    assert_eq!(probe(format!("{origin}/echo?key=secret")).await, Ok(report));
    assert_eq!(script.seen.lock().unwrap()[0].1, "/healthz");

    let fixed = async |status: u16, text: &'static str| {
        let status = StatusCode::from_u16(status).unwrap();
        probe(serve(Router::new().fallback(move || async move { (status, text) })).await).await
    };
    for (status, text) in [(200, ""), (200, "ok"), (204, ""), (404, "<html>"), (405, ""), (501, "")] {
        assert_eq!(fixed(status, text).await, Ok(HealthReport::default()), "{status}");
    }
    assert_eq!(
        fixed(503, r#"{"detail":"no database"}"#).await,
        Err("the agent answered 503 Service Unavailable: no database".to_owned())
    );

    let stuck = serve(Router::new().fallback(std::future::pending::<()>)).await;
    let told = adapter.probe(&endpoint(Protocol::Http, stuck), &agent(), &probing(Span::from_ms(100))).await;
    assert_eq!(told, Err("no answer within the time of the probe".to_owned()));
}

#[tokio::test]
async fn a_cancellation_that_nobody_answers_is_given_up() {
    let (_, origin) = scripted().await;
    let peers = peers(&origin).await;
    let stuck = endpoint(Protocol::Http, serve(Router::new().fallback(std::future::pending::<()>)).await);
    let agent = agent();
    let cancel = peers.adapter.cancel(&stuck, &agent, TaskId::from_parts(1, 1), FencingToken(1));
    timeout(Duration::from_secs(4), cancel).await.expect("two seconds are enough");
}

#[tokio::test]
async fn an_agent_may_say_how_many_tokens_it_took_and_a_count_that_is_none_is_left_out() {
    for (path, token_count) in [("/counted", Some(17)), ("/miscounted", None), ("/created", None)] {
        let expected = Delivered::Done { result: RawJson::parse("[1]").unwrap(), token_count };
        assert_eq!(ask(path, Effect::Read).await, expected, "{path}");
    }
}
