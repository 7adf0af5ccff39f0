//! Over a real gateway process: stale workers, broadcasts, cancelled commands, and explanations that outlive a kill.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

use std::path::Path;
use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::call::{Claimed, Noted};
use agent_reach_sdk::{
    Agent, Client, Context, Effect, Error, ErrorCode, HandlerError, Mode, PhaseName, Task, TaskId, capability,
};
use serde_json::{Value, json};
use victim::{Ledger, Victim, lively, patient};

const PATIENCE: Duration = Duration::from_secs(20);

async fn register(client: &Client, card: Value) {
    let _: Value = client.call("agent/register", &card).await.unwrap();
}

/// Asks again and again until there is an answer; the gateway's own wake-ups are tested elsewhere.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Its heartbeats are a second apart, and four that are missed would make it dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_waits_for_work_is_alive_without_a_heartbeat() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    let offer = json!([{ "name": "dig", "effect": "idempotent_write" }]);
    let card = json!({ "agent_id": "patient@pull", "heartbeat_interval": "1s", "capabilities": offer });
    register(&client, card).await;
    let waiting = client.clone();
    let claim = tokio::spawn(async move {
        let params = json!({ "agent_id": "patient@pull", "wait": "8s" });
        waiting.call::<Claimed>("task/claim", &params).await.unwrap()
    });
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(6) {
        let seen: Value = client.call("agent/get", &json!({ "agent_id": "patient@pull" })).await.unwrap();
        assert_eq!(seen["state"], "alive", "after {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let task = client.task("dig").mode(Mode::Queue).submit().await.unwrap();
    let claimed = claim.await.unwrap();
    assert_eq!(claimed.tasks.first().map(|delivery| delivery.task_id), Some(task.id()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_worker_s_late_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    for name in ["slow@pull", "quick@pull"] {
        let offer = json!([{ "name": "dig", "effect": "idempotent_write" }]);
        register(&client, json!({ "agent_id": name, "capabilities": offer })).await;
    }
    let task = client.task("dig").mode(Mode::Queue).submit().await.unwrap();
    let claim = |name: &'static str, lease: &'static str| {
        let client = client.clone();
        async move {
            let claimed: Claimed =
                client.call("task/claim", &json!({ "agent_id": name, "lease": lease })).await.unwrap();
            claimed.tasks.into_iter().next()
        }
    };
    let slow = claim("slow@pull", "200ms").await.expect("the task was offered");
    let quick = until("the second claim", async || claim("quick@pull", "30s").await).await;
    assert!(quick.token > slow.token && quick.task_id == slow.task_id);
    let complete = |token, by: &'static str| {
        let params = json!({ "task_id": task.id(), "token": token, "result": by });
        let client = client.clone();
        async move { client.call::<Noted>("task/complete", &params).await }
    };
    let refused = complete(slow.token, "slow").await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::StaleToken), "{refused}");
    assert_eq!(complete(quick.token, "quick").await.unwrap().phase, PhaseName::Completed);
    assert_eq!(
        complete(quick.token, "quick").await.unwrap().phase,
        PhaseName::Completed,
        "saying it twice does no harm"
    );
    assert_eq!(task.wait_for(PATIENCE).await.unwrap().raw().get(), "\"quick\"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broadcast_to_eight_agents_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut agents = Vec::new();
    for number in 0..8 {
        let lines = ledger.clone();
        let work = move |task: Task, _: Context| {
            let lines = lines.clone();
            async move {
                lines.add(task.id());
                Ok::<_, HandlerError>(number)
            }
        };
        let offer = agent_reach_sdk::Capability { effect: Effect::Write, ..capability("answer").unwrap() };
        let connection = Client::builder().url(victim.url()).retry(patient());
        let agent = Agent::builder(lively(&format!("hand{number}@many"))).connection(connection);
        agents.push(agent.capability(offer, work).start().await.unwrap());
    }
    let client = victim.client().await;
    for _ in 0..10 {
        let task = client.task("answer").mode(Mode::Broadcast).submit().await.unwrap();
        let done = task.wait_for(PATIENCE).await.unwrap();
        assert_eq!(done.view().attempts.len(), 1, "one claim won");
    }
    let counts = ledger.counts();
    assert_eq!((counts.len(), counts.values().sum::<usize>()), (10, 10));
}

fn is_alive(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    // A process that has ended and is about to be reaped does nothing any more.
    stat.rsplit_once(')').is_some_and(|(_, behind)| !behind.trim_start().starts_with('Z'))
}

fn command(folder: &Path, script: &str) -> String {
    let path = folder.join("command.sh");
    std::fs::write(&path, script).unwrap();
    format!(
        "[[agents]]\nagent_id = \"shell@tools\"\nendpoints = [{{ protocol = \"process\", address = \"sh '{}'\" }}]\n[[agents.capabilities]]\nname = \"run\"\neffect = \"read\"\ncancellable = true\n",
        path.display()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_command_is_gone_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids");
    let script = format!("sleep 300 &\necho \"$$ $!\" > '{}.new'\nmv '{0}.new' '{0}'\nsleep 300\n", ids.display());
    let victim = Victim::start(folder.path(), &command(folder.path(), &script)).await;
    let client = victim.client().await;
    let task = client.task("run").submit().await.unwrap();
    let ids = until("the command", async || std::fs::read_to_string(&ids).ok()).await;
    assert!(ids.split_whitespace().all(is_alive), "{ids}");
    assert_eq!(task.cancel().await.unwrap().phase, PhaseName::Cancelled);
    until("the end of the command", async || (!ids.split_whitespace().any(is_alive)).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_explained_whole_after_a_kill_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim =
        Victim::start(folder.path(), &command(folder.path(), "cat > /dev/null; echo '{\"ok\":1.50}'\n")).await;
    let client = victim.client().await;
    let task = client.task("run").params(&json!({ "n": 1 })).submit().await.unwrap();
    let done = task.wait_for(PATIENCE).await.unwrap();
    assert_eq!(done.raw().get(), "{\"ok\":1.50}", "the result comes out as the agent wrote it");
    let before = client.explain(task.id()).await.unwrap();
    victim.kill_and_restart().await;
    let after = client.explain(task.id()).await.unwrap();
    assert_eq!(before, after);
    let decision = &after.decisions[0];
    assert_eq!(decision.chosen.as_ref().map(|chosen| chosen.agent_id.as_str()), Some("shell@tools"));
    assert!(decision.candidates[0].score.is_some_and(|score| score.total > 0.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_names_what_was_near_and_what_it_lacked() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    let schema = json!({ "type": "object", "required": ["city"], "properties": { "city": { "type": "string" } } });
    let offer =
        json!([{ "name": "weather_report", "description": "Tells the weather of a city", "input_schema": schema }]);
    register(&client, json!({ "agent_id": "sky@news", "capabilities": offer })).await;

    let wrong = client.task("weather_report").params(&json!({ "city": 7 })).submit().await.unwrap_err();
    assert_eq!(wrong.code(), Some(ErrorCode::ParamsMismatch));
    assert!(wrong.to_string().contains("at /city: 7 is not of type"), "{wrong}");

    let Error::NoCandidate(refusal) = client.task("weather_forecast").submit().await.unwrap_err() else {
        panic!("another error than no candidate")
    };
    assert_eq!(refusal.suggestions[0].capability.as_str(), "weather_report");
    assert!(!refusal.suggestions[0].lacks.is_empty());

    let foreign =
        client.task("weather_report").params(&json!({ "city": "Ulm" })).from_agent("spy@other").submit().await;
    let said = foreign.unwrap_err().to_string();
    assert!(!said.contains("sky@news"), "what a caller may not reach is not named to it: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_comes_late_is_offered_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    let offer = json!([{ "name": "dig", "effect": "read" }]);
    register(&client, json!({ "agent_id": "first@pull", "capabilities": offer })).await;
    let task = client.task("dig").mode(Mode::Queue).submit().await.unwrap();
    register(&client, json!({ "agent_id": "late@pull", "capabilities": offer })).await;
    let params = json!({ "agent_id": "late@pull", "wait": "10s" });
    let claimed: Claimed = client.call("task/claim", &params).await.unwrap();
    assert_eq!(claimed.tasks.first().map(|delivery| delivery.task_id), Some::<TaskId>(task.id()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_card_no_longer_says_is_not_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    let card = |does: &str, callable_by: Value| {
        let access = json!({ "callable_by": callable_by });
        json!({ "agent_id": "hand@pull", "capabilities": [{ "name": does, "effect": "read" }], "access": access })
    };
    let claim = async || -> Vec<TaskId> {
        let claimed: Claimed = client.call("task/claim", &json!({ "agent_id": "hand@pull" })).await.unwrap();
        claimed.tasks.into_iter().map(|delivery| delivery.task_id).collect()
    };
    register(&client, card("dig", json!(["*@pull"]))).await;
    let asked = client.task("dig").mode(Mode::Queue).from_agent("boss@pull").submit().await.unwrap();
    register(&client, card("sweep", json!(["*@pull"]))).await;
    assert_eq!(claim().await, [], "a capability that is gone");
    register(&client, card("dig", json!([]))).await;
    assert_eq!(claim().await, [], "a caller that may not call any more");
    register(&client, card("dig", json!(["*@pull"]))).await;
    assert_eq!(claim().await, [asked.id()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_nested_too_deep_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let script = "cat > /dev/null\npython3 -c 'print(\"[\" * 1000 + \"]\" * 1000)'\n";
    let victim = Victim::start(folder.path(), &command(folder.path(), script)).await;
    let task = victim.client().await.task("run").tries(1).submit().await.unwrap();
    let failed = task.wait_for(PATIENCE).await.unwrap_err();
    assert_eq!(failed.code(), Some(ErrorCode::InvalidResult), "{failed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_pulled_by_somebody_who_is_gone_goes_to_the_next_who_asks() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    let offer = json!([{ "name": "book", "effect": "write" }]);
    register(&client, json!({ "agent_id": "puller@tools", "capabilities": offer })).await;
    let claim = json!({ "agent_id": "puller@tools", "wait": "20s", "lease": "5m" });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "task/claim", "params": claim }).to_string();
    let rpc = format!("{}/rpc", victim.url());
    let asking = reqwest::Client::new().post(&rpc).header("content-type", "application/json").body(call).send();
    // Nothing is there to be had; whoever asks gives up, and the connection is closed with that.
    assert!(tokio::time::timeout(Duration::from_millis(300), asking).await.is_err());
    let task = client.task("book").mode(Mode::Queue).submit().await.unwrap();
    let claimed: Claimed =
        client.call("task/claim", &json!({ "agent_id": "puller@tools", "wait": "5s" })).await.unwrap();
    let delivery = claimed.tasks.first().expect("the write is there for whoever asks next");
    assert_eq!((delivery.task_id, delivery.attempt), (task.id(), 1), "nobody had it before");
    let done = json!({ "task_id": task.id(), "token": delivery.token, "result": "booked" });
    let _: Noted = client.call("task/complete", &done).await.unwrap();
    assert_eq!(task.wait_for(PATIENCE).await.unwrap().raw().get(), "\"booked\"");
}
