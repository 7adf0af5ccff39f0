//! A task in the making.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use reach_schemas::call::{OnFailed, OnInFlight, Resolved};
use reach_schemas::{Callback, Mode, RawJson, Submit};
use serde::Serialize;

use super::{Client, Completed, TaskHandle, abandon};
use crate::error::{Error, Result};

/// A task in the making; from [`Client::task`] or [`Client::intent`]. A part that cannot be used is reported when the
/// task is sent, so that the chain needs no question marks.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is sent"]
pub struct TaskRequest {
    client: Client,
    submit: Submit,
    timeout: Option<Duration>,
    is_keyless: bool,
    is_cancelled_with: bool,
    mistake: Option<Error>,
}

impl TaskRequest {
    pub(crate) fn new(client: Client) -> Self {
        Self::from_submit(client, Submit::default())
    }

    pub(crate) fn from_submit(client: Client, submit: Submit) -> Self {
        let timeout = submit.deadline.map(Into::into);
        Self { client, submit, timeout, is_keyless: false, is_cancelled_with: false, mistake: None }
    }

    /// Asks for this capability.
    pub fn capability(mut self, name: impl AsRef<str>) -> Self {
        self.submit.capability = self.parsed("capability", name.as_ref());
        self
    }

    /// Says in words what is wanted; beside a capability it only helps to choose.
    pub fn intent(mut self, intent: impl Into<String>) -> Self {
        self.submit.intent = Some(intent.into());
        self
    }

    /// Asks this agent and no other.
    pub fn to_agent(mut self, agent_id: impl AsRef<str>) -> Self {
        self.submit.to_agent = self.parsed("to_agent", agent_id.as_ref());
        self
    }

    /// Says who asks, in place of the client's own.
    pub fn from_agent(mut self, agent_id: impl AsRef<str>) -> Self {
        self.submit.from_agent = self.parsed("from_agent", agent_id.as_ref());
        self
    }

    /// Looks in this namespace only.
    pub fn namespace(mut self, namespace: impl AsRef<str>) -> Self {
        self.submit.namespace = self.parsed("namespace", namespace.as_ref());
        self
    }

    /// The parameters.
    pub fn params<T: Serialize + ?Sized>(mut self, params: &T) -> Self {
        match RawJson::of(params) {
            Ok(params) => self.submit.params = Some(params),
            Err(error) => self.note(format!("params: {error}")),
        }
        self
    }

    /// The parameters, as they are to reach the agent, letter by letter.
    pub fn raw_params(mut self, params: RawJson) -> Self {
        self.submit.params = Some(params);
        self
    }

    /// How the task finds its agent.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.submit.mode = mode;
        self
    }

    /// 0 to 9, 9 first.
    pub fn priority(mut self, priority: u8) -> Self {
        self.submit.priority = Some(priority);
        self
    }

    /// The caller's own name for this intention, in place of one made up for this request. Give one where the caller
    /// itself may be started again and ask twice.
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        self.submit.idempotency_key = self.parsed("idempotency_key", key.as_ref());
        self
    }

    /// Sends no idempotency key. A `read` that is waited for then never touches the gateway's disk; but if the answer
    /// is lost, the call is not tried again.
    pub fn without_key(mut self) -> Self {
        self.is_keyless = true;
        self
    }

    /// For [`TaskRequest::reach`]: calls the task off if its future is dropped, or gives up waiting, before the task has
    /// ended; also if the task's id was not known yet.
    pub fn cancel_on_drop(mut self) -> Self {
        self.is_cancelled_with = true;
        self
    }

    /// What an earlier task of the same key that did not end well means.
    pub fn on_failed(mut self, on_failed: OnFailed) -> Self {
        self.submit.on_failed = on_failed;
        self
    }

    /// What an unfinished task of the same key means.
    pub fn on_in_flight(mut self, on_in_flight: OnInFlight) -> Self {
        self.submit.on_in_flight = on_in_flight;
        self
    }

    /// How long all of it may take: the task's deadline, from now. [`TaskRequest::reach`] waits as long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.submit.deadline = Some(timeout.into());
        self.timeout = Some(timeout);
        self
    }

    /// How long one attempt may take.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.submit.attempt_timeout = Some(timeout.into());
        self
    }

    /// How many tries at most, 1 to 10. An agent that is full, or that gives the work back before it has begun, has not
    /// tried.
    pub fn tries(mut self, tries: u32) -> Self {
        self.submit.tries = Some(tries);
        self
    }

    /// W3C `traceparent`: what is done for the task hangs under its span. Without one, a trace begins.
    pub fn traceparent(mut self, traceparent: impl Display) -> Self {
        self.submit.traceparent = self.parsed("traceparent", &traceparent.to_string());
        self
    }

    /// Has the end of the task told to this address, by a signed webhook. May be called several times.
    pub fn callback(mut self, url: impl Into<String>) -> Self {
        self.submit.callbacks.push(Callback { url: url.into() });
        self
    }

    /// The request as it would be sent, with its key.
    ///
    /// # Errors
    /// [`Error::Config`] names the first part that cannot be used.
    pub fn build(self) -> Result<Submit> {
        self.finish().map(|(_, submit)| submit)
    }

    /// Submits the task. Once this returns, it is durable.
    ///
    /// # Errors
    /// [`Error::Config`] names the first part that cannot be used; further as [`Client::submit`].
    pub async fn submit(self) -> Result<TaskHandle> {
        let (client, submit) = self.finish()?;
        let view = client.invoke(reach_schemas::Method::TaskSubmit, &submit).await?;
        Ok(TaskHandle::new(client, view))
    }

    /// Submits the task and waits for its result.
    ///
    /// # Errors
    /// [`Error::Config`] names the first part that cannot be used; further as [`Client::reach`].
    pub async fn reach(self) -> Result<Completed> {
        // The gateway ends the task at its deadline; a moment more lets that answer come back.
        let timeout = self.timeout.map(|timeout| timeout + Duration::from_secs(5));
        let is_cancelled_with = self.is_cancelled_with;
        let (client, submit) = self.finish()?;
        if is_cancelled_with {
            return abandon::reach(client, submit, timeout).await;
        }
        client.reach_as_is(submit, timeout).await
    }

    /// Which agent would get the task, and where it is. Nothing is submitted.
    ///
    /// # Errors
    /// [`Error::Config`] names the first part that cannot be used; further as [`Client::resolve`].
    pub async fn resolve(self) -> Result<Resolved> {
        let (client, submit) = self.finish()?;
        client.resolve(Submit { idempotency_key: None, ..submit }).await
    }

    fn finish(self) -> Result<(Client, Submit)> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let mut submit = self.submit;
        if self.is_keyless {
            submit.idempotency_key = None;
            self.client.sign(&mut submit.from_agent);
        } else {
            submit = self.client.filled(submit)?;
        }
        Ok((self.client, submit))
    }

    fn parsed<T: FromStr<Err: Display>>(&mut self, field: &str, text: &str) -> Option<T> {
        text.parse().map_err(|error: T::Err| self.note(format!("{field}: {error}"))).ok()
    }

    /// Keeps the first mistake.
    fn note(&mut self, mistake: String) {
        self.mistake.get_or_insert(Error::Config(mistake));
    }
}
