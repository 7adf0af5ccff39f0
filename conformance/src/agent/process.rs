//! Agents that are commands: parameters on standard input, the result on standard output.

use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::desk::Desk;
use super::work::{Event, Key, Work};
use crate::child::{self, GRACE, Group};
use crate::exchange::{Way, short};

/// The largest result that is read.
const RESULT_MAX: u64 = 8 << 20;
/// How much of standard error is read.
const COMPLAINTS_MAX: u64 = 64 << 10;

/// The command, and what of it runs.
pub(crate) struct Process {
    line: String,
    running: Mutex<BTreeMap<Key, Pid>>,
}

impl Process {
    /// Nothing runs yet.
    pub(crate) fn new(line: String) -> Arc<Self> {
        Arc::new(Self { line, running: Mutex::default() })
    }

    /// Starts it for an attempt, and notes how that ends.
    pub(crate) async fn run(self: Arc<Self>, desk: Arc<Desk>, work: Work) {
        let key = work.key();
        desk.note(key, Event::Sent);
        let event = match self.see_through(&desk, &work).await {
            Ok(event) => event,
            Err(why) => Event::Lost(why),
        };
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        desk.exchange.add(Way::In, &event.words());
        desk.note(key, event);
    }

    async fn see_through(&self, desk: &Desk, work: &Work) -> Result<Event, String> {
        let mut command = child::command(&self.line)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("AGENT_REACH_TASK_ID", work.task_id.to_string());
        command.env("AGENT_REACH_TOKEN", work.token.to_string());
        command.env("AGENT_REACH_IDEMPOTENCY_KEY", &work.idempotency_key);
        command.env("AGENT_REACH_CAPABILITY", work.capability.as_str());
        command.env("AGENT_REACH_DEADLINE", work.until().to_string());
        command.envs(work.traceparent.as_ref().map(|traceparent| ("TRACEPARENT", traceparent)));
        let mut group = Group::start(&mut command)?;
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(work.key(), group.id());
        let mut input = work.params.as_ref().map_or("{}", |params| params.get()).to_owned();
        input.push('\n');
        desk.exchange.add(Way::Out, &format!("{} < {input}", self.line));
        let mut stdin = group.leader.stdin.take();
        let (stdout, stderr) = (group.leader.stdout.take(), group.leader.stderr.take());
        let feed = async {
            if let Some(stdin) = stdin.as_mut() {
                // A command that does not read its input is free not to.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
            drop(stdin.take());
        };
        let talk = async { tokio::join!(feed, whole(stdout, RESULT_MAX), whole(stderr, COMPLAINTS_MAX)) };
        let within = work.attempt_timeout + GRACE;
        let ((), printed, complaint) =
            tokio::time::timeout(within, talk).await.map_err(|_| format!("it did not end within {within:?}"))?;
        let status = group.ended(within).await.ok_or_else(|| format!("it did not end within {within:?}"))?;
        Ok(event(status, printed, &complaint))
    }

    /// Ends an attempt as the gateway does: SIGTERM, and SIGKILL after a grace. Answers how long it took to end by
    /// itself. None: it is not there, or had to be killed.
    pub(crate) async fn cancel(&self, desk: &Desk, key: Key) -> Option<Duration> {
        let id = self.running.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied()?;
        let began = Instant::now();
        desk.exchange.add(Way::Out, "SIGTERM");
        child::signal(id, Signal::SIGTERM);
        let ended = desk.wait(GRACE, |state| {
            let events = state.attempts.get(&key)?;
            events.iter().any(|(_, event)| event.is_end()).then_some(())
        });
        if ended.await.is_some() {
            return Some(began.elapsed());
        }
        desk.exchange.add(Way::Out, "SIGKILL");
        child::signal(id, Signal::SIGKILL);
        None
    }
}

async fn whole(stream: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // What was read until it broke is what it said.
        let _ = stream.take(most + 1).read_to_end(&mut bytes).await;
    }
    bytes
}

/// What the end of a command means.
fn event(status: ExitStatus, printed: Vec<u8>, complaint: &[u8]) -> Event {
    let complaint = short(&String::from_utf8_lossy(complaint));
    match status.code() {
        Some(0) => {
            let text = String::from_utf8(printed).unwrap_or_else(|_| "(no UTF-8)".to_owned());
            let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text.trim()).is_ok();
            Event::Result { text: text.trim().to_owned(), is_json, says_json: true }
        }
        Some(code @ 64..=66) => Event::Failed { for_good: true, why: format!("exit code {code}: {complaint}") },
        Some(code) => Event::Failed { for_good: false, why: format!("exit code {code}: {complaint}") },
        None => Event::Lost(format!("{status}: {complaint}")),
    }
}
