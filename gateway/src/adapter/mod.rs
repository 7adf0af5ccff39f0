//! How agents are reached: one small trait, one implementation a protocol. An adapter moves one delivery, one
//! cancellation or one probe, and decides nothing: whether to try again is the core's affair.

pub mod http;
pub mod process;
pub mod session;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use reach_core::task::event::Trace;
use reach_schemas::{AgentId, Delivery, Endpoint, Failure, FencingToken, Protocol, RawJson, Span, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// A future that an adapter returns.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivered {
    /// The agent answered with the result.
    Done(RawJson),
    /// The agent has it and will report.
    Accepted,
    /// It failed.
    Failed {
        /// Why.
        failure: Failure,
        /// What is known of the work.
        trace: Trace,
    },
}

/// What an agent says of its health when it is probed. Every field is optional on the wire.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthReport {
    /// How many tasks wait within the agent.
    pub queue_depth: Option<u32>,
    /// The share of tasks that failed in the last ten minutes, 0 to 1.
    pub failure_rate_10m: Option<f64>,
    /// When a task last succeeded.
    pub last_success_at: Option<Timestamp>,
    /// How long the last task took, in ms.
    pub last_task_ms: Option<u64>,
}

/// Reaches agents over one protocol.
pub trait Adapter: Send + Sync + 'static {
    /// Hands a delivery over. Returns by the delivery's `attempt_until` at the latest; dropping the future gives it up.
    fn deliver<'a>(&'a self, endpoint: &'a Endpoint, delivery: Delivery) -> Answer<'a, Delivered>;

    /// Tells the agent to stop an attempt. Best effort.
    fn cancel<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        agent: &'a AgentId,
        task: TaskId,
        token: FencingToken,
    ) -> Answer<'a, ()>;

    /// Asks the agent how it is.
    ///
    /// # Errors
    /// No answer in time, or one that says it is not well: why.
    fn probe<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        agent: &'a AgentId,
        timeout: Span,
    ) -> Answer<'a, Result<HealthReport, String>>;
}

/// The adapters of a gateway, by protocol.
pub type Adapters = BTreeMap<Protocol, Arc<dyn Adapter>>;

/// A delivery that certainly did not begin.
#[must_use]
pub fn not_started(failure: Failure) -> Delivered {
    Delivered::Failed { failure, trace: Trace::NotStarted }
}

/// How much of what an agent says of its failure is passed on, in bytes.
const EXCERPT_MAX: usize = 2048;

/// The beginning of what an agent says, as much as a failure's message may quote.
fn excerpt(text: &str) -> String {
    let text = text.trim();
    let end = text.floor_char_boundary(EXCERPT_MAX);
    text[..end].to_owned()
}
