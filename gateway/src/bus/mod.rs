//! The bus: a doorbell between gateways. It carries hints only; losing every one of them delays work and never
//! loses it.

pub mod local;

use std::sync::Arc;

use reach_schemas::{TaskId, Timestamp};

/// A hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// Somebody must look at this task then.
    Due {
        /// Which.
        task_id: TaskId,
        /// When.
        at: Timestamp,
    },
    /// This task has changed.
    Changed {
        /// Which.
        task_id: TaskId,
    },
}

/// What is called with each hint. It must be quick and must not block.
pub type Listener = Arc<dyn Fn(Note) + Send + Sync>;

/// Carries hints between gateways, this one included.
pub trait Bus: Send + Sync + 'static {
    /// Sends a hint to every listener of every gateway. It may be lost.
    fn publish(&self, note: Note);

    /// Has a listener called with each hint from now on.
    fn subscribe(&self, listener: Listener);

    /// Takes or renews a named lease until then, in a holder's name. False if another holds it.
    fn lease(&self, name: &str, holder: &str, now: Timestamp, until: Timestamp) -> bool;
}
