//! Says again and again that the agent is still here, and hears which of its attempts it should stop.

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::Method;
use reach_schemas::call::{Heartbeat, HeartbeatAnswer, Working};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::worker::Worker;
use crate::error::{Error, Result};

/// Beats until `closed`, or until the gateway does not know who we are any more: that is the answer. Beats are spread by
/// chance between 0.8 and 1.0 of the interval, so that agents that started together do not beat together, and no beat is late.
pub(super) async fn beat(worker: Arc<Worker>, closed: CancellationToken) -> Option<Error> {
    let interval = Duration::from(worker.card.heartbeat_interval);
    loop {
        let pause = interval.mul_f64(0.8 + 0.2 * fastrand::f64());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = closed.cancelled() => return None,
        }
        let beaten = tokio::select! {
            // A beat that takes as long as until the next one has missed its point.
            beaten = timeout(interval, one(&worker)) => beaten,
            () = closed.cancelled() => return None,
        };
        match beaten {
            Ok(Ok(())) => {}
            // Another copy of us has come, or what we show is not taken any more and there is nothing else to show.
            Ok(Err(error @ Error::Unauthenticated(_))) => return Some(error),
            Ok(Err(error)) => tracing::warn!(agent_id = %worker.card.agent_id, %error, "heartbeat failed"),
            Err(_) => tracing::warn!(agent_id = %worker.card.agent_id, "heartbeat was not answered"),
        }
    }
}

/// One beat, and what follows from its answer.
async fn one(worker: &Worker) -> Result<()> {
    let answer = match once(worker).await {
        Err(Error::NotFound(_)) => return register_again(worker).await,
        answer => answer?,
    };
    heed(worker, &answer.stop);
    if let Some(token) = answer.token {
        worker.client.inner.target.credentials.take(token);
    }
    Ok(())
}

async fn once(worker: &Worker) -> Result<HeartbeatAnswer> {
    let params = Heartbeat {
        agent_id: worker.card.agent_id.clone(),
        current_load: worker.attempts.counts().running,
        queue_depth: 0,
        dependency_status: worker.dependency_status(),
        working_on: worker.attempts.working_on(),
    };
    worker.client.once(Method::AgentHeartbeat, &params, Duration::ZERO).await
}

fn heed(worker: &Worker, stop: &[Working]) {
    for working in stop {
        worker.attempts.stop((working.task_id, working.token));
    }
}

/// The gateway does not know us any more: it has forgotten us, or we were silent for too long.
async fn register_again(worker: &Worker) -> Result<()> {
    if !worker.is_draining() {
        worker.register().await?;
        tracing::info!(agent_id = %worker.card.agent_id, "registered again");
    }
    Ok(())
}
