//! The words of the Agent-Reach wire: checked ids, agent cards, tasks, decisions, the table of methods and the
//! table of error codes. It carries and checks; it never decides and never does I/O.

pub mod audit;
pub mod call;
pub mod card;
pub mod clock_time;
pub mod decision;
pub mod error;
pub mod human;
pub mod id;
pub mod method;
pub mod pattern;
pub mod policy;
pub mod raw;
pub mod role;
pub mod secret;
pub mod server;
pub mod task;
mod text;
pub mod time;
pub mod trace;
pub mod webhook;

pub use audit::{AuditCheckpoint, AuditFinding, AuditFlaw, AuditKind, AuditMark, AuditRow};
pub use call::Submit;
pub use card::{
    Access, AgentCard, BreakerPolicy, Capability, Effect, Endpoint, FallbackStep, Hours, ProbePolicy, Protocol,
    SERVER_PREFIX, Tier, TrustLevel,
};
pub use decision::{Candidate, Chosen, Decision, IntentTrace, Lack, Reason, Score, Stage, Suggestion, Verdict};
pub use error::ErrorCode;
pub use human::{HumanView, Take, TakeEnding};
pub use id::{
    AgentId, AgentName, CapabilityName, IdError, IdempotencyKey, Namespace, OperatorName, QueueName, TaskId, WebhookId,
};
pub use method::{Method, Permission};
pub use pattern::{AgentPattern, CapabilityPattern};
pub use policy::{Across, Action, Policy, PolicyRule, Ruling};
pub use raw::RawJson;
pub use role::Role;
pub use secret::Secret;
pub use server::{CapabilityOverlay, HeaderSource, Overlay, ServerSpec, ServerState, ServerView};
pub use task::{AttemptView, Delivery, Explanation, Failure, FencingToken, Mode, PhaseName, TaskRecord, TaskView};
pub use time::{Span, Timestamp};
pub use trace::{SpanId, TraceId, Traceparent};
pub use webhook::{Callback, EventType, WebhookEvent, WebhookHold, WebhookState, WebhookTry, WebhookView};
