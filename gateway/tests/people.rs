//! Over a real gateway process: what no agent could do waits for a person, through `kill -9`, and one person has it.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::call::{HumanWork, Redriven, Tasks};
use agent_reach_sdk::schemas::{Stage, TakeEnding};
use agent_reach_sdk::{Client, ErrorCode, Explanation, PhaseName, TaskId, TaskView};
use serde_json::{Value, json};
use victim::Victim;

const PATIENCE: Duration = Duration::from_secs(30);

/// An agent that fails, and one that says nothing and may have written.
const CONFIGURATION: &str = r#"
human_wait = "1h"

[[agents]]
agent_id = "broken@desk"
endpoints = [{ protocol = "process", address = "false" }]
[[agents.capabilities]]
name = "judge"
effect = "read"
output_schema = { type = "object", required = ["verdict"] }
fallback = [{ human = "bench" }]

[[agents]]
agent_id = "mute@desk"
endpoints = [{ protocol = "process", address = "sleep 60" }]
[[agents.capabilities]]
name = "pay"
effect = "write"
timeout = "300ms"
fallback = [{ human = "counter" }]
"#;

async fn start(folder: &tempfile::TempDir) -> (Victim, Client) {
    let victim = Victim::start(folder.path(), CONFIGURATION).await;
    let client = victim.client().await;
    (victim, client)
}

async fn submit(client: &Client, capability: &str) -> TaskId {
    let view: TaskView =
        client.call("task/submit", &json!({ "capability": capability, "tries": 1, "deadline": "10s" })).await.unwrap();
    view.task_id
}

