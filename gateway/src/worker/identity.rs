//! Has signing keys change when it is time for it, and forgets join tokens that nobody used.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// How often is looked.
const EVERY: Duration = Duration::from_secs(30);

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    loop {
        if let Err(error) = gateway.turn_keys() {
            tracing::error!(%error, "signing keys cannot be kept, and stay as they are");
        }
        if let Err(failure) = gateway.forget_old_joins().await {
            tracing::warn!(reason = %failure.message, "join tokens that are over cannot be forgotten");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}
