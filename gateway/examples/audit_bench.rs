//! What the audit log costs: a row in the commit of a change, beside the same change without one; a refusal that is counted;
//! and how long a log takes to be verified.
//!
//! `cargo run --release -p reach-gateway --example audit_bench -- [DIRECTORY] [ROWS]`

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use reach_core::audit::{Event, Mark, Verifier};
use reach_core::task::{Birth, Task};
use reach_gateway::audit::Recorder;
use reach_gateway::store::sqlite::{AuditFile, SqliteConfig, SqliteStore};
use reach_gateway::store::{Command, Store};
use reach_schemas::{AuditKind, ErrorCode, Span, Submit, TaskId, Timestamp};

/// How many rows share a commit.
const BATCH: u64 = 256;
/// How many changes are compared.
const CHANGES: u64 = 50_000;
const REFUSALS: u64 = 1_000_000;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let rows = arguments.next().map_or(Ok(1_000_000), |text| text.parse()).context("the rows are a number")?;
    let directory = place.join(format!("audit-bench-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = runtime.block_on(async {
        compare(&directory).await?;
        refusals();
        verify(&directory, rows).await
    });
    fs::remove_dir_all(&directory)?;
    measured
}

fn event(n: u64) -> Event {
    let event = Event::new(Timestamp::from_ms(n), AuditKind::ReachFailed, "planner@team").on("worker@team");
    event.failed(ErrorCode::Timeout).because("dead_lettered after 3 attempts").about(id(n)).with_digest([7; 32])
}

fn id(n: u64) -> TaskId {
    TaskId::from_parts(n, u128::from(n))
}

fn insert(n: u64) -> Command {
    let birth = Birth {
        id: id(n),
        scope: "planner@team".to_owned(),
        has_scoped_key: true,
        submit: Submit { intent: Some("something".to_owned()), ..Submit::default() },
        created_at: Timestamp::from_ms(n),
    };
    Command::Insert {
        task: Task::new(birth, Span::from_secs(60)),
        key: None,
        now: Timestamp::from_ms(n),
        outbox: Vec::new(),
    }
}

fn open(path: PathBuf) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(SqliteStore::open(SqliteConfig { path, bytes_max: None })?))
}

/// The CPU time of this process, all threads: what a row costs is not to be mixed up with what the disk takes.
fn cpu_used() -> anyhow::Result<Duration> {
    let mut used = Duration::ZERO;
    for thread in fs::read_dir("/proc/self/task").context("this system tells no CPU time")? {
        let stat = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        used += Duration::from_nanos(stat.split(' ').next().unwrap_or_default().parse().unwrap_or_default());
    }
    Ok(used)
}

async fn compare(directory: &Path) -> anyhow::Result<()> {
    for (name, is_audited) in
        [("without a row", false), ("with a row", true), ("without a row", false), ("with a row", true)]
    {
        let store = open(directory.join(format!("{is_audited}-{}.db", fs::read_dir(directory)?.count())))?;
        let (cpu, began) = (cpu_used()?, Instant::now());
        for first in (0..CHANGES).step_by(BATCH as usize) {
            let change = |n| if is_audited { insert(n).audited(vec![event(n)]) } else { insert(n) };
            store.apply((first..first + BATCH).map(change).collect()).await?;
        }
        let cpu = (cpu_used()? - cpu).as_secs_f64() * 1e6 / CHANGES as f64;
        println!(
            "a change {name}: {cpu:.1} us of CPU, {:.1} us in all",
            began.elapsed().as_secs_f64() * 1e6 / CHANGES as f64
        );
    }
    Ok(())
}

fn refusals() {
    let recorder = Recorder::default();
    let began = Instant::now();
    for n in 0..REFUSALS {
        let event = Event::new(Timestamp::from_ms(n / 1000), AuditKind::CallRefused, "spy@else").on("reach");
        recorder.note_often(event.failed(ErrorCode::Forbidden).because("spy@else may not call worker@team"));
    }
    println!("a refusal: {:.2} us", began.elapsed().as_secs_f64() * 1e6 / REFUSALS as f64);
}

async fn verify(directory: &Path, rows: u64) -> anyhow::Result<()> {
    let path = directory.join("many.db");
    let store = open(path.clone())?;
    let began = Instant::now();
    for first in (0..rows).step_by(1000) {
        store.apply(vec![Command::Audit((first..rows.min(first + 1000)).map(event).collect())]).await?;
    }
    println!(
        "{rows} rows written in {:.1} s, {} bytes a row",
        began.elapsed().as_secs_f64(),
        fs::metadata(&path)?.len() / rows.max(1)
    );
    drop(store);
    let began = Instant::now();
    let (verifier, _) = AuditFile::open(&path)?.check(Verifier::new(Mark::origin(), []), u32::MAX)?;
    anyhow::ensure!(verifier.finding().is_none() && verifier.rows() == rows, "{:?}", verifier.finding());
    println!("{rows} rows verified in {:.2} s", began.elapsed().as_secs_f64());
    Ok(())
}
