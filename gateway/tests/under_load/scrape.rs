//! Whoever looks at the figures does not slow down those who work: 1,000 agents with three capabilities each, callers who
//! reach them, and a monitoring system that asks for everything again and again.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::ACCEPT;
use serde_json::{Value, json};

use crate::figures::{Times, side_by_side};
use crate::python;
use crate::victim::{Victim, from_env};

const AGENTS: usize = 1000;
/// What an agent offers is offered by so many in all as there are agents for one of these.
const KINDS: [(&str, usize); 3] = [("read", 100), ("sum", 100), ("find", 50)];
/// How many pairs of agent and capability are told apart, and all others as one.
const PAIRS: usize = 2048 + 1;
const CALLERS: usize = 3;
const ROUNDS: usize = 3;
/// A caller does something with what it was given.
const THOUGHT: Duration = Duration::from_millis(3);
/// Prometheus asks every 15 s or more seldom.
const BETWEEN_SCRAPES: Duration = Duration::from_millis(150);
const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0";

/// A place where all agents are: what is asked of them is done at once.
async fn workplace() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/work", listener.local_addr().unwrap());
    let router = axum::Router::new().route("/work", axum::routing::post(async || "\"done\""));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn capability(kind: usize, agent: usize) -> String {
    let (name, groups) = KINDS[kind];
    format!("{name}_{}", agent % groups)
}

fn agent(at: usize) -> String {
    format!("agent_{at}@scrape")
}

/// Who asks the gateway over HTTP.
#[derive(Clone)]
struct Caller {
    client: reqwest::Client,
    base: String,
}

impl Caller {
    async fn post(&self, path: &str, body: &Value) -> String {
        let reply = self.client.post(format!("{}{path}", self.base)).json(body).send().await.unwrap();
        let (status, text) = (reply.status(), reply.text().await.unwrap());
        assert!(status.is_success(), "{status} to {body}: {text}");
        text
    }

    async fn reach(&self, ask: &Value) {
        let text = self.post("/reach", ask).await;
        assert!(text.contains("\"REACH_OK\""), "{text}");
    }

    async fn scrape(&self, accept: &str) -> String {
        let ask = self.client.get(format!("{}/metrics", self.base)).header(ACCEPT, accept);
        ask.send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
    }

    /// All agents are registered, and each has done each thing once.
    async fn fill(&self) -> usize {
        let url = workplace().await;
        let hands = (0..8).map(|hand| {
            let (caller, url) = (self.clone(), url.clone());
            tokio::spawn(async move {
                for at in (hand..AGENTS).step_by(8) {
                    let offers: Vec<_> = (0..KINDS.len())
                        .map(|kind| json!({ "name": capability(kind, at), "effect": "read" }))
                        .collect();
                    let card = json!({
                        "agent_id": agent(at), "heartbeat_interval": "10m", "probe": { "interval": "1h" },
                        "endpoints": [{ "protocol": "http", "address": url }], "max_concurrency": 64,
                        "capabilities": offers,
                    });
                    caller.post("/agent/register", &card).await;
                    for kind in 0..KINDS.len() {
                        caller.reach(&json!({ "to_agent": agent(at), "capability": capability(kind, at) })).await;
                    }
                }
            })
        });
        for hand in hands.collect::<Vec<_>>() {
            hand.await.unwrap();
        }
        AGENTS * KINDS.len()
    }
}

/// How long calls took.
async fn measure(caller: &Caller, measured: Duration) -> Times {
    let caller = caller.clone();
    let call = move |number: usize, made: usize| {
        let (caller, at) = (caller.clone(), number * 331 + made);
        async move { caller.reach(&json!({ "capability": capability(at % KINDS.len(), at * 7) })).await }
    };
    side_by_side(CALLERS, (measured, THOUGHT), call).await
}

