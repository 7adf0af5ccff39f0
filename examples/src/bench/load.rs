//! Callers: each asks for a task and waits for its result, over one connection, again and again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::wire::Reader;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A write, each with an idempotency key of its own: on disk before it is delivered, and again before its answer.
    Durable,
    /// A read without a key: no disk on its way.
    Ephemeral,
}

impl Kind {
    /// Its name in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Ephemeral => "ephemeral",
        }
    }

    /// The capability to ask for.
    #[must_use]
    pub fn capability(self) -> &'static str {
        match self {
            Self::Durable => "echo",
            Self::Ephemeral => "look",
        }
    }

    /// The capability to ask for, and what else makes the request of this kind.
    fn asks(self, key: &str) -> (&'static str, String) {
        let key = match self {
            Self::Durable => format!(r#""idempotency_key":"{key}","#),
            Self::Ephemeral => String::new(),
        };
        (self.capability(), key)
    }
}

/// What a run gave.
pub struct Run {
    /// How long each task took, from the request to its result.
    pub latencies_ms: Vec<f64>,
    /// How many did not end well.
    pub errors: usize,
    /// How long the run took.
    pub took: Duration,
}

/// Runs so many callers for so long.
///
/// # Errors
/// A connection breaks.
pub async fn run(port: u16, kind: Kind, callers: usize, length: Duration) -> Result<Run> {
    let began = Instant::now();
    let until = began + length;
    let callers: Vec<_> = (0..callers).map(|number| tokio::spawn(call(port, kind, number, until))).collect();
    let mut run = Run { latencies_ms: Vec::new(), errors: 0, took: Duration::ZERO };
    for caller in callers {
        let (latencies, errors) = caller.await??;
        run.latencies_ms.extend(latencies);
        run.errors += errors;
    }
    run.took = began.elapsed();
    ensure!(!run.latencies_ms.is_empty(), "no task was completed");
    Ok(run)
}

async fn call(port: u16, kind: Kind, number: usize, until: Instant) -> Result<(Vec<f64>, usize)> {
    let connection = TcpStream::connect(("127.0.0.1", port)).await?;
    connection.set_nodelay(true)?;
    let (from, mut to) = connection.into_split();
    let mut reader = Reader::new(from);
    let (mut latencies, mut errors, mut count) = (Vec::new(), 0, 0_u64);
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    while Instant::now() < until {
        count += 1;
        let (capability, key) = kind.asks(&format!("{run}-{number}-{count}"));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{count},"method":"reach","params":{{"capability":"{capability}","params":{{"caller":{number},"n":{count},"text":"a payload of a usual size for a tool call, some words long, that the agent gives back"}},{key}"wait":"30s"}}}}"#
        );
        let head = format!(
            "POST /rpc HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let began = Instant::now();
        to.write_all(format!("{head}{body}").as_bytes()).await?;
        let answer = reader.next().await?;
        let answer = answer.map(|answer| String::from_utf8_lossy(&answer.body).into_owned()).unwrap_or_default();
        if answer.contains(r#""phase":"completed""#) {
            latencies.push(began.elapsed().as_secs_f64() * 1000.0);
        } else {
            errors += 1;
        }
    }
    Ok((latencies, errors))
}
