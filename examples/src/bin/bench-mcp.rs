//! The benchmark of MCP: `tools/call` of a canned server reached directly, through the gateway's two endpoints, and through
//! proxies of others, in one run. Loopback only, bounded in time; every reply is checked.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use reach_examples::bench::mcp::session::Era;
use reach_examples::bench::mcp::target::{Targets, Wanted};
use reach_examples::bench::mcp::{Figures, Step, measure};
use serde::Serialize;

/// What is aimed at through the transparent endpoint: at most so much added at p50 with one session, in ms ...
const ADDED_MAX_MS: f64 = 0.13;
/// ... at least so many calls a second with 32 sessions ...
const RATE_MIN: f64 = 11_000.0;
/// ... and at most so much memory, in MB.
const RSS_MAX_MB: f64 = 30.0;

/// Measures what a call of an MCP tool costs.
#[derive(Debug, Parser)]
struct Options {
    /// The gateway's program. Default: the one beside this.
    #[arg(long)]
    gateway: Option<PathBuf>,
    /// The canned server's program. Default: the one beside this.
    #[arg(long)]
    upstream: Option<PathBuf>,
    /// Where the gateway's data and others' programs go.
    #[arg(long, default_value = "target/bench/mcp")]
    folder: PathBuf,
    /// How long each step takes.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How many sessions at once, one step each.
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    sessions: Vec<usize>,
    /// In which eras.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "2025-11-25,2026-07-28")]
    eras: Vec<Era>,
    /// Without proxies of others.
    #[arg(long)]
    no_peers: bool,
    /// Where the figures go as JSON. Default: into the folder.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    steps: &'a [Step],
    missing: &'a [(String, String)],
}

// One thread for all clients: what they take is taken from what is measured.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let beside = std::env::current_exe()?;
    let peers = options.folder.join("peers");
    std::fs::create_dir_all(&options.folder)?;
    let targets = Targets::start(&Wanted {
        upstream: &options.upstream.unwrap_or_else(|| beside.with_file_name("reach-example-mcp")),
        gateway: &options.gateway.unwrap_or_else(|| beside.with_file_name("reach-gateway")),
        data: &options.folder.join("data"),
        peers: (!options.no_peers).then_some(peers.as_path()),
        eras: &options.eras,
    })
    .await?;
    println!(
        "{:<11} {:>8}  {:<27} {:>9} {:>8} {:>8} {:>9} {:>8} {:>7}",
        "era", "sessions", "target", "calls/s", "p50 ms", "p99 ms", "added ms", "CPU us", "RSS MB"
    );
    let length = Duration::from_secs(options.seconds);
    let mut steps: Vec<Step> = Vec::new();
    for era in options.eras {
        for sessions in &options.sessions {
            let first = steps.len();
            for target in &targets.there {
                steps.push(measure(target, era, *sessions, length).await);
                print(&steps[steps.len() - 1], &steps[first]);
            }
            for (name, _) in &targets.missing {
                println!("{:<11} {sessions:>8}  {name:<27} missing", era.revision());
            }
        }
    }
    for (name, why) in &targets.missing {
        println!("missing: {name}: {why}");
    }
    judge(&steps);
    let out = options.out.unwrap_or_else(|| options.folder.join("bench-mcp.json"));
    let report = Report { steps: &steps, missing: &targets.missing };
    std::fs::write(&out, serde_json::to_string_pretty(&report)?)
        .with_context(|| format!("{} cannot be written", out.display()))?;
    println!("saved to {}", out.display());
    Ok(())
}

fn print(step: &Step, direct: &Step) {
    let head = format!("{:<11} {:>8}  {:<27}", step.era.revision(), step.sessions, step.target);
    match &step.measured {
        Ok(Figures { calls_per_s, p50_ms, p99_ms, cpu_us, rss_mb, .. }) => {
            let added = direct
                .measured
                .as_ref()
                .map_or_else(|_| String::new(), |direct| format!("{:.3}", p50_ms - direct.p50_ms));
            println!("{head} {calls_per_s:>9.0} {p50_ms:>8.3} {p99_ms:>8.3} {added:>9} {cpu_us:>8.0} {rss_mb:>7.1}");
        }
        Err(why) => println!("{head} failed: {why}"),
    }
}

/// Holds the transparent endpoint against what is aimed at.
fn judge(steps: &[Step]) {
    let find = |era, sessions, name: &str| {
        let is_it = |step: &&Step| step.era == era && step.sessions == sessions && step.target.starts_with(name);
        steps.iter().find(is_it).and_then(|step| step.measured.as_ref().ok())
    };
    let told = |what: String, is_met| println!("aim {}: {what}", if is_met { "met" } else { "missed" });
    for era in [Era::Handshake, Era::Stateless] {
        let revision = era.revision();
        if let (Some(direct), Some(through)) = (find(era, 1, "direct"), find(era, 1, "gateway /servers")) {
            let added = through.p50_ms - direct.p50_ms;
            told(format!("{revision}: {added:.3} ms added at p50, {ADDED_MAX_MS} at most"), added <= ADDED_MAX_MS);
        }
        if let Some(through) = find(era, 32, "gateway /servers") {
            let (rate, rss) = (through.calls_per_s, through.rss_mb);
            told(format!("{revision}: {rate:.0} calls/s at 32 sessions, {RATE_MIN} at least"), rate >= RATE_MIN);
            told(format!("{revision}: {rss:.1} MB, {RSS_MAX_MB} at most"), rss <= RSS_MAX_MB);
        }
    }
}
