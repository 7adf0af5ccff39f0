//! The Rust SDK of MCP as a client, over Streamable HTTP and over the bridge on standard input, in both eras.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RoleClient, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};

use super::clients::world;

const PATIENCE: Duration = Duration::from_secs(60);

/// A host that counts what it is told of progress.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl ClientHandler for Counting {
    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

type Client = RunningService<RoleClient, Counting>;

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    let call = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments));
    tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap()
}

/// What every client must see.
async fn check(client: Client, told: Counting, revision: &ProtocolVersion) {
    assert_eq!(client.peer_info().unwrap().protocol_version, *revision);
    let tools = client.list_all_tools().await.unwrap();
    for name in ["echo", "strict"] {
        assert!(tools.iter().any(|tool| tool.name == name), "{name}: {tools:?}");
    }
    let said = call(&client, "echo", json!({ "a": 1 })).await;
    assert_eq!((said.is_error, said.structured_content), (Some(false), Some(json!({ "a": 1 }))));
    let refused = call(&client, "strict", json!({ "seats": "two" })).await;
    assert_eq!(refused.is_error, Some(true), "{refused:?}");
    call(&client, "test_tool_with_progress", json!({})).await;
    assert!(told.0.load(Ordering::Relaxed) >= 2, "{:?}", told.0);
    client.cancel().await.unwrap();
}

fn modes() -> [(ClientLifecycleMode, ProtocolVersion); 3] {
    let newest = || vec![ProtocolVersion::V_2026_07_28];
    let auto = ClientLifecycleMode::Auto { preferred_versions: newest(), legacy_version: None };
    [
        (ClientLifecycleMode::Initialize, ProtocolVersion::V_2025_11_25),
        (ClientLifecycleMode::Discover { preferred_versions: newest() }, ProtocolVersion::V_2026_07_28),
        (auto, ProtocolVersion::V_2026_07_28),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = world().await;
    for (mode, revision) in modes() {
        let (told, transport) =
            (Counting::default(), StreamableHttpClientTransport::from_uri(world.running.url("/mcp")));
        let client = tokio::time::timeout(PATIENCE, told.clone().serve_with_lifecycle(transport, mode));
        check(client.await.unwrap().unwrap(), told, &revision).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_standard_input() {
    let world = world().await;
    for (mode, revision) in modes() {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_reach-gateway"));
        command.args(["mcp", "--connect", &world.running.url("/mcp")]);
        let (told, transport) = (Counting::default(), TokioChildProcess::new(command).unwrap());
        let client = tokio::time::timeout(PATIENCE, told.clone().serve_with_lifecycle(transport, mode));
        check(client.await.unwrap().unwrap(), told, &revision).await;
    }
}
