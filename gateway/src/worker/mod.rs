//! What the gateway does of its own accord: routing due work, probing agents, sweeping up, writing down what was
//! kept in memory, sending webhooks, changing signing keys, keeping in touch with MCP servers, and picking up after a start.

pub mod archiver;
pub mod audit;
pub mod dispatcher;
pub mod identity;
pub mod prober;
pub mod recovery;
pub mod servers;
pub mod sweeper;
pub mod webhooks;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gateway::Gateway;

/// Runs everything until `stop` is cancelled. The tracker is empty once all have stopped.
#[must_use]
pub fn start(gateway: &Arc<Gateway>, stop: &CancellationToken) -> TaskTracker {
    let tracker = TaskTracker::new();
    tracker.spawn(dispatcher::run(Arc::clone(gateway), stop.clone()));
    tracker.spawn(sweeper::run(Arc::clone(gateway), stop.clone()));
    tracker.spawn(prober::run(Arc::clone(gateway), stop.clone()));
    tracker.spawn(identity::run(Arc::clone(gateway), stop.clone()));
    tracker.spawn(archiver::run(Arc::clone(gateway), stop.clone()));
    tracker.spawn(audit::run(Arc::clone(gateway), stop.clone()));
    tracker.spawn(servers::run(Arc::clone(gateway), stop.clone()));
    tracker.spawn(webhooks::run(Arc::clone(gateway), stop.clone()));
    tracker.close();
    tracker
}
