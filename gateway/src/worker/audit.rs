//! Writes down what waits for the audit log, and signs the log now and then, so that what was cut off its end is missed.

use std::sync::Arc;
use std::time::Duration;

use reach_core::audit::Mark;
use reach_schemas::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::store::Error;

/// How often it is looked whether a checkpoint is wanted.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long to wait when the store takes nothing.
const STORE_RETRY: Duration = Duration::from_secs(5);

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        let next_at = gateway.audit.next_at();
        let window_ends = async {
            match next_at {
                Some(at) => gateway.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let is_time_to_look = tokio::select! {
            () = stop.cancelled() => return,
            () = gateway.audit.bell.notified() => false,
            () = window_ends => false,
            _ = look.tick() => true,
        };
        let written = gateway.write_audit(gateway.audit.due(gateway.now())).await;
        let done = if is_time_to_look && written.is_ok() { pin_if_wanted(&gateway).await } else { written };
        if let Err(error) = done {
            tracing::warn!(%error, "the audit log cannot be written just now; what is to be written waits");
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(STORE_RETRY) => gateway.audit.bell.notify_one(),
            }
        }
    }
}

async fn pin_if_wanted(gateway: &Gateway) -> Result<(), Error> {
    let settings = gateway.settings().audit.clone();
    let head = gateway.store.audit_head().await?;
    let last = gateway.store.audit_checkpoint().await?;
    let (pinned, at) = last.map_or((Mark::origin(), Timestamp::default()), |last| (last.mark, last.at));
    let grown = head.seq.saturating_sub(pinned.seq);
    if grown >= settings.checkpoint_rows || (grown > 0 && gateway.now().since(at) >= settings.checkpoint_every) {
        // It has said itself why it does not sign, if it does not.
        let _ = gateway.pin_audit().await?;
    }
    Ok(())
}
