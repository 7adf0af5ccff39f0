//! Waiting for a task's end: long polls, one after another, through restarts of the gateway and broken connections.
//! The gateway wakes each poll when the task ends; nothing here looks again and again.

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::call::TaskWait;
use reach_schemas::{Method, Span, Submit, TaskId, TaskView};
use tokio::time::Instant;

use super::{Client, Completed, is_passing};
use crate::error::{Error, Result};

/// How long one poll waits: short enough for the proxies that end silent requests after a minute.
const POLL_MAX: Duration = Duration::from_secs(30);
/// A gateway that answers "not yet" at once is asked again no faster than this.
const POLL_PAUSE_MIN: Duration = Duration::from_millis(100);
/// How much longer than its caller wants to wait a call may take, so that its answer gets back.
const ANSWER_GRACE: Duration = Duration::from_secs(5);
/// How long after its own deadline a task's end is still waited for.
const GRACE: Duration = Duration::from_secs(30);

impl Client {
    /// Waits until the task has ended, at most for `timeout`.
    ///
    /// # Errors
    /// The task's own failure; [`Error::WaitTimeout`] if it has not ended by then; [`Error::NotFound`] and other
    /// refusals. A gateway that is away is waited for.
    pub async fn wait_for_result(&self, task_id: TaskId, timeout: Duration) -> Result<Completed> {
        Completed::of(self.wait_for_end(task_id, timeout).await?)
    }

    /// Waits until the task has ended, however it ends, at most for `timeout`.
    ///
    /// # Errors
    /// As [`Client::wait_for_result`], save for the task's own failure, which is in the view.
    pub async fn wait_for_end(&self, task_id: TaskId, timeout: Duration) -> Result<TaskView> {
        let begun = Instant::now();
        let mut trouble: Option<(u32, Error)> = None;
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                let source = trouble.map(|(_, error)| Arc::new(error));
                return Err(Error::WaitTimeout { task_id, waited: timeout, source });
            }
            let (asked, wait) = (Instant::now(), left.min(POLL_MAX));
            let pause = match self.poll(task_id, wait).await {
                Ok(view) if view.phase.is_final() => return Ok(view),
                Ok(_) => {
                    trouble = None;
                    POLL_PAUSE_MIN.saturating_sub(asked.elapsed())
                }
                Err(error) if is_passing(&error) => {
                    let failed = trouble.map_or(0, |(failed, _)| failed + 1);
                    let pause = self.inner.retry.pause(failed, error.retry_after(), fastrand::f64());
                    tracing::debug!(%task_id, ?pause, %error, "waiting goes on");
                    trouble = Some((failed, error));
                    pause
                }
                Err(error) => return Err(error),
            };
            tokio::time::sleep(pause.min(timeout.saturating_sub(begun.elapsed()))).await;
        }
    }

    async fn poll(&self, task_id: TaskId, wait: Duration) -> Result<TaskView> {
        let params = TaskWait { task_id, wait: Some(in_whole_ms(wait)) };
        self.once(Method::TaskWait, &params, wait).await
    }

    /// Submits and waits in one call, and goes on waiting if that call ends before the task does.
    pub(crate) async fn reach_as_is(&self, mut submit: Submit, timeout: Option<Duration>) -> Result<Completed> {
        let begun = Instant::now();
        let wait = timeout.unwrap_or(POLL_MAX).min(POLL_MAX);
        submit.wait = Some(in_whole_ms(wait));
        let mut call = self.prepare(Method::Reach, &submit, wait)?;
        call.timeout = timeout.map_or(call.timeout, |timeout| call.timeout.min(timeout + ANSWER_GRACE));
        let within = timeout.unwrap_or(Duration::MAX);
        let view: TaskView = super::read("reach", &self.retried_within(&call, within).await?)?;
        if view.phase.is_final() {
            return Completed::of(view);
        }
        let left = timeout.map_or_else(|| patience(&view), |timeout| timeout.saturating_sub(begun.elapsed()));
        self.wait_for_result(view.task_id, left).await
    }
}

/// How long a task can still be without an end: what its own deadline leaves it. Both ends are the gateway's clock.
pub(crate) fn patience(view: &TaskView) -> Duration {
    Duration::from(view.deadline_at.since(view.created_at)) + GRACE
}

fn in_whole_ms(duration: Duration) -> Span {
    Span::from_ms(Span::from(duration).as_ms().max(1))
}
