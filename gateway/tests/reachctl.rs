//! `reachctl` as a process: what it prints where, and how it exits, against a gateway that answers by script, and
//! against a real one.
#![expect(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "reachctl/meant.rs"]
mod meant;
#[path = "reachctl/real.rs"]
mod real;
#[path = "reachctl/scripted.rs"]
mod scripted;
#[path = "reachctl/told.rs"]
mod told;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use scripted::{Answer, Server, refusal, task};

const TASK: &str = "0198a000-0000-7000-8000-000000000001";

fn reachctl(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reachctl"));
    command.args(args).env_remove("AGENT_REACH_TOKEN").env("AGENT_REACH_URL", url).env("COLUMNS", "100");
    command.stdin(Stdio::null());
    command
}

struct Ran {
    exit: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            exit: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn run(url: &str, args: &[&str]) -> Ran {
    reachctl(url, args).output().unwrap().into()
}

/// Runs against a gateway that gives every call this answer.
#[track_caller]
fn check(args: &[&str], answer: Answer, exit: i32) -> Ran {
    let server = Server::start(move |_, _| answer.clone());
    let ran = run(&server.url, args);
    assert_eq!(ran.exit, Some(exit), "{args:?}\n{}\n{}", ran.stdout, ran.stderr);
    ran
}

#[test]
fn exit_codes_tell_what_kind_of_no_it_was() {
    let get = ["get", "task", TASK];
    for (code, exit) in [
        ("task_not_found", 3),
        ("agent_not_found", 3),
        ("forbidden", 4),
        ("no_candidate", 4),
        ("idempotency_key_reused", 4),
        ("invalid_params", 4),
        ("invalid_config", 4),
        ("wrong_phase", 4),
        ("store_full", 5),
        ("internal", 70),
        ("unreachable", 5),
    ] {
        let ran = check(&get, Err(refusal(code, "it says why")), exit);
        assert!(ran.stdout.is_empty() && ran.stderr.contains("it says why"), "{code}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("reachctl errors {code}")), "{}", ran.stderr);
    }
}

#[test]
fn what_is_full_is_asked_again_and_then_told() {
    let answer = Err(refusal("overloaded", "full"));
    let server = Server::start(move |_, _| answer.clone());
    assert_eq!(run(&server.url, &["get", "agents"]).exit, Some(5));
    assert_eq!(server.calls().len(), 3);
}

#[test]
fn no_gateway_is_told_with_what_to_do() {
    let ran = run("http://127.0.0.1:1", &["get", "agents"]);
    assert_eq!(ran.exit, Some(6));
    assert!(ran.stderr.contains("no gateway answers at http://127.0.0.1:1"), "{}", ran.stderr);
    assert!(ran.stderr.contains("reach-gateway serve") && ran.stderr.contains("--url"), "{}", ran.stderr);
    let ran = run("http://127.0.0.1:1", &["--json", "get", "agents"]);
    let error: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(error["data"]["code"], "no_gateway");
}

#[test]
fn what_is_wrong_on_the_command_line_is_told_before_anyone_is_asked() {
    for args in [
        &["submit"] as &[&str],
        &["submit", "--intent", "x", "--params", "{"],
        &["submit", "--intent", "x", "--params", "@no/such/file"],
        &["register", "no/such/card.json"],
        &["get", "agent", "Not An Agent"],
        &["errors", "no_such_error"],
        &["--url", "nonsense", "get", "agents"],
    ] {
        let ran = run("http://127.0.0.1:1", args);
        assert_eq!(ran.exit, Some(2), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty());
    }
}

#[test]
fn a_refusal_shows_what_was_near_and_with_json_the_error_object() {
    let mut error = refusal("no_candidate", "no agent can take it now");
    error["data"]["retry_after"] = json!("5s");
    error["data"]["suggestions"] = json!([{
        "agent_id": "news@media", "capability": "headlines", "description": "News.", "similarity": 0.4,
        "lacks": [{"reason": "full", "detail": "2 of 2 seats are taken"}],
    }]);
    let ran = check(&["submit", "--intent", "x"], Err(error.clone()), 4);
    for part in ["headlines", "news@media", "full: 2 of 2 seats are taken", "try again in 5s"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let ran = check(&["submit", "--intent", "x", "--json"], Err(error.clone()), 4);
    let told: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((&told, ran.stdout.as_str()), (&error, ""));
}

#[test]
fn submit_prints_id_and_phase_and_sends_what_the_flags_say() {
    let server = Server::start(|_, _| Ok(task(TASK, "submitted")));
    let flags = [
        "submit",
        "--to",
        "news@media",
        "--capability",
        "headlines",
        "--intent",
        "today",
        "--params",
        r#"{"n": 1.10}"#,
        "--mode",
        "queue",
        "--priority",
        "9",
        "--key",
        "k1",
        "--deadline",
        "90s",
        "--tries",
        "2",
        "--from",
        "editor@media",
        "--namespace",
        "media",
        "--on-failed",
        "retry",
    ];
    let ran = run(&server.url, &flags);
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), format!("{TASK} submitted\n").as_str()));
    let (method, params) = server.calls().remove(0);
    assert_eq!(method, "task/submit");
    let expected = json!({
        "to_agent": "news@media", "capability": "headlines", "intent": "today", "params": {"n": 1.1},
        "mode": "queue", "priority": 9, "idempotency_key": "k1", "deadline": "1m 30s", "tries": 2,
        "from_agent": "editor@media", "namespace": "media", "on_failed": "retry", "on_in_flight": "join",
    });
    assert_eq!(serde_json::from_str::<Value>(&params).unwrap(), expected);
    assert!(params.contains(r#"{"n": 1.10}"#), "the parameters go out as they were written: {params}");
}

#[test]
fn a_submit_without_a_key_gets_one_so_that_it_can_be_sent_again() {
    let server = Server::start(|_, _| Ok(task(TASK, "submitted")));
    run(&server.url, &["submit", "--intent", "x"]);
    let (_, params) = server.calls().remove(0);
    let params: Value = serde_json::from_str(&params).unwrap();
    assert_eq!(params["idempotency_key"].as_str().map(str::len), Some(36));
}

#[test]
fn params_are_read_from_a_file_and_from_standard_input() {
    let server = Server::start(|_, _| Ok(task(TASK, "submitted")));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[1.0]\n").unwrap();
    let from_file = format!("@{}", file.path().display());
    assert_eq!(run(&server.url, &["submit", "--intent", "x", "--params", &from_file]).exit, Some(0));
    let mut child = reachctl(&server.url, &["submit", "--intent", "x", "--params", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"[2.0]").unwrap();
    assert!(child.wait().unwrap().success());
    let calls = server.calls();
    assert!(calls[0].1.contains("[1.0]") && calls[1].1.contains("[2.0]"), "{calls:?}");
}

/// The result as the agent wrote it: digits, order and blanks are its own.
const RESULT: &str = r#"{"z": 1.10, "a": 12345678901234567890123}"#;

fn ending_as(phase: &'static str) -> impl Fn(&str, &str) -> Answer + Send + Sync + 'static {
    move |method, _| match method {
        "task/wait" => {
            let mut end = task(TASK, phase);
            if phase == "completed" {
                end["outcome"] = json!("REACH_OK");
                end["result"] = json!("RESULT");
            } else {
                end["failure"] = json!({"code": "agent_failed", "message": "it broke"});
            }
            Ok(end)
        }
        _ => Ok(task(TASK, "routed")),
    }
}

#[test]
fn a_result_comes_out_letter_by_letter_and_alone_on_standard_output() {
    let server = Server::start_raw(ending_as("completed"), &[("\"RESULT\"", RESULT)]);
    for args in [
        &["submit", "--intent", "x", "--wait"] as &[&str],
        &["submit", "--intent", "x", "--wait", "5s"],
        &["reach", "--intent", "x"],
        &["wait", TASK],
    ] {
        let ran = run(&server.url, args);
        assert_eq!((ran.exit, ran.stdout), (Some(0), format!("{RESULT}\n")), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(TASK), "{}", ran.stderr);
    }
    let ran = run(&server.url, &["--json", "reach", "--intent", "x"]);
    assert!(ran.stdout.contains(RESULT) && ran.stderr.is_empty(), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["phase"], "completed");
}

#[test]
fn a_task_that_ended_badly_exits_with_1_and_says_why() {
    for phase in ["failed", "expired", "cancelled", "dead_lettered"] {
        let server = Server::start(ending_as(phase));
        let ran = run(&server.url, &["reach", "--intent", "x"]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("agent_failed: it broke"), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("reachctl explain {TASK}")), "{}", ran.stderr);
        let ran = run(&server.url, &["--json", "wait", TASK]);
        assert_eq!(ran.exit, Some(1));
        assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["phase"], phase);
    }
}

#[test]
fn a_wait_that_is_over_says_that_the_task_goes_on() {
    let server = Server::start(|_, _| Ok(task(TASK, "accepted")));
    let ran = run(&server.url, &["wait", TASK, "--timeout", "300ms"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(7), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("reachctl wait {TASK}")), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn an_interrupted_wait_says_how_to_get_back_to_the_task() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let server = Server::start(|_, _| Ok(task(TASK, "accepted")));
    let mut child = reachctl(&server.url, &["wait", TASK]).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains(TASK), "it tells what it waits for: {line}");
    // The second call is the wait itself, so that the signal finds it waiting.
    server.until_called(2);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(rest.contains("goes on") && rest.contains(&format!("reachctl wait {TASK}")), "{rest}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let many: Vec<Value> = (0..2000).map(|_| task(TASK, "completed")).collect();
    let server = Server::start(move |_, _| Ok(json!({ "tasks": many })));
    let mut child = reachctl(&server.url, &["get", "tasks", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn json_is_the_wire_object_with_fields_that_this_version_does_not_know() {
    let ran = check(&["--json", "get", "agents"], Ok(json!({"agents": [], "of_tomorrow": 1.5})), 0);
    assert_eq!(ran.stdout, "{\"agents\":[],\"of_tomorrow\":1.5}\n");
    let ran = check(&["call", "any/method", r#"{"a": 1}"#], Ok(json!([1, 2])), 0);
    assert_eq!(ran.stdout, "[1,2]\n");
}

#[test]
fn what_is_watched_is_printed_when_it_changes() {
    let server = Server::start_counting(|call| {
        let phase = ["submitted", "submitted", "routed", "completed"][call.min(3)];
        Ok(task(TASK, phase))
    });
    let ran = run(&server.url, &["get", "task", TASK, "--watch", "--interval", "10ms"]);
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    let phases: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split(' ').nth(3)).collect();
    assert_eq!(phases, ["submitted", "routed", "completed"], "{}", ran.stdout);
    assert!(!ran.stdout.contains('\x1b'));

    let ran = run(&server.url, &["--json", "get", "task", TASK, "--watch", "--interval", "10ms"]);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["phase"], "completed");
}

#[test]
fn a_watch_outlasts_a_gateway_that_is_full_and_ends_with_one_that_refuses() {
    let server = Server::start_counting(|call| match call {
        0 => Ok(task(TASK, "submitted")),
        1..=3 => Err(refusal("overloaded", "full")),
        4 => Ok(task(TASK, "routed")),
        _ => Err(refusal("task_not_found", "it is gone")),
    });
    let ran = run(&server.url, &["get", "task", TASK, "--watch", "--interval", "10ms"]);
    assert_eq!(ran.exit, Some(3), "{}", ran.stderr);
    assert!(ran.stdout.contains("routed"), "{}", ran.stdout);
    assert!(ran.stderr.contains("looking again") && ran.stderr.contains("it is gone"), "{}", ran.stderr);
}

#[test]
fn dead_letters_are_sent_again_and_those_that_are_not_change_the_exit_code() {
    let server = Server::start(|_, _| {
        let failure = json!({"code": "wrong_phase", "message": "the task is completed, not a dead letter"});
        Ok(json!({"redriven": [], "refused": [{"task_id": TASK, "failure": failure}], "matched": 1, "remaining": 0,
            "as_of": "2026-11-30T08:00:00Z"}))
    });
    let ran = run(&server.url, &["dead-letters", "redrive", TASK, "--deadline", "1h"]);
    assert_eq!(ran.exit, Some(4));
    assert!(ran.stdout.contains("not a dead letter"), "{}", ran.stdout);
    run(&server.url, &["dead-letters", "redrive", "--all", "--limit", "5", "--dry-run"]);
    let calls = server.calls();
    let params = |at: usize| serde_json::from_str::<Value>(&calls[at].1).unwrap();
    assert_eq!(params(0), json!({"task_ids": [TASK], "deadline": "1h"}));
    assert_eq!(params(1), json!({"all": true, "limit": 5, "dry_run": true}));
}

#[test]
fn a_redrive_is_called_until_all_are_sent_that_were_there_at_first() {
    let other = TASK.replace("0001", "0002");
    let second = other.clone();
    let server = Server::start_counting(move |call| {
        let (task, remaining) = if call == 0 { (TASK, 1) } else { (second.as_str(), 0) };
        Ok(json!({"redriven": [task], "matched": 2 - call, "remaining": remaining, "rate": 10,
            "spread_until": format!("2030-01-01T00:00:0{call}Z"), "as_of": format!("2026-11-30T08:00:0{call}Z")}))
    });
    let ran = run(&server.url, &["--json", "dead-letters", "redrive", "--all"]);
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr, "1 of 2 sent again, the last of them goes at 2030-01-01T00:00:00.000Z\n");
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&told["redriven"], &told["matched"], &told["remaining"]),
        (&json!([TASK, other]), &json!(2), &json!(0))
    );
    assert_eq!(told["spread_until"], "2030-01-01T00:00:01.000Z");
    let calls = server.calls();
    let params = |at: usize| serde_json::from_str::<Value>(&calls[at].1).unwrap();
    assert_eq!(params(0), json!({"all": true, "limit": 500}));
    let next = json!({"ended_before": "2026-11-30T08:00:00.000Z", "limit": 500, "rate": 10});
    assert_eq!(params(1), next, "at the same rate, and none that is given up on again");
    assert_eq!(calls.len(), 2);
}

#[test]
fn a_card_goes_out_as_it_stands_in_the_file() {
    let server = Server::start(|_, _| {
        Ok(json!({"agent_id": "a@b", "cluster": "c", "generation": 1, "unchanged": false, "capabilities": ["x"],
            "endpoints": [], "heartbeat_due_at": "2026-11-30T08:00:00Z", "warnings": ["no description"]}))
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"agent_id": "a@b", "slip_of_the_pen": 1.0}"#).unwrap();
    let ran = run(&server.url, &["register", &file.path().display().to_string()]);
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("a@b is registered") && ran.stdout.contains("no description"), "{}", ran.stdout);
    assert!(server.calls()[0].1.contains(r#""slip_of_the_pen": 1.0"#));
}

#[test]
fn status_tells_health_and_agents() {
    let server = Server::start(|_, _| Ok(json!({"agents": []})));
    let ran = run(&server.url, &["status"]);
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("well") && ran.stdout.contains("scripted"), "{}", ran.stdout);
}

#[test]
fn help_errors_and_completions_need_no_gateway() {
    let nowhere = "http://127.0.0.1:1";
    assert!(run(nowhere, &["--help"]).stdout.contains("130"));
    assert!(run(nowhere, &["errors", "no_candidate"]).stdout.starts_with("# `no_candidate`"));
    assert!(run(nowhere, &["errors"]).stdout.contains("idempotency_key_reused"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(nowhere, &["completions", shell]).stdout.contains("dead-letters"), "{shell}");
    }
}
