//! Work that the agent pulls, as much at a time as it has room for.

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::call::{CLAIM_MAX, Claim, Claimed};
use reach_schemas::{Method, Span};
use tokio_util::sync::CancellationToken;

use super::worker::Worker;
use crate::client::{RetryPolicy, is_passing};
use crate::error::{Error, Result};

/// How long one claim waits for work.
const WAIT: Duration = Duration::from_secs(30);
/// How long the answer to the last claim is waited for when the agent stops: it may hold work that must be given back.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// Pulls until told to stop; returns early only if the gateway will not have us.
pub(super) async fn pull(worker: Arc<Worker>, stop: CancellationToken) -> Option<Error> {
    let policy = RetryPolicy::default();
    let mut failed = 0_u32;
    loop {
        let room = tokio::select! {
            room = worker.attempts.room() => room,
            () = stop.cancelled() => return None,
        };
        let over = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST_ANSWER).await;
        };
        let claimed = tokio::select! {
            claimed = claim(&worker, room) => claimed,
            () = over => return None,
        };
        let pause = match claimed {
            Ok(claimed) => {
                failed = 0;
                claimed.tasks.into_iter().for_each(|delivery| worker.take_on_claimed(delivery));
                continue;
            }
            Err(Error::NotFound(_)) if !worker.is_draining() => match worker.register().await {
                Ok(_) => Duration::ZERO,
                Err(error) => policy.pause(failed, error.retry_after(), fastrand::f64()),
            },
            Err(error) if is_passing(&error) || matches!(error, Error::Protocol { .. }) => {
                tracing::debug!(%error, "could not pull");
                policy.pause(failed, error.retry_after(), fastrand::f64())
            }
            Err(error) => return Some(error),
        };
        failed = failed.saturating_add(1);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return None,
        }
    }
}

async fn claim(worker: &Worker, room: u32) -> Result<Claimed> {
    let params = Claim {
        agent_id: worker.card.agent_id.clone(),
        task_id: None,
        limit: Some(room.clamp(1, CLAIM_MAX)),
        wait: Some(Span::from(WAIT)),
        lease: None,
    };
    worker.client.once(Method::TaskClaim, &params, WAIT).await
}
