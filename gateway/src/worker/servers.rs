//! Keeps in touch with MCP servers: each by itself, so that one that is slow or broken holds up no other. Its agents are
//! registered anew when it says that its tools have changed, and when it was lost and met again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reach_core::task::Event;
use reach_schemas::{FencingToken, RawJson, TaskId};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gateway::Gateway;
use crate::upstream::Progress;
use crate::upstream::server::Server;

/// How long to wait at least between two looks at what a server offers.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How often progress is written down: of what one attempt says in between, the last counts.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let keepers = TaskTracker::new();
    if let Some(progress) = gateway.upstreams().progress() {
        keepers.spawn(note_progress(Arc::clone(&gateway), progress, stop.clone()));
    }
    loop {
        for server in gateway.upstreams().all() {
            if server.begin_to_keep() {
                keepers.spawn(keep(Arc::clone(&gateway), server, stop.clone()));
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = gateway.upstreams().bell.notified() => {}
        }
    }
    keepers.close();
    keepers.wait().await;
}

async fn keep(gateway: Arc<Gateway>, server: Arc<Server>, stop: CancellationToken) {
    let name = server.spec().name.clone();
    let mut last = None;
    let keeping = async {
        loop {
            match gateway.refresh_server(&server, false).await {
                Ok(()) => {
                    if last.take().is_some() || server.met() == 1 {
                        let (offers, revision) = (server.offers(), server.revision());
                        tracing::info!(server = %name, tools = offers.tools, revision, "the server is there");
                    }
                    server.offers_may_have_changed().await;
                    sleep(LOOK_AGAIN).await;
                }
                Err(failure) => {
                    if last.as_ref() != Some(&failure.message) {
                        tracing::warn!(server = %name, why = %failure.message, "the server is not there; it is tried again");
                        last = Some(failure.message);
                    }
                    sleep_until(server.again_at().await.max(Instant::now() + LOOK_AGAIN)).await;
                }
            }
        }
    };
    tokio::select! {
        () = keeping => {}
        () = server.stop().cancelled() => {}
        () = stop.cancelled() => {}
    }
}

async fn note_progress(gateway: Arc<Gateway>, mut progress: mpsc::Receiver<Progress>, stop: CancellationToken) {
    let mut latest: BTreeMap<(TaskId, FencingToken), RawJson> = BTreeMap::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            told = progress.recv() => {
                let Some(told) = told else { return };
                latest.insert((told.task_id, told.token), told.told);
            }
        }
        sleep(PROGRESS_EVERY).await;
        while let Ok(told) = progress.try_recv() {
            latest.insert((told.task_id, told.token), told.told);
        }
        for ((task_id, token), told) in std::mem::take(&mut latest) {
            // An attempt that has ended meanwhile has no progress any more.
            let _ = gateway.apply(task_id, Event::Progress { token, progress: Some(told) }).await;
        }
    }
}
