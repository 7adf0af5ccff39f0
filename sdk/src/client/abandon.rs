//! Calls tasks off whose callers have gone. A future that is dropped cannot wait for an answer, so the last word is said
//! by a task of its own.

use std::time::Duration;

use reach_schemas::{Method, Submit, TaskId, TaskView};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Client, Completed, TaskHandle};
use crate::error::{Error, Result};

/// Calls a task off when it is dropped, unless it was disarmed; from [`Client::cancel_on_drop`].
#[derive(Debug)]
#[must_use = "dropping it calls the task off"]
pub struct CancelOnDrop {
    client: Client,
    task_id: Option<TaskId>,
}

impl CancelOnDrop {
    /// Leaves the task alone.
    pub fn disarm(mut self) {
        self.task_id = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // Without a runtime nobody is left to say it; the task then ends at its deadline.
        if let (Some(task_id), Ok(runtime)) = (self.task_id, Handle::try_current()) {
            let client = self.client.clone();
            runtime.spawn(async move { call_off(&client, task_id).await });
        }
    }
}

impl Client {
    /// Calls a task off when the answer is dropped. It is said once more only as the retry policy has it, and not at all
    /// if no tokio runtime runs where it is dropped.
    pub fn cancel_on_drop(&self, task_id: TaskId) -> CancelOnDrop {
        CancelOnDrop { client: self.clone(), task_id: Some(task_id) }
    }
}

async fn call_off(client: &Client, task_id: TaskId) {
    if let Err(error) = client.cancel(task_id).await {
        tracing::debug!(%task_id, %error, "a task that nobody waits for was not called off");
    }
}

/// Submits a task and waits for its end; calls it off if that is given up.
pub(super) async fn reach(client: Client, submit: Submit, timeout: Option<Duration>) -> Result<Completed> {
    let begun = Instant::now();
    let (sender, submitted) = oneshot::channel();
    let submitting = client.clone();
    // Apart from its caller: a task that was taken on, but whose id nobody has heard, is called off as well.
    tokio::spawn(async move {
        let view: Result<TaskView> = submitting.invoke(Method::TaskSubmit, &submit).await;
        if let Err(Ok(unheard)) = sender.send(view) {
            call_off(&submitting, unheard.task_id).await;
        }
    });
    let view = submitted.await.map_err(|_| Error::maybe_sent("the runtime is stopping"))??;
    let guard = client.cancel_on_drop(view.task_id);
    let handle = TaskHandle::new(client, view);
    let ended = match timeout {
        Some(timeout) => handle.wait_for(timeout.saturating_sub(begun.elapsed())).await,
        None => handle.wait().await,
    };
    if ended.as_ref().err().is_none_or(|error| error.refusal().is_some()) {
        guard.disarm();
    }
    ended
}
