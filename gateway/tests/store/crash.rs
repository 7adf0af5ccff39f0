//! A process that writes is killed with SIGKILL at random moments; then every step that it was told is durable must
//! be there, and no step by halves.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use reach_core::audit::{Event, Mark, Verifier};
use reach_gateway::store::sqlite::AuditFile;
use reach_gateway::store::{Command, Committer, Outcome, Store};
use reach_schemas::{AuditKind, ErrorCode, PhaseName, TaskId};
use rusqlite::Connection;

use crate::make::{self, at, commit, finish, insert_keyed, key, redrive, stepped, task};

const CALLERS: u64 = 8;

/// One caller: takes tasks through their lives, and says what is durable once it is.
async fn caller(committer: Committer, first: u64) {
    for n in (first..).step_by(usize::try_from(CALLERS).unwrap()) {
        let born = task(n);
        tell(&committer, insert_keyed(born.clone(), key(&format!("k{n}"), 1), 0), &born).await;
        let accepted = stepped(&born, PhaseName::Accepted, 5);
        tell(&committer, commit(accepted.clone()), &accepted).await;
        let dead = stepped(&accepted, PhaseName::DeadLettered, 6);
        let event = Event::new(at(6), AuditKind::ReachFailed, "alice").failed(ErrorCode::Timeout).about(dead.id());
        tell(&committer, finish(dead.clone(), 100).audited(vec![event]), &dead).await;
        // Another gateway was first: there is nothing to be written down.
        let late = Event::new(at(6), AuditKind::TaskRedriven, "late").about(dead.id());
        let outcome = committer.submit(finish(dead.clone(), 100).audited(vec![late])).await.unwrap();
        assert!(matches!(outcome, Outcome::Conflict { .. }), "{outcome:?}");
        let again = stepped(&dead, PhaseName::Submitted, 7);
        tell(&committer, redrive(again.clone()), &again).await;
        let completed = stepped(&again, PhaseName::Completed, 8);
        tell(&committer, finish(completed.clone(), 100), &completed).await;
    }
}

async fn tell(committer: &Committer, command: Command, told: &reach_core::task::Task) {
    let outcome = committer.submit(command).await.unwrap();
    assert!(matches!(outcome, Outcome::Inserted | Outcome::Committed), "{outcome:?}");
    let mut out = std::io::stdout().lock();
    writeln!(out, "durable {} {}", told.id(), told.version).unwrap();
    out.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by acknowledged_steps_survive_kill_9, and killed by it"]
async fn child_that_is_killed() {
    let path = std::env::var("STORE_CRASH_FILE").unwrap();
    let first: u64 = std::env::var("STORE_CRASH_FIRST").unwrap().parse().unwrap();
    let committer = Committer::new(Arc::new(make::open(Path::new(&path))));
    let callers = (0..CALLERS).map(|n| tokio::spawn(caller(committer.clone(), first + n)));
    futures_util::future::join_all(callers).await;
}

/// Starts a writer, lets it say `lines` lines, kills it, and adds all that it said to what is durable.
fn round(path: &Path, first: u64, lines: usize, durable: &mut BTreeMap<TaskId, u64>) {
    let mut child: Child = Process::new(std::env::current_exe().unwrap())
        .args(["crash::child_that_is_killed", "--exact", "--ignored", "--nocapture"])
        .env("STORE_CRASH_FILE", path)
        .env("STORE_CRASH_FIRST", first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut heard = 0;
    let mut line = String::new();
    while said.read_line(&mut line).unwrap() > 0 {
        // A line that the kill cut short was not heard by anybody.
        if let (true, Some(told)) = (line.ends_with('\n'), line.trim_end().split("durable ").nth(1)) {
            let (id, version) = told.split_once(' ').unwrap();
            durable.insert(id.parse().unwrap(), version.parse().unwrap());
            heard += 1;
            if heard == lines {
                child.kill().unwrap();
            }
        }
        line.clear();
    }
    child.wait().unwrap();
    assert!(heard >= lines, "the writer ended by itself after {heard} lines");
}

/// Nothing is there by halves.
fn check_whole(path: &Path) {
    let file = Connection::open(path).unwrap();
    let ask = |sql: &str| file.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(ask("PRAGMA integrity_check"), "ok");
    let none = |what: &str, sql: &str| assert_eq!(ask(&format!("SELECT count(*) || '' FROM {sql}")), "0", "{what}");
    none("keys without their task", "key WHERE task_no NOT IN (SELECT no FROM task)");
    none("tasks without their key", "task WHERE no NOT IN (SELECT task_no FROM key)");
    none("tasks without a state", "task WHERE no NOT IN (SELECT no FROM open UNION ALL SELECT no FROM done)");
    none("states without their task", "open WHERE no NOT IN (SELECT no FROM task)");
    none("tasks with two states", "open JOIN done USING (no)");
    none("open tasks whose key expires", "key JOIN open ON no = task_no WHERE expires_at IS NOT NULL");
    // The dead letter is version 2.
    none(
        "dead letters without their row of the audit log",
        "(SELECT no, version FROM open UNION ALL SELECT no, version FROM done) JOIN task USING (no)
         WHERE version >= 2 AND (SELECT count(*) FROM audit WHERE task_id = task.id) <> 1",
    );
    none(
        "rows of the audit log without their dead letter",
        "audit JOIN task ON task.id = task_id
         JOIN (SELECT no, version FROM open UNION ALL SELECT no, version FROM done) USING (no) WHERE version < 2",
    );
    none("rows of what came to nothing", "audit WHERE actor = 'late'");
    none("rows of no task", "audit WHERE task_id NOT IN (SELECT id FROM task)");
    let (verifier, _) = AuditFile::open(path).unwrap().check(Verifier::new(Mark::origin(), []), u32::MAX).unwrap();
    assert_eq!(verifier.finding(), None);
    none("finished tasks whose key does not", "key JOIN done ON no = task_no WHERE expires_at IS NULL");
}

async fn check_durable(path: &Path, durable: &BTreeMap<TaskId, u64>) {
    let store = make::open(path);
    for (id, version) in durable {
        let task = store.load(*id).await.unwrap().unwrap_or_else(|| panic!("{id} is lost"));
        assert!(task.version >= *version, "{id} is at {} and was at {version}", task.version);
    }
    assert_eq!(store.due(at(u64::MAX), 10_000).await.unwrap().len() as u64, store.counts().await.unwrap().open);
}

#[tokio::test]
async fn acknowledged_steps_survive_kill_9() {
    let rounds: u64 = std::env::var("STORE_CRASH_ROUNDS").map_or(20, |rounds| rounds.parse().unwrap());
    // On the real disk: the point of death should be in a real sync.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reach.db");
    let mut durable = BTreeMap::new();
    for n in 0..rounds {
        let lines = fastrand::usize(1..120);
        round(&path, n * 1_000_000, lines, &mut durable);
        check_whole(&path);
    }
    check_durable(&path, &durable).await;
    // The lock of a process that was killed is not left behind.
    assert!(tokio::time::timeout(Duration::from_secs(5), make::open(&path).check()).await.unwrap().is_ok());
}
