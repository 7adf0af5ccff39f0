//! All agents are down for a while under 200 callers. When they come back they are sent no more retries than their
//! budget allows, and soon do as much as before.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_reach_sdk::{AgentCard, Client, Effect, Span, capability, card};
use axum::Json;
use axum::routing::{get, post};
use reach_schemas::{Endpoint, ProbePolicy, Protocol};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::victim::{Victim, from_env, patient};

const CALLERS: usize = 200;
const AGENTS: usize = 3;
const WORK: Duration = Duration::from_millis(50);
/// What the README promises: over any 10 s a tenth of the first tries, and 10.
const WINDOW: u64 = 10;
const FREE: usize = 10;
const FIRSTS_PER_RETRY: usize = 10;
const PATIENCE: Duration = Duration::from_secs(120);

/// What arrived at one agent: in which tenth of a second, and whether as a retry.
type Log = Arc<Mutex<Vec<(u64, bool)>>>;

struct Echo {
    address: SocketAddr,
    log: Log,
    began: Instant,
    server: Option<JoinHandle<()>>,
}

impl Echo {
    async fn start(began: Instant) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut echo = Self { address: free, log: Log::default(), began, server: None };
        echo.up().await;
        echo
    }

    async fn up(&mut self) {
        let (log, began) = (self.log.clone(), self.began);
        let work = move |Json(delivery): Json<Value>| {
            let log = log.clone();
            async move {
                let is_retry = delivery["attempt"].as_u64().unwrap() > 1;
                log.lock().unwrap().push((began.elapsed().as_millis() as u64 / 100, is_retry));
                tokio::time::sleep(WORK).await;
                Json(json!({"ok": true}))
            }
        };
        let app = axum::Router::new().route("/", post(work)).route("/healthz", get(|| async { Json(json!({})) }));
        let listener = tokio::net::TcpListener::bind(self.address).await.unwrap();
        self.server = Some(tokio::spawn(async move { axum::serve(listener, app).await.unwrap() }));
    }

    fn down(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
        }
    }

    fn card(&self, number: usize) -> AgentCard {
        let offer = agent_reach_sdk::Capability {
            effect: Effect::Read,
            timeout: Some(Span::from_secs(2)),
            ..capability("echo").unwrap()
        };
        let address = format!("http://{}/", self.address);
        AgentCard {
            capabilities: vec![offer],
            endpoints: vec![Endpoint { protocol: Protocol::Http, version: "1".to_owned(), address }],
            heartbeat_interval: Span::from_mins(10),
            max_concurrency: 32,
            probe: ProbePolicy { interval: Span::from_secs(1), timeout: Span::from_secs(1), ..ProbePolicy::default() },
            ..card(format!("echo{number}@storm")).unwrap()
        }
    }

    /// The worst 10 s: how many retries came, and what the budget allowed.
    fn worst(&self) -> (usize, usize) {
        let log = self.log.lock().unwrap();
        let mut seconds: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for (tenth, is_retry) in log.iter() {
            let (firsts, retries) = seconds.entry(tenth / 10).or_default();
            *if *is_retry { retries } else { firsts } += 1;
        }
        let last = seconds.keys().copied().max().unwrap_or(0);
        let within = |from: u64, to: u64, which: fn(&(usize, usize)) -> usize| -> usize {
            seconds.range(from..to).map(|(_, counts)| which(counts)).sum()
        };
        let windows = (0..=last).map(|end| {
            let retries = within((end + 1).saturating_sub(WINDOW), end + 1, |counts| counts.1);
            // A first try may have earned its share 10 s before the retry, and a second is not the gateway's second.
            let firsts = within((end + 1).saturating_sub(2 * WINDOW + 1), end + 1, |counts| counts.0);
            (retries, FREE + 2 + firsts / FIRSTS_PER_RETRY)
        });
        windows.max_by_key(|(retries, allowed)| *retries as i64 - *allowed as i64).unwrap_or_default()
    }
}

/// Asks until told to stop. In which tenth of a second each was answered.
async fn call_on(client: Client, began: Instant, stop: Arc<AtomicBool>) -> (Vec<u64>, usize) {
    let (mut answered, mut failed) = (Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        match client.task("echo").timeout(PATIENCE).tries(8).reach().await {
            Ok(_) => answered.push(began.elapsed().as_millis() as u64 / 100),
            Err(_) => failed += 1,
        }
    }
    (answered, failed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_all_agents_come_back_at_once_they_are_not_stormed_and_soon_do_as_much_as_before() {
    let down_for = Duration::from_secs(from_env("REACH_STORM_SECS", 6));
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    let began = Instant::now();
    let mut agents = Vec::new();
    for number in 0..AGENTS {
        let echo = Echo::start(began).await;
        let registered: Value = client.call("agent/register", &echo.card(number)).await.unwrap();
        assert!(registered["agent_id"].is_string(), "{registered}");
        agents.push(echo);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let client = Client::builder().url(victim.url()).retry(patient()).connect().await.unwrap();
        callers.push(tokio::spawn(call_on(client, began, stop.clone())));
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    let down_at = began.elapsed();
    agents.iter_mut().for_each(Echo::down);
    tokio::time::sleep(down_for).await;
    for agent in &mut agents {
        agent.up().await;
    }
    let up_at = began.elapsed();
    tokio::time::sleep(Duration::from_secs(15)).await;
    stop.store(true, Ordering::Relaxed);
    let (mut answered, mut failed) = (Vec::new(), 0);
    for caller in callers {
        let (times, failures) = tokio::time::timeout(PATIENCE, caller).await.expect("a caller hangs").unwrap();
        answered.extend(times);
        failed += failures;
    }

    let tenth = |at: Duration| at.as_millis() as u64 / 100;
    let rate = |from: u64, to: u64| {
        answered.iter().filter(|at| (from..to).contains(*at)).count() as f64 * 10.0 / (to - from).max(1) as f64
    };
    let before = rate(tenth(down_at) - 20, tenth(down_at));
    let again = |share: f64| (tenth(up_at)..tenth(up_at) + 150).find(|at| rate(*at, at + 5) >= before * share);
    let after = |share: f64| {
        let at = again(share).map(|at| (at - tenth(up_at)) as f64 / 10.0);
        at.map_or("not within 15 s".to_owned(), |secs| format!("after {secs:.1} s"))
    };
    let worst: Vec<(usize, usize)> = agents.iter().map(Echo::worst).collect();
    println!(
        "{CALLERS} callers, {AGENTS} agents down for {:.0} s: {before:.0} answers/s before; when they came back, 25 % of that {}, 80 % {}; \
         {} answered, {failed} failed; worst 10 s at each agent, retries of allowed: {worst:?}",
        down_for.as_secs_f64(),
        after(0.25),
        after(0.8),
        answered.len(),
    );
    for (retries, allowed) in worst {
        assert!(retries <= allowed, "an agent was sent {retries} retries in 10 s, {allowed} were allowed");
    }
    // The machine is shared, and what it did before is no promise; a storm that feeds itself would do next to nothing.
    assert!(again(0.25).is_some(), "it did not recover within 15 s");
    for agent in &mut agents {
        agent.down();
    }
}
