//! One gateway tells the receivers of many namespaces, some of them at one host: what one is told to wait, or takes long
//! over, is not laid upon the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reach_gateway::webhook;
use reach_schemas::Span;
use serde_json::{Value, json};

use crate::receiver::{Receiver, Reply};
use crate::world::{World, soon};

/// Ends a task of an agent of this namespace, with these receivers.
async fn end_of(world: &mut World, namespace: &str, callbacks: &[&str]) -> String {
    let more = json!({ "from_agent": format!("caller@{namespace}"), "to_agent": format!("worker@{namespace}") });
    let task = world.submit_with(callbacks, more).await["task_id"].as_str().unwrap().to_owned();
    world.call("task/cancel", json!({ "task_id": task })).await;
    task
}

async fn with_namespaces(webhooks: webhook::Settings, namespaces: &[&str]) -> World {
    let mut world = World::start(webhooks).await;
    for namespace in namespaces {
        for name in ["worker", "caller"] {
            let capability = json!({ "name": "work", "description": "Does the work." });
            let agent_id = format!("{name}@{namespace}");
            let card = json!({ "agent_id": agent_id, "heartbeat_interval": "10m", "capabilities": [capability] });
            world.call("agent/register", card).await;
        }
    }
    world
}

fn of_task<'a>(webhooks: &'a [Value], task: &str) -> &'a Value {
    webhooks.iter().find(|webhook| webhook["task_id"] == task).unwrap()
}

#[tokio::test]
async fn a_rest_that_one_namespace_is_told_holds_no_other_and_the_list_says_until_when_and_why() {
    let is_busy = Arc::new(AtomicBool::new(true));
    let says = Arc::clone(&is_busy);
    let receiver = Receiver::start(move |seen| match (seen.path.as_str(), says.load(Ordering::SeqCst)) {
        ("/busy", true) => Reply::RetryAfter(429, "3600"),
        _ => Reply::Status(200),
    })
    .await;
    let mut world = with_namespaces(soon(&[20; 9]), &["one", "two"]).await;
    let (busy, well) = (receiver.url("/busy"), receiver.url("/well"));
    let first = end_of(&mut world, "one", &[&busy]).await;
    let is_held = |webhooks: &[Value]| webhooks.first().is_some_and(|webhook| webhook["held"].is_object());
    world.until("the first was to be held", is_held).await;
    // The same host: what the same namespace sends there waits, what another or the operator sends does not.
    let second = end_of(&mut world, "one", &[&well]).await;
    let others = [end_of(&mut world, "two", &[&well]).await, world.end_one(&well).await];
    let are_told = |webhooks: &[Value]| others.iter().all(|task| of_task(webhooks, task)["state"] == "delivered");
    let webhooks = world.until("the others were to be told", are_told).await;
    let held = of_task(&webhooks, &second);
    assert_eq!((&held["state"], &held["tries"]), (&json!("waiting"), &json!(0)), "{held}");
    assert_eq!(held["held"]["webhook_id"], of_task(&webhooks, &first)["webhook_id"]);
    let reason = held["held"]["reason"].as_str().unwrap();
    for part in [&receiver.address.to_string(), "429", "`Retry-After`", "the namespace one"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert!(held["held"]["until"].as_str() > held["due_at"].as_str(), "{held}");
    assert!(others.iter().all(|task| of_task(&webhooks, task)["held"].is_null()), "{webhooks:#?}");

    // The operator knows better, and has one sent: the rest is over for all of them.
    is_busy.store(false, Ordering::SeqCst);
    let id = &of_task(&webhooks, &first)["webhook_id"];
    world.call("webhook/retry", json!({ "webhook_ids": [id] })).await;
    world.states(&["delivered"; 4]).await;
}

/// How many hosts of this machine never answer; eight messages to each are more than may be on their way at once.
const SILENT: u8 = 40;
const ON_THEIR_WAY: usize = 256;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_whose_receivers_never_answer_holds_another_no_longer_than_one_try_takes() {
    let mut silent = Vec::new();
    for host in 1..=SILENT {
        silent.push(Receiver::start_at(format!("127.0.9.{host}:0").parse().unwrap(), |_| Reply::Silence).await);
    }
    let timeout = Span::from_secs(5);
    let mut world = with_namespaces(webhook::Settings { timeout, ..soon(&[]) }, &["one", "two"]).await;
    let urls: Vec<String> = silent.iter().map(|receiver| receiver.url("/")).collect();
    // Each host is named three times as often as it may have messages on their way.
    for _ in 0..24 {
        for some in urls.chunks(10) {
            end_of(&mut world, "one", &some.iter().map(String::as_str).collect::<Vec<_>>()).await;
        }
    }
    let tried = move || silent.iter().map(|receiver| receiver.seen().len()).sum::<usize>();
    let so_far = tried();
    let receiver = Receiver::start(|_| Reply::Status(200)).await;
    end_of(&mut world, "two", &[&receiver.url("/")]).await;
    receiver.wait_for(1).await;
    // The next place that came free was for the one who had none; all who were on their way meanwhile had theirs before.
    let meanwhile = tried() - so_far;
    assert!(meanwhile < ON_THEIR_WAY, "{meanwhile} went first, after {so_far}, of {}", 24 * urls.len());
}
