//! A task that was submitted, and a task that is done.

use std::time::Duration;

use reach_schemas::{AgentId, PhaseName, RawJson, TaskId, TaskView};
use serde::de::DeserializeOwned;

use super::{Client, wait};
use crate::error::{self, Error, Result};

/// A task that was submitted. Dropping it changes nothing: the task goes on.
#[derive(Debug, Clone)]
pub struct TaskHandle {
    client: Client,
    view: TaskView,
}

impl TaskHandle {
    pub(crate) fn new(client: Client, view: TaskView) -> Self {
        Self { client, view }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.view.task_id
    }

    /// How it was when last seen.
    #[must_use]
    pub fn view(&self) -> &TaskView {
        &self.view
    }

    /// Whether the gateway knew the request already, by its idempotency key.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.view.replayed
    }

    /// Waits for the result, as long as the task's own deadline lets it run.
    ///
    /// # Errors
    /// As [`Client::wait_for_result`].
    pub async fn wait(&self) -> Result<Completed> {
        self.wait_for(wait::patience(&self.view)).await
    }

    /// Waits for the result, at most for `timeout`.
    ///
    /// # Errors
    /// As [`Client::wait_for_result`].
    pub async fn wait_for(&self, timeout: Duration) -> Result<Completed> {
        if self.view.phase.is_final() {
            return Completed::of(self.view.clone());
        }
        self.client.wait_for_result(self.id(), timeout).await
    }

    /// Looks at the task again.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn refresh(&mut self) -> Result<&TaskView> {
        self.view = self.client.get(self.id()).await?;
        Ok(&self.view)
    }

    /// Calls the task off.
    ///
    /// # Errors
    /// As [`Client::cancel`].
    pub async fn cancel(&self) -> Result<TaskView> {
        self.client.cancel(self.id()).await
    }
}

/// A task that ended with a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    view: TaskView,
    result: RawJson,
}

impl Completed {
    /// The task, if it completed; else the error that its end stands for.
    pub(crate) fn of(view: TaskView) -> Result<Self> {
        if view.phase != PhaseName::Completed {
            return Err(error::of_task(&view));
        }
        let result = match &view.result {
            Some(result) => result.clone(),
            None => RawJson::parse("null").map_err(|error| Error::unreadable("null", error))?,
        };
        Ok(Self { view, result })
    }

    /// The result as a type.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the agent's result does not have that form.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T> {
        self.result.read().map_err(|error| Error::unreadable("the result", error))
    }

    /// The result as the agent wrote it; `null` if it gave none.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.result
    }

    /// The whole task.
    #[must_use]
    pub fn view(&self) -> &TaskView {
        &self.view
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.view.task_id
    }

    /// Who did it. `None`: a static answer did.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        self.view.to_agent.as_ref()
    }

    /// Whether a fallback answered in place of what was asked for.
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        self.view.outcome.as_deref() == Some(reach_schemas::error::REACH_FALLBACK)
    }
}
