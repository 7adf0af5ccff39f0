//! Commands with a fault each; and with one of them, all that the runner writes: the report for people, JUnit, the exit
//! codes, and what a file of expected failures does.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;

use std::path::Path;
use std::process::{Command, Output};

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
    assert!(explained.contains("POST /agent/register") && explained.contains("PRODUCT R2"), "{explained}");
}
