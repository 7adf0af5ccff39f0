//! Many sessions, many listeners, many tools: what they cost, and that none is lost.

use std::time::{Duration, Instant};

use agent_reach_sdk::{Context, HandlerError, Task};
use futures_util::future::join_all;
use reach_gateway::identity::Pass;
use serde_json::{Value, json};

use super::world::{Host, agent, alone, capability, echo, initialize};
use crate::common::start;

/// For how long the listeners are held; the long form is asked for by the environment.
fn listen_for() -> Duration {
    let seconds = std::env::var("REACH_LISTEN_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(17))
}

/// How much memory this process has, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_sessions_that_are_abandoned_cost_little_and_are_forgotten() {
    use reach_gateway::gateway::Settings;
    use reach_gateway::mcp::server::{Server, SessionLimits};
    let stop = tokio_util::sync::CancellationToken::new();
    let gateway = crate::common::gateway(Settings::default(), &stop);
    let unused_max = Duration::from_secs(1);
    let sessions = SessionLimits { unused_max, ..SessionLimits::default() };
    let settings = reach_gateway::mcp::server::Settings { sessions, ..Default::default() };
    let server = std::sync::Arc::new(Server::new(&gateway, &settings));
    let headers = reqwest::header::HeaderMap::new();
    let open = async || {
        let (line, _notices) = reach_gateway::mcp::server::Line::channel(stop.child_token());
        server
            .post(&Pass::Open, &headers, initialize("2025-11-25").as_bytes(), &line)
            .await
            .opened
            .unwrap()
            .id()
            .to_owned()
    };
    open().await;
    let before = resident();
    for _ in 0..10_000 {
        open().await;
    }
    let held = resident().saturating_sub(before);
    println!("10,000 sessions: {held} KiB, {} bytes each", held * 1024 / 10_000);
    assert_eq!(server.sessions(), 10_001);
    assert!(held < 20 * 1024, "{held} KiB for 10,000 sessions");
    let began = Instant::now();
    let running = std::sync::Arc::clone(&server);
    let sweeping = tokio::spawn(async move { running.run().await });
    while server.sessions() > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} are still there", server.sessions());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    sweeping.abort();
    let left = resident().saturating_sub(before);
    println!("after they were forgotten: {left} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_listeners_are_all_told() {
    let running = start().await;
    let host = Host::of(&running);
    let listen = (0..1000).map(|id| {
        let (headers, body) =
            alone(id, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
        let usual = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
        let mut request = host.request(reqwest::Method::POST, &usual);
        for (name, value) in &headers {
            request = request.header(*name, value);
        }
        request.body(body).send()
    });
    let mut streams: Vec<_> = join_all(listen).await.into_iter().map(Result::unwrap).collect();
    let read = async |stream: &mut reqwest::Response, wanted: &str| {
        let mut text = String::new();
        while !text.contains(wanted) {
            let chunk = stream.chunk().await.unwrap().expect("no stream ends");
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        text
    };
    join_all(streams.iter_mut().map(|stream| read(stream, "acknowledged"))).await;
    let began = Instant::now();
    let mut kept_alive = 0;
    while began.elapsed() < listen_for() {
        let texts = join_all(streams.iter_mut().map(|stream| read(stream, ":\n\n"))).await;
        assert!(texts.iter().all(|text| text.trim() == ":"), "nothing but comments comes");
        kept_alive += 1;
    }
    let _agent = echo(&running, "e@x", &[json!({ "name": "new" })]).await;
    join_all(streams.iter_mut().map(|stream| read(stream, "notifications/tools/list_changed"))).await;
    println!("1,000 listeners for {:?}, kept alive {kept_alive} times, none lost", began.elapsed());
    assert!(kept_alive > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_right_tool_of_five_thousand_is_found() {
    let running = start().await;
    let deeds =
        ["translate", "summarize", "convert", "archive", "inspect", "rename", "measure", "compare", "merge", "split"];
    let things = ["invoice", "picture", "song", "contract", "recipe", "map", "ledger", "poem", "video", "timetable"];
    let mut agents = Vec::new();
    for n in 0..50 {
        let mut builder = agent(&running.url(""), &format!("a{n}@x"));
        for (deed, thing) in deeds.iter().flat_map(|deed| things.iter().map(move |thing| (deed, thing))) {
            let offer = json!({ "name": format!("{deed}_{thing}_{n}"), "effect": "read",
                "description": format!("Does {deed} a {thing} in the manner of department number {n}."),
                "input_schema": { "type": "object", "properties": { thing.to_string(): { "type": "string" } } } });
            let work = |_: Task, _: Context| async { Ok::<_, HandlerError>(json!({})) };
            builder = builder.capability(capability(&offer), work);
        }
        agents.push(builder.start().await.unwrap());
    }
    let host = Host::of(&running);
    let find = async |words: &str| {
        let params = json!({ "name": "reach_find", "arguments": { "intent": words, "limit": 3 } });
        let began = Instant::now();
        let found = host.ask_alone(1, "tools/call", params).await.json();
        (found["result"]["structuredContent"]["found"].clone(), began.elapsed())
    };
    find("warm up").await;
    let mut times = Vec::new();
    for n in [3, 17, 42] {
        for (deed, thing) in [("convert", "ledger"), ("split", "video"), ("translate", "poem")] {
            let (found, took) = find(&format!("{deed} my {thing}, department {n}")).await;
            let first: &Value = &found[0];
            assert_eq!(first["tool"], format!("{deed}_{thing}_{n}"), "{found}");
            assert_eq!(first["inputSchema"]["properties"][thing]["type"], "string", "{found}");
            times.push(took);
        }
    }
    times.sort();
    println!(
        "reach_find among 5,000 tools over HTTP: median {:?}, worst {:?}",
        times[times.len() / 2],
        times[times.len() - 1]
    );
    let mut listed = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let reply = host.ask_alone(2, "tools/list", json!({})).await;
        listed.push((began.elapsed(), reply.text.len()));
    }
    println!("tools/list, the first page: {listed:?}; {} KiB resident", resident());
}
