//! Where webhooks may not go. The table of addresses is beside the code; here is what becomes of them at each door.

use reach_gateway::outbound::Guard;
use reach_gateway::webhook;
use serde_json::{Value, json};

use crate::receiver::{Receiver, Reply};
use crate::world::{World, soon};

/// As it is unless the operator says otherwise.
fn strict() -> webhook::Settings {
    webhook::Settings { guard: Guard::default(), ..soon(&[]) }
}

#[track_caller]
fn check(answer: &Value, code: &str, place: &str, why: &str) {
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(answer["error"]["data"]["code"], code, "{answer}");
    assert!(message.contains(place) && message.contains(why), "{answer}");
}

#[tokio::test]
async fn what_may_not_be_told_is_refused_when_it_is_named() {
    let receiver = Receiver::start(|_| Reply::Status(200)).await;
    let mut world = World::start(strict()).await;
    let local = receiver.url("/");
    let port = receiver.address.port();
    let table = [
        (local.clone(), "not a public address"),
        (format!("http://localhost:{port}/"), "not a public address"),
        (format!("http://[::ffff:7f00:1]:{port}/"), "not a public address"),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "link-local or metadata"),
        ("https://me:secret@hooks.example.com/".to_owned(), "user name"),
        ("file:///etc/passwd".to_owned(), "http"),
        ("hooks.example.com".to_owned(), "not a URL"),
    ];
    for (url, why) in &table {
        let submit =
            json!({ "capability": "work", "callbacks": [{ "url": "https://ok.example.com" }, { "url": url }] });
        check(&world.ask("task/submit", submit.clone()).await, "invalid_params", "`callbacks[1].url`", why);
        check(&world.ask("reach", submit).await, "invalid_params", "`callbacks[1].url`", why);
        let card = json!({
            "agent_id": "other@n", "capabilities": [{ "name": "work" }], "on_failure_callbacks": [url],
        });
        // What is no address at all is refused as any card's is; here it is only about where it may be.
        let why = if why.contains("public") || why.contains("metadata") { why } else { "" };
        check(&world.ask("agent/register", card).await, "invalid_card", "on_failure_callbacks[0]", why);
    }
    let many: Vec<Value> = (0..17).map(|n| json!({ "url": format!("https://h{n}.example.com") })).collect();
    let submit = json!({ "capability": "work", "callbacks": many });
    check(&world.ask("task/submit", submit).await, "invalid_params", "callbacks", "16");
    assert_eq!(world.call("task/list", json!({})).await["tasks"], json!([]), "nothing was taken on");
    assert_eq!(receiver.seen(), []);
}
