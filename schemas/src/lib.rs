//! The words of the Agent-Reach wire: checked ids, agent cards, intents, tasks, decisions, the table of
//! methods and the table of error codes. It carries and checks; it never decides and never does I/O.

pub mod id;
pub mod time;

pub use id::{AgentId, AgentName, CapabilityName, IdError, IdempotencyKey, Namespace, TaskId};
pub use time::{Span, Timestamp};
