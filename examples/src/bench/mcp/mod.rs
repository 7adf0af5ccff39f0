//! What a call of an MCP tool costs on each way to it.

pub mod peers;
pub mod session;
pub mod target;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

use self::session::{Era, Session};
use self::target::Target;

/// For how long a step runs before it is measured, so that connections are open and caches are warm.
const WARM: Duration = Duration::from_millis(500);

/// What one way took.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Which way.
    pub target: String,
    /// In which era.
    pub era: Era,
    /// How many sessions called at once, each one call after the other.
    pub sessions: usize,
    /// The figures, or why there are none.
    pub measured: Result<Figures, String>,
}

/// The figures of one step.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figures {
    /// How many calls were made. Each was answered as it had to be.
    pub calls: usize,
    /// How many a second.
    pub calls_per_s: f64,
    /// What half of them took at most, in ms.
    pub p50_ms: f64,
    /// What 99 of 100 took at most, in ms.
    pub p99_ms: f64,
    /// CPU time of the target's own process for each, in microseconds.
    pub cpu_us: f64,
    /// Memory of the target's own process afterwards, in MB.
    pub rss_mb: f64,
}

/// Calls a target for so long, from so many sessions.
pub async fn measure(target: &Target, era: Era, sessions: usize, length: Duration) -> Step {
    let measured = figures(target, era, sessions, length).await.map_err(|error| format!("{error:#}"));
    Step { target: target.name.clone(), era, sessions, measured }
}

async fn figures(target: &Target, era: Era, sessions: usize, length: Duration) -> Result<Figures> {
    let mut open = Vec::new();
    for _ in 0..sessions {
        open.push(Session::open(&target.place, era).await?);
    }
    let (open, _, _) = call(open, WARM).await?;
    let cpu = target.process().cpu_us()?;
    let (_, mut took, lasted) = call(open, length).await?;
    let cpu = target.process().cpu_us()? - cpu;
    ensure!(!took.is_empty(), "no call was answered");
    took.sort_by(f64::total_cmp);
    let calls = took.len();
    let at = |share: f64| took[((calls as f64 * share) as usize).min(calls - 1)];
    Ok(Figures {
        calls,
        calls_per_s: calls as f64 / lasted.as_secs_f64(),
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        cpu_us: cpu as f64 / calls as f64,
        rss_mb: target.process().rss_mb()?,
    })
}

/// Has each session call, one call after the other. Gives how long each call took, in ms, and how long all of it.
async fn call(sessions: Vec<Session>, length: Duration) -> Result<(Vec<Session>, Vec<f64>, Duration)> {
    let began = Instant::now();
    let callers = sessions.into_iter().enumerate().map(|(number, mut session)| {
        tokio::spawn(async move {
            let who = format!("session {number}");
            let mut took = Vec::new();
            while began.elapsed() < length {
                took.push(session.call(&who).await?.as_secs_f64() * 1000.0);
            }
            anyhow::Ok((session, took))
        })
    });
    // All of them have begun before the first is waited for.
    let callers: Vec<_> = callers.collect();
    let (mut sessions, mut all) = (Vec::new(), Vec::new());
    for caller in callers {
        let (session, took) = caller.await??;
        sessions.push(session);
        all.extend(took);
    }
    Ok((sessions, all, began.elapsed()))
}
