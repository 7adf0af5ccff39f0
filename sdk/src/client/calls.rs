//! The calls, one method each.

use std::time::Duration;

use reach_schemas::call::{
    AgentList, AgentRef, AgentView, Agents, Capabilities, CapabilityFind, Drained, Found, Redrive, Redriven, Resolved,
    TaskList, TaskRef, Tasks,
};
use reach_schemas::{AgentId, Explanation, IdempotencyKey, Method, Submit, TaskId, TaskView};

use super::{Client, Completed, TaskHandle, TaskRequest};
use crate::error::{Error, Result};

impl Client {
    /// Asks for a capability by its name.
    pub fn task(&self, capability: impl AsRef<str>) -> TaskRequest {
        TaskRequest::new(self.clone()).capability(capability)
    }

    /// Asks for whatever fits these words.
    pub fn intent(&self, intent: impl Into<String>) -> TaskRequest {
        TaskRequest::new(self.clone()).intent(intent)
    }

    /// A task in the making, from a request that is there already.
    pub fn request(&self, submit: impl Into<Submit>) -> TaskRequest {
        TaskRequest::from_submit(self.clone(), submit.into())
    }

    /// Submits a task. Once this returns, the task is durable.
    ///
    /// A request without a key gets one of its own, the same over all tries of this submit.
    ///
    /// # Errors
    /// What the gateway answered, or what happened on the way. After [`Error::Transport`] the task may have been taken
    /// on; submitting again with the same key is safe.
    pub async fn submit(&self, submit: impl Into<Submit>) -> Result<TaskHandle> {
        let submit = self.filled(submit.into())?;
        let view: TaskView = self.invoke(Method::TaskSubmit, &submit).await?;
        Ok(TaskHandle::new(self.clone(), view))
    }

    /// Submits a task and waits for its end, at most for `timeout`. `None`: as long as the task's own deadline lets it
    /// run.
    ///
    /// # Errors
    /// As [`Client::submit`]; further the task's own failure, or [`Error::WaitTimeout`].
    pub async fn reach(&self, submit: impl Into<Submit>, timeout: Option<Duration>) -> Result<Completed> {
        let submit = self.filled(submit.into())?;
        self.reach_as_is(submit, timeout).await
    }

    /// The task as it is now.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, or none that may be seen; what happened on the way.
    pub async fn get(&self, task_id: TaskId) -> Result<TaskView> {
        self.invoke(Method::TaskGet, &TaskRef { task_id }).await
    }

    /// A handle on a task that was submitted before, for example by another process.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn handle(&self, task_id: TaskId) -> Result<TaskHandle> {
        Ok(TaskHandle::new(self.clone(), self.get(task_id).await?))
    }

    /// Tasks, newest first.
    ///
    /// # Errors
    /// What the gateway answered, or what happened on the way.
    pub async fn list(&self, which: &TaskList) -> Result<Vec<TaskView>> {
        self.invoke(Method::TaskList, which).await.map(|answer: Tasks| answer.tasks)
    }

    /// Calls a task off and answers what it is then. One that has ended stays as it ended.
    ///
    /// # Errors
    /// [`Error::NotFound`] or [`Error::WrongPhase`]; what happened on the way.
    pub async fn cancel(&self, task_id: TaskId) -> Result<TaskView> {
        self.invoke(Method::TaskCancel, &TaskRef { task_id }).await
    }

    /// Every routing decision that was taken for a task.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn explain(&self, task_id: TaskId) -> Result<Explanation> {
        self.invoke(Method::TaskExplain, &TaskRef { task_id }).await
    }

    /// Which agent would get this task, and where it is, for those who go there themselves. Nothing is submitted.
    ///
    /// # Errors
    /// [`Error::NoCandidate`] if nobody fits; what happened on the way.
    pub async fn resolve(&self, submit: impl Into<Submit>) -> Result<Resolved> {
        let mut submit = submit.into();
        self.sign(&mut submit.from_agent);
        self.invoke(Method::Resolve, &submit).await
    }

    /// Capabilities that fit these words, best first.
    ///
    /// # Errors
    /// What the gateway answered, or what happened on the way.
    pub async fn discover(&self, intent: impl Into<String>) -> Result<Vec<Found>> {
        self.find(CapabilityFind { intent: Some(intent.into()), namespace: None, from_agent: None, limit: None }).await
    }

    /// Capabilities, as the search says.
    ///
    /// # Errors
    /// What the gateway answered, or what happened on the way.
    pub async fn find(&self, mut search: CapabilityFind) -> Result<Vec<Found>> {
        self.sign(&mut search.from_agent);
        self.invoke(Method::CapabilityFind, &search).await.map(|answer: Capabilities| answer.capabilities)
    }

    /// Agents and how they are, in the order of their ids.
    ///
    /// # Errors
    /// What the gateway answered, or what happened on the way.
    pub async fn agents(&self, which: &AgentList) -> Result<Vec<AgentView>> {
        self.invoke(Method::AgentList, which).await.map(|answer: Agents| answer.agents)
    }

    /// One agent and how it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, or none that may be seen; what happened on the way.
    pub async fn agent(&self, agent_id: &AgentId) -> Result<AgentView> {
        self.invoke(Method::AgentGet, &AgentRef { agent_id: agent_id.clone() }).await
    }

    /// Sends an agent no new work; what it has may finish. Answers how many tasks that are.
    ///
    /// # Errors
    /// [`Error::NotFound`] or [`Error::Forbidden`]; what happened on the way.
    pub async fn drain(&self, agent_id: &AgentId) -> Result<u32> {
        let params = AgentRef { agent_id: agent_id.clone() };
        self.invoke(Method::AgentDrain, &params).await.map(|answer: Drained| answer.in_flight)
    }

    /// Tasks that were given up on, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without an operator's rights; what happened on the way.
    pub async fn dead_letters(&self, which: &TaskList) -> Result<Vec<TaskView>> {
        self.invoke(Method::DeadLetterList, which).await.map(|answer: Tasks| answer.tasks)
    }

    /// One task that was given up on, with its history.
    ///
    /// # Errors
    /// [`Error::NotFound`] or [`Error::Forbidden`]; what happened on the way.
    pub async fn dead_letter(&self, task_id: TaskId) -> Result<Explanation> {
        self.invoke(Method::DeadLetterGet, &TaskRef { task_id }).await
    }

    /// Sends dead letters again, under their own ids. It is not tried again if its answer is lost.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without an operator's rights; what happened on the way.
    pub async fn redrive(&self, which: &Redrive) -> Result<Redriven> {
        self.invoke(Method::DeadLetterRedrive, which).await
    }

    /// The request with what the client knows: its key and on whose behalf it is made.
    pub(crate) fn filled(&self, mut submit: Submit) -> Result<Submit> {
        if submit.idempotency_key.is_none() {
            submit.idempotency_key = Some(new_key()?);
        }
        self.sign(&mut submit.from_agent);
        Ok(submit)
    }

    pub(crate) fn sign(&self, from_agent: &mut Option<AgentId>) {
        if from_agent.is_none() {
            from_agent.clone_from(&self.inner.from_agent);
        }
    }
}

/// A key that nobody else has: a UUID of version 7.
fn new_key() -> Result<IdempotencyKey> {
    uuid::Uuid::now_v7().to_string().parse().map_err(Error::config)
}
