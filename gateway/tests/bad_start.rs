//! A gateway that cannot start says what is wrong, where, and what to do, and leaves what it found as it was.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use victim::Victim;

fn start(arguments: &[&str], data: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reach-gateway"))
        .arg("serve")
        .args(arguments)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn check(output: &Output, code: i32, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

#[tokio::test]
async fn a_second_gateway_on_the_same_data_is_told_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Victim::start(folder.path(), "").await;
    let second = start(&["--listen", "127.0.0.1:0"], &folder.path().join("data"));
    check(&second, 1, &["is in use by process", "name another data directory"]);
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let first = Victim::start(folder.path(), "").await;
    let listen = format!("127.0.0.1:{}", first.port);
    check(&start(&["--listen", &listen], &folder.path().join("other")), 1, &[&listen, "--listen"]);
}

#[test]
fn a_foreign_file_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reach.db");
    let text = "this is a diary and no database, and it is long enough to be one ".repeat(20);
    std::fs::write(&file, &text).unwrap();
    check(&start(&["--listen", "127.0.0.1:0"], folder.path()), 1, &["is not a store of Agent-Reach", "reach.db"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn all_mistakes_of_a_configuration_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("gateway.toml");
    std::fs::write(&config, "listen = \"0.0.0.0:7340\"\ndeadline = \"soon\"\n").unwrap();
    let output = start(&["--config", &config.display().to_string()], folder.path());
    check(&output, 2, &["listen: 0.0.0.0:7340", "deadline: \"soon\"", "\"30s\""]);
    check(&start(&["--config", "/no/such/file.toml"], folder.path()), 2, &["/no/such/file.toml"]);
}
