//! Commands with a fault each; and with one of them, all that the runner writes: the report for people, JUnit, the exit
//! codes, and what a file of expected failures does.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use common::built::project;
use common::{file, run};
use serde_json::{Value, json};

fn line(fault: &str) -> String {
    format!("python3 {} {fault}", project("conformance/tests/wrong/command.py"))
}

/// The card and the samples of the command, in files.
fn files(folder: &Path) -> (String, String) {
    let card = json!({
        "agent_id": "napper@made", "endpoints": [{ "protocol": "process", "address": "nap" }],
        "capabilities": [{
            "name": "nap", "description": "Sleeps.", "effect": "read",
            "input_schema": { "type": "object", "required": ["ms"], "properties": { "ms": { "type": "integer", "maximum": 5000 } }, "examples": [{ "ms": 5 }] },
        }],
    });
    let samples = json!({ "nap": { "params": { "ms": 5 }, "slow": { "ms": 4500 } } });
    let path = |name: &str, content| file(folder, name, &content).display().to_string();
    (path("card.json", card), path("samples.json", samples))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_a_command_is_found_by_its_own_requirement_and_by_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (card, samples) = files(folder.path());
    let table: &[(&str, &[&str])] = &[
        ("none", &[]),
        ("exits_1", &["command-refuses-with-its-code"]),
        ("ignores_term", &["command-ends-when-told"]),
        ("chatters", &["result-is-json"]),
    ];
    for (fault, expected) in table {
        let line = line(fault);
        let done = run(&["agent", "--process", &line, "--card", &card, "--samples", &samples]).done().await;
        assert_eq!(done.with("failed"), *expected, "{fault}: {}", done.failures());
    }
}

fn cli(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reach-conformance")).args(arguments).output().unwrap()
}

#[test]
fn a_failure_is_told_with_its_exchange_and_an_expected_one_is_held_to() {
    let folder = tempfile::tempdir().unwrap();
    let (card, _) = files(folder.path());
    let line = line("exits_1");
    let junit = folder.path().join("junit.xml").display().to_string();
    let expected = folder.path().join("known.txt").display().to_string();
    let base = ["agent", "--process", &line, "--card", &card, "--only", "input_schema,process", "--level", "must"];
    let check = |more: &[&str], code: i32, told: &[&str]| {
        let output = cli(&[&base[..], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}{}", String::from_utf8_lossy(&output.stderr));
        for part in told {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    };
    let failure =
        ["FAILED must command-refuses-with-its-code", "found     exit code 1", "to do     Exit with 65", "command.py"];
    check(&["--junit", &junit], 1, &failure);
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("<testcase name=\"command-refuses-with-its-code\"") && xml.contains("<failure"), "{xml}");
    check(&[], 1, &["passed 1 of 2 (must 1 of 2)"]);
    std::fs::write(&expected, "command-refuses-with-its-code # until the next release\n").unwrap();
    check(&["--expected-failures", &expected], 0, &["failed, as expected must command-refuses-with-its-code"]);
    std::fs::write(&expected, "command-refuses-with-its-code\nrefuses-bad-input\n").unwrap();
    check(&["--expected-failures", &expected], 1, &["UNEXPECTED must refuses-bad-input"]);
}

#[test]
fn a_profile_in_which_nothing_ran_is_an_error_and_a_slip_of_the_pen_another() {
    let folder = tempfile::tempdir().unwrap();
    let (card, _) = files(folder.path());
    let line = line("none");
    // The one capability that has an output_schema is one for which no parameters can be made.
    let mut text: Value = serde_json::from_str(&std::fs::read_to_string(&card).unwrap()).unwrap();
    text["capabilities"].as_array_mut().unwrap().push(json!({
        "name": "spell", "effect": "read", "output_schema": { "type": "string" },
        "input_schema": { "type": "string", "pattern": "^abracadabra$" },
    }));
    let card = file(folder.path(), "other.json", &text).display().to_string();
    let idle = ["agent", "--process", &line, "--card", &card, "--only", "output_schema"];
    let output = cli(&idle);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("NOTHING RAN in the profile output_schema"), "{text}");
    let output = cli(&["agent", "--process", &line, "--card", &card, "--only", "no-such-thing"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-thing"));
    let listed = String::from_utf8(cli(&["list"]).stdout).unwrap();
    let explained = String::from_utf8(cli(&["explain", "registers"]).stdout).unwrap();
    assert!(listed.contains("gw-alike") && listed.contains("registers"), "{listed}");
    assert!(
        explained.contains("POST /agent/register") && explained.contains("docs/write-an-agent.md, The card"),
        "{explained}"
    );
}

/// The one that registers over HTTP, with this command to start it.
fn started(start: &str, timeout: &str) -> (String, Duration) {
    let began = Instant::now();
    let output = cli(&[
        "agent",
        "--http",
        "--listen",
        "127.0.0.1:0",
        "--start",
        start,
        "--timeout",
        timeout,
        "--only",
        "registers",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    (text, began.elapsed())
}

#[test]
fn an_agent_that_ends_before_it_registers_is_told_of_at_once_with_its_last_words() {
    let start = r#"python3 -c "import sys; sys.exit('no module named flask')""#;
    let (text, took) = started(start, "60s");
    for part in ["FAILED must registers", "your agent ended with exit code 1", "no module named flask"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(took < Duration::from_secs(50), "it was waited for: {took:?}");
    let (text, _) = started("sh -c 'kill -9 $$'", "60s");
    assert!(text.contains("your agent ended with signal: 9"), "{text}");
    assert!(text.contains("wrote nothing to standard error"), "{text}");
}

#[test]
fn an_agent_that_calls_nobody_is_told_where_the_address_is() {
    // One whose command ends well may still be started elsewhere: it is waited for.
    for start in ["sleep 30", "true"] {
        let (text, took) = started(start, "2s");
        assert!(text.contains("nothing came to http://127.0.0.1:") && text.contains("AGENT_REACH_URL"), "{text}");
        assert!(took >= Duration::from_secs(2), "{start} was given its time: {took:?}");
    }
}

#[test]
fn a_port_that_is_taken_names_the_option_for_another() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (way, flag) in
        [(&["--http", "--listen"][..], " --listen 127.0.0.1:0"), (&["--ws-listen"][..], " --ws-listen 127.0.0.1:0")]
    {
        let output = cli(&[&["agent"][..], way, &[&address]].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(&address) && told.contains(flag), "{told}");
    }
}
