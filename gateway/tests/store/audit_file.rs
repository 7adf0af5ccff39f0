//! An audit log in a real file, and somebody who gets at the file: each time the first bad row is named. And the file of an
//! older gateway, and a log of many rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use reach_core::audit::{Checkpoint, Event, Flaw, Mark, Verifier};
use reach_gateway::audit::Signer;
use reach_gateway::store::sqlite::AuditFile;
use reach_gateway::store::{AuditLog, Command, Store};
use reach_schemas::AuditKind;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::audit::event;
use crate::make::{self, at, directory, insert, task, tell};

/// Row `n`, whose actor is a text that is nowhere else in the file.
fn marked(n: u64) -> Event {
    Event::new(at(n), AuditKind::AgentRegistered, format!("actor-{n:05}@ns")).on("target").because("generation 1")
}

/// A file with so many rows, which nobody has open; and a checkpoint of row `pinned`.
async fn file(rows: u64, pinned: u64) -> (TempDir, PathBuf, Checkpoint) {
    let directory = directory();
    let path = directory.path().join("reach.db");
    let store = make::open(&path);
    let signer = Signer::of_seed(&[7; 32]).unwrap();
    let mut checkpoint = None;
    for n in 1..=rows {
        tell(&store, Command::Audit(vec![marked(n)])).await;
        if n == pinned {
            checkpoint = Some(signer.sign(store.audit_head().await.unwrap(), at(n)));
        }
    }
    drop(store);
    (directory, path, checkpoint.unwrap())
}

/// What a stranger does who has the file and knows SQL.
fn tampered(path: &Path, sql: &str) {
    let file = Connection::open(path).unwrap();
    let triggers = "DROP TRIGGER audit_update; DROP TRIGGER audit_delete; DROP TRIGGER audit_insert;";
    file.execute_batch(&format!("{triggers} {sql}")).unwrap();
}

fn found(path: &Path, pins: &[Mark]) -> Option<(u64, Flaw, Option<u64>)> {
    let verifier = Verifier::new(Mark::origin(), pins.iter().copied());
    let (verifier, is_end) = AuditFile::open(path).unwrap().check(verifier, u32::MAX).unwrap();
    assert!(is_end);
    verifier.finding().map(|found| (found.seq, found.flaw, found.other))
}

#[tokio::test]
async fn a_row_of_which_one_byte_was_flipped_is_named() {
    let (_directory, path, checkpoint) = file(40, 40).await;
    assert_eq!(found(&path, &[checkpoint.mark]), None);
    let mut bytes = fs::read(&path).unwrap();
    let name = b"actor-00017@ns";
    let place = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[place + 3] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(found(&path, &[]), Some((17, Flaw::Changed, None)));
    // It is shown as it is now, and nothing falls over it.
    let rows = AuditFile::open(&path).unwrap().list(&reach_gateway::store::AuditQuery {
        after: 16,
        limit: 1,
        ..Default::default()
    });
    assert_eq!(rows.unwrap()[0].actor, "actnr-00017@ns");
}

#[tokio::test]
async fn every_value_of_a_row_is_guarded_and_its_hash_too() {
    let (_directory, path, _) = file(5, 5).await;
    let whole = fs::read(&path).unwrap();
    let changes = [
        "at = at + 1",
        "kind = 'agent.drained'",
        "actor = 'operator'",
        "target = NULL",
        "outcome = 'REJECT_ACL'",
        "code = ''",
        "reason = 'generation 2'",
        "task_id = x'00'",
        "digest = x''",
        "count = 2",
        "hash = zeroblob(32)",
        "hash = x'00'",
    ];
    for change in changes {
        fs::write(&path, &whole).unwrap();
        tampered(&path, &format!("UPDATE audit SET {change} WHERE seq = 3"));
        assert_eq!(found(&path, &[]), Some((3, Flaw::Changed, None)), "{change}");
    }
}

#[tokio::test]
async fn a_row_that_was_dropped_is_named() {
    let (_directory, path, _) = file(20, 20).await;
    tampered(&path, "DELETE FROM audit WHERE seq = 8");
    assert_eq!(found(&path, &[]), Some((8, Flaw::Missing, Some(8))));
    tampered_again(&path, "DELETE FROM audit WHERE seq < 5");
    assert_eq!(found(&path, &[]), Some((1, Flaw::Missing, Some(4))));
    // Whoever numbers the rest anew hides nothing.
    tampered_again(&path, "UPDATE audit SET seq = seq - 4 WHERE seq < 8");
    assert_eq!(found(&path, &[]).map(|found| found.0), Some(1));
}

