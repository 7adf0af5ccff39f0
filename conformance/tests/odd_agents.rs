//! Agents that are right in a way that a runner may take for wrong, and ones that go wrong in the middle of a run: what is
//! said of them, with which exit code, and how soon.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::built::project;
use common::{Done, run};

fn start(how: &str) -> String {
    format!("python3 {} {how}", project("conformance/tests/odd/agent.py"))
}

async fn check(how: &str, flags: &[&str]) -> Done {
    let arguments = ["agent", "--http", "--listen", "127.0.0.1:0", "--start", &start(how)];
    let done = run(&[&arguments[..], flags].concat()).done().await;
    println!("{how}: {} in {:?}, skipped {:?}", done.report["badge"], done.took, done.with("skipped"));
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_takes_a_number_for_a_time_is_not_clogged_by_the_number() {
    for how in ["waits_ms", "waits_s"] {
        let done = check(how, &[]).await;
        assert_eq!(done.failures(), "", "{how}");
        assert_eq!(done.code, 0, "{how}: idle {}", done.report["idle_profiles"]);
        assert!(done.took < Duration::from_secs(30), "{how}: {:?}", done.took);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_at_the_edge_of_what_numbers_hold_break_nothing_and_what_is_not_tried_is_told() {
    let done = check("bounds", &[]).await;
    assert_eq!(done.failures(), "");
    assert_eq!(done.code, 0, "{}", done.report);
    let notes = done.report["notes"].to_string();
    assert!(notes.contains("below, code"), "{notes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_profile_is_told_of_whatever_else_is_not_as_it_should_be() {
    let done = check("idle", &[]).await;
    assert_eq!(done.with("failed"), ["card-says-what-it-does"], "{}", done.failures());
    assert_eq!((done.code, &done.report["idle_profiles"][0]), (3, &"cancel".into()));
    let done = check("idle", &["--fail-on", "should"]).await;
    assert_eq!(done.code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_answers_no_more_is_told_of_once_and_soon() {
    for (how, cause) in [("hangs", "two in a row came to nothing"), ("ends", "your agent ended with exit code 3")] {
        let done = check(how, &[]).await;
        assert_eq!(done.with("failed"), ["answers-work"], "{how}: {}", done.failures());
        assert!(done.failures().contains(cause), "{how}: {}", done.failures());
        assert!(done.took < Duration::from_secs(30), "{how}: {:?}", done.took);
    }
}

fn cli(arguments: &[&str]) -> Output {
    let base = ["agent", "--http", "--listen", "127.0.0.1:0", "--start"];
    Command::new(env!("CARGO_BIN_EXE_reach-conformance")).args(base).args(arguments).output().unwrap()
}

#[test]
fn a_report_in_xml_can_be_read_whatever_the_agent_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.xml").display().to_string();
    let output = cli(&[&start("odd_letters"), "--junit", &path]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let read =
        Command::new("python3").args(["-c", "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])", &path]).output();
    let read = read.unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn a_slip_of_the_pen_is_told_before_the_run_and_no_report_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let expected = folder.path().join("expected").display().to_string();
    let misused = |flags: &[&str], told: &str| {
        let began = Instant::now();
        let output = cli(&[&[start("idle").as_str()][..], flags].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(told) && !text.contains("listening"), "{text}");
        assert!(began.elapsed() < Duration::from_secs(5));
    };
    misused(&["--junit", "/no/such/folder/report.xml"], "/no/such/folder/report.xml cannot be written");
    misused(&["--expected-failures", &expected], "cannot be read");
    std::fs::write(&expected, "gw-batches\n").unwrap();
    misused(&["--expected-failures", &expected], "line 1: nothing of the kind that is checked here");
    // What was expected to fail, and was not looked at, is no pass.
    std::fs::write(&expected, "stops-when-cancelled\n").unwrap();
    let start = start("idle");
    let with = cli(&[&start, "--expected-failures", &expected, "--json"]);
    let without = cli(&[&start, "--json"]);
    let passed =
        |output: &Output| serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["summary"].clone();
    assert_eq!(passed(&with), passed(&without));
    assert_eq!(with.status.code(), Some(1));
}

#[test]
fn a_runner_that_is_told_to_stop_ends_the_agent_that_it_started() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid").display().to_string();
        let start = format!("{} {path}", start("idle"));
        let mut runner = Command::new(env!("CARGO_BIN_EXE_reach-conformance"))
            .args(["agent", "--http", "--listen", "127.0.0.1:0", "--start", &start])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let agent = loop {
            match std::fs::read_to_string(&path) {
                Ok(id) if !id.is_empty() => break id,
                _ => assert!(Instant::now() < until, "the agent was not started"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let kill = Command::new("kill").args([&format!("-{signal}"), &runner.id().to_string()]).status();
        assert!(kill.unwrap().success());
        assert_eq!(runner.wait().unwrap().code(), Some(code), "after SIG{signal}");
        // A process that is gone, or that nobody has looked after yet, does nothing.
        let is_there = || {
            let status = std::fs::read_to_string(format!("/proc/{agent}/stat")).unwrap_or_default();
            !status.is_empty() && !status.contains(") Z ")
        };
        let until = Instant::now() + Duration::from_secs(3);
        while is_there() {
            assert!(Instant::now() < until, "after SIG{signal}, the agent {agent} was left behind");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
