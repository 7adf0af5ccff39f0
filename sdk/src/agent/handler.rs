//! What a user writes: a handler for each capability.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reach_schemas::{AgentId, CapabilityName, Delivery, RawJson, TaskId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Context, HandlerError};

/// Does the work of one capability. An `async fn(Task, Context) -> Result<T, HandlerError>` is one already; write the
/// trait out where the handler has a state of its own.
///
/// ```
/// use agent_reach_sdk::{Context, Handler, HandlerError, Task};
///
/// struct Greeter {
///     greeting: String,
/// }
///
/// impl Handler for Greeter {
///     type Output = String;
///
///     async fn handle(&self, task: Task, _context: Context) -> Result<String, HandlerError> {
///         let name: String = task.params()?;
///         Ok(format!("{}, {name}", self.greeting))
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// The result, written as JSON.
    type Output: Serialize + Send;

    /// Does one task. The attempt is accepted before this is called. When the attempt is called off, the context says
    /// so, and after a while the future is dropped.
    fn handle(&self, task: Task, context: Context) -> impl Future<Output = Result<Self::Output, HandlerError>> + Send;
}

impl<F, Fut, T> Handler for F
where
    F: Fn(Task, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, HandlerError>> + Send,
    T: Serialize + Send,
{
    type Output = T;

    fn handle(&self, task: Task, context: Context) -> impl Future<Output = Result<T, HandlerError>> + Send {
        self(task, context)
    }
}

/// A handler of any type.
pub(super) type AnyHandler =
    Arc<dyn Fn(Task, Context) -> BoxFuture<'static, Result<RawJson, HandlerError>> + Send + Sync>;

pub(super) fn erase(handler: impl Handler) -> AnyHandler {
    let handler = Arc::new(handler);
    Arc::new(move |task, context| {
        let handler = handler.clone();
        Box::pin(async move {
            let output = handler.handle(task, context).await?;
            RawJson::of(&output).map_err(|error| HandlerError::failed(format!("the result is not JSON: {error}")))
        })
    })
}

/// The work of one attempt.
#[derive(Debug, Clone)]
pub struct Task {
    delivery: Delivery,
}

impl Task {
    pub(super) fn new(delivery: Delivery) -> Self {
        Self { delivery }
    }

    /// The parameters as a type; absent ones are `null`.
    ///
    /// # Errors
    /// The parameters do not have that form. By `?` this becomes a final failure.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        let text = self.delivery.params.as_ref().map_or("null", RawJson::get);
        serde_json::from_str(text).map_err(|error| HandlerError::failed(format!("params: {error}")))
    }

    /// The parameters, as the caller wrote them.
    #[must_use]
    pub fn raw_params(&self) -> Option<&RawJson> {
        self.delivery.params.as_ref()
    }

    /// What is asked for.
    #[must_use]
    pub fn capability(&self) -> &CapabilityName {
        &self.delivery.capability
    }

    /// What the caller wants, in words, if it said so.
    #[must_use]
    pub fn intent(&self) -> Option<&str> {
        self.delivery.intent.as_deref()
    }

    /// Who asks.
    #[must_use]
    pub fn from_agent(&self) -> Option<&AgentId> {
        self.delivery.from_agent.as_ref()
    }

    /// The task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.delivery.task_id
    }

    /// All that came with it.
    #[must_use]
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }
}
