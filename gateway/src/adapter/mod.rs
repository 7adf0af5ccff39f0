//! How agents are reached: one small trait, one implementation a protocol. An adapter moves one delivery, one
//! cancellation or one probe, and decides nothing: whether to try again is the core's affair.

pub mod http;
pub mod mcp;
pub mod process;
pub(crate) mod retry_after;
pub mod session;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use reach_core::task::event::Trace;
use reach_schemas::call::HealthReport;
use reach_schemas::{
    AgentId, Delivery, Effect, Endpoint, Failure, FencingToken, ProbePolicy, Protocol, RawJson, TaskId,
};

/// A future that an adapter returns.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivered {
    /// The agent answered with the result.
    Done {
        /// The result, as it wrote it.
        result: RawJson,
        /// How many tokens of a language model it took. None: it did not say.
        token_count: Option<u64>,
    },
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

    /// Asks the agent how it is, over its own class of connection. Returns by the policy's timeout.
    ///
    /// # Errors
    /// No answer in time, or one that says it is not well: why.
    fn probe<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        agent: &'a AgentId,
        policy: &'a ProbePolicy,
    ) -> Answer<'a, Result<HealthReport, String>>;
}

/// The adapters of a gateway, by protocol.
pub type Adapters = BTreeMap<Protocol, Arc<dyn Adapter>>;

/// A delivery that certainly did not begin.
#[must_use]
pub fn not_started(failure: Failure) -> Delivered {
    Delivered::Failed { failure, trace: Trace::NotStarted }
}

/// What a result that cannot be read leaves of the work: of a `read` another try may come to something; a `write` has
/// said that it is done.
const fn unreadable(effect: Effect) -> Trace {
    if effect.is_repeatable() { Trace::FailedRetryable } else { Trace::FailedForGood }
}

/// How much of what an agent says of its failure is passed on, in bytes.
const EXCERPT_MAX: usize = 2048;

/// The beginning of what an agent says, as much as a failure's message may quote.
fn excerpt(text: &str) -> String {
    let text = text.trim();
    let end = text.floor_char_boundary(EXCERPT_MAX);
    text[..end].to_owned()
}
