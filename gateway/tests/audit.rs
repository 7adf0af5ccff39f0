//! The audit log of a real gateway process: what is in it and what never is, that a flood of refusals stays small, that it
//! and the tasks tell the same after `kill -9`, and what `reachctl audit` says to somebody who got at the file.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "audit/anew.rs"]
mod anew;
#[path = "audit/planted.rs"]
mod planted;
mod victim;
#[path = "audit/vouched.rs"]
mod vouched;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::call::{AuditRows, AuditVerified, Redriven};
use agent_reach_sdk::schemas::{AuditFlaw, AuditRow};
use agent_reach_sdk::{Client, PhaseName, TaskId, TaskView};
use rusqlite::Connection;
use serde_json::{Value, json};
use victim::{Victim, from_env};

const PATIENCE: Duration = Duration::from_secs(60);

/// An agent that fails everything.
const CONFIGURATION: &str = r#"
[[agents]]
agent_id = "broken@desk"
endpoints = [{ protocol = "process", address = "false" }]
[[agents.capabilities]]
name = "judge"
effect = "read"

# All that is asked of it is to fail.
[defaults.breaker.read]
failures_in_row = 1000
open_above = 1.0
"#;

const SECRET: &str = "hunter2-correct-horse";

async fn call(client: &Client, method: &str, params: Value) -> Value {
    client.call(method, &params).await.unwrap()
}

async fn refused(client: &Client, method: &str, params: Value) {
    client.call::<Value>(method, &params).await.unwrap_err();
}

async fn rows(client: &Client) -> Vec<AuditRow> {
    let found: AuditRows = client.call("audit/export", &json!({})).await.unwrap();
    assert_eq!(found.next, None);
    found.rows
}

/// Rows that tell of a kind, once there are so many: what changes nothing is written a moment later.
async fn rows_of(client: &Client, kind: &str, count: usize) -> Vec<AuditRow> {
    let began = Instant::now();
    loop {
        let found: Vec<AuditRow> = rows(client).await.into_iter().filter(|row| row.kind == kind).collect();
        if found.len() >= count {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{} rows of {kind}, and {count} are to come", found.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn verify(client: &Client) -> AuditVerified {
    client.call("audit/verify", &json!({})).await.unwrap()
}

fn card(access: Value) -> Value {
    json!({
        "agent_id": "reader@lab", "access": access,
        "capabilities": [{ "name": "read_it", "effect": "read", "input_schema": { "type": "object" } }],
    })
}

/// Tells what `reachctl` answers, and how it exits.
fn reachctl(url: &str, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reachctl"));
    let ran = command.args(args).env("AGENT_REACH_URL", url).env("COLUMNS", "160").output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap();
    (ran.status.code().unwrap(), said)
}

#[tokio::test]
async fn what_changes_who_may_do_what_and_what_went_wrong_is_written_down_and_no_payload_is() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), CONFIGURATION).await;
    let client = victim.client().await;

    call(&client, "agent/register", card(json!({}))).await;
    call(&client, "agent/register", card(json!({}))).await;
    call(&client, "agent/register", card(json!({ "callable_by": ["*@desk"] }))).await;
    call(&client, "agent/drain", json!({ "agent_id": "reader@lab" })).await;
    let submit = json!({ "capability": "judge", "tries": 1, "params": { "password": SECRET }, "wait": "30s" });
    let failed: TaskView = client.call("reach", &submit).await.unwrap();
    assert!(failed.phase.is_final() && failed.phase != PhaseName::Completed, "{failed:?}");
    let redriven: Redriven = client.call("dead_letter/redrive", &json!({ "all": true })).await.unwrap();
    // A caller from another namespace: the wall says no, and so does the card.
    refused(&client, "reach", json!({ "to_agent": "reader@lab", "capability": "read_it", "from_agent": "spy@else", "params": { "p": SECRET } })).await;
    refused(&client, "task/get", json!({ "task_id": "0198a000-0000-7000-8000-000000000001" })).await;
    refused(&client, "reach", json!({ "capability": "no_such_thing" })).await;
    call(&client, "agent/deregister", json!({ "agent_id": "reader@lab" })).await;

    let refusals = rows_of(&client, "call.refused", 3).await;
    let outcomes: BTreeSet<&str> = refusals.iter().map(|row| row.outcome.as_str()).collect();
    assert!(outcomes.contains("NOT_FOUND") && outcomes.contains("ROUTING_NO_CANDIDATE"), "{refusals:#?}");
    assert!(refusals.iter().any(|row| row.actor == "spy@else"), "{refusals:#?}");

    let all = rows(&client).await;
    let kinds = |kind: &str| all.iter().filter(|row| row.kind == kind).collect::<Vec<_>>();
    assert_eq!(kinds("gateway.started").len(), 1);
    let registered = kinds("agent.registered");
    let told: Vec<_> = registered.iter().map(|row| (row.actor.as_str(), row.target.as_deref().unwrap())).collect();
    assert_eq!(told, [("configuration", "broken@desk"), ("operator", "reader@lab"), ("operator", "reader@lab")]);
    assert_ne!(registered[1].digest, registered[2].digest);
    assert_eq!(
        (kinds("access.changed").len(), kinds("agent.drained").len(), kinds("agent.deregistered").len()),
        (1, 1, 1)
    );
    let reach_failed = kinds("reach.failed");
    assert_eq!(
        (reach_failed[0].task_id, reach_failed[0].target.as_deref()),
        (Some(failed.task_id), Some("broken@desk"))
    );
    assert!(reach_failed[0].digest.is_some() && reach_failed[0].code.is_some());
    assert_eq!(kinds("task.redriven").len(), redriven.redriven.len());
    let text = serde_json::to_string(&all).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    assert!(!std::fs::read_to_string(folder.path().join("gateway.log")).unwrap().contains(SECRET));
    assert!(verify(&client).await.is_whole);
}

