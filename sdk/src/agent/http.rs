//! Work that comes as HTTP requests to the agent, as a function from request to answer: no socket here.

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::{Delivery, ErrorCode, FencingToken, RawJson};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::attempts::{Key, Reporting};
use super::outcome::Outcome;
use super::socket::read;
use super::worker::{Taken, Worker};
use crate::error::Refusal;

/// The answer to one HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The body: JSON.
    pub body: String,
    /// The seconds for a `Retry-After` header, if there is to be one.
    pub retry_after: Option<u64>,
    /// The number for an `Agent-Reach-Token-Count` header, if there is to be one.
    pub token_count: Option<u64>,
}

impl HttpAnswer {
    fn json(status: u16, body: &impl Serialize) -> Self {
        Self { status, body: serde_json::to_string(body).unwrap_or_default(), retry_after: None, token_count: None }
    }

    fn done(result: &RawJson, token_count: Option<u64>) -> Self {
        Self { token_count, ..Self::json(200, result) }
    }

    fn refused(refusal: &Refusal) -> Self {
        // 503 means that nothing has begun, as 429 does.
        let status = if refusal.code == ErrorCode::AgentRefused { 503 } else { refusal.code.http_status() };
        let body = serde_json::json!({
            "code": refusal.code.name(), "detail": refusal.message, "status": status, "started": false,
        });
        let retry_after = refusal.retry_after.map(|after| after.as_secs().max(1));
        Self { retry_after, ..Self::json(status, &body) }
    }
}

/// Answers a request: `POST /` with a delivery, `DELETE /{task_id}?token=N` to stop an attempt, `GET /healthz`.
///
/// A result that comes within `answer_within` is the answer (200). Otherwise the answer is 202, and the result is
/// reported when it is there. A failure is always reported: an HTTP status cannot say whether another try is safe.
pub(super) async fn answer(
    worker: &Arc<Worker>,
    answer_within: Duration,
    method: &str,
    target: &str,
    body: &[u8],
) -> HttpAnswer {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match (method, path) {
        ("GET", "/healthz") => HttpAnswer::json(200, &worker.health.report(0)),
        ("POST", "/") => match parse(body) {
            Ok(delivery) => deliver(worker, answer_within, delivery).await,
            Err(refusal) => HttpAnswer::refused(&refusal),
        },
        ("DELETE", path) => match attempt_in(path, query) {
            Some(key) => {
                worker.attempts.stop(key);
                HttpAnswer::json(200, &serde_json::json!({}))
            }
            None => {
                let message = format!("no attempt is named by {target}; write /{{task_id}}?token=N");
                HttpAnswer::refused(&Refusal::new(ErrorCode::InvalidParams, message))
            }
        },
        _ => HttpAnswer::refused(&Refusal::new(ErrorCode::MethodNotFound, format!("no {method} {path} here"))),
    }
}

/// The attempt that a path and a query name.
fn attempt_in(path: &str, query: &str) -> Option<Key> {
    let task_id = path.strip_prefix('/')?.parse().ok()?;
    let token = query.split('&').find_map(|pair| pair.strip_prefix("token="))?.parse().ok()?;
    Some((task_id, FencingToken(token)))
}

fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let raw = std::str::from_utf8(body)
        .map_err(|error| error.to_string())
        .and_then(|text| RawJson::parse(text).map_err(|error| error.to_string()))
        .map_err(|error| Refusal::new(ErrorCode::ParseError, error))?;
    read(Some(&raw))
}

async fn deliver(worker: &Arc<Worker>, answer_within: Duration, delivery: Delivery) -> HttpAnswer {
    let accepted = HttpAnswer::json(202, &serde_json::json!({ "accepted": true }));
    let seat = match worker.take(&delivery) {
        Ok(Taken::New(seat)) => seat,
        Ok(Taken::Running) => return accepted,
        Ok(Taken::Ended(Outcome::Completed(result, tokens))) => return HttpAnswer::done(&result, tokens),
        Ok(Taken::Ended(outcome)) => {
            let worker = worker.clone();
            tokio::spawn(async move { worker.report_again(&outcome, &delivery).await });
            return accepted;
        }
        Err(refusal) => return HttpAnswer::refused(&refusal),
    };
    let (done, ending) = oneshot::channel();
    let (waiting, running) = (worker.clone(), worker.clone());
    // Apart from the request, so that neither a broken connection nor a long wait ends the work.
    tokio::spawn(async move {
        let Some(ended) = running.run(delivery, seat, std::future::ready(true)).await else { return };
        // Nobody waits for an answer any more: it is to be reported.
        if let Err((outcome, reporting)) = done.send(ended) {
            running.report(&outcome, &reporting).await;
        }
    });
    let mut ending = Ending { worker: waiting, ending: Some(ending) };
    match timeout(answer_within, ending.take_success()).await {
        Ok(Some((result, tokens))) => HttpAnswer::done(&result, tokens),
        Ok(None) | Err(_) => accepted,
    }
}

/// Waits for the end of an attempt. An end that came but was not answered with is reported, also when the request is
/// dropped in the meantime.
struct Ending {
    worker: Arc<Worker>,
    ending: Option<oneshot::Receiver<(Outcome, Reporting)>>,
}

impl Ending {
    async fn take_success(&mut self) -> Option<(RawJson, Option<u64>)> {
        let (outcome, reporting) = self.ending.as_mut()?.await.ok()?;
        self.ending = None;
        match outcome {
            Outcome::Completed(result, tokens) => Some((result, tokens)),
            Outcome::Failed(_) | Outcome::Stopped => {
                self.report(outcome, reporting);
                None
            }
        }
    }

    fn report(&self, outcome: Outcome, reporting: Reporting) {
        let worker = self.worker.clone();
        tokio::spawn(async move { worker.report(&outcome, &reporting).await });
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(mut ending) = self.ending.take() else { return };
        ending.close();
        if let Ok((outcome, reporting)) = ending.try_recv() {
            self.report(outcome, reporting);
        }
    }
}
