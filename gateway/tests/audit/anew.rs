//! Somebody who writes the log anew and knows how: the chain is right, and the checkpoints are of a key of his own, or gone.

use std::path::Path;

use reach_core::audit::{Cell, Hash, Mark};
use reach_gateway::audit::Signer;
use reach_schemas::Timestamp;
use rusqlite::Connection;
use rusqlite::types::Value as Sql;
use serde_json::json;

use super::{CONFIGURATION, call, card, reachctl};
use crate::victim::Victim;

const ROW: &str = "at, kind, actor, target, outcome, code, reason, task_id, digest, count";

fn cell(value: &Sql) -> Cell<'_> {
    match value {
        Sql::Null => Cell::Null,
        Sql::Integer(number) => Cell::Integer(*number),
        Sql::Text(text) => Cell::Text(text.as_bytes()),
        Sql::Blob(bytes) => Cell::Blob(bytes),
        Sql::Real(_) => panic!("no column holds one"),
    }
}

/// Takes one agent out of the log, makes all rows older, and chains and signs what is left, with triggers as they were.
pub(super) fn written_anew(database: &Path, older_ms: i64, signer: Option<&Signer>) {
    let file = Connection::open(database).unwrap();
    let list = |sql: &str, columns: usize| -> Vec<Vec<Sql>> {
        let mut statement = file.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| (0..columns).map(|at| row.get::<_, Sql>(at)).collect());
        rows.unwrap().map(Result::unwrap).collect()
    };
    let text = |value: &Sql| if let Sql::Text(text) = value { text.clone() } else { panic!("no text: {value:?}") };
    let triggers = list("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'audit%'", 2);
    let pinned = list("SELECT seq FROM audit_checkpoint", 1);
    let rows = list(&format!("SELECT {ROW} FROM audit WHERE target IS NOT 'reader@lab' ORDER BY seq"), 10);
    for trigger in &triggers {
        file.execute_batch(&format!("DROP TRIGGER {}", text(&trigger[0]))).unwrap();
    }
    file.execute_batch("DELETE FROM audit; DELETE FROM audit_checkpoint").unwrap();
    let mut marks = vec![Mark::origin()];
    for mut row in rows {
        if let Sql::Integer(at) = &mut row[0] {
            *at -= older_ms;
        }
        let cells: Vec<Cell<'_>> = row.iter().map(cell).collect();
        let mark = marks[marks.len() - 1].next(&cells.try_into().ok().unwrap());
        let mut values = vec![Sql::Integer(mark.seq.cast_signed())];
        values.extend(row);
        values.push(Sql::Blob(mark.hash.0.to_vec()));
        let sql = format!("INSERT INTO audit (seq, {ROW}, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        file.execute(&sql, rusqlite::params_from_iter(values)).unwrap();
        marks.push(mark);
    }
    let last = marks.len() - 1;
    file.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'audit'", [i64::try_from(last).unwrap()]).unwrap();
    for (signer, row) in signer.iter().flat_map(|signer| pinned.iter().map(move |row| (signer, row))) {
        let Sql::Integer(seq) = row[0] else { panic!("no number: {row:?}") };
        let mark = marks[usize::try_from(seq).unwrap().min(last)];
        let made = signer.sign(mark, Timestamp::from_ms(1_700_000_000_000));
        let sql = "INSERT OR REPLACE INTO audit_checkpoint (seq, hash, at, key, signature) VALUES (?, ?, ?, ?, ?)";
        let (hash, at) = (mark.hash.0.to_vec(), made.at.as_ms().cast_signed());
        let values = (mark.seq.cast_signed(), hash, at, made.key.to_vec(), made.signature.to_vec());
        file.execute(sql, values).unwrap();
    }
    for trigger in &triggers {
        file.execute_batch(&text(&trigger[1])).unwrap();
    }
}

