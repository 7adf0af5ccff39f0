//! What is sent, to whom, how often and in which order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use reach_gateway::webhook::{self, People};
use reach_schemas::Span;
use serde_json::{Value, json};

use crate::receiver::{Receiver, Reply, nobody};
use crate::world::{World, soon};

fn ids(webhooks: &[Value]) -> Vec<&str> {
    webhooks.iter().map(|webhook| webhook["webhook_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_end_of_a_task_is_told_and_a_replay_tells_nothing() {
    let receiver = Receiver::start(|_| Reply::Status(204)).await;
    let mut world = World::start(soon(&[])).await;
    let url = receiver.url("/done?a=b");
    let key = json!({ "idempotency_key": "k1" });
    let task = world.submit_with(&[&url], key.clone()).await["task_id"].as_str().unwrap().to_owned();
    world.complete(&task, json!({ "n": 1 })).await;
    let seen = receiver.wait_for(1).await.remove(0);
    let event = seen.json();
    assert_eq!((&event["type"], &event["data"]["task_id"]), (&json!("task.completed"), &json!(task)));
    assert_eq!((&event["data"]["result"], &event["data"]["outcome"]), (&json!({ "n": 1 }), &json!("REACH_OK")));
    assert_eq!(event["timestamp"], event["data"]["finished_at"]);
    assert_eq!((seen.path.as_str(), seen.header("content-type")), ("/done", "application/json"));

    let replay = world.submit_with(&[&url, &receiver.url("/another")], key).await;
    assert_eq!((&replay["replayed"], &replay["task_id"]), (&json!(true), &json!(task)));
    let cancelled = world.end_one(&url).await;
    let seen = receiver.wait_for(2).await;
    assert_eq!(seen[1].json()["type"], "task.cancelled");
    assert_eq!(seen[1].json()["data"]["task_id"], cancelled, "a replay was told of");
    let webhooks = world.states(&["delivered", "delivered"]).await;
    assert_eq!(ids(&webhooks), seen.iter().map(|seen| seen.id()).collect::<Vec<_>>());
    assert_eq!((&webhooks[0]["tries"], &webhooks[0]["last_try"]["status"]), (&json!(1), &json!(204)));
}

#[tokio::test]
async fn a_redriven_task_that_ends_again_is_told_of_again_under_a_new_id() {
    let receiver = Receiver::start(|_| Reply::Status(200)).await;
    let mut world = World::start(soon(&[])).await;
    let own = receiver.url("/own");
    world.register(&[&receiver.url("/agent")]).await;
    let task = world.submit(&[&own]).await;
    world.poison(&task).await;
    let first = receiver.wait_for(2).await;
    let event = first.iter().find(|seen| seen.path == "/agent").unwrap().json();
    assert_eq!((&event["agent_id"], &event["type"]), (&json!("worker@n"), &json!("task.dead_lettered")));
    assert_eq!(event["data"]["failure"]["message"], "it breaks me");
    world.call("dead_letter/redrive", json!({ "task_ids": [task] })).await;
    world.complete(&task, json!("at last")).await;
    let all = receiver.wait_for(3).await;
    let last = all.last().unwrap();
    assert_eq!((last.path.as_str(), &last.json()["type"]), ("/own", &json!("task.completed")));
    assert!(first.iter().all(|seen| seen.id() != last.id()), "{all:#?}");
    world.states(&["delivered"; 3]).await;
}

#[tokio::test]
async fn those_who_look_after_a_queue_are_told_when_a_task_comes_into_it_and_only_then() {
    let receiver = Receiver::start(|_| Reply::Status(200)).await;
    let of = |queue: &str| (queue.parse().unwrap(), vec![receiver.url(&format!("/{queue}"))]);
    let people = People { of_all: vec![receiver.url("/all")], of_queue: [of("bench"), of("other")].into() };
    let mut world = World::start(webhook::Settings { people, ..soon(&[]) }).await;
    world.register_with(json!({ "fallback": [{ "human": "bench" }] })).await;
    let submitted = world.submit_with(&[&receiver.url("/own")], json!({ "tries": 1 })).await;
    let task = submitted["task_id"].as_str().unwrap();
    world.fail(task).await;
    let mut seen = receiver.wait_for(3).await;
    seen.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(seen.iter().map(|seen| seen.path.as_str()).collect::<Vec<_>>(), ["/all", "/bench", "/own"]);
    for event in seen.iter().map(|seen| seen.json()) {
        assert_eq!(
            (&event["type"], &event["data"]["task_id"]),
            (&json!("task.awaits_person"), &json!(task)),
            "{event}"
        );
        assert_eq!(
            (&event["data"]["phase"], &event["timestamp"]),
            (&json!("submitted"), &event["data"]["human"]["since"])
        );
    }
    // Taken, put back, taken again and answered: only the end is told, and to the task's own receiver only.
    let take = json!({ "task_id": task, "by": "alice" });
    let token = world.call("human/take", take.clone()).await["token"].clone();
    world.call("human/return", json!({ "task_id": task, "token": token })).await;
    let token = world.call("human/take", take).await["token"].clone();
    world.call("human/answer", json!({ "task_id": task, "token": token, "result": 1 })).await;
    let last = receiver.wait_for(4).await.remove(3);
    assert_eq!((last.path.as_str(), &last.json()["type"]), ("/own", &json!("task.completed")));
    world.states(&["delivered"; 4]).await;
    assert_eq!(receiver.seen().len(), 4);
}

#[tokio::test]
async fn what_a_receiver_missed_while_it_was_down_comes_once_it_is_back() {
    let mut world = World::start(soon(&[50; 50])).await;
    let address = nobody();
    let url = format!("http://{address}/");
    for _ in 0..5 {
        world.end_one(&url).await;
    }
    let tried = |webhooks: &[Value]| webhooks.iter().all(|webhook| webhook["tries"].as_u64() > Some(1));
    let webhooks = world.until("each was to be tried twice", tried).await;
    let error = webhooks[0]["last_try"]["error"].as_str().unwrap();
    assert!(error.contains("refused") && webhooks[0]["last_try"]["status"].is_null(), "{error}");
    let receiver = Receiver::start_at(address, |_| Reply::Status(200)).await;
    let mut came: Vec<String> = receiver.wait_for(5).await.iter().map(|seen| seen.id().to_owned()).collect();
    world.states(&["delivered"; 5]).await;
    came.sort();
    assert_eq!(came, ids(&webhooks), "each comes once, under the id that it had");
}

#[tokio::test]
async fn a_busy_receiver_is_left_alone_as_long_as_it_says_and_then_gets_all_in_order() {
    let is_first = AtomicU16::new(1);
    let receiver = Receiver::start(move |_| match is_first.swap(0, Ordering::SeqCst) {
        1 => Reply::RetryAfter(503, "4"),
        _ => Reply::Status(200),
    });
    let receiver = receiver.await;
    let mut world = World::start(webhook::Settings { at_once_per_host: 1, ..soon(&[100; 9]) }).await;
    world.end_one(&receiver.url("/0")).await;
    receiver.wait_for(1).await;
    for n in 1..5 {
        world.end_one(&receiver.url(&format!("/{n}"))).await;
    }
    let noted = |webhooks: &[Value]| webhooks.len() == 5 && webhooks[0]["tries"] == 1;
    let mut webhooks = world.until("the first try was to be noted", noted).await;
    assert_eq!(receiver.seen().len(), 1, "it was not left alone: {webhooks:#?}");
    // The first comes again when the receiver said. The others were due when they were made, some at one time perhaps:
    // then the one that was made first goes first, and the addresses number them.
    webhooks.sort_by_key(|webhook| ["due_at", "url"].map(|member| webhook[member].as_str().unwrap().to_owned()));
    let seen = receiver.wait_for(6).await;
    let order: Vec<&str> = seen[1..].iter().map(|seen| seen.id()).collect();
    assert_eq!(order, ids(&webhooks));
    assert_eq!(seen[0].id(), *order.last().unwrap());
    world.states(&["delivered"; 5]).await;
}

#[tokio::test]
async fn one_receiver_that_never_answers_holds_up_no_other() {
    let slow = Receiver::start(|_| Reply::Silence).await;
    let quick = Receiver::start(|_| Reply::Status(200)).await;
    let mut world = World::start(webhook::Settings { at_once_per_host: 2, ..soon(&[]) }).await;
    for _ in 0..20 {
        world.end_one(&slow.url("/")).await;
    }
    slow.wait_for(2).await;
    world.end_one(&quick.url("/")).await;
    quick.wait_for(1).await;
    assert_eq!(slow.seen().len(), 2, "no more than two may be on their way to one host");
}

#[tokio::test]
async fn a_receiver_that_is_too_slow_has_failed() {
    let slow = Receiver::start(|_| Reply::Silence).await;
    let mut world = World::start(webhook::Settings { timeout: Span::from_ms(200), ..soon(&[]) }).await;
    world.end_one(&slow.url("/")).await;
    let webhooks = world.states(&["failed"]).await;
    assert_eq!(webhooks[0]["last_try"]["error"], "no answer within 200ms");
}

#[tokio::test]
async fn what_failed_too_often_is_kept_and_sent_again_when_the_operator_says_so() {
    let status = Arc::new(AtomicU16::new(500));
    let says = Arc::clone(&status);
    let receiver = Receiver::start(move |_| Reply::Status(says.load(Ordering::SeqCst))).await;
    let mut world = World::start(soon(&[10, 10])).await;
    world.end_one(&receiver.url("/")).await;
    let webhooks = world.states(&["failed"]).await;
    assert_eq!((receiver.seen().len(), &webhooks[0]["tries"]), (3, &json!(3)));
    assert_eq!(webhooks[0]["last_try"]["error"], "the receiver answered 500 Internal Server Error");
    status.store(200, Ordering::SeqCst);
    let retried = world.call("webhook/retry", json!({})).await;
    assert_eq!(retried["retried"], json!(ids(&webhooks)));
    world.states(&["delivered"]).await;
    let seen = receiver.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|one| (one.id(), &one.body) == (seen[0].id(), &seen[0].body)), "{seen:#?}");
    assert_eq!(world.call("webhook/retry", json!({})).await["retried"], json!([]), "none has failed any more");

    let shown = world.call("webhook/get", json!({ "webhook_id": seen[0].id() })).await;
    assert_eq!(shown["body"], seen[0].json());
    let unknown = "msg_01980c5e7a007c3a9b1e5f2d4c6a8e01";
    assert_eq!(world.ask("webhook/get", json!({ "webhook_id": unknown })).await["error"]["code"], 1014);
    let retried = world.call("webhook/retry", json!({ "webhook_ids": [unknown, seen[0].id()] })).await;
    assert_eq!(retried, json!({ "retried": [seen[0].id()], "not_found": [unknown] }));
    receiver.wait_for(5).await;
}

