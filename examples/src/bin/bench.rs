//! The benchmark: submit to complete over HTTP, durable and ephemeral, at several numbers of callers, beside the raw speed
//! of the same disk in the same run, with the gateway's own CPU time for each task. Loopback only, bounded in time.

use std::path::PathBuf;
use std::time::Duration;

use agent_reach_sdk::Client;
use anyhow::{Context, Result};
use clap::Parser;
use reach_examples::bench::{disk, echo, gateway, load};
use serde::Serialize;
use serde_json::json;

/// Measures a gateway.
#[derive(Debug, Parser)]
struct Options {
    /// The gateway's program.
    #[arg(long, default_value = "target/release/reach-gateway")]
    gateway: PathBuf,
    /// Where the database goes: the disk that is measured.
    #[arg(long, default_value = "target/bench")]
    data: PathBuf,
    /// How long each step takes.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// What is asked for.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "durable,ephemeral")]
    kinds: Vec<load::Kind>,
    /// How many callers at once, one step each of every kind.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
    callers: Vec<usize>,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "target/bench/bench.json")]
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    fdatasync_per_s_before: f64,
    fdatasync_per_s_after: f64,
    steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    kind: load::Kind,
    callers: usize,
    tasks: usize,
    tasks_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    gateway_cpu_us_per_task: f64,
    gateway_rss_mb: f64,
    errors: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let data = options.data.join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data).with_context(|| format!("{} cannot be emptied", data.display()))?;
    }
    std::fs::create_dir_all(&data)?;
    let before = disk::fdatasync_per_second(&data, Duration::from_secs(2))?;
    println!("raw 4 KiB append + fdatasync on this disk: {before:.0}/s ({:.2} ms each)", 1000.0 / before);
    let gateway = gateway::Gateway::start(&options.gateway, &data, None).await?;
    echo::serve(Client::builder().url(&gateway.url), json!({})).await?;
    println!(
        "{:<9} {:>8} {:>9} {:>10} {:>9} {:>9} {:>13} {:>8} {:>7}",
        "kind", "callers", "tasks", "tasks/s", "p50 ms", "p99 ms", "gateway us", "RSS MB", "errors"
    );
    let length = Duration::from_secs(options.seconds);
    let mut steps = Vec::new();
    for kind in options.kinds {
        for callers in &options.callers {
            let step = measure(&gateway, kind, *callers, length).await?;
            print(&step);
            steps.push(step);
        }
    }
    drop(gateway);
    let after = disk::fdatasync_per_second(&data, Duration::from_secs(2))?;
    println!("raw 4 KiB append + fdatasync afterwards: {after:.0}/s ({:.2} ms each)", 1000.0 / after);
    let report = Report { fdatasync_per_s_before: before, fdatasync_per_s_after: after, steps };
    std::fs::write(&options.out, serde_json::to_string_pretty(&report)?)?;
    println!("saved to {}", options.out.display());
    Ok(())
}

fn print(step: &Step) {
    println!(
        "{:<9} {:>8} {:>9} {:>10.0} {:>9.2} {:>9.2} {:>13.0} {:>8.1} {:>7}",
        step.kind.name(),
        step.callers,
        step.tasks,
        step.tasks_per_s,
        step.p50_ms,
        step.p99_ms,
        step.gateway_cpu_us_per_task,
        step.gateway_rss_mb,
        step.errors
    );
}

async fn measure(gateway: &gateway::Gateway, kind: load::Kind, callers: usize, length: Duration) -> Result<Step> {
    // A short run first, so that connections are open and caches are warm.
    load::run(gateway.port, kind, callers, Duration::from_millis(500)).await?;
    let cpu = gateway.cpu_us()?;
    let mut run = load::run(gateway.port, kind, callers, length).await?;
    let cpu = gateway.cpu_us()? - cpu;
    run.latencies_ms.sort_by(f64::total_cmp);
    let tasks = run.latencies_ms.len();
    let at = |share: f64| run.latencies_ms.get(((tasks as f64 * share) as usize).min(tasks.saturating_sub(1))).copied();
    Ok(Step {
        kind,
        callers,
        tasks,
        tasks_per_s: tasks as f64 / run.took.as_secs_f64(),
        p50_ms: at(0.5).unwrap_or_default(),
        p99_ms: at(0.99).unwrap_or_default(),
        gateway_cpu_us_per_task: cpu as f64 / tasks.max(1) as f64,
        gateway_rss_mb: gateway.rss_mb()?,
        errors: run.errors,
    })
}
