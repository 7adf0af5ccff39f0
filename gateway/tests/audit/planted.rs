//! Somebody who puts a trigger into the file that takes rows away as they come: no row is wrong then, and one is missing.

use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::json;

use super::anew::{says, stopped};
use super::{refused, rows_of};

const SILENCES: &str =
    "CREATE TRIGGER zz BEFORE INSERT ON audit WHEN NEW.kind = 'call.refused' BEGIN SELECT RAISE(IGNORE); END";

#[tokio::test]
async fn a_trigger_that_silences_rows_is_found_the_gateway_does_not_start_on_it_and_none_runs_while_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = stopped(folder.path()).await;
    let (url, data) = (victim.url(), victim.database().parent().unwrap().to_owned());
    let offline = ["audit", "verify", "--data", data.to_str().unwrap()];
    let words = "the trigger \"zz\" on \"audit\" is not the gateway's";
    let sql = |sql: &str| Connection::open(victim.database()).unwrap().execute_batch(sql).unwrap();

    sql(SILENCES);
    says(&url, &offline, 1, words);
    let mut start = Command::new(env!("CARGO_BIN_EXE_reach-gateway"));
    start.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).stdin(Stdio::null());
    let started = start.output().unwrap();
    let said = String::from_utf8_lossy(&started.stderr);
    assert!(started.status.code() == Some(1) && said.contains(words) && said.contains("DROP TRIGGER"), "{said}");
    sql("DROP TRIGGER zz");
    says(&url, &offline, 0, "the audit log is whole");

    victim.again().await;
    Connection::open(victim.database()).unwrap().execute_batch(SILENCES).unwrap();
    let client = victim.client().await;
    refused(&client, "task/get", json!({ "task_id": "0198a000-0000-7000-8000-000000000001" })).await;
    rows_of(&client, "call.refused", 1).await;
    says(&url, &["audit", "verify"], 1, words);
}
