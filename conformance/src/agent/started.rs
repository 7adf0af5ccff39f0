//! The agent's own process, if the runner starts it, and the last that it wrote to standard error.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

use super::tokens;
use super::work::now;
use crate::child::{self, Group};

/// How much of what it wrote is kept, in bytes, and how many lines of that are told.
const TAIL_MAX: usize = 4 << 10;
const LINES_MAX: usize = 8;
/// How long the rest of what it wrote is waited for once it has ended: a child of its own may hold the stream open.
const REST: Duration = Duration::from_millis(500);

/// A started agent.
pub(crate) struct Started {
    group: Group,
    tail: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
    /// Where it keeps its key, for this run only.
    key: Option<PathBuf>,
}

impl Started {
    /// Starts it, and tells it where the runner listens.
    pub(crate) fn start(line: &str, address: Option<SocketAddr>, demands_tokens: bool) -> Result<Self, String> {
        let mut command = child::command(line)?;
        command.stderr(Stdio::piped());
        if let Some(address) = address {
            command.env("AGENT_REACH_URL", format!("http://{address}"));
        }
        let key = demands_tokens.then(key_file);
        if let Some(key) = &key {
            command.env("AGENT_REACH_JOIN", tokens::JOIN).env("AGENT_REACH_KEY_FILE", key);
        }
        let mut group = Group::start(&mut command)?;
        let stderr = group.leader.stderr.take().ok_or("the command has no standard error")?;
        let tail = Arc::default();
        let reading = tokio::spawn(pass_on(stderr, Arc::clone(&tail)));
        Ok(Self { group, tail, reading, key })
    }

    /// Its id, to signal it by.
    pub(crate) const fn id(&self) -> Pid {
        self.group.id()
    }

    /// Waits until it has ended. None: it has not within this time.
    pub(crate) async fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        self.group.ended(within).await
    }

    /// Waits until it has ended with a failure, and tells how. One that ends well may have started the agent elsewhere.
    pub(crate) async fn fell(&mut self) -> String {
        match self.group.leader.wait().await {
            Ok(status) if !status.success() => {
                let how = status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
                if !self.reading.is_finished() {
                    let _ = tokio::time::timeout(REST, &mut self.reading).await;
                }
                format!("your agent ended with {how}{}", self.last_words())
            }
            Ok(_) | Err(_) => std::future::pending().await,
        }
    }

    fn last_words(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
        if last.is_empty() {
            return ", and wrote nothing to standard error".to_owned();
        }
        format!("; the last that it wrote:\n    {}", last.join("\n    "))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            // One that made no key has none to forget.
            let _ = std::fs::remove_file(key);
        }
    }
}

/// Passes on what it writes, and keeps the end of it.
async fn pass_on(mut stderr: ChildStderr, tail: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = vec![0; TAIL_MAX];
    while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
        // If nobody reads it here, it is kept all the same.
        let _ = std::io::stderr().write_all(&chunk[..length]);
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&chunk[..length]);
        let surplus = tail.len().saturating_sub(TAIL_MAX);
        tail.drain(..surplus);
    }
}

/// Where an agent that the runner starts keeps its key: nowhere that anybody else looks.
fn key_file() -> PathBuf {
    let unique = format!("reach-conformance-{}-{:x}.key", std::process::id(), now().as_ms());
    std::env::temp_dir().join(unique)
}
