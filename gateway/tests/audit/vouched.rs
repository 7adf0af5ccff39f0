//! Somebody who may write the data folder and does not read what signs: he writes the log anew, cuts it off or puts an older one
//! in its place, and takes away what is told beside it. The gateway signs none of it. And whoever put a backup back in good faith
//! gets on.

use std::fs;
use std::path::{Path, PathBuf};

use agent_reach_sdk::Client;
use reach_core::audit::{Hash, Mark};
use rusqlite::Connection;
use serde_json::json;

use super::anew::{says, stopped, written_anew};
use super::{call, card, reachctl, rows};
use crate::victim::Victim;

const WHOLE: &str = "the audit log is whole";

/// Where the gateway keeps its files.
fn data(victim: &Victim) -> PathBuf {
    victim.database().parent().unwrap().to_owned()
}

fn sql(victim: &Victim, sql: &str) {
    Connection::open(victim.database()).unwrap().execute_batch(sql).unwrap();
}

/// Takes out rows after one, and whatever in the file remembers them.
fn cut(victim: &Victim, after: u64) {
    let cut = format!(
        "DROP TRIGGER audit_delete; DROP TRIGGER audit_checkpoint_delete; DELETE FROM audit WHERE seq > {after};
         DELETE FROM audit_checkpoint WHERE seq > {after}; UPDATE sqlite_sequence SET seq = {after} WHERE name = 'audit'"
    );
    sql(victim, &cut);
}

/// A stopped gateway, and its database as it was some rows ago.
async fn with_an_older_one(folder: &Path) -> (Victim, PathBuf) {
    let mut victim = stopped(folder).await;
    let older = folder.join("older.db");
    fs::copy(victim.database(), &older).unwrap();
    victim.again().await;
    let client = victim.client().await;
    call(&client, "agent/register", card(json!({}))).await;
    drop(client);
    victim.stop();
    (victim, older)
}

async fn kinds(client: &Client) -> Vec<String> {
    rows(client).await.into_iter().map(|row| row.kind).collect()
}

/// The gateway starts, works, and signs nothing; all that verifies says so, then and afterwards.
async fn is_not_signed(victim: &mut Victim, how: &str) {
    let (url, data) = (victim.url(), data(victim));
    let public = data.join("audit-key.pub");
    let offline = ["audit", "verify", "--data", data.to_str().unwrap()];
    let by_key = [&offline[..], &["--key", public.to_str().unwrap()]].concat();
    println!("{how}");
    says(&url, &offline, 1, "row");
    says(&url, &by_key, 1, "row");
    for _ in 0..2 {
        victim.again().await;
        let client = victim.client().await;
        call(&client, "agent/register", card(json!({}))).await;
        says(&url, &["audit", "verify"], 1, "row");
        says(&url, &["audit", "checkpoint"], 4, "nothing is signed");
        assert!(kinds(&client).await.contains(&"audit.doubted".to_owned()), "{how}");
        drop(client);
        victim.stop();
    }
    let log = fs::read_to_string(data.with_file_name("gateway.log")).unwrap();
    assert!(log.contains("it is not signed: see reachctl audit verify"), "{how}: {log}");
    says(&url, &offline, 1, "row");
    says(&url, &by_key, 1, "row");
}

#[tokio::test]
async fn who_takes_the_pin_away_has_nothing_signed_that_he_wrote_anew_cut_off_or_emptied() {
    for how in ["written anew", "emptied", "an older database", "an older pin"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut victim, older) = with_an_older_one(folder.path()).await;
        let pin = data(&victim).join("audit-pin.json");
        fs::remove_file(&pin).unwrap();
        match how {
            "written anew" => written_anew(&victim.database(), 0, None),
            "emptied" => cut(&victim, 0),
            "an older database" => drop(fs::copy(older, victim.database()).unwrap()),
            // He need not take it away: what was signed earlier is signed, too.
            _ => {
                victim.again().await;
                let (_, earlier) = reachctl(&victim.url(), &["audit", "checkpoint", "--json"]);
                let seq = rows(&victim.client().await).await.len() as u64;
                let client = victim.client().await;
                call(&client, "agent/register", card(json!({ "callable_by": ["*@desk"] }))).await;
                drop(client);
                victim.stop();
                cut(&victim, seq);
                fs::write(&pin, earlier).unwrap();
            }
        }
        is_not_signed(&mut victim, how).await;
    }
}

