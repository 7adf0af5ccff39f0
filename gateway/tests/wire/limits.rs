//! What the port does not take, how it says so, and how it ends.

use std::time::Duration;

use reach_gateway::gateway::Settings;
use reach_gateway::transport::HttpSettings;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::peer::{Over, Peer, client};
use crate::common::web::Web;
use crate::common::{Running, start, start_with};

const SHORT: Duration = Duration::from_millis(100);

async fn start_set(settings: HttpSettings) -> Running {
    start_with(Settings::default(), settings).await
}

/// Sends bytes over a connection of their own, and gives all that comes until the gateway closes it.
async fn exchange(running: &Running, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn body_of(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_in_the_words_of_its_dialect() {
    let running = start_set(HttpSettings { body_max: 1000, ..HttpSettings::default() }).await;
    let bodies = || ["x".repeat(1001).into(), reqwest::Body::wrap_stream(chunks())];
    for body in bodies() {
        let request = client().post(running.url("/rpc")).header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.status(), 413);
        let answer: Value = answer.json().await.unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(1012)), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("1000 bytes"), "{answer}");
    }
    for body in bodies() {
        let answer = client().post(running.url("/reach")).body(body).send().await.unwrap();
        assert_eq!(answer.status(), 413);
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], "too_large");
    }
}

/// A body whose length is not told beforehand.
fn chunks() -> impl futures_util::Stream<Item = Result<String, std::convert::Infallible>> {
    futures_util::stream::iter((0..20).map(|_| Ok("x".repeat(100))))
}

#[tokio::test]
async fn a_head_or_a_body_that_does_not_come_ends_the_connection() {
    let running = start_set(HttpSettings {
        first_request_timeout: SHORT,
        idle_timeout: SHORT,
        body_timeout: SHORT,
        ..HttpSettings::default()
    })
    .await;
    for head in ["", "P", "POST /rpc HTTP/1.1\r\nhost: local"] {
        assert_eq!(exchange(&running, head.as_bytes()).await, "", "{head:?}");
    }
    let head = "POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{";
    let answer = exchange(&running, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(body_of(&answer)["error"]["data"]["code"], "invalid_request");
    // A connection that was used, and is idle, is closed without a word more.
    let answer = exchange(&running, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#"{"status":"ok","#), "{answer}");
}

#[tokio::test]
async fn a_connection_beyond_the_limit_is_told_so_and_one_that_ends_makes_room() {
    let running = start_set(HttpSettings { connections_max: 1, ..HttpSettings::default() }).await;
    let first = client();
    assert_eq!(first.get(running.url("/healthz")).send().await.unwrap().status(), 200);
    let refused = Web::new(&running).get("/healthz").await;
    assert_eq!(refused.problem(429, "overloaded")["retry_after"], "1s");
    assert_eq!(refused.header("retry-after"), "1");
    drop(first);
    let has_room = async {
        while Web::new(&running).get("/healthz").await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), has_room).await.unwrap();
}

#[tokio::test]
async fn pages_of_foreign_origins_and_foreign_names_of_the_port_are_refused() {
    let running = start().await;
    for path in ["/rpc", "/healthz", "/rpc/ws"] {
        for (header, value) in [("origin", "https://evil.example"), ("host", "evil.example:7340")] {
            let answer = client().get(running.url(path)).header(header, value).send().await.unwrap();
            assert_eq!(answer.status(), 403, "{path} {header}");
            let body: Value = answer.json().await.unwrap();
            assert_eq!(body["code"], "forbidden");
            assert!(body["detail"].as_str().unwrap().contains("evil.example"), "{body}");
        }
    }
    let page = client().get(running.url("/healthz")).header("origin", "http://localhost:3000").send().await.unwrap();
    assert_eq!(page.status(), 200);
}

#[tokio::test]
async fn http_2_without_tls_is_spoken_too() {
    let running = start().await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
    crate::common::peer::client();
    let request = client.build().unwrap().post(running.url("/rpc")).header("content-type", "application/json");
    let answer = request.body(r#"{"jsonrpc":"2.0","id":1,"method":"agent/list"}"#).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    assert_eq!(answer.text().await.unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{"agents":[]}}"#);
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight_and_takes_nothing_new() {
    let running = start().await;
    let mut agent = Peer::connect(&running, Over::Http).await;
    let card = json!({ "agent_id": "a@n", "capabilities": [{ "name": "c" }] });
    agent.call(1, "agent/register", &card).await;
    let mut caller = Peer::connect(&running, Over::Http).await;
    let task = caller.call(1, "task/submit", &json!({ "capability": "c" })).await["result"]["task_id"].clone();
    let wait = json!({ "task_id": task, "wait": "5m" });
    let (waited, served) = tokio::join!(caller.call(2, "task/wait", &wait), async {
        let waits = async {
            while running.gateway.waits() == 0 {
                tokio::task::yield_now().await
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap();
        running.stop.cancel();
    });
    let () = served;
    assert_eq!(waited["result"]["task_id"], task, "{waited}");
    running.served.await.unwrap().unwrap();
    assert!(TcpStream::connect(running.address).await.is_err());
}