/// A gateway that has written and signed a few rows, and was stopped.
pub(super) async fn stopped(folder: &Path) -> Victim {
    let mut victim = Victim::start(folder, CONFIGURATION).await;
    let client = victim.client().await;
    call(&client, "agent/register", card(json!({}))).await;
    call(&client, "audit/checkpoint", json!({})).await;
    call(&client, "agent/deregister", json!({ "agent_id": "reader@lab" })).await;
    victim.stop();
    victim
}

#[track_caller]
pub(super) fn says(url: &str, args: &[&str], exit: i32, words: &str) {
    let (exited, said) = reachctl(url, args);
    assert!(exited == exit && said.contains(words), "{args:?} {exited} {said}");
}

#[tokio::test]
async fn who_writes_the_log_anew_and_signs_it_with_a_key_of_his_own_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = stopped(folder.path()).await;
    let (url, data) = (victim.url(), victim.database().parent().unwrap().to_owned());
    let offline = ["audit", "verify", "--data", data.to_str().unwrap()];
    says(&url, &offline, 0, "the audit log is whole");
    let own = std::fs::read_to_string(data.join("audit-key.pub")).unwrap();
    let stranger = Signer::of_seed(&[9; 32]).unwrap();
    written_anew(&victim.database(), 0, Some(&stranger));
    std::fs::remove_file(data.join("audit-pin.json")).unwrap();
    says(&url, &offline, 1, "is not of the key that signs this log");
    // What is told beside it may be his as well; a key that was kept elsewhere is not.
    says(&url, &[&offline[..], &["--key", own.trim()]].concat(), 1, "is not of the key that signs this log");
    victim.again().await;
    says(&url, &["audit", "verify"], 1, "the audit log is bad");
}

#[tokio::test]
async fn a_log_that_was_written_anew_is_not_signed_and_one_that_is_not_signed_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = stopped(folder.path()).await;
    let (url, data) = (victim.url(), victim.database().parent().unwrap().to_owned());
    let offline = ["audit", "verify", "--data", data.to_str().unwrap()];
    written_anew(&victim.database(), 3_600_000, None);
    let pin = data.join("audit-pin.json");
    let kept = std::fs::read(&pin).unwrap();
    says(&url, &offline, 1, "the audit log is bad");
    victim.again().await;
    says(&url, &["audit", "verify"], 1, "the audit log is bad");
    says(&url, &["audit", "checkpoint"], 4, "not as it was signed last");
    victim.stop();
    assert_eq!(std::fs::read(&pin).unwrap(), kept, "it was not signed over");
    std::fs::remove_file(&pin).unwrap();
    says(&url, &offline, 1, "the audit log is bad");
    // Of a log that was signed at its first row only, all else is not.
    let first: Vec<u8> = {
        let file = Connection::open(victim.database()).unwrap();
        file.query_row("SELECT hash FROM audit WHERE seq = 1", [], |row| row.get(0)).unwrap()
    };
    let key = std::fs::read_to_string(data.join("audit-key")).unwrap();
    let signed = format!("{}\nsigned 1 {}\n", key.lines().next().unwrap(), Hash(first.try_into().unwrap()));
    std::fs::write(data.join("audit-key"), signed).unwrap();
    says(&url, &offline, 1, "not signed");
    says(&url, &[&offline[..], &["--accept-unsigned"]].concat(), 0, "not signed");
}

#[tokio::test]
async fn a_key_that_was_changed_in_order_makes_nothing_bad() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = stopped(folder.path()).await;
    let (url, data) = (victim.url(), victim.database().parent().unwrap().to_owned());
    std::fs::rename(data.join("audit-key"), data.join("audit-key.1")).unwrap();
    victim.again().await;
    says(&url, &["audit", "checkpoint"], 0, "signed");
    says(&url, &["audit", "verify"], 0, "the audit log is whole");
    victim.stop();
    let offline = ["audit", "verify", "--data", data.to_str().unwrap()];
    says(&url, &offline, 0, "the audit log is whole");
    std::fs::remove_file(data.join("audit-key.1")).unwrap();
    says(&url, &offline, 1, "is not of the key that signs this log");
}
