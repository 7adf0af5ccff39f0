//! Work that is pushed over the WebSocket which the agent opened.

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::call::{AgentRef, Claim, Claimed, Drained, Registered, Working};
use reach_schemas::method::push;
use reach_schemas::{Delivery, ErrorCode, Method, RawJson, TaskId};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::worker::{Taken, Worker};
use crate::error::{Error, Refusal, Result};
use crate::transport::ws::{Event, Link};

/// What the registration has come to.
pub(super) type Standing = Option<Result<Registered>>;

/// Answers what comes over the link until there will be no more of it.
pub(super) async fn serve(
    worker: Arc<Worker>,
    link: Arc<Link>,
    mut events: mpsc::Receiver<Event>,
    standing: watch::Sender<Standing>,
    closed: CancellationToken,
) -> Error {
    while let Some(event) = tokio::select! {
        event = events.recv() => event,
        () = closed.cancelled() => None,
    } {
        match event {
            Event::Open(answer) => opened(&worker, answer, &standing),
            Event::Request { id, method, params, connection } => {
                request(&worker, &link, connection, &id, &method, params.as_ref());
            }
            Event::Notification { method, params } => notification(&worker, &method, params.as_ref()),
            Event::Lost => tracing::warn!(agent_id = %worker.card.agent_id, "the connection to the gateway is lost"),
            Event::Ended(error) => {
                standing.send_replace(Some(Err(error.clone())));
                return error;
            }
        }
    }
    Error::maybe_sent("the connection was closed")
}

fn opened(worker: &Arc<Worker>, answer: Option<RawJson>, standing: &watch::Sender<Standing>) {
    let registered = answer.as_ref().map(RawJson::read::<Registered>);
    match registered {
        Some(Ok(registered)) => {
            for warning in &registered.warnings {
                tracing::warn!(agent_id = %worker.card.agent_id, warning, "about the card");
            }
            standing.send_replace(Some(Ok(registered)));
        }
        Some(Err(error)) => {
            standing.send_replace(Some(Err(Error::unreadable("the answer to agent/register", error))));
        }
        None => {}
    }
    if worker.is_draining() {
        // To register was to say that we take work.
        let (client, agent_id) = (worker.client.clone(), worker.card.agent_id.clone());
        tokio::spawn(async move {
            let drained: Result<Drained> = client.invoke(Method::AgentDrain, &AgentRef { agent_id }).await;
            drained.inspect_err(|error| tracing::debug!(%error, "draining was not noted"))
        });
    }
}

fn request(worker: &Arc<Worker>, link: &Link, connection: u64, id: &RawJson, method: &str, params: Option<&RawJson>) {
    let answer = match method {
        push::DELIVER => match read::<Delivery>(params) {
            Ok(delivery) => return deliver(worker, link, connection, id, delivery),
            Err(refusal) => Err(refusal),
        },
        push::PROBE => written(&worker.health.report(0)),
        other => Err(Refusal::new(ErrorCode::MethodNotFound, format!("agents do not answer {other}"))),
    };
    drop(link.reply(connection, id, answer));
}

/// Says "I have it" at once, and begins when that is out. If it cannot get out, nothing is begun: the gateway does not
/// know that we have it.
fn deliver(worker: &Arc<Worker>, link: &Link, connection: u64, id: &RawJson, delivery: Delivery) {
    let taken = match worker.take(&delivery) {
        Ok(taken) => taken,
        Err(refusal) => return drop(link.reply(connection, id, Err(refusal))),
    };
    let written = link.reply(connection, id, written(&serde_json::json!({ "accepted": true })));
    let worker = worker.clone();
    match taken {
        Taken::New(seat) => {
            tokio::spawn(worker.work(delivery, seat, async { written.await.is_ok() }));
        }
        Taken::Running => {}
        Taken::Ended(outcome) => {
            tokio::spawn(async move { worker.report_again(&outcome, &delivery).await });
        }
    }
}

fn notification(worker: &Arc<Worker>, method: &str, params: Option<&RawJson>) {
    match method {
        push::CANCEL => match read::<Working>(params) {
            Ok(working) => worker.attempts.stop((working.task_id, working.token)),
            Err(refusal) => tracing::warn!(method, message = refusal.message, "skipped"),
        },
        push::OFFER => match read::<Offer>(params) {
            Ok(offer) => {
                tokio::spawn(claim(worker.clone(), offer.task_id));
            }
            Err(refusal) => tracing::warn!(method, message = refusal.message, "skipped"),
        },
        other => tracing::debug!(method = other, "skipped"),
    }
}

/// An offer, of which only the task matters here: the claim's answer tells the rest.
#[derive(serde::Deserialize)]
struct Offer {
    task_id: TaskId,
}

/// Claims a task that was offered to many. To lose it to another is no trouble.
async fn claim(worker: Arc<Worker>, task_id: TaskId) {
    if worker.is_draining() || worker.attempts.counts().running >= worker.card.max_concurrency {
        return;
    }
    let params = Claim {
        agent_id: worker.card.agent_id.clone(),
        task_id: Some(task_id),
        limit: Some(1),
        wait: None,
        lease: None,
    };
    let claimed: Result<Claimed> = worker.client.once(Method::TaskClaim, &params, Duration::ZERO).await;
    match claimed {
        Ok(claimed) => claimed.tasks.into_iter().for_each(|delivery| worker.take_on_claimed(delivery)),
        Err(error) => tracing::debug!(%task_id, %error, "the offer went to another"),
    }
}

pub(super) fn read<T: DeserializeOwned>(params: Option<&RawJson>) -> std::result::Result<T, Refusal> {
    let text = params.map_or("null", RawJson::get);
    serde_json::from_str(text).map_err(|error| Refusal::new(ErrorCode::InvalidParams, error.to_string()))
}

fn written(value: &impl serde::Serialize) -> std::result::Result<RawJson, Refusal> {
    RawJson::of(value).map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))
}