#[tokio::test]
async fn a_task_receiver_that_is_gone_is_told_nothing_more_of_that_task() {
    let receiver = Receiver::start(|seen| Reply::Status(if seen.path == "/gone" { 410 } else { 200 })).await;
    let mut world = World::start(soon(&[50; 9])).await;
    let (gone, well) = (receiver.url("/gone"), receiver.url("/well"));
    let task = world.submit(&[&gone, &well]).await;
    world.poison(&task).await;
    world.until("one was to be gone", |all| all.iter().any(|one| one["state"] == "gone")).await;
    world.call("dead_letter/redrive", json!({ "task_ids": [task] })).await;
    world.complete(&task, json!(1)).await;
    let closed = |all: &[Value]| all.len() == 4 && all.iter().all(|one| one["state"] != "waiting");
    let webhooks = world.until("all were to end", closed).await;
    let paths: Vec<String> = receiver.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths.iter().filter(|path| *path == "/gone").count(), 1, "{paths:?}");
    assert_eq!(paths.iter().filter(|path| *path == "/well").count(), 2, "{paths:?}");
    let unsent = webhooks[2..].iter().find(|webhook| webhook["state"] == "gone").unwrap();
    assert_eq!((&unsent["url"], &unsent["tries"]), (&json!(gone), &json!(0)));
    assert!(unsent["last_try"]["error"].as_str().unwrap().starts_with("not sent"), "{unsent}");
    // Another task that names it is not its business, and finds out for itself.
    world.end_one(&gone).await;
    receiver.wait_for(4).await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = Receiver::start(|_| Reply::Status(200)).await;
    let to: &'static str = target.url("/elsewhere").leak();
    let receiver = Receiver::start(move |_| Reply::Location(307, to)).await;
    let mut world = World::start(soon(&[])).await;
    world.end_one(&receiver.url("/")).await;
    let webhooks = world.states(&["failed"]).await;
    let error = webhooks[0]["last_try"]["error"].as_str().unwrap();
    assert!(error.contains("307") && error.contains("redirects are not followed"), "{error}");
    assert_eq!((receiver.seen().len(), target.seen().len()), (1, 0));
}
