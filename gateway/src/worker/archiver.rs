//! Writes completed work that is in memory only to the durable store, a batch at a time, off everybody's path, so that
//! it can still be looked at later. Its pace is bounded: under a load of reads beyond it, the disk does not set theirs.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// How often a batch is written.
const EVERY: Duration = Duration::from_millis(250);
/// How many tasks are in it.
const BATCH_MAX: u32 = 256;
/// How long to wait when the store takes nothing.
const STORE_RETRY: Duration = Duration::from_secs(5);

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let mut wait = EVERY;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = match gateway.stores.write_completed(BATCH_MAX, gateway.now()).await {
            Ok(_) => EVERY,
            Err(error) => {
                tracing::warn!(%error, "completed reads cannot be written; the oldest are forgotten when there are many");
                STORE_RETRY
            }
        };
    }
}
