//! The REST routes of those who take what no agent could do, and of webhooks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::peer::{Over, Peer};
use crate::common::web::Web;
use crate::common::{Running, start};

/// A gateway, and a task that has come before people: it goes to `bench` once `worker@n` fails it.
async fn before_people() -> (Running, Web, Value) {
    let running = start().await;
    let web = Web::new(&running);
    let capability = json!({ "name": "judge", "fallback": [{ "human": "bench" }] });
    let card = json!({ "agent_id": "worker@n", "capabilities": [capability] });
    assert_eq!(web.post("/agent/register", &card).await.status, 200);
    let asked = json!({ "capability": "judge", "tries": 1, "params": { "case": 7 } });
    let task = web.post("/tasks", &asked).await.json()["task_id"].clone();
    let mut agent = Peer::connect(&running, Over::Http).await;
    let claimed = agent.call(1, "task/claim", &json!({ "agent_id": "worker@n", "wait": "30s" })).await;
    let token = &claimed["result"]["tasks"][0]["token"];
    let fail = json!({ "task_id": task, "token": token, "message": "it broke", "retryable": true });
    agent.call(2, "task/fail", &fail).await;
    (running, web, task)
}

#[tokio::test]
async fn people_take_answer_refuse_and_put_back_over_plain_http() {
    let (_running, web, task) = before_people().await;
    let listed = web.get("/human?queue=bench&limit=5").await.json();
    assert_eq!((&listed["tasks"][0]["task_id"], &listed["tasks"][0]["human"]["queue"]), (&task, &json!("bench")));
    assert_eq!(web.get("/human?queue=other").await.json(), json!({ "tasks": [] }));
    web.get("/human?limit=0").await.problem(422, "invalid_params");

    let taken = web.post("/human/take", &json!({ "queue": "bench", "by": "alice" })).await.json();
    assert_eq!((&taken["task"]["task_id"], &taken["params"]), (&task, &json!({ "case": 7 })));
    let other = web.post("/human/take", &json!({ "task_id": task, "by": "bob" })).await.problem(409, "claim_lost");
    assert!(other["detail"].as_str().unwrap().starts_with("alice has it until"), "{other}");
    let returned = web.post("/human/return", &json!({ "task_id": task, "token": taken["token"] })).await.json();
    assert_eq!(returned["phase"], "submitted");
    let late = json!({ "task_id": task, "token": taken["token"], "result": 1 });
    web.post("/human/answer", &late).await.problem(409, "stale_token");
    // A lease that ran out is no other matter, though nobody else has taken the task since.
    let take = json!({ "task_id": task, "by": "carol", "lease": "100ms" });
    let taken = web.post("/human/take", &take).await.json();
    let path = format!("/tasks/{}", task.as_str().unwrap());
    let began = Instant::now();
    while !web.get(&path).await.json()["human"]["lease_until"].is_null() {
        assert!(began.elapsed() < Duration::from_secs(30), "the lease does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let late = json!({ "task_id": task, "token": taken["token"], "result": 1 });
    for path in ["/human/answer", "/human/return"] {
        let late =
            if path == "/human/answer" { late.clone() } else { json!({ "task_id": task, "token": taken["token"] }) };
        web.post(path, &late).await.problem(409, "stale_token");
    }
    let taken = web.post("/human/take", &json!({ "task_id": task, "by": "bob" })).await.json();
    let answer = json!({ "task_id": task, "token": taken["token"], "result": { "verdict": "yes" } });
    let answered = web.post("/human/answer", &answer).await.json();
    assert_eq!((&answered["phase"], &answered["outcome"]), (&json!("completed"), &json!("REACH_FALLBACK")));
    web.post("/human/take", &json!({ "queue": "bench", "by": "bob" })).await.problem(404, "task_not_found");

    let (_running, web, task) = before_people().await;
    let taken = web.post("/human/take", &json!({ "by": "bob" })).await.json();
    let refuse = json!({ "task_id": task, "token": taken["token"], "reason": "not ours" });
    let refused = web.post("/human/refuse", &refuse).await.json();
    assert_eq!((&refused["phase"], &refused["outcome"]), (&json!("dead_lettered"), &json!("REACH_REFUSED")));
}

#[tokio::test]
async fn webhooks_are_listed_shown_and_sent_again_over_plain_http() {
    let running = start().await;
    let web = Web::new(&running);
    let card = json!({ "agent_id": "worker@n", "capabilities": [{ "name": "judge" }] });
    assert_eq!(web.post("/agent/register", &card).await.status, 200);
    // Where it may not go to is refused at the door, so nothing leaves this machine: the name means nothing anywhere.
    let callback = json!([{ "url": "https://hooks.invalid/done" }]);
    let task = web.post("/tasks", &json!({ "capability": "judge", "callbacks": callback })).await.json();
    web.post(&format!("/tasks/{}/cancel", task["task_id"].as_str().unwrap()), &json!({})).await;
    let listed = web.get(&format!("/webhooks?task_id={}", task["task_id"].as_str().unwrap())).await.json();
    let webhook = &listed["webhooks"][0];
    assert_eq!((&webhook["type"], &webhook["body"]), (&json!("task.cancelled"), &Value::Null), "{listed}");
    let id = webhook["webhook_id"].as_str().unwrap();
    let shown = web.get(&format!("/webhooks/{id}")).await.json();
    assert_eq!((&shown["webhook_id"], &shown["body"]["data"]["task_id"]), (&json!(id), &task["task_id"]));
    let retried = web.post("/webhooks/retry", &json!({ "webhook_ids": [id] })).await.json();
    assert_eq!(retried["retried"], json!([id]));
    let unknown = "msg_01980c5e7a007c3a9b1e5f2d4c6a8e01";
    web.get(&format!("/webhooks/{unknown}")).await.problem(404, "webhook_not_found");
    web.get("/webhooks/17").await.problem(422, "invalid_params");
    assert_eq!(
        web.post("/webhooks/retry", &json!({ "webhook_ids": [unknown] })).await.json()["not_found"],
        json!([unknown])
    );
}
