//! Callers' keys as they reach whoever does the work: no caller's is another's, and each is the same whatever comes between.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::whose::Who;
use crate::world::{Gateway, Peer, script, state, until};

/// Callers of two tenants; the operator has no name.
const CALLERS: [&str; 2] = ["a@x", "c@z"];

fn open(gateway: &Gateway) {
    for caller in CALLERS {
        let card =
            json!({ "agent_id": caller, "capabilities": [{ "name": "ask" }], "access": { "may_call": ["*@*"] } });
        gateway.call("agent/register", &card);
    }
}

/// A request of a caller, under a key of its own.
fn request(caller: &str, capability: &str, key: &str, params: &Value) -> Value {
    let mut request = json!({ "capability": capability, "params": params, "idempotency_key": key });
    if !caller.is_empty() {
        request["from_agent"] = json!(caller);
    }
    request
}

/// An agent that does as it is told in `docs/write-an-agent.md`: it does one key once, and keeps the result with it.
#[derive(Default)]
struct Bank(BTreeMap<String, Value>);

impl Bank {
    fn open(gateway: &Gateway) -> Self {
        open(gateway);
        let pay = json!({ "name": "pay", "tier": "long", "effect": "idempotent_write" });
        let access = json!({ "callable_by": ["*@*"] });
        gateway.call("agent/register", &json!({ "agent_id": "bank@y", "capabilities": [pay], "access": access }));
        Self::default()
    }

    /// The next delivery.
    #[track_caller]
    fn claim(gateway: &Gateway) -> Value {
        let claimed = gateway.call("task/claim", &json!({ "agent_id": "bank@y", "wait": "20s" }));
        assert_eq!(claimed["tasks"].as_array().map(Vec::len), Some(1), "{claimed}");
        claimed["tasks"][0].clone()
    }

    fn work(&mut self, gateway: &Gateway) {
        let task = Self::claim(gateway);
        let key = task["idempotency_key"].as_str().unwrap().to_owned();
        let result = self.0.entry(key).or_insert_with(|| json!({ "for": task["from_agent"], "did": task["params"] }));
        let done = json!({ "task_id": task["task_id"], "token": task["token"], "result": result });
        gateway.call("task/complete", &done);
    }
}

#[test]
fn an_agent_that_keeps_results_by_their_keys_gives_each_caller_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    let mut bank = Bank::open(&gateway);
    // Each sends what another has sent, or what another's key comes to.
    let asked = [
        ("a@x", "order-17", json!({ "iban": "of x" }), "a@x/order-17"),
        ("c@z", "order-17", json!({}), "c@z/order-17"),
        ("c@z", "a@x/order-17", json!({ "n": 1 }), "c@z/a@x/order-17"),
        ("", "order-17", json!({ "n": 2 }), "operator/order-17"),
        ("", "a@x/order-17", json!({ "n": 3 }), "operator/a@x/order-17"),
        ("", "a@x/order-18", json!({ "n": 4 }), "operator/a@x/order-18"),
        ("a@x", "order-18", json!({ "n": 5 }), "a@x/order-18"),
    ];
    for (caller, key, params, _) in &asked {
        let submitted = gateway.call("task/submit", &request(caller, "pay", key, params));
        bank.work(&gateway);
        let done = gateway.call("task/wait", &json!({ "task_id": submitted["task_id"], "wait": "20s" }));
        let from = if caller.is_empty() { Value::Null } else { json!(caller) };
        assert_eq!(done["result"], json!({ "for": from, "did": params }), "{caller} {key}");
        assert_eq!(done["idempotency_key"], *key, "the caller is told its own key");
    }
    let mut handed_out: Vec<&str> = asked.iter().map(|(_, _, _, handed_out)| *handed_out).collect();
    handed_out.sort_unstable();
    assert_eq!(bank.0.keys().collect::<Vec<_>>(), handed_out);
    let again = gateway.call("task/submit", &request("a@x", "pay", "order-17", &asked[0].2));
    assert_eq!((&again["replayed"], &again["result"]["for"]), (&json!(true), &json!("a@x")));
}

