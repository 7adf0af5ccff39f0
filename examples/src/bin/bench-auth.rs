//! What it costs to know who calls: the same calls to a gateway that asks nobody who they are, and to one with
//! `auth.mode = "required"` whose caller is an agent of another namespace, under a policy of 1000 rules; in turn, in one run.
//! What is measured is the gateway's own CPU time and what it writes to disk. Loopback only, bounded in time; every reply is
//! checked.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agent_reach_sdk::{Client, ClientBuilder};
use anyhow::{Context, Result, ensure};
use clap::Parser;
use reach_examples::bench::load::Kind;
use reach_examples::bench::{echo, gateway};
use serde::Serialize;
use serde_json::{Value, json};

/// What is aimed at: at most so much CPU time more for each call, in microseconds.
const ADDED_MAX_US: f64 = 40.0;
/// How many rules the policy has, and how many of them are about the caller.
const RULES: usize = 1000;
const RULES_ABOUT: usize = 10;
/// By what the agents of the benchmark are let in.
const SECRET: &str = "let me in, it is only a benchmark";

/// Measures what it costs to know who calls.
#[derive(Debug, Parser)]
struct Options {
    /// The gateway's program. Default: the one beside this.
    #[arg(long)]
    gateway: Option<PathBuf>,
    /// Where the databases go.
    #[arg(long, default_value = "target/bench/auth")]
    folder: PathBuf,
    /// How long each step takes.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How often each step is taken.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// How many callers at once, one row each of every kind.
    #[arg(long, value_delimiter = ',', default_value = "16")]
    callers: Vec<usize>,
}

/// A gateway, and the client that calls it.
struct Side {
    gateway: gateway::Gateway,
    client: Client,
}

/// What one step came to.
#[derive(Clone, Copy, Default)]
struct Step {
    cpu_us: f64,
    written_kib: f64,
    calls_per_s: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    kind: Kind,
    callers: usize,
    open_cpu_us: f64,
    required_cpu_us: f64,
    /// The median over the rounds of what the one took more than the other.
    added_cpu_us: f64,
    open_written_kib: f64,
    required_written_kib: f64,
    open_calls_per_s: f64,
    required_calls_per_s: f64,
}

fn private(path: &Path, text: &str) -> Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(std::io::Write::write_all(&mut file, text.as_bytes())?)
}

