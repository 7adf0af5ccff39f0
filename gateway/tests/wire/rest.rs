//! What the REST routes do.

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::start;
use crate::common::web::{Puller, Web};

const RESULT: &str = r#"{"z": 1.10,"a":12345678901234567890123,"m":"\u00e9"}"#;

fn work(params: Value) -> Value {
    json!({ "capability": "work", "params": params })
}

#[tokio::test]
async fn a_task_is_taken_on_and_its_result_comes_byte_for_byte() {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    let taken = web.post("/tasks", &work(json!({ "n": 1 }))).await;
    assert_eq!(taken.status, 202, "{taken:?}");
    let place = taken.header("location").to_owned();
    assert_eq!(place, format!("/tasks/{}", taken.json()["task_id"].as_str().unwrap()));

    let early = web.get(&format!("{place}/result")).await;
    assert_eq!((early.status, early.header("retry-after")), (202, "1"), "{early:?}");
    assert_eq!(early.json()["task_id"], taken.json()["task_id"]);

    let result = format!("{place}/result?wait=30s");
    let (awaited, ()) = tokio::join!(web.get(&result), async {
        let task = agent.pull().await;
        agent.complete(&task, RESULT).await;
    });
    assert_eq!((awaited.status, awaited.header("content-type")), (200, "application/json"));
    assert_eq!(awaited.text, RESULT);
    let view = web.get(&place).await.json();
    assert_eq!((&view["phase"], &view["outcome"]), (&json!("completed"), &json!("REACH_OK")));
    assert!(!web.get(&format!("{place}/explain")).await.json()["decisions"].as_array().unwrap().is_empty());
    assert_eq!(web.get("/tasks?phase=completed&limit=5").await.json()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_in_the_header_gives_the_same_task_and_says_so() {
    let running = start().await;
    let (web, _agent) = (Web::new(&running), Puller::start(&running).await);
    let first = web.post_with("/tasks", &[("idempotency-key", "k 1")], &work(json!({}))).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (202, ""), "{first:?}");
    for key in ["k 1", r#""k 1""#] {
        let again = web.post_with("/tasks", &[("idempotency-key", key)], &work(json!({}))).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (200, "true"), "{again:?}");
        assert_eq!(again.header("location"), first.header("location"));
    }
    let other = web.post_with("/tasks", &[("idempotency-key", "k 1")], &work(json!({ "n": 2 }))).await;
    other.problem(422, "idempotency_key_reused");
    let mut both = work(json!({}));
    both["idempotency_key"] = "k 2".into();
    web.post_with("/tasks", &[("idempotency-key", "k 1")], &both).await.problem(422, "invalid_params");
}

#[tokio::test]
async fn a_trace_in_the_header_goes_on_to_the_agent_under_another_span() {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let submit = json!({ "jsonrpc": "2.0", "id": 1, "method": "task/submit", "params": work(json!({})) });
    for (path, body) in [("/tasks", work(json!({}))), ("/rpc", submit)] {
        assert!(web.post_with(path, &[("traceparent", trace)], &body).await.status < 300);
        let given = agent.pull().await["traceparent"].as_str().unwrap().to_owned();
        assert_eq!((&given[..36], &given[52..]), (&trace[..36], "-01"), "{path}");
        assert_ne!(given, trace, "{path}");
    }
    for (path, wait) in [("/reach", "1ms"), ("/agent/worker@n/invoke", "1ms")] {
        let mut body = work(json!({}));
        body["wait"] = wait.into();
        assert_eq!(web.post_with(path, &[("traceparent", trace)], &body).await.status, 202);
        let given = agent.pull().await["traceparent"].as_str().unwrap().to_owned();
        assert_eq!((&given[..36], &given[52..]), (&trace[..36], "-01"), "{path}");
        assert_ne!(given, trace, "{path}");
    }
}

