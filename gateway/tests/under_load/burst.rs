//! Many submits at once, when there is room for a few: as many are taken on as may be, and not one more. Each is durable
//! before it is answered, so all of them are on their way to the disk at the same time.

use agent_reach_sdk::schemas::Span;
use agent_reach_sdk::{AgentCard, Client, ErrorCode, RetryPolicy, capability, card};
use serde_json::{Value, json};

use crate::victim::Victim;

/// How many ask at once.
const CALLERS: usize = 200;

/// How many of so many callers at once were taken on; the others were told that it is full, in the words of the limit.
async fn taken_on(configuration: &str, mode: &str, words: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), configuration).await;
    let client = Client::builder().url(victim.url()).retry(RetryPolicy::never()).connect().await.unwrap();
    // It pulls, and never does: all of it waits.
    let (capabilities, heartbeat_interval) = (vec![capability("work").unwrap()], Span::from_mins(10));
    let card = AgentCard { capabilities, heartbeat_interval, ..card("idler@burst").unwrap() };
    client.call::<Value>("agent/register", &card).await.unwrap();
    let submit = json!({ "capability": "work", "mode": mode });
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (client, submit) = (client.clone(), submit.clone());
            tokio::spawn(async move { client.call::<Value>("task/submit", &submit).await })
        })
        .collect();
    let mut taken = 0;
    for caller in callers {
        match caller.await.unwrap() {
            Ok(_) => taken += 1,
            Err(refusal) => {
                assert_eq!(refusal.code(), Some(ErrorCode::Overloaded), "{refusal}");
                assert!(refusal.to_string().contains(words), "{refusal}");
            }
        }
    }
    // What was not taken on left no place behind: of those that go, as many may come.
    let tasks: Value = client.call("task/list", &json!({ "limit": 1000 })).await.unwrap();
    let tasks = tasks["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), taken);
    client.call::<Value>("task/cancel", &json!({ "task_id": tasks[0]["task_id"] })).await.unwrap();
    client.call::<Value>("task/submit", &submit).await.unwrap();
    assert_eq!(client.call::<Value>("task/submit", &submit).await.unwrap_err().code(), Some(ErrorCode::Overloaded));
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_burst_as_many_are_taken_on_as_may_wait_and_no_more() {
    let limits = "waiting = { fast = 7, normal = 7, long = 7, namespace = 100 }\n";
    assert_eq!(taken_on(limits, "queue", "of the tier normal wait").await, 7);
    let limits = "waiting = { fast = 100, normal = 100, long = 100, namespace = 5 }\n";
    assert_eq!(taken_on(limits, "direct", "of the namespace burst wait").await, 5);
    assert_eq!(taken_on("open_max = 9\n", "queue", "9 tasks are open").await, 9);
}