/// The operator's key, which is written once the gateway listens.
async fn operator_key(path: &Path) -> Result<String> {
    for _ in 0..50 {
        match std::fs::read_to_string(path) {
            Ok(key) if !key.is_empty() => return Ok(key),
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    std::fs::read_to_string(path).context("the operator's key")
}

impl Side {
    /// Nobody is asked who they are.
    async fn open(program: &Path, folder: &Path) -> Result<Self> {
        let gateway = gateway::Gateway::start(program, &folder.join("open"), None).await?;
        echo::serve(Client::builder().url(&gateway.url), json!({})).await?;
        let client = Client::builder().url(&gateway.url).connect().await?;
        Ok(Self { gateway, client })
    }

    /// Everybody is, and the caller is an agent of another namespace.
    async fn required(program: &Path, folder: &Path) -> Result<Self> {
        let (data, secret, config) = (folder.join("required"), folder.join("secret"), folder.join("gateway.toml"));
        private(&secret, SECRET)?;
        let namespace =
            |name: &str| format!("[auth.namespaces.{name}]\nsecret_file = {:?}\n", secret.display().to_string());
        // The rates are counted as ever, but one caller stands for many here.
        let rates = "caller_rate = { per_second = 1000000, burst = 1000000 }\n\
                     namespace_rate = { per_second = 1000000, burst = 1000000 }\n";
        let joins = format!("{}{}", namespace("bench"), namespace("desk"));
        let text = format!("[auth]\nmode = \"required\"\n{joins}[limits]\n{rates}");
        std::fs::write(&config, text)?;
        let gateway = gateway::Gateway::start(program, &data, Some(&config)).await?;
        let operator = operator_key(&data.join("operator-key")).await?;
        let operator = Client::builder().url(&gateway.url).token(operator.trim()).connect().await?;
        let rule = |at: usize| {
            let who = if at < RULES_ABOUT { "*@desk".to_owned() } else { format!("agent{at}@elsewhere") };
            json!({ "ruling": "deny", "subject": who, "actions": ["call"], "object": format!("hidden{at}@bench"), "capability": "*" })
        };
        let rules: Vec<Value> = (0..RULES).map(rule).collect();
        let _: Value = operator.call("policy/put", &json!({ "version": 0, "across": "cards", "rules": rules })).await?;
        let joins = |agent: &str| -> ClientBuilder {
            let key = folder.join(format!("{agent}.key"));
            Client::builder().url(&gateway.url).from_agent(agent).join(SECRET).key_file(key)
        };
        echo::serve(joins("echo@bench"), json!({ "callable_by": ["*@desk"] })).await?;
        let client = joins("caller@desk").connect().await?;
        let card = json!({ "agent_id": "caller@desk", "access": { "may_call": ["*@bench"] }, "heartbeat_interval": "5m",
            "endpoints": [{ "protocol": "queue", "address": "" }], "capabilities": [{ "name": "ask" }] });
        let _: Value = client.call("agent/register", &card).await?;
        Ok(Self { gateway, client })
    }

    /// Has so many callers call for so long.
    async fn step(&self, kind: Kind, callers: usize, length: Duration) -> Result<Step> {
        self.run(kind, callers, Duration::from_millis(300)).await?;
        let (cpu, written, began) = (self.gateway.cpu_us()?, self.gateway.written()?, Instant::now());
        let calls = self.run(kind, callers, length).await? as f64;
        let took = began.elapsed().as_secs_f64();
        Ok(Step {
            cpu_us: (self.gateway.cpu_us()? - cpu) as f64 / calls,
            written_kib: (self.gateway.written()? - written) as f64 / 1024.0 / calls,
            calls_per_s: calls / took,
        })
    }

    async fn run(&self, kind: Kind, callers: usize, length: Duration) -> Result<usize> {
        let until = Instant::now() + length;
        let running: Vec<_> =
            (0..callers).map(|number| tokio::spawn(call(self.client.clone(), kind, number, until))).collect();
        let mut calls = 0;
        for caller in running {
            calls += caller.await??;
        }
        ensure!(calls > 0, "no call was answered");
        Ok(calls)
    }
}

async fn call(client: Client, kind: Kind, number: usize, until: Instant) -> Result<usize> {
    let mut calls = 0;
    while Instant::now() < until {
        let params = json!({ "caller": number, "n": calls, "text": "a payload of a usual size for a tool call, some words long" });
        let task = client.task(kind.capability()).params(&params);
        let task = if kind == Kind::Ephemeral { task.without_key() } else { task };
        let done: Value = task.reach().await?.result()?;
        ensure!(done == json!({ "echo": true }), "answered {done}");
        calls += 1;
    }
    Ok(calls)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

fn row(kind: Kind, callers: usize, steps: &[(Step, Step)]) -> Row {
    let of = |pick: &dyn Fn(&(Step, Step)) -> f64| median(steps.iter().map(pick).collect());
    Row {
        kind,
        callers,
        open_cpu_us: of(&|(open, _)| open.cpu_us),
        required_cpu_us: of(&|(_, required)| required.cpu_us),
        added_cpu_us: of(&|(open, required)| required.cpu_us - open.cpu_us),
        open_written_kib: of(&|(open, _)| open.written_kib),
        required_written_kib: of(&|(_, required)| required.written_kib),
        open_calls_per_s: of(&|(open, _)| open.calls_per_s),
        required_calls_per_s: of(&|(_, required)| required.calls_per_s),
    }
}

// One thread for all callers: what they take is taken from what is measured.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let beside = std::env::current_exe()?.with_file_name("reach-gateway");
    let program = options.gateway.unwrap_or(beside);
    if options.folder.exists() {
        std::fs::remove_dir_all(&options.folder)?;
    }
    std::fs::create_dir_all(&options.folder)?;
    let sides = (Side::open(&program, &options.folder).await?, Side::required(&program, &options.folder).await?);
    println!(
        "medians of {} rounds of {} s; CPU time of the gateway and KiB written to disk, each for one call",
        options.rounds, options.seconds
    );
    println!(
        "{:<9} {:>7}  {:>11} {:>11} {:>9}  {:>9} {:>12}  {:>9} {:>12}",
        "kind", "callers", "open us", "required us", "added us", "open KiB", "required KiB", "open /s", "required /s"
    );
    let length = Duration::from_secs(options.seconds);
    let mut rows = Vec::new();
    for kind in [Kind::Ephemeral, Kind::Durable] {
        for callers in &options.callers {
            let mut steps = Vec::new();
            for _ in 0..options.rounds {
                steps.push((sides.0.step(kind, *callers, length).await?, sides.1.step(kind, *callers, length).await?));
            }
            let row = row(kind, *callers, &steps);
            println!(
                "{:<9} {:>7}  {:>11.0} {:>11.0} {:>9.1}  {:>9.2} {:>12.2}  {:>9.0} {:>12.0}",
                kind.name(),
                callers,
                row.open_cpu_us,
                row.required_cpu_us,
                row.added_cpu_us,
                row.open_written_kib,
                row.required_written_kib,
                row.open_calls_per_s,
                row.required_calls_per_s
            );
            rows.push(row);
        }
    }
    let worst = rows.iter().map(|row| row.added_cpu_us).fold(f64::MIN, f64::max);
    let word = if worst <= ADDED_MAX_US { "met" } else { "missed" };
    println!("aim {word}: at most {worst:.1} us added to a call, {ADDED_MAX_US} at most");
    std::fs::write(options.folder.join("bench-auth.json"), serde_json::to_string_pretty(&rows)?)?;
    Ok(())
}