#[tokio::test]
async fn a_trace_of_the_body_comes_first_and_a_malformed_header_is_as_if_it_were_not_there() {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    let header = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    let own = "00-11111111111111111111111111111111-2222222222222222-00";
    let submit =
        |params: serde_json::Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "task/submit", "params": params });
    let mut body = work(json!({}));
    body["traceparent"] = own.into();
    for (path, body) in [("/tasks", body.clone()), ("/rpc", submit(body))] {
        web.post_with(path, &header, &body).await;
        let given = agent.pull().await["traceparent"].as_str().unwrap().to_owned();
        assert_eq!((&given[..36], &given[52..]), (&own[..36], "-00"), "{path}");
    }
    for (path, body) in [("/tasks", work(json!({}))), ("/rpc", submit(work(json!({}))))] {
        assert!(web.post_with(path, &[("traceparent", "00-x-y-01")], &body).await.status < 300);
        let task = agent.pull().await;
        let begun = format!("00-{}-", task["task_id"].as_str().unwrap().replace('-', ""));
        assert!(task["traceparent"].as_str().unwrap().starts_with(&begun), "{path}: a trace with the task's id begins");
    }
    let mut malformed = work(json!({}));
    malformed["traceparent"] = "00-1".into();
    let refused = web.post("/tasks", &malformed).await.problem(422, "invalid_params");
    assert!(refused["detail"].as_str().unwrap().contains("`traceparent`: "), "{refused}");
}

