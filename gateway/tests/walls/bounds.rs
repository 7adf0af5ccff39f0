//! What the port bears: those who send too much, too slowly, too deep or too often are told so or cut off, and everybody else
//! is served meanwhile.

use std::time::Duration;

use futures_util::StreamExt;
use reach_core::rate::Rate;
use reach_gateway::envelope::TextLimits;
use reach_gateway::gateway::Settings;
use reach_gateway::rates::RateLimits;
use reach_gateway::transport::HttpSettings;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::common::peer::{Over, Peer, client, connect};
use crate::common::web::Web;
use crate::common::{Running, start_with};

const SHORT: Duration = Duration::from_millis(200);
/// What a test waits for at most, on a machine that has other work.
const PATIENCE: Duration = Duration::from_secs(60);

async fn start_set(settings: HttpSettings) -> Running {
    start_with(Settings::default(), settings).await
}

fn quick() -> HttpSettings {
    HttpSettings { first_request_timeout: SHORT, idle_timeout: SHORT, body_timeout: SHORT, ..HttpSettings::default() }
}

/// Whether a caller who does nothing wrong is answered.
async fn is_served(running: &Running) -> bool {
    Web::new(running).get("/healthz").await.status == 200
}

/// Sends a text a byte at a time until the gateway has had enough, and gives what it said. It never stops by itself.
async fn drip(running: &Running, first: &str, then: &str) -> String {
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(first.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let dripping = async {
        for byte in then.bytes().cycle() {
            if writer.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut said = Vec::new();
    let hearing = tokio::time::timeout(PATIENCE, async {
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = reader.read(&mut part).await {
            said.extend_from_slice(&part[..length]);
        }
    });
    tokio::select! {
        ended = hearing => ended.expect("the gateway never had enough"),
        () = dripping => {}
    }
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn a_head_that_drips_is_cut_off_however_steadily_it_comes() {
    let running = start_set(quick()).await;
    let said = drip(&running, "POST /rpc HTTP/1.1\r\nhost: localhost\r\n", "x-slow: y\r\n").await;
    assert!(!said.starts_with("HTTP/1.1 200"), "{said}");
    // The second head on a connection is held to its time as well.
    let first = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\n";
    let said = drip(&running, first, "x-slow: y\r\n").await;
    assert_eq!(said.matches("HTTP/1.1 200").count(), 1, "{said}");
    assert!(is_served(&running).await);
}

#[tokio::test]
async fn a_body_that_drips_is_answered_that_it_did_not_come_in_time() {
    let running = start_set(quick()).await;
    for path in ["/rpc", "/mcp", "/reach"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: 1000000\r\n\r\n"
        );
        let said = drip(&running, &head, " ").await;
        assert!(said.starts_with("HTTP/1.1 408 "), "{path}: {said}");
    }
    assert!(is_served(&running).await);
}

#[tokio::test]
async fn too_many_headers_or_too_large_ones_are_refused_over_http_1_and_2() {
    let running = start_set(HttpSettings { headers_max: 20, head_max: 8192, ..HttpSettings::default() }).await;
    let many: Vec<(String, String)> = (0..30).map(|n| (format!("x-{n}"), "y".to_owned())).collect();
    let large = vec![("x-large".to_owned(), "y".repeat(20_000))];
    // The first client chooses what TLS is made of.
    let older = client();
    let newest = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    for (client, headers) in [(older.clone(), &many), (older, &large), (newest, &large)] {
        let request = headers
            .iter()
            .fold(client.get(running.url("/healthz")), |request, (name, value)| request.header(name, value));
        match request.send().await {
            Ok(answer) => assert_eq!(answer.status(), 431, "{:?}", answer.version()),
            // It may be closed before it has read all that it refuses.
            Err(error) => assert!(error.is_request(), "{error:?}"),
        }
    }
    assert!(is_served(&running).await);
}

/// What is answered to a frame, and by which code.
async fn refused(running: &Running, frame: &str) -> Value {
    let answer = Web::new(running)
        .ask(reqwest::Method::POST, "/rpc", &[("content-type", "application/json")], Some(frame.to_owned()))
        .await;
    answer.json()["error"].clone()
}

#[tokio::test]
async fn json_bombs_are_answered_as_what_they_are() {
    let running = start_set(HttpSettings::default()).await;
    let call = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"task/submit","params":{params}}}"#);
    let deep = |open: &str, shut: &str, times: usize| format!("{}{}", open.repeat(times), shut.repeat(times));
    let wide = format!("[{}]", vec!["1"; 1_900_000].join(","));
    let members: Vec<String> = (0..200_000).map(|n| format!(r#""m{n}":1"#)).collect();
    for (what, frame, code) in [
        ("deep arrays", deep("[", "]", 1_000_000), "parse_error"),
        ("deep objects", call(&deep(r#"{"a":"#, "}", 300).replace(":}", ":1}")), "parse_error"),
        ("deep and never closed", "[".repeat(2_000_000), "parse_error"),
        ("a wide array", call(&wide), "invalid_params"),
        ("many members", call(&format!("{{{}}}", members.join(","))), "invalid_params"),
        ("a huge number", call(&format!(r#"{{"priority":{}}}"#, "9".repeat(1_000_000))), "invalid_params"),
        ("a huge exponent", call(r#"{"priority":1e999999999}"#), "invalid_params"),
        ("a parameter twice", call(r#"{"capability":"a","capability":"b"}"#), "invalid_params"),
        (
            "a member twice",
            r#"{"jsonrpc":"2.0","id":1,"method":"agent/list","method":"task/list"}"#.to_owned(),
            "invalid_request",
        ),
        ("a batch too long", format!("[{}]", vec!["1"; 100_000].join(",")), "invalid_request"),
    ] {
        let error = tokio::time::timeout(PATIENCE, refused(&running, &frame)).await.unwrap();
        assert_eq!(error["data"]["code"], code, "{what}: {error}");
        assert!(error.to_string().len() < 2000, "{what}: an answer of {} bytes", error.to_string().len());
    }
    assert!(is_served(&running).await);
}

#[tokio::test]
async fn how_deep_and_how_long_a_text_may_be_is_as_it_is_set_over_every_road() {
    let texts = TextLimits { nesting_max: 16, batch_max: 3 };
    let running = start_with(Settings { texts, ..Settings::default() }, HttpSettings::default()).await;
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let submit = |depth: usize| format!(r#"{{"capability":"c","params":{}}}"#, nested(depth));
    let call = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resolve","params":{params}}}"#);
    let batch = |calls: usize| format!("[{}]", vec![call("{}"); calls].join(","));
    // Two braces are the frame's own; there is nobody who could do it.
    for (what, frame, refusal) in [
        ("as deep as may be", call(&submit(14)), None),
        ("deeper", call(&submit(15)), Some("parse_error")),
        ("a batch too long", batch(4), Some("invalid_request")),
    ] {
        let error = refused(&running, &frame).await;
        let is_refused = |code: &str| ["parse_error", "invalid_request"].contains(&code);
        let code = error["data"]["code"].as_str().unwrap();
        assert_eq!(Some(code).filter(|code| is_refused(code)), refusal, "{what}: {error}");
        let mut socket = connect(&running).await;
        futures_util::SinkExt::send(&mut socket, Message::text(frame)).await.unwrap();
        let said = socket.next().await.unwrap().unwrap().into_text().unwrap();
        assert!(said.contains(code), "{what}: {said}");
    }
    let web = Web::new(&running);
    let json = [("content-type", "application/json")];
    for (depth, is_refused) in [(15, false), (16, true)] {
        let reply = web.ask(reqwest::Method::POST, "/tasks", &json, Some(submit(depth))).await;
        assert_eq!(reply.text.contains("parse_error"), is_refused, "{depth}: {reply:?}");
    }
    let answers = web.ask(reqwest::Method::POST, "/rpc", &json, Some(batch(3))).await.json();
    assert_eq!(answers.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn parameters_that_hold_a_name_twice_are_not_guessed_at() {
    let running = start_set(HttpSettings::default()).await;
    let card = json!({ "agent_id": "a@n", "capabilities": [{ "name": "c", "input_schema": { "type": "object" } }] });
    let mut peer = Peer::connect(&running, Over::Http).await;
    peer.call(1, "agent/register", &card).await;
    let twice = r#"{"capability":"c","params":{"to":"a","to":"b"}}"#;
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"task/submit","params":{twice}}}"#);
    assert_eq!(refused(&running, &frame).await["data"]["code"], "params_mismatch");
}

#[tokio::test]
async fn a_message_over_a_web_socket_has_the_bound_of_a_body() {
    let running = start_set(HttpSettings { body_max: 1000, ..HttpSettings::default() }).await;
    let mut socket = connect(&running).await;
    futures_util::SinkExt::send(&mut socket, Message::text("x".repeat(1001))).await.unwrap();
    let closed = tokio::time::timeout(PATIENCE, async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(frame)))) => return u16::from(frame.code),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!(closed.await.unwrap(), 1009);
    assert!(is_served(&running).await);
}

#[tokio::test]
async fn one_peer_cannot_take_the_places_of_all() {
    let settings = HttpSettings { connections_max: 100, connections_per_peer_max: Some(3), ..HttpSettings::default() };
    let running = start_set(settings).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        held.push(stream);
    }
    let refused = Web::new(&running).get("/healthz").await.problem(429, "overloaded");
    assert!(refused["detail"].as_str().unwrap().contains("from your address"), "{refused}");
    assert_eq!(refused["retry_after"], "1s");
    held.pop();
    let has_room = async {
        while !is_served(&running).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, has_room).await.unwrap();
}

/// As many at a time as a test may have files open.
const AT_ONCE: usize = 200;

#[tokio::test]
async fn ten_thousand_connections_of_one_peer_leave_room_and_are_gone_afterwards() {
    let settings = HttpSettings { connections_max: 200, connections_per_peer_max: Some(50), ..quick() };
    let running = start_set(settings).await;
    let knock = async || {
        let Ok(mut stream) = TcpStream::connect(running.address).await else { return };
        // It asks for nothing, and holds on for as long as it is let.
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it was kept");
    };
    futures_util::stream::iter(0..10_000).for_each_concurrent(AT_ONCE, |_| knock()).await;
    let has_room = async {
        while !is_served(&running).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, has_room).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_asks_too_often_is_told_when_to_come_again() {
    let slow = Rate { per_second: 1, burst: 3 };
    let rates = RateLimits { caller: slow, namespace: Rate { per_second: 1, burst: 5 }, ..RateLimits::default() };
    let running = start_with(Settings { rates, ..Settings::default() }, HttpSettings::default()).await;
    let mut peer = Peer::connect(&running, Over::WebSocket).await;
    let mut ask = async |agent: &str| peer.call(1, "capability/find", &json!({ "from_agent": agent })).await;
    // On a slow machine more than the burst may pass, and never very many.
    let mut until_refused = async |agent: &str| {
        for passed in 0..1000 {
            let answer = ask(agent).await;
            if answer["error"].is_object() {
                return (passed, answer["error"].clone());
            }
        }
        panic!("{agent} is never refused");
    };
    let (passed, refused) = until_refused("a@n").await;
    assert!(passed >= 3, "{passed}");
    assert_eq!(
        (&refused["data"]["code"], &refused["data"]["retry"]),
        (&json!("overloaded"), &json!("later")),
        "{refused}"
    );
    assert!(refused["data"]["retry_after"].is_string() && refused.to_string().contains("a@n asks"), "{refused}");
    let (passed, _) = until_refused("b@n").await;
    assert!(passed >= 1, "another agent has a rate of its own");
    let (_, refused) = until_refused("c@n").await;
    assert!(refused["message"].as_str().unwrap().starts_with("n asks more than 1 times"), "{refused}");
    assert!(until_refused("a@other").await.0 >= 3, "and another namespace");
    let web = Web::new(&running);
    let over_rest =
        async { while web.post("/reach", &json!({ "from_agent": "a@n", "capability": "c" })).await.status != 429 {} };
    tokio::time::timeout(PATIENCE, over_rest).await.unwrap();
}