fn tampered_again(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn two_rows_that_were_swapped_are_named() {
    let (_directory, path, _) = file(20, 20).await;
    tampered(
        &path,
        "UPDATE audit SET seq = 99 WHERE seq = 6; UPDATE audit SET seq = 6 WHERE seq = 15; UPDATE audit SET seq = 15 WHERE seq = 99",
    );
    assert_eq!(found(&path, &[]), Some((6, Flaw::Swapped, Some(15))));
}

#[tokio::test]
async fn a_tail_that_was_cut_off_is_named() {
    let (_directory, path, checkpoint) = file(20, 18).await;
    tampered(&path, "DELETE FROM audit WHERE seq > 12");
    // SQLite remembers the highest number,
    assert_eq!(found(&path, &[]), Some((13, Flaw::TailCut, Some(20))));
    // and if somebody thought of that too, the checkpoint does.
    tampered_again(&path, "UPDATE sqlite_sequence SET seq = 12 WHERE name = 'audit'");
    assert_eq!(found(&path, &[]), None);
    assert_eq!(found(&path, &[checkpoint.mark]), Some((13, Flaw::TailCut, Some(18))));
}

#[tokio::test]
async fn a_log_that_goes_on_after_its_end_was_cut_off_is_not_the_one_that_was_signed() {
    let (_directory, path, checkpoint) = file(20, 18).await;
    tampered(&path, "DELETE FROM audit WHERE seq > 12; UPDATE sqlite_sequence SET seq = 12 WHERE name = 'audit'");
    let store = make::open(&path);
    for n in 100..120 {
        tell(&store, Command::Audit(vec![event(n)])).await;
    }
    drop(store);
    assert_eq!(found(&path, &[]), None);
    assert_eq!(found(&path, &[checkpoint.mark]), Some((1, Flaw::Rewritten, Some(18))));
}

#[tokio::test]
async fn a_file_that_is_torn_is_told_from_the_row_on_that_cannot_be_read() {
    let (_directory, path, _) = file(400, 400).await;
    let mut bytes = fs::read(&path).unwrap();
    let name = b"actor-00300@ns";
    let place = bytes.windows(name.len()).position(|window| window == name).unwrap();
    // The head of the page.
    let page = place / 4096 * 4096;
    bytes[page..page + 64].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let (seq, flaw, _) = found(&path, &[]).unwrap();
    assert!(flaw == Flaw::Unreadable && (200..=300).contains(&seq), "{seq} {flaw:?}");
}

#[tokio::test]
async fn nobody_changes_a_row_through_sql() {
    let (_directory, path, checkpoint) = file(3, 3).await;
    let store = make::open(&path);
    tell(&store, Command::PinAudit(checkpoint)).await;
    drop(store);
    let file = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE audit SET actor = 'nobody' WHERE seq = 2",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE seq = 3",
        "REPLACE INTO audit SELECT * FROM audit WHERE seq = 2",
        "INSERT INTO audit SELECT 2, at, kind, actor, target, outcome, code, reason, task_id, digest, count, hash FROM audit",
        "INSERT INTO audit SELECT 2, at, kind, 'x', target, outcome, code, reason, task_id, digest, count, hash FROM audit
         WHERE seq = 2 ON CONFLICT DO UPDATE SET actor = 'x'",
        "UPDATE audit_checkpoint SET hash = x'00'",
        "DELETE FROM audit_checkpoint",
        "REPLACE INTO audit_checkpoint SELECT * FROM audit_checkpoint",
    ] {
        let refused = file.execute(sql, []).expect_err(sql).to_string();
        assert!(refused.contains("never changed") || refused.contains("never taken away") || refused.contains("only added"), "{sql}: {refused}");
    }
    drop(file);
    assert_eq!(found(&path, &[]), None);
}

#[tokio::test]
async fn the_file_of_an_older_gateway_gets_a_log_and_keeps_its_tasks() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    let older = Connection::open(&path).unwrap();
    older.execute_batch(include_str!("../../src/store/sqlite/layout_1.sql")).unwrap();
    older.execute_batch(include_str!("../../src/store/sqlite/layout_2.sql")).unwrap();
    older.pragma_update(None, "application_id", 0x4167_5265).unwrap();
    older.pragma_update(None, "user_version", 2).unwrap();
    drop(older);
    let none = AuditFile::open(&path).unwrap_err().to_string();
    assert!(none.contains("without an audit log"), "{none}");
    let store = make::open(&path);
    tell(&store, insert(task(1)).audited(vec![event(1)])).await;
    assert_eq!(store.audit_head().await.unwrap().seq, 1);
    assert_eq!(store.load(make::id(1)).await.unwrap(), Some(task(1)));
}

#[tokio::test]
async fn a_running_gateways_file_can_be_checked_meanwhile() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    let store = make::open(&path);
    for n in 1..=10 {
        tell(&store, Command::Audit(vec![event(n)])).await;
        assert_eq!(found(&path, &[store.audit_head().await.unwrap()]), None);
        assert_eq!(AuditFile::open(&path).unwrap().head().unwrap().seq, n);
    }
}

/// The figure for a million rows is `examples/audit_bench.rs`; here the same way is gone with fewer.
#[tokio::test]
async fn many_rows_are_verified_a_page_at_a_time() {
    const ROWS: u64 = 50_000;
    let directory = directory();
    let path = directory.path().join("reach.db");
    let store = make::open(&path);
    for first in (1..=ROWS).step_by(1000) {
        tell(&store, Command::Audit((first..first + 1000).map(event).collect())).await;
    }
    let began = Instant::now();
    let (mut verifier, mut is_end, mut pages) = (Verifier::new(Mark::origin(), []), false, 0);
    while !is_end {
        (verifier, is_end) = store.audit_check(verifier, 5_000).await.unwrap();
        pages += 1;
    }
    println!("{ROWS} rows verified in {:?}", began.elapsed());
    assert_eq!((verifier.rows(), verifier.finding(), pages), (ROWS, None, 10));
    drop(store);
    tampered(&path, &format!("UPDATE audit SET count = 7 WHERE seq = {}", ROWS - 1));
    assert_eq!(found(&path, &[]), Some((ROWS - 1, Flaw::Changed, None)));
}