#[test]
fn a_key_is_the_same_over_attempts_restarts_redrives_and_releases() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    Bank::open(&gateway);
    let mut asked = request("a@x", "pay", "order-17", &json!({}));
    asked["tries"] = json!(1);
    asked["on_failed"] = json!("retry");
    let id = gateway.call("task/submit", &asked)["task_id"].clone();
    let handed_out = |gateway: &Gateway| {
        let task = Bank::claim(gateway);
        assert_eq!(task["task_id"], id);
        (task["token"].clone(), task["idempotency_key"].as_str().unwrap().to_owned())
    };
    let fails = |gateway: &Gateway, token: &Value| {
        let failed = json!({ "task_id": id, "token": token, "message": "not now", "retryable": true });
        assert_eq!(gateway.call("task/fail", &failed)["phase"], "dead_lettered");
    };
    let (token, key) = handed_out(&gateway);
    assert_eq!(key, "a@x/order-17");
    gateway.call("task/release", &json!({ "task_id": id, "token": token }));
    let mut gateway = gateway.restart();
    let (token, given_back) = handed_out(&gateway);
    fails(&gateway, &token);
    gateway.call("dead_letter/redrive", &json!({ "task_ids": [id] }));
    let (token, redriven) = handed_out(&gateway);
    fails(&gateway, &token);
    assert_eq!(gateway.call("task/submit", &asked)["task_id"], id);
    let (token, sent_again) = handed_out(&gateway);
    assert_eq!([given_back, redriven, sent_again], [key.clone(), key.clone(), key]);

    // One of a release that handed out the bare key, which its agent may know the work by.
    gateway.stop();
    let file = rusqlite::Connection::open(folder.path().join("data/reach.db")).unwrap();
    let changed = file.execute("UPDATE task SET birth = json_remove(birth, '$.has_scoped_key')", []).unwrap();
    assert_eq!(changed, 1);
    file.close().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    gateway.call("task/release", &json!({ "task_id": id, "token": token }));
    assert_eq!(handed_out(&gateway).1, "order-17");
}

/// The keys that the tool `count` of a server was called under, since the last look.
fn counted(state: &str) -> Vec<Value> {
    let file = Path::new(state).join("count");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_told_whose_key_it_is_by_the_router_and_at_the_address_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start(state(folder.path(), "h"), &[]);
    let own = state(folder.path(), "p");
    let card = "[mcp_servers.card]\naccess = { callable_by = [\"*@*\"] }\n";
    let config = format!(
        "[[mcp_servers]]\nname = \"h\"\nurl = {:?}\n{card}[[mcp_servers]]\nname = \"p\"\ncommand = \"python3\"\n\
         args = [{:?}, \"stdio\", {own:?}]\n{card}",
        peer.url(),
        script(),
    );
    let gateway = Gateway::start(folder.path(), &config);
    open(&gateway);
    for (name, state) in [("h", &peer.state), ("p", &own)] {
        let (agent, key) = (format!("{name}@mcp"), format!("order {name}"));
        until("the server", || (gateway.server(name)["agents"] == json!([agent])).then_some(()));
        for caller in ["a@x", "c@z", ""] {
            let mut asked = request(caller, "count", &key, &json!({}));
            asked["to_agent"] = json!(agent);
            assert_eq!(gateway.call("reach", &asked)["phase"], "completed", "{caller}");
        }
        assert_eq!(counted(state), ["a@x", "c@z", "operator"].map(|caller| format!("{caller}/{key}")));

        // Where there is no task, no caller writes another's key either.
        let path = format!("/servers/{name}/mcp");
        let of_another = format!("a@x/{key}");
        for (caller, key, expected) in [
            ("c@z", json!(key), json!(format!("c@z/{key}"))),
            ("a@x", json!(key), json!(of_another)),
            ("c@z", json!(of_another), json!(format!("c@z/{of_another}"))),
            ("", json!(of_another), json!(format!("operator/{of_another}"))),
            ("c@z", Value::Null, Value::Null),
        ] {
            let who = Who::new(&gateway, caller);
            let session = who.opens(&path).await;
            let call = json!({ "name": "count", "arguments": {}, "_meta": { "idempotencyKey": key, "vendor/n": 1 } });
            let said = who.post(&path, Some(&session), "tools/call", call).await;
            assert!(said.status == 200 && said.text.contains("content"), "{said:?}");
            assert_eq!(counted(state), [expected], "{name} {caller} {key}");
        }
        // What it would read and the gateway cannot is not passed on.
        let who = Who::new(&gateway, "c@z");
        let session = who.opens(&path).await;
        let nan = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"n":NaN},"_meta":{"idempotencyKey":"a@x/order 17"}}}"#;
        assert_eq!(who.ask(reqwest::Method::POST, &path, Some(&session), nan).await.status, 400);
        assert!(!Path::new(state).join("count").exists(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_head_goes_on_to_a_server_as_its_callers() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start(state(folder.path(), "h"), &[]);
    let config = format!(
        "[[mcp_servers]]\nname = \"h\"\nurl = {:?}\n[mcp_servers.card]\naccess = {{ callable_by = [\"*@*\"] }}\n",
        peer.url()
    );
    let gateway = Gateway::start(folder.path(), &config);
    open(&gateway);
    until("the server", || (gateway.server("h")["agents"] == json!(["h@mcp"])).then_some(()));
    for caller in CALLERS {
        let who = Who::new(&gateway, caller);
        let session = who.opens("/servers/h/mcp").await;
        let ping = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }).to_string();
        let asked = who.request(reqwest::Method::POST, "/servers/h/mcp", Some(&session));
        let asked = asked.header("idempotency-key", "\"order-17\"").body(ping);
        assert_eq!(asked.send().await.unwrap().status(), 200);
    }
    let heads = std::fs::read_to_string(Path::new(&peer.state).join("keys")).unwrap();
    assert_eq!(heads, "\"a@x/order-17\"\n\"c@z/order-17\"\n");
}
