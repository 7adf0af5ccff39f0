//! What is wrong with a request is said in a problem body, whatever it is.

use reach_gateway::gateway::Settings;
use reach_gateway::transport::HttpSettings;
use reqwest::Method;
use serde_json::json;

use crate::common::web::{Puller, Web};
use crate::common::{start, start_with};

#[tokio::test]
async fn a_path_or_method_that_is_not_there_is_a_problem() {
    let running = start().await;
    let web = Web::new(&running);
    let nothing = web.get("/no/such").await.problem(404, "method_not_found");
    assert_eq!(nothing["title"], "Not Found");
    assert!(nothing["detail"].as_str().unwrap().contains("/openapi.json"), "{nothing}");
    let allowed = [("/tasks", "GET,HEAD,POST"), ("/rpc", "POST"), ("/rpc/ws", "GET,HEAD"), ("/reach", "POST")];
    for (path, methods) in allowed {
        let refused = web.ask(Method::DELETE, path, &[], None).await;
        assert_eq!(refused.problem(405, "method_not_found")["title"], "Method Not Allowed");
        let mut allow: Vec<&str> = refused.header("allow").split(',').collect();
        allow.sort_unstable();
        assert_eq!(allow.join(","), methods, "{path}");
    }
    let upgrade = web.get("/rpc/ws").await;
    upgrade.problem(426, "invalid_request");
    assert_eq!(upgrade.header("upgrade"), "websocket");
}

#[tokio::test]
async fn a_body_that_is_not_what_it_should_be_is_a_problem_that_names_the_place() {
    let running = start().await;
    let web = Web::new(&running);
    let send = async |content: &str, body: String| {
        web.ask(Method::POST, "/tasks", &[("content-type", content)], Some(body)).await
    };
    for path in ["/tasks", "/rpc"] {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let refused = web.ask(Method::POST, path, &form, Some("a=b".to_owned())).await;
        assert_eq!(refused.problem(415, "invalid_request")["title"], "Unsupported Media Type");
    }
    send("application/json", "{".to_owned()).await.problem(400, "parse_error");
    let deep = format!(r#"{{"params":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    send("application/json", deep).await.problem(400, "parse_error");
    send("application/json", "[1]".to_owned()).await.problem(422, "invalid_params");
    let unknown = send("application/json; charset=utf-8", r#"{"capabilty":"x"}"#.to_owned()).await;
    let unknown = unknown.problem(422, "invalid_params");
    assert!(unknown["detail"].as_str().unwrap().contains("`capabilty`: unknown field"), "{unknown}");
    assert!(unknown["detail"].as_str().unwrap().ends_with("of the body)"), "{unknown}");
    assert_eq!(unknown["details"]["at"], "capabilty");
    web.ask(Method::POST, "/tasks", &[], None).await.problem(422, "invalid_params");
}

#[tokio::test]
async fn no_caller_makes_the_gateway_run_commands() {
    let running = start().await;
    let web = Web::new(&running);
    let register = async |endpoint: &str, probe: serde_json::Value| {
        let card = json!({
            "agent_id": "a@n", "capabilities": [{ "name": "x" }], "probe": probe,
            "endpoints": [{ "protocol": endpoint, "address": "http://127.0.0.1:1/" }],
        });
        web.post("/agent/register", &card).await.problem(422, "invalid_card")["detail"].as_str().unwrap().to_owned()
    };
    for (said, place) in [
        (register("process", json!({})).await, "endpoints: `process` is for agents in the gateway's own"),
        (register("http", json!({ "command": "true" })).await, "probe.command: is for agents in the gateway's own"),
    ] {
        assert!(said.contains(place), "{said}");
    }
}

#[tokio::test]
async fn a_query_or_id_that_is_not_what_it_should_be_is_a_problem() {
    let running = start().await;
    let web = Web::new(&running);
    for path in ["/agents", "/capabilities", "/tasks", "/dead-letters"] {
        for limit in ["0", "1001"] {
            let beyond = web.get(&format!("{path}?limit={limit}")).await.problem(422, "invalid_params");
            assert_eq!(beyond["detail"], format!("`limit` is {limit}: it is 1 to 1000"), "{path}");
        }
        assert_eq!(web.get(&format!("{path}?limit=1000")).await.status, 200, "{path}");
    }
    let query = web.get("/agents?limit=many").await.problem(422, "invalid_params");
    assert!(query["detail"].as_str().unwrap().contains("limit"), "{query}");
    web.get("/agents?limt=1").await.problem(422, "invalid_params");
    web.get("/tasks/7/result").await.problem(422, "invalid_params");
    web.get("/agents/Nobody").await.problem(422, "invalid_params");
    web.get("/agents/nobody@n").await.problem(404, "agent_not_found");
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    web.get(&format!("/tasks/{id}")).await.problem(404, "task_not_found");
    web.get(&format!("/tasks/{id}/result?wait=soon")).await.problem(422, "invalid_params");
}

#[tokio::test]
async fn a_refusal_of_the_use_case_keeps_its_explanation() {
    let running = start().await;
    let (web, _agent) = (Web::new(&running), Puller::start(&running).await);
    let nobody = web.post("/reach", &json!({ "capability": "works" })).await.problem(503, "no_candidate");
    assert!(nobody["suggestions"].is_array(), "{nobody}");
    assert_eq!((&nobody["retry"], &nobody["retry_after"]), (&json!("never"), &json!(null)), "{nobody}");
    web.post("/tasks", &json!({ "capability": "work", "params": 1 })).await.problem(422, "params_mismatch");
}

#[tokio::test]
async fn who_waits_for_a_known_agent_is_told_when_to_come_again() {
    let running = start().await;
    let web = Web::new(&running);
    let card = json!({ "agent_id": "away@n", "endpoints": [{ "protocol": "websocket" }],
        "capabilities": [{ "name": "talk", "description": "Talks." }] });
    assert_eq!(web.post("/agent/register", &card).await.status, 200);
    let resolve = |capability: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": "resolve", "params": { "capability": capability } });
    let away = web.post("/rpc", &resolve("talk")).await.json();
    assert_eq!(
        (&away["error"]["data"]["retry"], &away["error"]["data"]["retry_after"]),
        (&json!("later"), &json!("1s")),
        "{away}"
    );
    let nobody = web.post("/rpc", &resolve("tlak")).await.json();
    assert_eq!(
        (&nobody["error"]["data"]["retry"], &nobody["error"]["data"]["retry_after"]),
        (&json!("never"), &json!(null)),
        "{nobody}"
    );
}

#[tokio::test]
async fn a_claim_a_wait_or_a_beat_beyond_its_range_is_refused_with_the_range() {
    let running = start().await;
    let (web, _agent) = (Web::new(&running), Puller::start(&running).await);
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let many: serde_json::Map<_, _> = (0..65).map(|number| (number.to_string(), json!("up"))).collect();
    let refused = [
        ("task/claim", json!({ "agent_id": "worker@n", "limit": 101 }), "`limit` is 101: it is 1 to 100"),
        ("task/claim", json!({ "agent_id": "worker@n", "limit": 0 }), "`limit` is 0: it is 1 to 100"),
        ("task/claim", json!({ "agent_id": "worker@n", "wait": "6m" }), "`wait` is 6m: it is 0s to 5m"),
        ("task/claim", json!({ "agent_id": "worker@n", "lease": "16m" }), "`lease` is 16m: it is 100ms to 15m"),
        ("task/claim", json!({ "agent_id": "worker@n", "lease": "1ms" }), "`lease` is 1ms: it is 100ms to 15m"),
        ("task/wait", json!({ "task_id": id, "wait": "301s" }), "`wait` is 5m 1s: it is 0s to 5m"),
        ("reach", json!({ "capability": "work", "wait": "301s" }), "`wait` is 5m 1s: it is 0s to 5m"),
        ("task/submit", json!({ "capability": "work", "deadline": "0s" }), "`deadline` is 0s: it is 1ms to 7days"),
        ("resolve", json!({}), "say what is wanted: at least one of `to_agent`, `capability` and `intent`"),
        ("capability/find", json!({ "intent": " " }), "`intent` is empty or longer than 8192 bytes"),
        ("dead_letter/redrive", json!({ "all": true, "limit": 1001 }), "`limit` is 1001: it is 1 to 1000"),
        ("dead_letter/redrive", json!({ "all": true, "rate": 0 }), "`rate` is 0: it is 1 to 1000"),
        ("dead_letter/redrive", json!({ "all": true, "deadline": "8days" }), "`deadline` is 8days: it is 1ms to 7days"),
        (
            "dead_letter/redrive",
            json!({ "limit": 5, "rate": 1 }),
            "say which: `task_ids`, at least one field of the filter, or `all`",
        ),
        (
            "dead_letter/redrive",
            json!({ "task_ids": vec![id; 1001] }),
            "`task_ids` has 1001 entries: send at most 1000",
        ),
        (
            "agent/heartbeat",
            json!({ "agent_id": "worker@n", "dependency_status": many }),
            "`dependency_status` has 65 entries: send at most 64",
        ),
    ];
    for (method, params, says) in refused {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = web.post("/rpc", &call).await.json();
        assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32602), &json!(says)), "{method}");
    }
}

