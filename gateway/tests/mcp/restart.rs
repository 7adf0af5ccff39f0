//! A gateway that is killed and started again under clients that are connected.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::world::{Host, initialize};
use crate::victim::Victim;

const CONFIGURATION: &str = r#"
[[agents]]
agent_id = "cat@tools"
endpoints = [{ protocol = "process", address = "cat" }]
[[agents.capabilities]]
name = "echo"
effect = "write"
"#;

/// A client that speaks with the bridge, one message a line.
struct Bridged {
    child: tokio::process::Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Bridged {
    fn start(url: &str) -> Self {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_reach-gateway"));
        command.args(["mcp", "--connect", url]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn say(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{text}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line =
            tokio::time::timeout(Duration::from_secs(30), self.lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_old_clients_begin_anew_and_others_notice_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::start(folder.path(), CONFIGURATION).await;
    let url = format!("{}/mcp", victim.url());
    let host = Host::new(url.clone());
    let session = host.session("2025-11-25").await;
    let mut bridged = Bridged::start(&url);
    bridged.say(&initialize("2025-06-18")).await;
    assert_eq!(bridged.hear().await["result"]["protocolVersion"], "2025-06-18");
    bridged.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let pay = json!({ "name": "echo", "arguments": { "n": 1 }, "idempotencyKey": "k" });
    let first = host.ask_alone(1, "tools/call", pay.clone()).await.last()["result"].clone();

    victim.kill_and_restart().await;
    let gone = session.ask(2, "tools/list", json!({})).await;
    assert_eq!(gone.status, 404, "{gone:?}");
    assert_eq!(host.session("2025-11-25").await.ask(3, "ping", json!({})).await.status, 200);
    // The key outlives the gateway.
    let again = host.ask_alone(4, "tools/call", pay).await.last()["result"].clone();
    assert_eq!(again["_meta"]["agent-reach/reachId"], first["_meta"]["agent-reach/reachId"], "{again}");
    assert_eq!(again["_meta"]["agent-reach/replayed"], true, "{again}");
    // The first word after the loss may be answered by it; the bridge is back for the next.
    for id in 10..20 {
        bridged.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#)).await;
        let answer = bridged.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        if answer["result"]["tools"][0]["name"] == "echo" {
            return;
        }
    }
    panic!("the bridge did not come back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_but_mcp_is_on_standard_output_and_the_end_of_the_input_is_the_end() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("gateway.toml"), CONFIGURATION).unwrap();
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_reach-gateway"));
    command.args(["mcp", "--config"]).arg(folder.path().join("gateway.toml"));
    command.arg("--data").arg(folder.path().join("data")).env("RUST_LOG", "trace");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "echo", "arguments": { "n": 1 } } });
    let text = format!("{}\nno json\n{call}\n", initialize("2024-11-05"));
    input.write_all(text.as_bytes()).await.unwrap();
    drop(input);
    let output = tokio::time::timeout(Duration::from_secs(30), child.wait_with_output()).await.unwrap().unwrap();
    assert!(output.status.success());
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut told: Vec<_> = lines.iter().map(|line| (line["id"].clone(), line.get("error").is_some())).collect();
    told.sort_by_key(|(id, _)| id.as_i64());
    assert_eq!(told, [(Value::Null, true), (json!(0), false), (json!(2), false)], "{lines:?}");
}