#[tokio::test]
async fn a_configuration_that_was_taken_on_is_written_down_with_its_agents_and_the_log_is_signed_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), CONFIGURATION).await;
    let client = victim.client().await;
    std::fs::write(folder.path().join("gateway.toml"), "deadline = \"1m\"").unwrap();
    call(&client, "config/reload", json!({ "dry_run": true })).await;
    call(&client, "config/reload", json!({})).await;
    let reloaded = rows_of(&client, "config.reloaded", 1).await;
    assert_eq!((reloaded.len(), reloaded[0].actor.as_str()), (1, "operator"));
    assert!(reloaded[0].reason.as_ref().unwrap().contains("deadline"), "{reloaded:#?}");
    for kind in ["agent.drained", "agent.deregistered"] {
        let gone = rows_of(&client, kind, 1).await;
        assert_eq!((gone[0].actor.as_str(), gone[0].target.as_deref()), ("configuration", Some("broken@desk")));
    }
    call(&client, "audit/checkpoint", json!({})).await;
    assert!(verify(&client).await.is_whole);
}

#[tokio::test]
async fn a_flood_of_refusals_is_a_few_rows_and_none_is_lost_from_the_count() {
    const CALLS: u64 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    for n in 0..CALLS {
        refused(&client, "task/get", json!({ "task_id": TaskId::from_parts(n, 1) })).await;
    }
    rows_of(&client, "call.refused", 1).await;
    // What is counted is written at the latest at the end.
    victim.stop_and_restart().await;
    let client = victim.client().await;
    let refusals = rows_of(&client, "call.refused", 2).await;
    assert!(refusals.len() <= 5, "{refusals:#?}");
    assert_eq!(refusals.iter().map(|row| row.count).sum::<u64>(), CALLS);
    let kinds: Vec<String> = rows(&client).await.into_iter().map(|row| row.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "gateway.stopped").count(), 1);
    let verified = verify(&client).await;
    assert!(verified.is_whole && verified.checkpoints >= 1, "{verified:?}");
}

/// Every task in the file and its phase, by the number that the file has for it; and of how many rows each is.
fn told(database: &Path) -> BTreeMap<TaskId, (bool, u64)> {
    let file = Connection::open(database).unwrap();
    let sql = "SELECT task.id, done.phase IN (5, 7, 8), (SELECT count(*) FROM audit WHERE task_id = task.id AND kind = 'reach.failed')
               FROM task LEFT JOIN done USING (no)";
    let mut statement = file.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        Ok((
            TaskId::from_bytes(row.get(0)?),
            (row.get::<_, Option<bool>>(1)?.unwrap_or(false), row.get::<_, u32>(2)?.into()),
        ))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_kill_9_under_load_each_failed_task_has_its_row_and_no_other_has_one() {
    let kills = from_env("REACH_AUDIT_KILLS", 3);
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(folder.path(), CONFIGURATION).await;
    let client = victim.client().await;
    for _ in 0..kills {
        let load = (0..8).map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let task = json!({ "capability": "judge", "tries": 1 });
                while client.call::<TaskView>("task/submit", &task).await.is_ok() {}
            })
        });
        let load: Vec<_> = load.collect();
        rows_of(&client, "reach.failed", 5 + fastrand::usize(..40)).await;
        load.iter().for_each(tokio::task::JoinHandle::abort);
        victim.kill_and_restart().await;
        let told = told(&victim.database());
        let wrong: Vec<_> = told.iter().filter(|(_, (is_failed, rows))| u64::from(*is_failed) != *rows).collect();
        assert!(wrong.is_empty() && told.values().any(|(is_failed, _)| *is_failed), "{wrong:?}");
        let verified = verify(&client).await;
        assert!(verified.is_whole, "{verified:?}");
    }
}