#[tokio::test]
async fn a_card_is_refused_with_all_that_is_wrong_and_an_agent_without_a_way_is_told_to_pull() {
    let running = start().await;
    let web = Web::new(&running);
    let wrong = json!({ "agent_id": "a@n", "priority": 10, "tags": vec!["t"; 65], "capabilities": [{ "name": "x" }] });
    let wrong = web.post("/agent/register", &wrong).await.problem(422, "invalid_card");
    assert_eq!(wrong["detail"], "priority: is above 9; tags: has 65 entries, at most 64 are taken");
    assert_eq!(wrong["details"]["mistakes"][1]["at"], "tags");
    let schema = json!({ "agent_id": "a@n", "capabilities": [{ "name": "x", "input_schema": { "type": 1 } }] });
    web.post("/agent/register", &schema).await.problem(422, "invalid_schema");
    let puller = json!({ "agent_id": "a@n", "capabilities": [{ "name": "x", "tags": ["x"] }] });
    let answer = web.post("/agent/register", &puller).await.json();
    assert!(answer["warnings"][0].as_str().unwrap().ends_with("must call task/claim"), "{answer}");
}

#[tokio::test]
async fn a_full_gateway_says_when_to_come_back() {
    let running = start_with(Settings { open_max: 0, ..Settings::default() }, HttpSettings::default()).await;
    let (web, _agent) = (Web::new(&running), Puller::start(&running).await);
    let full = web.post("/tasks", &json!({ "capability": "work" })).await;
    assert_eq!(full.problem(429, "overloaded")["retry_after"], "1s");
    assert_eq!(full.header("retry-after"), "1");
}
