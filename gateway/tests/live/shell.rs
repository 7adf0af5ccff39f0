//! `reachctl config` as a process: what it prints where, and how it exits.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::world::World;

struct Ran {
    exit: Option<i32>,
    stdout: String,
    stderr: String,
}

fn reachctl(url: &str, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reachctl"));
    command.args(args).env("AGENT_REACH_URL", url).env("COLUMNS", "120").stdin(Stdio::null());
    let output = command.output().unwrap();
    Ran {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[track_caller]
fn check(ran: &Ran, exit: i32, parts: &[&str]) {
    assert_eq!(ran.exit, Some(exit), "{}\n{}", ran.stdout, ran.stderr);
    let text = if exit == 0 { &ran.stdout } else { &ran.stderr };
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_file_is_checked_without_a_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    let nowhere = "http://127.0.0.1:1";
    let written = |text: &str| std::fs::write(&file, text).unwrap();
    let path = |file: &Path| file.display().to_string();
    written("open_max = 3\n[[agents]]\nagent_id = \"a@b\"\ncapabilities = [{ name = \"c\" }]\n");
    check(&reachctl(nowhere, &["config", "check", &path(&file)]), 0, &["is right: 1 agent, 0 MCP servers"]);
    written("open_max = 0\nlissen = 1\n");
    let both = ["open_max: is 0", "unknown field `lissen`", "invalid_config"];
    check(&reachctl(nowhere, &["config", "check", &path(&file)]), 4, &both);
    let ran = reachctl(nowhere, &["config", "check", &path(&file), "--json"]);
    let error: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((ran.exit, error["code"].as_i64()), (Some(4), Some(1030)), "{error}");
    assert_eq!(error["data"]["details"]["mistakes"].as_array().unwrap().len(), 2, "{error}");
    check(&reachctl(nowhere, &["config", "check", "/no/such/file"]), 4, &["/no/such/file cannot be read"]);
    check(&reachctl(nowhere, &["config", "check"]), 2, &["FILE"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_tells_what_changed_and_a_show_what_is_in_force() {
    let world = World::start("open_max = 3\n").await;
    let url = world.victim.url();
    world.write("open_max = 4\n[[agents]]\nagent_id = \"a@b\"\ncapabilities = [{ name = \"c\" }]\n");
    let told = ["open_max: 3 -> 4", "agent a@b is added", "nothing was changed"];
    check(&reachctl(&url, &["config", "reload", "--dry-run"]), 0, &told);
    check(&reachctl(&url, &["config", "reload"]), 0, &["open_max: 3 -> 4", "agent a@b is added", "was taken on"]);
    check(&reachctl(&url, &["config", "reload"]), 0, &["nothing is otherwise than before"]);
    let ran = reachctl(&url, &["config", "show", "open_max", "--json"]);
    let view: Value = serde_json::from_str(&ran.stdout).unwrap();
    let expected = serde_json::json!([{ "key": "open_max", "value": 4, "from": "file", "applies": "live" }]);
    assert_eq!((ran.exit, &view["keys"]), (Some(0), &expected));
    let all = reachctl(&url, &["config", "show"]);
    check(&all, 0, &["command line", "waiting.fast", "KEY", "gateway.toml"]);
    assert!(all.stdout.lines().any(|line| line.starts_with("listen") && line.contains("restart")), "{}", all.stdout);
    world.write("deadline = \"soon\"\nopen_max = 0\n");
    check(&reachctl(&url, &["config", "reload"]), 4, &["- deadline: \"soon\"", "- open_max: is 0", "was not taken on"]);
    world.write("[telemetry]\nlog_format = \"json\"\n");
    let told = ["telemetry.log_format: \"text\" is in force, the file has \"json\"; only a restart changes it"];
    check(&reachctl(&url, &["config", "reload"]), 4, &told);
    check(&reachctl("http://127.0.0.1:1", &["config", "reload"]), 6, &["no gateway answers"]);
}