#[tokio::test]
async fn somebody_who_got_at_the_file_is_found_out_with_and_without_a_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(folder.path(), CONFIGURATION).await;
    let client = victim.client().await;
    call(&client, "agent/register", card(json!({}))).await;
    let url = victim.url();
    let (exit, checkpoint) = reachctl(&url, &["audit", "checkpoint", "--json"]);
    assert_eq!(exit, 0, "{checkpoint}");
    let kept = folder.path().join("checkpoint.json");
    std::fs::write(&kept, checkpoint).unwrap();
    call(&client, "agent/deregister", json!({ "agent_id": "reader@lab" })).await;

    let data = victim.database().parent().unwrap().to_str().unwrap().to_owned();
    let since = kept.to_str().unwrap();
    for args in [
        &["audit", "verify"][..],
        &["audit", "verify", "--since", since],
        &["audit", "verify", "--data", &data, "--since", since],
    ] {
        let (exit, said) = reachctl(&url, args);
        assert!(exit == 0 && said.contains("the audit log is whole"), "{args:?} {exit} {said}");
    }
    let (exit, tail) = reachctl(&url, &["audit", "tail", "-n", "1"]);
    assert!(exit == 0 && tail.contains("agent.deregistered") && tail.contains("reader@lab"), "{tail}");
    let (exit, found) =
        reachctl(&url, &["audit", "search", "--kind", "agent.registered", "--target", "reader*", "--json"]);
    let found: AuditRows = serde_json::from_str(&found).unwrap();
    assert_eq!((exit, found.rows.len()), (0, 1));
    let (exit, exported) = reachctl(&url, &["audit", "export"]);
    assert_eq!((exit, exported.lines().count()), (0, rows(&client).await.len()));
    // A checkpoint that somebody wrote themselves proves nothing.
    let forged = std::fs::read_to_string(&kept).unwrap().replace("\"seq\":", "\"seq\":1");
    std::fs::write(folder.path().join("forged.json"), forged).unwrap();
    let forged = folder.path().join("forged.json");
    let (exit, said) = reachctl(&url, &["audit", "verify", "--since", forged.to_str().unwrap()]);
    assert!(exit == 4 && said.contains("signature does not hold"), "{exit} {said}");

    victim.stop_and_restart().await;
    // It has begun: from then on it writes nothing of its own accord.
    rows(&victim.client().await).await;
    // While nobody looks, the registration is taken out of the log, and the log is cut there.
    let file = Connection::open(victim.database()).unwrap();
    let cut = "DROP TRIGGER audit_delete; DROP TRIGGER audit_checkpoint_delete; DELETE FROM audit WHERE seq > 1;
               DELETE FROM audit_checkpoint; UPDATE sqlite_sequence SET seq = 1 WHERE name = 'audit'";
    file.execute_batch(cut).unwrap();
    drop(file);
    std::fs::remove_file(victim.database().with_file_name("audit-pin.json")).unwrap();
    // Nothing in the file tells of it any more, nor what everybody may write beside it; what signs does.
    let (exit, said) = reachctl(&url, &["audit", "verify"]);
    assert!(exit == 1 && said.contains("the log ends before"), "{exit} {said}");
    for args in [
        &["audit", "verify", "--since", since, "--json"][..],
        &["audit", "verify", "--data", &data, "--since", since, "--json"],
    ] {
        let (exit, said) = reachctl(&url, args);
        let verified: AuditVerified = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        let finding = verified.finding.unwrap();
        // The gateway may have written on since.
        let first_missing = verified.rows + 1;
        assert_eq!((exit, finding.seq, finding.flaw), (1, first_missing, AuditFlaw::TailCut), "{args:?} {said}");
    }
}
