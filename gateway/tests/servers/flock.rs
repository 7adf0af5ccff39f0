//! A hundred servers, each a process with fifty tools of its own: their tools are one list, in pages and in one order, and the
//! right one of five thousand is found by words. The figures are printed; what they may be at most is for the build without
//! debugging, and for others with much slack, for a test must pass on a machine that has other work.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Gateway, script};

const SERVERS: usize = 100;
const TOOLS: usize = 50;
/// How long all of them may take to be met, each an interpreter that starts.
const PATIENCE: Duration = Duration::from_secs(240);
/// How much memory the gateway may have.
const RESIDENT_MAX_MB: u64 = 512;

/// What finding a tool may take in half of all cases. A gateway that was named was built for release.
fn find_max() -> Duration {
    let is_for_release = std::env::var_os("REACH_GATEWAY").is_some() || !cfg!(debug_assertions);
    Duration::from_millis(if is_for_release { 5 } else { 500 })
}

fn words() -> (Vec<&'static str>, Vec<&'static str>) {
    let mut lines = include_str!("flock.txt").lines().map(|line| line.split(' ').collect());
    (lines.next().unwrap(), lines.next().unwrap())
}

fn flock(folder: &std::path::Path) -> Gateway {
    let program = script().replace("peer.py", "flock.py");
    let server = |number| {
        format!(
            "[[mcp_servers]]\nname = \"s{number:02}\"\ncommand = \"python3\"\nargs = [\"-S\", {program:?}, \"{number}\"]\nstart_timeout = \"120s\"\n"
        )
    };
    let gateway = Gateway::start(folder, &(0..SERVERS).map(server).collect::<String>());
    let begun = Instant::now();
    loop {
        let servers = gateway.call("server/list", &json!({}));
        let tools: u64 = servers["servers"].as_array().unwrap().iter().filter_map(|one| one["tools"].as_u64()).sum();
        if tools == (SERVERS * TOOLS) as u64 {
            println!("{SERVERS} servers are there after {:.1} s", begun.elapsed().as_secs_f64());
            return gateway;
        }
        assert!(begun.elapsed() < PATIENCE, "{tools} tools are there: {}", gateway.log.lock().unwrap());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// One who asks `/mcp`, and how long each answer takes.
struct Asker {
    web: reqwest::Client,
    url: String,
}

impl Asker {
    async fn ask(&self, method: &str, mut params: Value) -> (Value, Duration) {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
        let request =
            self.web.post(&self.url).header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        let request =
            request.header("content-type", "application/json").header("accept", "application/json, text/event-stream");
        let request = match params["name"].as_str() {
            Some(name) => request.header("mcp-name", name),
            None => request,
        };
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let begun = Instant::now();
        let text = request.body(body).send().await.unwrap().text().await.unwrap();
        let took = begun.elapsed();
        let answer: Value = serde_json::from_str(&text).unwrap();
        (answer["result"].clone(), took)
    }

    /// All pages: the names in their order, and how long each page took.
    async fn list(&self) -> (Vec<String>, Vec<Duration>) {
        let (mut names, mut took, mut params) = (Vec::new(), Vec::new(), json!({}));
        loop {
            let (page, time) = self.ask("tools/list", params).await;
            took.push(time);
            names
                .extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
            match page["nextCursor"].as_str() {
                Some(next) => params = json!({ "cursor": next }),
                None => return (names, took),
            }
        }
    }

    /// What is found first for some words.
    async fn find(&self, intent: &str) -> (String, Duration) {
        let params = json!({ "name": "reach_find", "arguments": { "intent": intent } });
        let (found, took) = self.ask("tools/call", params).await;
        (found["structuredContent"]["found"][0]["tool"].as_str().unwrap_or_default().to_owned(), took)
    }
}

fn told(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("{what}: p50 {:.2} ms, p99 {:.2} ms, of {}", ms(at(0.5)), ms(at(0.99)), times.len());
    at(0.5)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_servers_are_one_list_in_which_the_right_tool_is_found() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let gateway = flock(folder.path());
    let asker =
        Asker { web: reqwest::Client::builder().no_proxy().build().unwrap(), url: format!("{}/mcp", gateway.url) };

    let (verbs, nouns) = words();
    let all: BTreeSet<String> =
        nouns.iter().flat_map(|noun| verbs.iter().map(move |verb| format!("{verb}_{noun}"))).collect();
    let mut pages = Vec::new();
    for _ in 0..10 {
        let (names, took) = asker.list().await;
        assert!(names.iter().eq(all.iter()), "each tool once, in the order of their names");
        assert_eq!(took.len(), SERVERS * TOOLS / 1000);
        pages.extend(took);
    }
    told("a page of 1,000 tools", pages);

    // Every server and every word of its is asked for, in words of one's own.
    let mut finding = Vec::new();
    for at in 0..500 {
        let (verb, noun) = (verbs[at % TOOLS], nouns[at * 7 % SERVERS]);
        let (found, took) = asker.find(&format!("please {verb} this {noun} for me")).await;
        assert_eq!(found, format!("{verb}_{noun}"));
        finding.push(took);
    }
    let p50 = told("finding one tool of 5,000", finding);
    let params = json!({ "name": "translate_reservoir", "arguments": { "which": "the third" } });
    let (called, _) = asker.ask("tools/call", params).await;
    assert_eq!(called["content"][0]["text"], "translate_reservoir the third", "{called}");
    let resident = gateway.resident_mb();
    println!("memory of the gateway: {resident} MB");
    assert!(p50 < find_max(), "finding a tool took {p50:?}");
    assert!(resident < RESIDENT_MAX_MB, "{resident} MB");
}