#[tokio::test]
async fn reach_and_invoke_wait_for_the_end() {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    for (path, body) in [("/reach", work(json!({}))), ("/agent/worker@n/invoke", work(json!({})))] {
        let (reached, ()) = tokio::join!(web.post(path, &body), async {
            let task = agent.pull().await;
            agent.complete(&task, "[1.0]").await;
        });
        assert_eq!(reached.status, 200, "{reached:?}");
        assert!(reached.text.contains(r#""result":[1.0]"#), "{}", reached.text);
        assert!(reached.header("location").starts_with("/tasks/"));
    }
    let mut short = work(json!({}));
    short["wait"] = "10ms".into();
    let pending = web.post("/reach", &short).await;
    assert_eq!((pending.status, pending.header("retry-after")), (202, "1"), "{pending:?}");
    assert_eq!(pending.json()["outcome"], "REACH_TIMEOUT");
    web.post("/agent/other@n/invoke", &json!({ "to_agent": "worker@n" })).await.problem(422, "invalid_params");
}

#[tokio::test]
async fn a_task_that_did_not_end_well_answers_with_its_problem() {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    let asked = work(json!({}));
    let (reached, ()) = tokio::join!(web.post("/reach", &asked), async {
        let task = agent.pull().await;
        agent.fail(&task, "no paper").await;
    });
    let problem = reached.problem(502, "agent_failed");
    assert_eq!((&problem["detail"], &problem["details"]), (&json!("no paper"), &json!({ "line": 7 })));
    let place = format!("/tasks/{}", problem["task_id"].as_str().unwrap());
    assert_eq!(reached.header("location"), place);
    let met = web.get(&format!("{place}/result")).await.problem(502, "agent_failed");
    assert_eq!(met["detail"], "no paper", "it was not asked again");

    let letters = web.get("/dead-letters").await.json();
    let task = web.get(&place).await.json();
    let is_letter = task["phase"] == "dead_lettered";
    assert_eq!(letters["tasks"].as_array().unwrap().len(), usize::from(is_letter), "{task}");
    let redriven = web.post("/dead-letters/redrive", &json!({ "task_ids": [problem["task_id"]] })).await.json();
    assert_eq!(redriven["redriven"].as_array().unwrap().len(), usize::from(is_letter), "{redriven}");
}

#[tokio::test]
async fn a_task_is_called_off() {
    let running = start().await;
    let (web, _agent) = (Web::new(&running), Puller::start(&running).await);
    let place = web.post("/tasks", &work(json!({}))).await.header("location").to_owned();
    let cancelled = web.ask(Method::POST, &format!("{place}/cancel"), &[], None).await;
    assert_eq!((cancelled.status, &cancelled.json()["phase"]), (200, &json!("cancelled")));
    web.get(&format!("{place}/result")).await.problem(409, "cancelled");
}

#[tokio::test]
async fn agents_register_beat_and_are_found() {
    let running = start().await;
    let web = Web::new(&running);
    let card =
        json!({ "agent_id": "teller@n", "capabilities": [{ "name": "weather", "description": "Tells the weather." }] });
    let registered = web.post("/agent/register", &card).await;
    assert_eq!((registered.status, &registered.json()["generation"]), (200, &json!(1)), "{registered:?}");
    let beat = web.post("/agent/heartbeat", &json!({ "agent_id": "teller@n" })).await;
    assert!(beat.json()["heartbeat_due_at"].is_string());
    assert_eq!(web.get("/agents?namespace=n").await.json()["agents"].as_array().unwrap().len(), 1);
    assert_eq!(web.get("/agents/teller@n").await.json()["card"]["agent_id"], "teller@n");
    assert_eq!(web.get("/agents/teller%40n").await.json()["state"], "alive");
    let found = web.get("/capabilities?intent=tell%20the%20weather").await.json();
    assert_eq!(found["capabilities"][0]["agent_id"], "teller@n", "{found}");
}

#[tokio::test]
async fn the_gateway_tells_about_itself() {
    let running = start().await;
    let web = Web::new(&running);
    let health = web.get("/healthz").await;
    assert_eq!((health.status, &health.json()["status"], &health.json()["open"]), (200, &json!("ok"), &json!({})));
    let index = web.get("/errors").await;
    assert_eq!((index.status, index.header("content-type")), (200, "text/markdown; charset=utf-8"));
    let links: Vec<&str> = index.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    for code in reach_schemas::ErrorCode::ALL {
        assert!(links.contains(&format!("/errors/{}", code.name()).as_str()), "{code:?} is not listed");
    }
    for link in links {
        assert_eq!(web.get(link).await.status, 200, "{link}");
    }
    for name in ["too_large", "too_large.md"] {
        let page = web.get(&format!("/errors/{name}")).await;
        assert_eq!((page.status, page.header("content-type")), (200, "text/markdown; charset=utf-8"));
        assert!(page.text.starts_with("# `too_large`"));
    }
    let nothing = web.get("/errors/no_such").await.problem(404, "method_not_found");
    assert!(nothing["detail"].as_str().unwrap().ends_with("GET /errors lists them all"), "{nothing}");
}

#[tokio::test]
async fn a_failure_that_is_stored_says_that_it_is_and_how_to_send_it_anew() {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    let key = [("idempotency-key", "k 1")];
    assert_eq!(web.post_with("/tasks", &key, &work(json!({}))).await.status, 202);
    let task = agent.pull().await;
    agent.fail(&task, "no paper").await;
    let again = web.post_with("/reach", &key, &work(json!({}))).await;
    let problem = again.problem(502, "agent_failed");
    assert_eq!(again.header("idempotent-replayed"), "true");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("no paper (this is the stored answer") && detail.contains("on_failed"), "{detail}");
}

#[tokio::test]
async fn health_counts_what_is_open_what_has_ended_and_tells_who_waits_longest() {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    let health = async || web.get("/healthz").await.json();
    let [first, second] = [web.post("/tasks", &work(json!({}))).await, web.post("/tasks", &work(json!({}))).await];
    assert_eq!((first.status, second.status), (202, 202));
    let queued = web.post("/tasks", &json!({ "capability": "work", "mode": "queue" })).await.json();
    let open = health().await;
    assert_eq!((&open["open"], &open["ended"]), (&json!({ "submitted": 1, "routed": 2 }), &json!({})), "{open}");
    assert_eq!(open["waiting_since"], queued["created_at"], "{open}");
    let task = agent.pull().await;
    agent.complete(&task, "1").await;
    let task = agent.pull().await;
    agent.fail(&task, "no paper").await;
    let task = agent.pull().await;
    agent.complete(&task, "1").await;
    let ended = health().await;
    assert_eq!(ended["open"], json!({}), "{ended}");
    let counts = ended["ended"].as_object().unwrap();
    assert_eq!(counts.values().filter_map(serde_json::Value::as_u64).sum::<u64>(), 3, "{ended}");
    assert_eq!((&counts["completed"], &ended["waiting_since"]), (&json!(2), &json!(null)), "{ended}");
    assert!(ended["version"].is_string() && ended["up_for"].is_string() && ended["cluster"] == "local", "{ended}");
}
