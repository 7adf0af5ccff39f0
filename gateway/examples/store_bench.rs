//! How many tasks a second the SQLite store takes through their lives, beside what its disk can sync, and how much
//! CPU each takes.
//!
//! `cargo run --release -p reach-gateway --example store_bench -- [DIRECTORY] [SECONDS]`
//!
//! A task here is two durable steps, each awaited before the next: an insert with a key, and the commit that
//! finishes it. Its parameters are 512 bytes.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use reach_core::task::{Birth, Phase, Task};
use reach_gateway::store::sqlite::{SqliteConfig, SqliteStore};
use reach_gateway::store::{Command, Committer, Key, Outcome};
use reach_schemas::{RawJson, Span, Submit, TaskId, Timestamp};

const CALLERS: [u64; 4] = [1, 16, 64, 256];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds = arguments.next().map_or(Ok(5.0), |text| text.parse()).context("the seconds are a number")?;
    let directory = place.join(format!("store-bench-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let measured = measure_all(&directory, Duration::from_secs_f64(seconds));
    fs::remove_dir_all(&directory)?;
    measured
}

fn measure_all(directory: &Path, span: Duration) -> anyhow::Result<()> {
    println!("callers   tasks/s   CPU us/task   p50 ms   p99 ms   fdatasync/s of the disk, just before");
    for callers in CALLERS {
        let syncs = syncs_per_second(directory, span / 5)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let path = directory.join(format!("{callers}.db"));
        let store = SqliteStore::open(SqliteConfig { path, bytes_max: None })?;
        let (cpu, began) = (cpu_used()?, Instant::now());
        let mut took = runtime.block_on(run(store, callers, began + span))?;
        drop(runtime);
        let (cpu, wall) = (cpu_used()? - cpu, began.elapsed());
        let tasks = took.len().max(1);
        took.sort_unstable();
        let at = |share: f64| took.get((tasks as f64 * share) as usize).map_or(0.0, |took| took.as_secs_f64() * 1e3);
        println!(
            "{callers:7}   {:7.0}   {:11.1}   {:6.1}   {:6.1}   {syncs:8.0}",
            tasks as f64 / wall.as_secs_f64(),
            cpu.as_secs_f64() * 1e6 / tasks as f64,
            at(0.5),
            at(0.99),
        );
    }
    Ok(())
}

/// How often 4 KiB that are there already can be overwritten and synced, by one thread.
fn syncs_per_second(directory: &Path, span: Duration) -> anyhow::Result<f64> {
    let mut file = File::create(directory.join("sync"))?;
    file.write_all(&[0; 4096])?;
    file.sync_all()?;
    let (began, mut syncs) = (Instant::now(), 0_u32);
    while began.elapsed() < span {
        file.rewind()?;
        file.write_all(&[u8::try_from(syncs % 256)?; 4096])?;
        file.sync_data()?;
        syncs += 1;
    }
    Ok(f64::from(syncs) / began.elapsed().as_secs_f64())
}

/// The CPU time of this process so far, its threads included.
fn cpu_used() -> anyhow::Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // Fields 14 and 15 of the whole line, in hundredths of a second.
    let ticks = |index: usize| fields.get(index).copied().unwrap_or_default().parse::<u64>();
    Ok(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}

async fn run(store: SqliteStore, callers: u64, until: Instant) -> anyhow::Result<Vec<Duration>> {
    let committer = Committer::new(Arc::new(store));
    let next = Arc::new(AtomicU64::new(0));
    let callers: Vec<_> = (0..callers)
        .map(|_| {
            let (committer, next) = (committer.clone(), Arc::clone(&next));
            tokio::spawn(async move { caller(&committer, &next, until).await })
        })
        .collect();
    drop(committer);
    let mut took = Vec::new();
    for caller in callers {
        took.extend(caller.await??);
    }
    Ok(took)
}

async fn caller(committer: &Committer, next: &AtomicU64, until: Instant) -> anyhow::Result<Vec<Duration>> {
    let mut took = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        let n = next.fetch_add(1, Ordering::Relaxed);
        let (mut task, key) = born(n)?;
        let inserted = committer
            .submit(Command::Insert { task: task.clone(), key: Some(key), now: time(n), outbox: Vec::new() })
            .await?;
        anyhow::ensure!(inserted == Outcome::Inserted, "{inserted:?}");
        task.version += 1;
        task.state.phase = Phase::Completed { result: RawJson::parse(r#"{"ok":true}"#)? };
        task.state.finished_at = Some(time(n + 5));
        let finish =
            Command::Commit { task, was_final: false, key_expires_at: Some(time(n + 86_400_000)), outbox: Vec::new() };
        let finished = committer.submit(finish).await?;
        anyhow::ensure!(finished == Outcome::Committed, "{finished:?}");
        took.push(began.elapsed());
    }
    Ok(took)
}

fn time(n: u64) -> Timestamp {
    Timestamp::from_ms(1_800_000_000_000 + n)
}

fn born(n: u64) -> anyhow::Result<(Task, Key)> {
    // Keys of callers are in no order.
    let key = format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).parse()?;
    let submit = Submit {
        to_agent: Some("worker@bench".parse()?),
        capability: Some("work".parse()?),
        params: Some(RawJson::of(&"x".repeat(510))?),
        idempotency_key: Some(key),
        ..Submit::default()
    };
    let key = submit.idempotency_key.clone().context("it was put there")?;
    let id = TaskId::from_parts(1_800_000_000_000 + n / 8, u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let birth = Birth { id, scope: "bench".to_owned(), has_scoped_key: true, submit, created_at: time(n) };
    let task = Task::new(birth, Span::from_mins(5));
    Ok((task, Key { scope: "bench".to_owned(), key, fingerprint: [7; 32], expires_at: None }))
}
