//! MCP servers: one that is written for it, as a process and over HTTP, of either era.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use reach_core::task::event::Trace;
use reach_gateway::adapter::mcp::McpAdapter;
use reach_gateway::adapter::{Adapter, Delivered};
use reach_gateway::clock::Clock;
use reach_gateway::outbound::Guard;
use reach_gateway::upstream::Upstreams;
use reach_schemas::{Delivery, Effect, Endpoint, ErrorCode, Protocol};
use serde_json::json;
use tokio::time::Instant;

use crate::contract::{LONG, Peers, delivery, done, endpoint, failed};

/// What the peer's tools say, as it says it.
const ECHO: &str =
    r#"{"content":[{"type":"text","text":"heard","vendor":1}],"structuredContent":{"n":1.10},"vendor":{"k":[1,2]}}"#;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/peer.py")
}

struct World {
    upstreams: Arc<Upstreams>,
    adapter: Arc<McpAdapter>,
    clock: Clock,
    folder: tempfile::TempDir,
    servers: Vec<Child>,
}

impl Drop for World {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl World {
    fn new() -> Self {
        let clock = Clock::start();
        let upstreams = Arc::new(Upstreams::new(clock, Guard::of_endpoints(Guard::loopback())));
        let adapter = Arc::new(McpAdapter::new(clock, Arc::clone(&upstreams)));
        Self { upstreams, adapter, clock, folder: tempfile::tempdir().unwrap(), servers: Vec::new() }
    }

    /// A server that the gateway starts.
    async fn process(&self, name: &str, flags: &[&str]) -> Endpoint {
        let state = self.folder.path().join(name);
        std::fs::create_dir_all(&state).unwrap();
        let script = script();
        let args = [&[script.to_str().unwrap(), "stdio", state.to_str().unwrap()], flags].concat();
        let spec = json!({ "name": name, "command": "python3", "args": args });
        let (server, _) = self.upstreams.put(serde_json::from_value(spec).unwrap(), false);
        // It is there before it is timed.
        server.catalogue(Instant::now() + LONG.into()).await.unwrap();
        endpoint(Protocol::Mcp, format!("server:{name}"))
    }

    /// A server that runs by itself.
    fn address(&mut self, name: &str, flags: &[&str]) -> Endpoint {
        let state = self.folder.path().join(name);
        std::fs::create_dir_all(&state).unwrap();
        let mut command = Command::new("python3");
        command.arg(script()).arg("http").arg(&state).args(flags).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        self.servers.push(server);
        endpoint(Protocol::Mcp, format!("http://127.0.0.1:{}/mcp", port.trim()))
    }

