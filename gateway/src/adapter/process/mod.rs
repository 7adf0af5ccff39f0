//! Agents that are commands: each delivery starts one.
//!
//! - The endpoint's address is the command line. No shell is involved.
//! - Standard input: the parameters as JSON (`{}` if there are none) and a line feed, then it is closed.
//! - Standard output: the result, one JSON value of at most 8 MiB, and exit code 0.
//! - Standard error: goes to the gateway's log line by line; the last of it is quoted if the command fails.
//! - Environment: `PATH` and a few more of the gateway's, `AGENT_REACH_TASK_ID`, `AGENT_REACH_TOKEN`,
//!   `AGENT_REACH_IDEMPOTENCY_KEY`, `AGENT_REACH_CAPABILITY`, `AGENT_REACH_DEADLINE` (when this attempt is ended), and
//!   `TRACEPARENT` if the caller sent one.
//! - Exit codes: 64 to 66, failed for good; 75, failed, try again; any other, failed: tried again if the effect allows
//!   it, else unknown. Killed by a signal: unknown.
//! - A probe starts the card's `probe.command`, in the same way but for the input, which is empty, and the task's part
//!   of the environment, in whose place `AGENT_REACH_AGENT_ID` stands: exit code 0 is well, and standard output may be
//!   the health report. Without one, the agent's own program must be there and executable, and nothing is run.
//! - The command is ended with everything that it started when its time is over, when it is called off, when its
//!   delivery is given up, and when it leaves children behind.

mod command;
mod talk;
mod verdict;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reach_core::task::event::Trace;
use reach_schemas::call::HealthReport;
use reach_schemas::{AgentId, Delivery, Endpoint, ErrorCode, Failure, FencingToken, ProbePolicy, Span, TaskId};
use tokio::sync::oneshot;
use tokio::time::sleep_until;

use self::command::Line;
use self::talk::{Said, talk};
use crate::adapter::{Adapter, Answer, Delivered, not_started};
use crate::child::Group;
use crate::clock::Clock;

type Attempt = (TaskId, FencingToken);

/// Reaches agents by starting commands. How many run at once is the bulkhead's affair.
pub struct ProcessAdapter {
    clock: Clock,
    directory: Option<PathBuf>,
    running: Mutex<HashMap<Attempt, oneshot::Sender<()>>>,
}

/// An attempt's place among those that can be called off.
struct Place<'a> {
    adapter: &'a ProcessAdapter,
    attempt: Attempt,
}

impl ProcessAdapter {
    /// An adapter that gives up by this clock, and starts commands in the gateway's own folder.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, directory: None, running: Mutex::default() }
    }

    /// Starts commands in this folder instead. A program that is named by a relative path is looked for there.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Attempt, oneshot::Sender<()>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, attempt: Attempt) -> (Place<'_>, oneshot::Receiver<()>) {
        let (sender, called_off) = oneshot::channel();
        self.lock().insert(attempt, sender);
        (Place { adapter: self, attempt }, called_off)
    }

    async fn run(&self, endpoint: &Endpoint, delivery: Delivery) -> Delivered {
        let unreachable = |why: String| not_started(Failure::new(ErrorCode::Unreachable, why));
        let line = match Line::parse("endpoint", &endpoint.address) {
            Ok(line) => line,
            Err(why) => return unreachable(why),
        };
        let mut group = match Group::start(&mut line.for_delivery(self.directory.as_deref(), &delivery)) {
            Ok(group) => group,
            Err(error) => return unreachable(self.why_not_started(&line, &error)),
        };
        self.see_through(&mut group, delivery).await
    }

    async fn see_through(&self, group: &mut Group, delivery: Delivery) -> Delivered {
        let (_place, called_off) = self.enter((delivery.task_id, delivery.token));
        let mut input = delivery.params.as_ref().map_or("{}", |params| params.get()).to_owned();
        input.push('\n');
        let mut said = Said::new(delivery.agent_id, Some(delivery.task_id));
        let unknown =
            |code, message: &str| Delivered::Failed { failure: Failure::new(code, message), trace: Trace::Unknown };
        let ended = tokio::select! {
            ended = talk(group, input.as_bytes(), &mut said) => ended,
            Ok(()) = called_off => return unknown(ErrorCode::Cancelled, "the command was called off and ended"),
            () = sleep_until(self.clock.instant(delivery.attempt_until)) => {
                return unknown(ErrorCode::Timeout, "the command took longer than its time and was ended");
            }
        };
        match ended {
            Ok(ended) => verdict::delivered(&ended, &said, delivery.effect),
            Err(error) => unknown(ErrorCode::AgentLost, &format!("the command cannot be waited for: {error}")),
        }
    }

    /// Runs a check until it ends or its time is over; then it is ended with everything that it started.
    async fn check(&self, line: &str, agent: &AgentId, timeout: Span) -> Result<HealthReport, String> {
        let line = Line::parse("probe", line)?;
        let mut group = Group::start(&mut line.for_probe(self.directory.as_deref(), agent))
            .map_err(|error| self.why_not_started(&line, &error))?;
        let mut said = Said::new(agent.clone(), None);
        match tokio::time::timeout(timeout.into(), talk(&mut group, b"", &mut said)).await {
            Ok(Ok(ended)) => verdict::health(&ended, &said),
            Ok(Err(error)) => Err(format!("the probe's command cannot be waited for: {error}")),
            Err(_) => Err("the probe's command took longer than the time of the probe and was ended".to_owned()),
        }
    }

    fn why_not_started(&self, line: &Line, error: &io::Error) -> String {
        let why = line.find(self.directory.as_deref()).err().unwrap_or_else(|| error.to_string());
        format!("the command {:?} cannot be started: {why}", line.program)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.adapter.lock().remove(&self.attempt);
    }
}

impl Adapter for ProcessAdapter {
    fn deliver<'a>(&'a self, endpoint: &'a Endpoint, delivery: Delivery) -> Answer<'a, Delivered> {
        Box::pin(self.run(endpoint, delivery))
    }

    /// Returns at once; the command's group is ended meanwhile, by force after two seconds.
    fn cancel<'a>(&'a self, _: &'a Endpoint, _: &'a AgentId, task: TaskId, token: FencingToken) -> Answer<'a, ()> {
        let called_off = self.lock().remove(&(task, token));
        Box::pin(async move {
            // Whoever no longer listens has just ended.
            let _ = called_off.map(|sender| sender.send(()));
        })
    }

    fn probe<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        agent: &'a AgentId,
        policy: &'a ProbePolicy,
    ) -> Answer<'a, Result<HealthReport, String>> {
        Box::pin(async move {
            match &policy.command {
                Some(line) => self.check(line, agent, policy.timeout).await,
                None => {
                    let line = Line::parse("endpoint", &endpoint.address)?;
                    line.find(self.directory.as_deref()).map(|()| HealthReport::default())
                }
            }
        })
    }
}
