//! What is told of what went wrong: in words that say what to do, and with the exit code that a script can go by.

use std::net::TcpListener;

use serde_json::json;

use super::scripted::Server;
use super::{check, run};

#[test]
fn a_call_that_is_not_answered_in_time_is_no_gateway_that_is_away() {
    // It takes connections and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", mute.local_addr().unwrap());
    std::thread::spawn(move || mute.incoming().collect::<Vec<_>>());
    let ran = run(&url, &["add", "mcp", "files", "http://127.0.0.1:9/mcp", "--start-timeout", "1s"]);
    assert_eq!(ran.exit, Some(7), "{}", ran.stderr);
    // As long as the server may take to start, and a while for the answer.
    assert!(ran.stderr.contains("did not answer within 11s") && ran.stderr.contains("may go on"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("no gateway answers"), "{}", ran.stderr);
}

#[test]
fn https_where_http_is_spoken_is_told_as_that() {
    let server = Server::start(|_, _| Ok(json!({ "agents": [] })));
    let url = server.url.replace("http://", "https://");
    let ran = run(&url, &["get", "agents"]);
    assert_eq!(ran.exit, Some(6), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("is it http, and not https? then: --url {}", server.url)), "{}", ran.stderr);
    assert!(!ran.stderr.contains("reach-gateway serve"), "{}", ran.stderr);
}

#[test]
fn a_file_that_cannot_be_read_is_no_matter_of_help() {
    for args in [
        &["register", "no/such/card.json"] as &[&str],
        &["submit", "--intent", "x", "--params", "@no/such/file"],
        &["--token-file", "no/such/key", "get", "agents"],
        &["audit", "verify", "--data", "no/such/folder"],
    ] {
        let ran = run("http://127.0.0.1:1", args);
        assert_eq!(ran.exit, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("no/such") && !ran.stderr.contains("--help"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_flag_is_named_as_it_was_written() {
    let ran = run("http://127.0.0.1:1", &["reach", "--intent", "x", "--timeout", "1"]);
    assert_eq!(ran.exit, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--timeout <SPAN>") && !ran.stderr.contains("--wait"), "{}", ran.stderr);
}

#[test]
fn an_empty_list_is_told_by_what_it_is_a_list_of() {
    for (args, told) in [(&["dead-letters", "list"], "no dead letters\n"), (&["get", "tasks"], "no tasks\n")] {
        assert_eq!(check(args, Ok(json!({ "tasks": [] })), 0).stdout, told);
    }
}

#[test]
fn all_that_is_wrong_with_the_form_of_a_policy_is_told_before_anyone_is_asked() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let policy =
        "{\"version\": 0, \"across\": \"card\",\n \"rules\": [{\"ruling\": \"maybe\"}, {\"rulin\": \"deny\"}]}";
    std::fs::write(file.path(), policy).unwrap();
    let ran = run("http://127.0.0.1:1", &["policy", "put", &file.path().display().to_string()]);
    assert_eq!(ran.exit, Some(2), "{}", ran.stderr);
    for flaw in ["`across`: unknown variant `card`", "line 1", "`rules[0].ruling`: unknown variant `maybe`", "`rulin`"]
    {
        assert!(ran.stderr.contains(flaw), "{flaw}: {}", ran.stderr);
    }
}

#[test]
fn the_mistakes_of_a_configuration_are_told_once_and_in_words() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "open_max = \"many\"\ncluster = 7\n").unwrap();
    let ran = run("http://127.0.0.1:1", &["config", "check", &file.path().display().to_string()]);
    assert_eq!(ran.exit, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("expected a whole number") && !ran.stderr.contains("usize"), "{}", ran.stderr);
    assert!(ran.stderr.contains("is not right: 2 mistakes"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("open_max").count(), 1, "{}", ran.stderr);
}
