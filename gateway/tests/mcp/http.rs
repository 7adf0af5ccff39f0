//! Streamable HTTP on the wire: which request is answered how, in each era.

use reqwest::Method;
use serde_json::{Value, json};

use super::world::{Host, Reply, alone, echo, initialize, read};
use crate::common::start;

const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn echo_tool() -> Value {
    json!({ "name": "echo", "description": "Says it again.", "effect": "read" })
}

/// Makes another request of a good one: its headers and its body.
type Change<'a> = &'a dyn Fn(&mut Vec<(&'static str, String)>, &mut Value);

#[tokio::test]
async fn every_revision_with_a_handshake_lists_and_calls() {
    let running = start().await;
    let _agent = echo(&running, "e@x", &[echo_tool()]).await;
    for version in HANDSHAKES {
        let host = Host::of(&running);
        let opened = host.post(&[], initialize(version)).await;
        let result = &opened.json()["result"];
        assert_eq!((result["protocolVersion"].as_str(), opened.status), (Some(version), 200));
        assert_eq!(result["capabilities"], json!({ "tools": { "listChanged": true } }));
        assert_eq!(result["serverInfo"]["name"], "agent-reach");
        let host = host.session(version).await;
        assert_eq!(host.ask(1, "ping", json!({})).await.json()["result"], json!({}));
        let tools = host.ask(2, "tools/list", json!({})).await.json();
        assert_eq!(tools["result"]["tools"][0]["name"], "echo", "{tools}");
        assert!(tools["result"].get("resultType").is_none() && tools["result"].get("ttlMs").is_none(), "{tools}");
        let called = host.ask(3, "tools/call", json!({ "name": "echo", "arguments": { "a": 1.10 } })).await;
        assert!(called.header("content-type").starts_with("application/json"), "{called:?}");
        let result = called.json()["result"].clone();
        assert_eq!(result["structuredContent"], json!({ "a": 1.1 }), "{result}");
        assert_eq!(result["_meta"]["agent-reach/outcome"], "REACH_OK", "{result}");
        for method in ["prompts/list", "resources/list", "logging/setLevel", "completion/complete", "server/discover"] {
            let refused = host.ask(4, method, json!({})).await;
            assert_eq!((refused.status, refused.json()["error"]["code"].as_i64()), (200, Some(-32601)), "{method}");
        }
    }
    let newer = Host::of(&running).post(&[], initialize("2026-07-28")).await.json();
    assert_eq!(newer["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn the_stateless_revision_discovers_lists_and_calls_without_a_session() {
    let running = start().await;
    let _agent = echo(&running, "e@x", &[echo_tool()]).await;
    let host = Host::of(&running);
    let discovered = host.ask_alone(1, "server/discover", json!({})).await;
    let result = &discovered.json()["result"];
    assert_eq!(result["supportedVersions"][0], "2026-07-28");
    assert_eq!((result["resultType"].as_str(), result["cacheScope"].as_str()), (Some("complete"), Some("public")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "agent-reach");
    assert!(discovered.headers.get("mcp-session-id").is_none());
    let tools = host.ask_alone(2, "tools/list", json!({})).await.json()["result"].clone();
    assert_eq!((tools["cacheScope"].as_str(), tools["tools"][0]["name"].as_str()), (Some("private"), Some("echo")));
    assert!(tools["ttlMs"].is_u64());
    let called = host.ask_alone(3, "tools/call", json!({ "name": "echo", "arguments": { "b": [1] } })).await.json();
    assert_eq!(called["result"]["structuredContent"], json!({ "b": [1] }));
    assert_eq!(called["result"]["resultType"], "complete");
}

#[track_caller]
fn refused(reply: &Reply, status: u16, code: i64, id: &Value) {
    let body = reply.json();
    assert_eq!((reply.status, body["error"]["code"].as_i64()), (status, Some(code)), "{reply:?}");
    assert_eq!(&body["id"], id, "{reply:?}");
}

#[tokio::test]
async fn what_a_stateless_request_lacks_is_told_by_its_own_number() {
    let running = start().await;
    let host = Host::of(&running);
    let post = async |change: Change<'_>| {
        let (mut headers, body) = alone(7, "tools/list", json!({}));
        let mut body: Value = serde_json::from_str(&body).unwrap();
        change(&mut headers, &mut body);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        host.post(&headers, body.to_string()).await
    };
    let seven = json!(7);
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    refused(&post(&|_, body| body["params"] = json!({})).await, 400, -32602, &seven);
    let without = |name: &'static str| {
        move |_: &mut Vec<(&'static str, String)>, body: &mut Value| {
            body["params"]["_meta"].as_object_mut().unwrap().remove(&format!("io.modelcontextprotocol/{name}"));
        }
    };
    refused(&post(&without("clientCapabilities")).await, 400, -32602, &seven);
    refused(&post(&without("protocolVersion")).await, 400, -32602, &seven);
    refused(&post(&|headers, _| headers.retain(|(name, _)| *name != "mcp-method")).await, 400, -32020, &seven);
    refused(
        &post(&|headers, _| headers.retain(|(name, _)| *name != "mcp-protocol-version")).await,
        400,
        -32020,
        &seven,
    );
    refused(&post(&|headers, _| headers[1].1 = "TOOLS/LIST".to_owned()).await, 400, -32020, &seven);
    let unknown = post(&|headers, body| {
        headers[0].1 = "v999".to_owned();
        body["params"]["_meta"][key("protocolVersion")] = json!("v999");
    })
    .await;
    refused(&unknown, 400, -32022, &seven);
    let data = &unknown.json()["error"]["data"];
    assert_eq!((data["requested"].as_str(), data["supported"][0].as_str()), (Some("v999"), Some("2026-07-28")));
    let other = post(&|_, body| body["params"]["_meta"][key("protocolVersion")] = json!("v999")).await;
    refused(&other, 400, -32020, &seven);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"] {
        refused(&host.ask_alone(8, method, json!({})).await, 404, -32601, &json!(8));
    }
    let (headers, body) = alone(9, "tools/list", json!({}));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    refused(&host.post(&headers, format!("[{body}]")).await, 400, -32600, &Value::Null);
    refused(&host.post(&headers, body.replace("\"id\":9", "\"id\":null")).await, 400, -32600, &Value::Null);
    refused(&host.post(&headers, "{".to_owned()).await, 400, -32700, &Value::Null);
}

#[tokio::test]
async fn a_name_in_a_header_must_be_the_one_in_the_body() {
    let running = start().await;
    let _agent = echo(&running, "e@x", &[echo_tool()]).await;
    let host = Host::of(&running);
    let (mut headers, body) = alone(1, "tools/call", json!({ "name": "echo", "arguments": {} }));
    for (value, status) in [
        ("echo", 200),
        ("  echo ", 200),
        ("=?base64?ZWNobw==?=", 200),
        ("other", 400),
        ("=?base64?%?=", 400),
        ("", 400),
    ] {
        headers[2].1 = value.to_owned();
        let sent = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let sent: Vec<_> = sent.filter(|(_, value)| !value.is_empty()).collect();
        let reply = host.post(&sent, body.clone()).await;
        assert_eq!(reply.status, status, "{value:?}: {reply:?}");
    }
}

#[tokio::test]
async fn media_types_verbs_and_sessions_have_their_statuses() {
    let running = start().await;
    let host = Host::of(&running);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    for (headers, status) in [
        (vec![("content-type", "text/plain")], 415),
        (vec![("accept", "application/json")], 406),
        (vec![("accept", "text/event-stream")], 406),
        (vec![], 400),
        (vec![("mcp-session-id", "no-such")], 404),
        (vec![("mcp-session-id", "no-such"), ("mcp-protocol-version", "1999-01-01")], 400),
        (vec![("reach-agent", "nobody")], 400),
    ] {
        let reply = host.post(&headers, list.clone()).await;
        assert_eq!(reply.status, status, "{headers:?}: {reply:?}");
        assert!(reply.json()["error"]["code"].is_i64(), "{reply:?}");
    }
    assert_eq!(host.post(&[("accept", "*/*")], initialize("2025-11-25")).await.status, 200);
    let foreign = host.post(&[("origin", "https://evil.example")], initialize("2025-11-25")).await;
    assert_eq!(foreign.status, 403);
    for (verb, status) in [(Method::PUT, 405), (Method::GET, 400), (Method::DELETE, 400)] {
        let request = host.request(verb.clone(), &[("accept", "text/event-stream")]);
        assert_eq!(request.send().await.unwrap().status(), status, "{verb}");
    }
    let request = host.request(Method::GET, &[("accept", "text/event-stream"), ("mcp-protocol-version", "2026-07-28")]);
    assert_eq!(request.send().await.unwrap().status(), 405);
}

#[tokio::test]
async fn a_session_ends_when_its_client_says_so_and_is_nobody_elses() {
    let running = start().await;
    let host = Host::of(&running).named("a@x").session("2025-11-25").await;
    let mut stranger = Host::of(&running);
    stranger.headers = host.headers.iter().filter(|(name, _)| name != "reach-agent").cloned().collect();
    assert_eq!(stranger.ask(1, "ping", json!({})).await.status, 404);
    assert_eq!(host.ask(1, "ping", json!({})).await.status, 200);
    let ended = read(host.request(Method::DELETE, &[]).send().await.unwrap()).await;
    assert_eq!(ended.status, 204);
    assert_eq!(host.ask(2, "ping", json!({})).await.status, 404);
}

#[tokio::test]
async fn only_the_revision_that_has_batches_takes_them() {
    let running = start().await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/list" },
    ]);
    for version in HANDSHAKES {
        let host = Host::of(&running).session(version).await;
        let reply = host.post(&[], batch.to_string()).await;
        if version == "2025-03-26" {
            let answers = reply.json();
            let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect();
            assert_eq!(ids, [json!(1), json!(2)]);
            let notices = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]);
            assert_eq!(host.post(&[], notices.to_string()).await.status, 202);
        } else {
            refused(&reply, 400, -32600, &Value::Null);
        }
    }
}
