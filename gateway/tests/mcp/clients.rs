//! Clients that are not ours drive the gateway, over Streamable HTTP, over the bridge from standard input to a gateway that
//! runs, and over a gateway of their own on standard input.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::world::{agent, capability, conforming};
use crate::common::node::Node;
use crate::common::{Running, python, start};

const GATEWAY: &str = env!("CARGO_BIN_EXE_reach-gateway");

/// A gateway with an agent that echoes, one that is strict about its arguments, and one that tells of its progress.
pub(super) struct World {
    pub(super) running: Running,
    _agents: Vec<agent_reach_sdk::AgentHandle>,
}

pub(super) async fn world() -> World {
    let running = start().await;
    let url = running.url("");
    let echo = |task: agent_reach_sdk::Task, _: agent_reach_sdk::Context| async move { task.params::<Value>() };
    let strict = json!({ "name": "strict", "description": "Books a table.", "input_schema":
        { "type": "object", "properties": { "seats": { "type": "integer" } }, "required": ["seats"] } });
    let own = agent(&url, "e@x")
        .capability(capability(&json!({ "name": "echo", "description": "Says it again.", "effect": "read" })), echo)
        .capability(capability(&strict), echo)
        .start()
        .await
        .unwrap();
    let conforming = conforming(&url).await;
    World { running, _agents: vec![own, conforming] }
}

/// Runs a client and checks what it saw.
async fn check(mut client: Command, revision: Option<&str>, has_progress: bool) {
    let printed = tokio::task::spawn_blocking(move || python::run(&mut client, "")).await.unwrap().unwrap();
    let seen: Value = serde_json::from_str(printed.lines().last().unwrap_or_default()).unwrap();
    let tools: Vec<_> = seen["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(tools.contains(&"echo") && tools.contains(&"strict"), "{seen}");
    assert_eq!((&seen["echo"], &seen["refused"]), (&json!({ "a": 1 }), &json!(true)), "{seen}");
    if let Some(revision) = revision {
        assert_eq!(seen["revision"], revision, "{seen}");
    }
    if has_progress {
        assert!(seen["progress"].as_u64().is_some_and(|count| count >= 2), "{seen}");
    }
}

fn script(python: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/clients").join(name));
    command
}

/// Has a client speak over HTTP and over the bridge.
async fn over_both(make: impl Fn() -> Command, revision: Option<&str>, has_progress: bool) {
    let world = world().await;
    let url = world.running.url("/mcp");
    let mut http = make();
    http.args(["http", &url]);
    check(http, revision, has_progress).await;
    let mut stdio = make();
    stdio.args(["stdio", GATEWAY, "mcp", "--connect", &url]);
    check(stdio, revision, has_progress).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pypi_mcp_1_30() {
    let python = python::with("mcp-1.30", &["mcp==1.30.0"]);
    over_both(|| script(&python, "legacy.py"), Some("2025-11-25"), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pypi_mcp_2_3_in_both_eras() {
    let python = python::with("mcp-2.3", &["mcp==2.3.0"]);
    for (mode, revision) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let make = || {
            let mut command = script(&python, "modern.py");
            command.arg(mode);
            command
        };
        over_both(make, Some(revision), true).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pypi_fastmcp_4() {
    let python = python::with("fastmcp-4", &["fastmcp==4.2.3"]);
    over_both(|| script(&python, "fast.py"), None, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn npm_sdk() {
    let node = Node::with("mcp-sdk", &["@modelcontextprotocol/sdk@1.32.2"]);
    over_both(|| node.run_module("sdk.mjs", include_str!("clients/sdk.mjs")), None, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn npm_inspector() {
    let node = Node::with("mcp-inspector", &["@modelcontextprotocol/inspector@0.15.0"]);
    let world = world().await;
    let url = world.running.url("/mcp");
    let over_http = [url.as_str(), "--transport", "http"];
    for way in [&[GATEWAY, "mcp", "--connect", &url][..], &over_http[..]] {
        let inspect = |args: &[&str]| -> Value {
            let mut command = node.run("@modelcontextprotocol/inspector/cli/build/cli.js");
            command.arg("--cli").args(way).args(args);
            serde_json::from_str(&python::run(&mut command, "").unwrap()).unwrap()
        };
        let (listed, called) = tokio::task::block_in_place(|| {
            let listed = inspect(&["--method", "tools/list"]);
            (listed, inspect(&["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "a=1"]))
        });
        assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"), "{listed}");
        assert!(called["isError"] == false && called["structuredContent"]["a"].to_string().contains('1'), "{called}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_of_its_own_on_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let configuration = r#"
[[agents]]
agent_id = "cat@tools"
endpoints = [{ protocol = "process", address = "cat" }]
[[agents.capabilities]]
name = "echo"
effect = "read"
[[agents.capabilities]]
name = "strict"
input_schema = { type = "object", properties = { seats = { type = "integer" } }, required = ["seats"] }
"#;
    std::fs::write(folder.path().join("gateway.toml"), configuration).unwrap();
    let python = python::with("mcp-2.3", &["mcp==2.3.0"]);
    for (mode, revision) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let mut client = script(&python, "modern.py");
        client.args([mode, "stdio", GATEWAY, "mcp", "--config"]).arg(folder.path().join("gateway.toml"));
        client.arg("--data").arg(folder.path().join(mode));
        check(client, Some(revision), false).await;
    }
}