/// Waits until the task is before people, and gives it as they see it.
async fn before_people(client: &Client, queue: &str, id: TaskId) -> TaskView {
    let began = Instant::now();
    loop {
        let waiting: Tasks = client.call("human/list", &json!({ "queue": queue })).await.unwrap();
        if let Some(task) = waiting.tasks.into_iter().find(|task| task.task_id == id) {
            return task;
        }
        assert!(began.elapsed() < PATIENCE, "{id} does not come before people");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn take(client: &Client, id: TaskId, by: &str) -> Result<HumanWork, agent_reach_sdk::Error> {
    client.call("human/take", &json!({ "task_id": id, "by": by })).await
}

async fn get(client: &Client, id: TaskId) -> TaskView {
    client.call("task/get", &json!({ "task_id": id })).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_who_take_it_one_has_it_through_kills_and_their_answer_is_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let (mut victim, client) = start(&folder).await;
    let id = submit(&client, "judge").await;
    let waiting = before_people(&client, "bench", id).await;
    assert_eq!((waiting.phase, waiting.outcome), (PhaseName::Submitted, None));
    victim.kill_and_restart().await;
    assert_eq!(before_people(&client, "bench", id).await.human, waiting.human);

    let takers = (0..8).map(|number| {
        let client = client.clone();
        tokio::spawn(async move { take(&client, id, &format!("person{number}")).await })
    });
    let (mut won, mut lost) = (Vec::new(), 0);
    for taker in takers.collect::<Vec<_>>() {
        match taker.await.unwrap() {
            Ok(work) => won.push(work),
            Err(error) => {
                assert_eq!(error.code(), Some(ErrorCode::ClaimLost), "{error}");
                assert!(error.to_string().contains("has it until"), "{error}");
                lost += 1;
            }
        }
    }
    assert_eq!((won.len(), lost), (1, 7));
    let work = won.remove(0);
    let by = work.task.human.as_ref().unwrap().takes[0].by.clone();
    assert_eq!(work.task.phase, PhaseName::Accepted);
    assert!(work.output_schema.unwrap().get().contains("verdict"));
    victim.kill_and_restart().await;
    assert_eq!(take(&client, id, &by).await.unwrap().token, work.token, "it is theirs still, under the same token");

    let answer = |result: Value| {
        let params = json!({ "task_id": id, "token": work.token, "result": result });
        let client = client.clone();
        async move { client.call::<TaskView>("human/answer", &params).await }
    };
    let misfit = answer(json!({ "opinion": 1 })).await.unwrap_err();
    assert_eq!(misfit.code(), Some(ErrorCode::InvalidParams), "{misfit}");
    assert!(misfit.to_string().contains("output schema of judge"), "{misfit}");
    let done = answer(json!({ "verdict": "yes" })).await.unwrap();
    assert_eq!(done.outcome.as_deref(), Some("REACH_FALLBACK"));
    assert_eq!(done.fallback_from.unwrap().as_str(), "judge");
    assert_eq!(answer(json!({ "verdict": "yes" })).await.unwrap().phase, PhaseName::Completed, "twice does no harm");
    assert_eq!(answer(json!({ "verdict": "no" })).await.unwrap_err().code(), Some(ErrorCode::WrongPhase));
    victim.kill_and_restart().await;
    let kept = get(&client, id).await;
    assert_eq!(kept.result.unwrap().get(), r#"{"verdict":"yes"}"#);
    assert_eq!(kept.human.unwrap().takes[0].ending, Some(TakeEnding::Answered));
    let told: Explanation = client.call("task/explain", &json!({ "task_id": id })).await.unwrap();
    let last = told.decisions.last().unwrap();
    assert_eq!((last.stage, last.queue.as_ref().unwrap().as_str()), (Stage::Human, "bench"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_runs_out_returns_it_and_the_late_answer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_victim, client) = start(&folder).await;
    let id = submit(&client, "judge").await;
    before_people(&client, "bench", id).await;
    let brief = json!({ "queue": "bench", "by": "alice", "lease": "200ms" });
    let first: HumanWork = client.call("human/take", &brief).await.unwrap();
    assert_eq!(first.task.task_id, id);
    let began = Instant::now();
    while get(&client, id).await.phase != PhaseName::Submitted {
        assert!(began.elapsed() < PATIENCE, "the lease does not run out");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let second = take(&client, id, "bob").await.unwrap();
    assert!(second.token > first.token);
    let late = json!({ "task_id": id, "token": first.token, "result": { "verdict": "late" } });
    let refused = client.call::<TaskView>("human/answer", &late).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::StaleToken), "{refused}");
    let back = json!({ "task_id": id, "token": second.token });
    let returned: TaskView = client.call("human/return", &back).await.unwrap();
    let endings: Vec<_> = returned.human.unwrap().takes.iter().map(|take| take.ending.unwrap()).collect();
    assert_eq!(endings, [TakeEnding::Forgotten, TakeEnding::Returned]);
    let nothing = json!({ "queue": "elsewhere", "by": "bob" });
    let refused = client.call::<HumanWork>("human/take", &nothing).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::TaskNotFound), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_may_have_happened_is_looked_into_by_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let (mut victim, client) = start(&folder).await;
    let id = submit(&client, "pay").await;
    let waiting = before_people(&client, "counter", id).await;
    assert_eq!(waiting.human.unwrap().unsure[0].as_str(), "pay");
    victim.kill_and_restart().await;
    let work = take(&client, id, "alice").await.unwrap();
    let refuse =
        json!({ "task_id": id, "token": work.token, "reason": "the account is closed", "nothing_happened": true });
    let dead: TaskView = client.call("human/refuse", &refuse).await.unwrap();
    let failure = dead.failure.unwrap();
    assert_eq!((dead.phase, failure.code), (PhaseName::DeadLettered, ErrorCode::HumanRefused));
    assert_eq!(failure.message, "alice refused it: the account is closed");
    let sent: Redriven = client.call("dead_letter/redrive", &json!({ "task_ids": [id] })).await.unwrap();
    assert_eq!(sent.redriven, [id]);
    let again = before_people(&client, "counter", id).await;
    assert!(again.human.unwrap().takes.is_empty() && again.attempts.len() == 2, "it went all the way again");
    let work = take(&client, id, "bob").await.unwrap();
    let refuse = json!({ "task_id": id, "token": work.token, "reason": "nobody can tell" });
    let dead: TaskView = client.call("human/refuse", &refuse).await.unwrap();
    assert_eq!(dead.failure.unwrap().code, ErrorCode::OutcomeUnknown, "it is unsure still");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_ends_while_a_person_is_awaited_and_the_task_is_on_disk_though_it_began_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (mut victim, client) = start(&folder).await;
    // No key, a read, waited for: it begins in memory alone.
    let ask = json!({ "capability": "judge", "tries": 1, "wait": "2s", "deadline": "10s" });
    let view: TaskView = client.call("reach", &ask).await.unwrap();
    assert_eq!(view.outcome.as_deref(), Some("REACH_TIMEOUT"), "{view:?}");
    assert_eq!(view.human.unwrap().queue.as_str(), "bench");
    let left = view.deadline_at.since(view.created_at);
    assert!(left > agent_reach_sdk::Span::from_mins(59), "a person has their own time: {left}");
    victim.kill_and_restart().await;
    before_people(&client, "bench", view.task_id).await;
    let cancelled: TaskView = client.call("task/cancel", &json!({ "task_id": view.task_id })).await.unwrap();
    assert_eq!(cancelled.phase, PhaseName::Cancelled);
    let waiting: Tasks = client.call("human/list", &json!({})).await.unwrap();
    assert!(waiting.tasks.is_empty());
}