    async fn call(&self, to: &Endpoint, tool: &str, effect: Effect) -> Delivered {
        let delivery = delivery(self.clock, effect, r#"{"n": 1.10}"#, LONG);
        self.adapter.deliver(to, Delivery { capability: tool.parse().unwrap(), ..delivery }).await
    }

    fn requests(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name).join("requests")).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_keeps_the_contract() {
    let world = World::new();
    Peers {
        clock: world.clock,
        well: (world.process("well", &["--do-it", "echo", "--junk"]).await, done(ECHO)),
        silent: world.process("silent", &["--do-it", "hang"]).await,
        dying: world.process("dying", &["--do-it", "die"]).await,
        absent: endpoint(Protocol::Mcp, "server:absent"),
        adapter: Arc::clone(&world.adapter) as Arc<dyn Adapter>,
    }
    .keep_the_contract()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_keeps_the_contract() {
    let mut world = World::new();
    let well = world.address("well", &["--do-it", "echo"]);
    let silent = world.address("silent", &["--do-it", "hang"]);
    // It is met before it is timed.
    world.call(&silent, "echo", Effect::Read).await;
    let dying: Vec<Endpoint> = (0..2).map(|_| world.address("dying", &["--do-it", "die"])).collect();
    for dying in dying {
        let (failure, trace) = failed(world.call(&dying, "do_it", Effect::Write).await);
        assert_eq!((failure.code, trace), (ErrorCode::AgentLost, Trace::Unknown), "{failure:?}");
        // Its socket may outlive its last answer by a moment; what is lost there is no less unknown.
        let mut after = failed(world.call(&dying, "do_it", Effect::Write).await);
        for _ in 0..5 {
            if (after.0.code, after.1) == (ErrorCode::AgentLost, Trace::Unknown) {
                after = failed(world.call(&dying, "do_it", Effect::Write).await);
            }
        }
        assert_eq!((after.0.code, after.1), (ErrorCode::Unreachable, Trace::NotStarted), "{:?}", after.0);
    }
    assert_eq!(world.call(&well, "do_it", Effect::Write).await, done(ECHO));
    let late = delivery(world.clock, Effect::Read, "{}", reach_schemas::Span::from_ms(300));
    let (failure, trace) = failed(world.adapter.deliver(&silent, late).await);
    assert_eq!((failure.code, trace), (ErrorCode::Timeout, Trace::Unknown), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_carried_is_carried_byte_for_byte_in_either_era() {
    let mut world = World::new();
    for era in ["handshake", "stateless"] {
        let names = [format!("p-{era}"), format!("h-{era}")];
        let peers = [world.process(&names[0], &["--era", era]).await, world.address(&names[1], &["--era", era])];
        for (peer, name) in peers.iter().zip(&names) {
            assert_eq!(world.call(peer, "echo", Effect::Read).await, done(ECHO), "{name}");
            let requests = world.requests(name);
            let call = requests.lines().find(|line| line.contains("tools/call")).unwrap();
            assert!(call.contains(r#""name":"echo","arguments":{"n": 1.10}"#), "{call}");
            assert!(call.contains(r#""idempotencyKey":"order 17""#) && call.contains("00-0af7651916cd43dd"), "{call}");
            let is_stateless = call.contains("2026-07-28");
            assert_eq!(is_stateless, era == "stateless", "{call}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_no_is_told_from_a_servers_silence() {
    let world = World::new();
    let peer = world.process("peer", &[]).await;
    let (failure, trace) = failed(world.call(&peer, "fail", Effect::Read).await);
    assert_eq!((failure.code, trace), (ErrorCode::AgentFailed, Trace::FailedForGood));
    assert_eq!(failure.message, "no such thing");
    let data = failure.data.unwrap();
    assert_eq!(data.get(), r#"{"content":[{"type":"text","text":"no such thing"}],"isError":true,"vendor":7}"#);
    for (effect, expected) in [(Effect::Read, Trace::Unknown), (Effect::Write, Trace::Unknown)] {
        let (failure, trace) = failed(world.call(&peer, "die", effect).await);
        assert_eq!((failure.code, trace), (ErrorCode::AgentLost, expected));
    }
    assert_eq!(world.call(&peer, "echo", Effect::Read).await, done(ECHO), "it was started again");
    let delivery = delivery(world.clock, Effect::Read, "[1]", LONG);
    let (failure, trace) = failed(world.adapter.deliver(&peer, delivery).await);
    assert_eq!((failure.code, trace), (ErrorCode::ParamsMismatch, Trace::FailedForGood));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_is_called_off() {
    let mut world = World::new();
    let peers = [("p", world.process("p", &[]).await), ("h", world.address("h", &[]))];
    for (name, peer) in &peers {
        world.call(peer, "echo", Effect::Read).await;
        let short = Delivery {
            capability: "hang".parse().unwrap(),
            ..delivery(world.clock, Effect::Read, "{}", reach_schemas::Span::from_ms(200))
        };
        let (failure, _) = failed(world.adapter.deliver(peer, short).await);
        assert_eq!(failure.code, ErrorCode::Timeout, "{failure:?}");
        // The word is sent apart from whoever gave up.
        let told = tokio::time::timeout(LONG.into(), async {
            while !world.requests(name).contains("notifications/cancelled") {
                tokio::task::yield_now().await;
            }
        });
        told.await.unwrap_or_else(|_| panic!("{name} was not told: {}", world.requests(name)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_here_answers_for_a_person_or_a_model() {
    let mut world = World::new();
    for peer in [world.process("p", &[]).await, world.address("h", &[])] {
        let Delivered::Done { result, .. } = world.call(&peer, "ask", Effect::Read).await else { panic!("no answer") };
        assert!(result.get().contains("-32601"), "{result:?}");
    }
}