#[tokio::test]
async fn a_key_that_does_not_know_the_log_signs_none_of_it() {
    for how in ["taken away", "another file in its place", "renamed as an old one, and another in its place"] {
        let folder = tempfile::tempdir().unwrap();
        let mut victim = stopped(folder.path()).await;
        let folder = data(&victim);
        written_anew(&victim.database(), 0, None);
        fs::remove_file(folder.join("audit-pin.json")).unwrap();
        let renamed = if how.starts_with("renamed") { "audit-key.1" } else { "gone" };
        fs::rename(folder.join("audit-key"), folder.join(renamed)).unwrap();
        if !how.starts_with("taken") {
            // It is 32 secret bytes too.
            fs::rename(folder.join("operator-key"), folder.join("audit-key")).unwrap();
        }
        let (url, offline) = (victim.url(), ["audit", "verify", "--data", folder.to_str().unwrap()]);
        for _ in 0..2 {
            victim.again().await;
            says(&url, &["audit", "verify"], 1, "row");
            says(&url, &["audit", "checkpoint"], 4, "nothing is signed");
            victim.stop();
            says(&url, &offline, 1, "row");
        }
    }
}

#[tokio::test]
async fn a_backup_that_was_put_back_is_told_and_signed_again_once_an_administrator_accepts_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut victim, older) = with_an_older_one(folder.path()).await;
    let (url, data) = (victim.url(), data(&victim));
    let kept = data.join("audit-pin.json");
    let since = folder.path().join("kept.json");
    fs::copy(&kept, &since).unwrap();
    fs::copy(older, victim.database()).unwrap();
    victim.again().await;
    says(&url, &["audit", "verify"], 1, "the log ends before");
    says(&url, &["audit", "checkpoint"], 4, "not as it was signed last");
    says(&url, &["audit", "accept"], 0, "accepted, and signed");
    says(&url, &["audit", "accept"], 4, "nothing to accept");
    let client = victim.client().await;
    let accepted = rows(&client).await.into_iter().find(|row| row.kind == "audit.accepted").unwrap();
    assert!(accepted.actor == "operator" && accepted.reason.unwrap().contains("it was signed up to row"));
    call(&client, "agent/register", card(json!({}))).await;
    says(&url, &["audit", "checkpoint"], 0, "signed");
    let by_nobody = format!("at row {} an administrator accepted the log", accepted.seq);
    says(&url, &["audit", "verify"], 0, &by_nobody);
    says(&url, &["audit", "verify", "--since", since.to_str().unwrap()], 1, "the audit log is bad at row");
    drop(client);
    victim.stop_and_restart().await;
    says(&url, &["audit", "checkpoint"], 0, "signed");
    victim.stop();
    says(&url, &["audit", "verify", "--data", data.to_str().unwrap()], 0, &by_nobody);
}

#[tokio::test]
async fn what_a_killed_or_an_older_gateway_leaves_is_good() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = stopped(folder.path()).await;
    let (url, data) = (victim.url(), data(&victim));
    let offline = ["audit", "verify", "--data", data.to_str().unwrap()];
    let (key, pin) = (data.join("audit-key"), data.join("audit-pin.json"));
    let alone = || fs::read_to_string(&key).unwrap().lines().next().unwrap().to_owned();
    let first: Vec<u8> = {
        let file = Connection::open(victim.database()).unwrap();
        file.query_row("SELECT hash FROM audit WHERE seq = 1", [], |row| row.get(0)).unwrap()
    };
    let first = Mark { seq: 1, hash: Hash(first.try_into().unwrap()) };

    // Killed before it told what it signed; by an older one that told it in fewer places; with and without what it tells everybody.
    let behind = format!("{}\nsigned {} {}\n", alone(), first.seq, first.hash);
    for (left, has_pin) in
        [(behind, true), (alone(), true), (alone(), false), (fs::read_to_string(&key).unwrap(), false)]
    {
        fs::write(&key, left).unwrap();
        if !has_pin {
            fs::remove_file(&pin).unwrap();
        }
        says(&url, &offline, 0, WHOLE);
        victim.again().await;
        says(&url, &["audit", "verify"], 0, WHOLE);
        says(&url, &["audit", "checkpoint"], 0, "signed");
        assert!(pin.exists() && fs::read_to_string(&key).unwrap().contains("\nsigned "));
        victim.kill_and_restart().await;
        says(&url, &["audit", "verify"], 0, WHOLE);
        victim.stop();
    }
}

#[tokio::test]
async fn a_key_that_is_taken_away_while_the_gateway_runs_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    // Signed a moment ago, it signs nothing of its own accord for a while.
    let mut victim = stopped(folder.path()).await;
    victim.again().await;
    let (url, key) = (victim.url(), data(&victim).join("audit-key"));
    says(&url, &["audit", "checkpoint"], 0, "signed");
    fs::rename(&key, key.with_extension("kept")).unwrap();
    says(&url, &["audit", "checkpoint"], 4, "is not the one that this gateway left there");
    assert!(!key.exists(), "whoever has it cannot have it put behind");
    fs::rename(key.with_extension("kept"), &key).unwrap();
    says(&url, &["audit", "checkpoint"], 0, "signed");
}
