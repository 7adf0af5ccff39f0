//! Waiting for the end of a task: woken, never polling. Register first, then read.

use reach_core::access::Grant;
use reach_schemas::call::{TaskWait, WAIT_MAX};
use reach_schemas::{ErrorCode, Failure, Span, Submit, TaskId, TaskView};
use tokio_util::sync::CancellationToken;

use super::bounds;
use crate::gateway::{Gateway, task_not_found};
use crate::waiters::Waiter;

/// How long `task/wait` waits if its caller does not say.
const WAIT: Span = Span::from_secs(30);
/// What `reach` waits beyond the attempt's own timeout.
const SLACK: Span = Span::from_secs(1);

impl Gateway {
    /// Waits until a task is final, and answers it as it is then; or as it is when the wait is over.
    ///
    /// # Errors
    /// The wait is too long, or there is no such task that the caller may see.
    pub async fn wait(&self, grant: Grant, request: TaskWait) -> Result<TaskView, Failure> {
        self.wait_unless(&CancellationToken::new(), grant, request).await
    }

    /// As [`Gateway::wait`], and no longer than until nobody hears the answer any more.
    ///
    /// # Errors
    /// As there.
    pub async fn wait_unless(
        &self,
        gone: &CancellationToken,
        grant: Grant,
        request: TaskWait,
    ) -> Result<TaskView, Failure> {
        let wait = bounds::wait(request.wait, WAIT)?;
        self.visible(&grant, request.task_id).await?;
        let view = self.wait_for(gone, request.task_id, wait).await?;
        Ok(self.seen_by(&grant, view))
    }

    async fn wait_for(&self, gone: &CancellationToken, id: TaskId, wait: Span) -> Result<TaskView, Failure> {
        let waiter = self.waiters.register(id);
        let task = self.load(id).await?.ok_or_else(task_not_found)?;
        if task.state.phase.name().is_final() {
            return Ok(task.view());
        }
        self.wait_on(gone, waiter, id, wait).await
    }

    /// Waits on a waiter that was registered before the task was last read as unfinished.
    async fn wait_on(
        &self,
        gone: &CancellationToken,
        mut waiter: Waiter,
        id: TaskId,
        wait: Span,
    ) -> Result<TaskView, Failure> {
        let finished = tokio::select! {
            finished = tokio::time::timeout(wait.into(), waiter.finished()) => finished.ok().flatten(),
            () = self.stopping.cancelled() => None,
            () = gone.cancelled() => None,
        };
        if let Some(task) = finished {
            return Ok(task.view());
        }
        // The wait is over; a wake that was lost is made good by reading once more. Whatever goes on is on disk before
        // its id is given out.
        let task = self.load(id).await?.ok_or_else(task_not_found)?;
        if gone.is_cancelled() {
            return Ok(task.view());
        }
        Ok(self.promised(task).await?.view())
    }

    /// Submits a task and waits for its end. If that does not come in time, the task goes on and the answer's outcome
    /// is `REACH_TIMEOUT`, with the task's id to wait on. A `read` without an idempotency key touches no disk before
    /// that.
    ///
    /// # Errors
    /// As [`Gateway::submit`]; or the wait was over and the task cannot be made durable.
    pub async fn reach(&self, grant: Grant, submit: Submit) -> Result<TaskView, Failure> {
        self.reach_unless(&CancellationToken::new(), grant, submit).await
    }

    /// As [`Gateway::reach`], and no longer than until nobody hears the answer any more; the task goes on all the same.
    ///
    /// # Errors
    /// As there.
    pub async fn reach_unless(
        &self,
        gone: &CancellationToken,
        grant: Grant,
        submit: Submit,
    ) -> Result<TaskView, Failure> {
        let id = self.new_task_id();
        let waiter = self.waiters.register(id);
        let asked = submit.wait;
        let view = self.submit_as(id, &grant, submit, true).await?;
        self.interest.keep(view.task_id);
        let wait = asked.unwrap_or_else(|| (self.usual_wait(view.task_id) + SLACK).min(WAIT_MAX));
        let mut end = if view.phase.is_final() {
            view.clone()
        } else if view.task_id == id {
            self.wait_on(gone, waiter, id, wait).await?
        } else {
            self.wait_for(gone, view.task_id, wait).await?
        };
        end.replayed = view.replayed;
        if !end.phase.is_final() {
            end.outcome = Some(ErrorCode::Timeout.outcome().to_owned());
        }
        Ok(end)
    }

    fn usual_wait(&self, id: TaskId) -> Span {
        let plan = self.open.get(id).and_then(|task| task.state.plan.as_ref().map(|plan| plan.attempt_timeout));
        plan.unwrap_or(reach_schemas::Tier::Normal.attempt_timeout())
    }
}