/// Scrapes until told to stop. How long each took, and the texts.
async fn scrape_on(caller: Caller, stop: Arc<AtomicBool>) -> (Times, Vec<String>) {
    let (mut times, mut texts) = (Times::default(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        texts.push(caller.scrape(OPEN_METRICS).await);
        times.0.push(asked.elapsed());
        tokio::time::sleep(BETWEEN_SCRAPES).await;
    }
    (times, texts)
}

/// Everything is there once, and what belongs together was copied together. How many attempts were answered.
fn whole(text: &str) -> u64 {
    assert!(text.ends_with("\n# EOF\n"), "it ends in the middle: {:?}", &text[text.len().saturating_sub(200)..]);
    let (mut answered, mut counted, mut endless) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let Some((name, labels)) = series.split_once('{') else { continue };
        let value = || value.parse::<u64>().unwrap();
        let pair = |rest: &str| labels.replace(rest, "").trim_matches(['}', ',']).to_owned();
        let seen = match name {
            "reach_attempts_total" if labels.contains("\"answered\"") => {
                answered.insert(pair("ending=\"answered\""), value())
            }
            "reach_target_seconds_count" => counted.insert(pair(""), value()),
            "reach_target_seconds_bucket" if labels.contains("\"+Inf\"") => {
                endless.insert(pair("le=\"+Inf\""), value())
            }
            _ => None,
        };
        assert_eq!(seen, None, "{line} is there twice");
    }
    assert_eq!(answered.len(), PAIRS);
    assert!(answered == counted && counted == endless, "counts of one pair are of different moments");
    answered.values().sum()
}

/// Prometheus's own parser finds as many samples as there are lines, in both forms.
async fn understood(caller: &Caller) {
    let parser = python::with("prometheus-parser", &python::PROMETHEUS);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire/read_metrics.py");
    for (form, accept) in [("openmetrics", OPEN_METRICS), ("text", "*/*")] {
        let text = caller.scrape(accept).await;
        let families = python::run(Command::new(&parser).args([script, form]), &text).unwrap();
        let families: Value = serde_json::from_str(&families).unwrap();
        let samples = |family: &Value| family["samples"].as_array().unwrap().len();
        let found: usize = families.as_array().unwrap().iter().map(samples).sum();
        assert_eq!(found, text.lines().filter(|line| !line.starts_with('#')).count(), "{form}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_keep_their_p99_while_the_figures_of_a_thousand_agents_are_read() {
    let measured = Duration::from_secs(from_env("REACH_SCRAPE_SECS", 4));
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let caller = Caller { client, base: victim.url() };
    let mut calls = caller.fill().await;
    calls += measure(&caller, measured / 4).await.0.len();
    let (mut best_alone, mut best_beside) = (f64::INFINITY, f64::INFINITY);
    for round in 1..=ROUNDS {
        let alone = measure(&caller, measured).await;
        let stop = Arc::new(AtomicBool::new(false));
        let scraper = tokio::spawn(scrape_on(caller.clone(), Arc::clone(&stop)));
        let beside = measure(&caller, measured).await;
        stop.store(true, Ordering::Relaxed);
        let (scrapes, texts) = scraper.await.unwrap();
        calls += alone.0.len() + beside.0.len();
        println!(
            "round {round}: calls alone p50 {:.1} p99 {:.1} ms ({}); beside {} scrapes of {} kB, p50 {:.0} ms: p50 {:.1} p99 \
             {:.1} ms ({})",
            alone.quantile_ms(0.5),
            alone.quantile_ms(0.99),
            alone.0.len(),
            texts.len(),
            texts.last().map_or(0, String::len) / 1000,
            scrapes.quantile_ms(0.5),
            beside.quantile_ms(0.5),
            beside.quantile_ms(0.99),
            beside.0.len(),
        );
        let counted: Vec<u64> = texts.iter().map(|text| whole(text)).collect();
        assert!(counted.is_sorted() && counted.len() > 3, "what is counted only grows: {counted:?}");
        best_alone = best_alone.min(alone.quantile_ms(0.99));
        best_beside = best_beside.min(beside.quantile_ms(0.99));
    }
    println!("the best rounds: p99 {best_alone:.1} ms alone, {best_beside:.1} ms beside");
    assert_eq!(whole(&caller.scrape(OPEN_METRICS).await), calls as u64);
    understood(&caller).await;
    assert!(best_beside < best_alone * 2.0 + 2.0, "calls were slowed down from {best_alone:.1} to {best_beside:.1} ms");
}
