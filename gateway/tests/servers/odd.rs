//! Servers over standard output that answer with what is no answer, and clients that give two requests one id.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::through::{Client, at};
use crate::world::{Gateway, heard, script, state, until};

const BROKEN: [&str; 6] = ["error_is_text", "both", "latin", "deep", "cut", "in_a_batch"];
/// How long a call may take that need not wait for anything; what it would wait for takes twice as long.
const SOON: Duration = Duration::from_secs(20);

fn world(folder: &Path) -> (Gateway, String) {
    let state = state(folder, "p");
    let config = format!(
        "[[mcp_servers]]\nname = \"p\"\ncommand = \"python3\"\nargs = [{:?}, \"stdio\", {state:?}, \"--odd\"]\n",
        script()
    );
    let gateway = Gateway::start(folder, &config);
    until("the server", || (gateway.server("p")["agents"] == json!(["p@mcp"])).then_some(()));
    (gateway, state)
}

/// Asks a tool of the server for something, once, with time to wait for an answer.
fn ask(gateway: &Gateway, tool: &str, params: &Value) -> Value {
    let submit = json!({
        "to_agent": "p@mcp", "capability": tool, "params": params, "tries": 1, "attempt_timeout": "40s", "wait": "60s"
    });
    let begun = Instant::now();
    let task = gateway.call("reach", &submit);
    assert!(begun.elapsed() < SOON, "{tool} {params} took {:?}: {task}", begun.elapsed());
    task
}

fn request(id: &Value, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_task_at_once_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, _) = world(folder.path());
    // More failures in a row than these would open the breaker.
    for how in ["error_is_text", "latin", "cut", "in_a_batch"] {
        let task = ask(&gateway, "odd", &json!({ "how": how }));
        let failure = &task["failure"];
        assert_eq!(failure["code"], "agent_lost", "{how}: {task}");
        assert!(failure["message"].as_str().unwrap().contains("something that is no answer"), "{how}: {task}");
    }
    assert_eq!(ask(&gateway, "echo", &json!({}))["phase"], "completed");
    assert_eq!(gateway.server("p")["state"], "up");
}

#[test]
fn a_line_beyond_the_limit_fails_all_who_wait_at_once_and_the_server_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, state) = world(folder.path());
    let gateway = Arc::new(gateway);
    let before = heard(&state).matches("\"initialize\"").count();
    let other = Arc::clone(&gateway);
    let waiting = std::thread::spawn(move || ask(&other, "hang", &json!({})));
    until("the other call", || heard(&state).contains("\"hang\"").then_some(()));
    for task in [ask(&gateway, "odd", &json!({ "how": "huge" })), waiting.join().unwrap()] {
        assert!(task["failure"]["message"].as_str().unwrap().contains("a line of more than 16777216 bytes"), "{task}");
    }
    assert_eq!(ask(&gateway, "echo", &json!({}))["phase"], "completed");
    assert!(heard(&state).matches("\"initialize\"").count() > before, "it was started again");
    assert!(gateway.resident_mb() < 200, "{} MB", gateway.resident_mb());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_at_the_servers_own_address_is_told_at_once_of_an_answer_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, _) = world(folder.path());
    let mut client = Client::open(at(&gateway, "p")).await;
    for how in BROKEN.into_iter().chain(["huge"]) {
        let arguments = json!({ "how": how }).to_string();
        let answered = tokio::time::timeout(SOON, client.call("odd", &arguments)).await;
        let (_, text) = answered.unwrap_or_else(|_| panic!("{how} was not answered"));
        assert!(text.contains("\"code\":-32603") && text.contains("may have been done"), "{how}: {text}");
        let (status, text) = client.call("echo", "{}").await;
        assert!(status == 200 && text.contains("heard"), "after {how}: {status} {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_in_flight_is_refused_and_the_first_request_under_it_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, state) = world(folder.path());
    let client = Arc::new(Client::open(at(&gateway, "p")).await);
    for (first, again) in [(json!(7), json!(7)), (json!("\u{e9}"), json!("\u{e9}"))] {
        let go = Path::new(&state).join("go");
        let _ = std::fs::remove_file(&go);
        let (asked, body) = (Arc::clone(&client), request(&first, "progress", &json!({})));
        let calls = heard(&state).matches("tools/call").count();
        let answer = tokio::spawn(async move { asked.post(body).await.text().await.unwrap() });
        until("the first", || (heard(&state).matches("tools/call").count() > calls).then_some(()));
        // One that is written with an escape is the same id.
        let same = request(&again, "echo", &json!({})).replace('\u{e9}', "\\u00e9");
        let batch = format!("[{},{same}]", request(&json!("new"), "echo", &json!({})));
        for body in [same, batch] {
            let refused = client.post(body).await;
            let (status, text) = (refused.status(), refused.text().await.unwrap());
            assert!(status == 400 && text.contains("-32600") && text.contains("in flight"), "{status} {text}");
        }
        std::fs::write(&go, "").unwrap();
        let text = tokio::time::timeout(SOON, answer).await.unwrap().unwrap();
        assert!(text.contains("heard"), "{text}");
        // Neither id is in flight any more.
        for id in [&first, &json!("new")] {
            let text = client.post(request(id, "echo", &json!({}))).await.text().await.unwrap();
            assert!(text.contains("heard"), "{text}");
        }
    }
}
