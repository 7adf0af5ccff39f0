//! The extension `io.modelcontextprotocol/tasks` (2026-07-28): long work is answered by a task, which the client looks at,
//! listens to or calls off by its id. The tasks are the gateway's own, durable before their id is given out, so a restart
//! loses none.

use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::call::TaskRef;
use reach_schemas::{ErrorCode, Failure, Method, PhaseName, TaskId, TaskView, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::asking::Asking;
use super::progress::Progress;
use super::result::{self, Form};
use super::stateless;
use crate::envelope::{Outcome, refusal};
use crate::mcp::catalog::View;
use crate::mcp::wire::meta::{Meta, SUBSCRIPTION_ID};
use crate::mcp::wire::object::{Members, Object};
use crate::mcp::wire::{TASKS_EXTENSION, code};
use crate::rpc::decode_params;

/// How often a client that does not listen should ask, in ms.
const POLL_INTERVAL_MS: u64 = 1000;
/// How many tasks one stream of notices may be about.
pub(super) const LISTENED_MAX: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    task_id: String,
}

/// What `tasks/update` must have besides the id.
#[derive(Debug, Deserialize)]
struct Answers {
    #[serde(rename = "inputResponses")]
    _input_responses: std::collections::BTreeMap<String, reach_schemas::RawJson>,
}

/// Whether the client of a request can be answered by a task.
pub(super) fn takes_tasks(meta: &Meta<'_>) -> bool {
    let capabilities = meta.client_capabilities.and_then(|raw| Members::of(raw.get()).ok());
    let extensions = capabilities.and_then(|members| members.get("extensions"));
    extensions.is_some_and(|raw| Members::of(raw.get()).is_ok_and(|members| members.get(TASKS_EXTENSION).is_some()))
}

/// The refusal of a client that did not say that it knows tasks.
pub(super) fn missing() -> ErrorObjectOwned {
    let data = serde_json::json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
    let message = format!("the client must declare the extension {TASKS_EXTENSION}");
    ErrorObjectOwned::owned(code::MISSING_CLIENT_CAPABILITY, message, Some(data))
}

impl Asking<'_> {
    /// `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(super) async fn task_method(&self, method: &str, params: Option<&RawValue>) -> Outcome {
        if !takes_tasks(&super::asking::meta(params)?) {
            return Err(missing());
        }
        let Params { task_id } = decode_params(params)?;
        let task = self.known_task(&task_id).await.map_err(|why| refusal(ErrorCode::InvalidParams, why))?;
        match method {
            "tasks/get" => Ok(stateless::complete(self.detailed(&self.view(), &task)).into_raw()),
            "tasks/cancel" => {
                self.cancel_task(task.task_id).await?;
                Ok(stateless::complete(Object::default()).into_raw())
            }
            _ => {
                // What is not asked for is passed over, and no task here ever asks (Tasks, Task Update Requests).
                let Answers { .. } = decode_params(params)?;
                Ok(stateless::complete(Object::default()).into_raw())
            }
        }
    }

    async fn known_task(&self, id: &str) -> Result<TaskView, String> {
        let task_id = id.parse::<TaskId>().map_err(|error| error.to_string())?;
        let grant = self.grant(Method::TaskGet).map_err(|failure| failure.message)?;
        self.server.gateway.get(grant, TaskRef { task_id }).await.map_err(|failure| failure.message)
    }

    /// A task that has ended meanwhile is as it is: that it was called off is not promised.
    async fn cancel_task(&self, task_id: TaskId) -> Result<(), ErrorObjectOwned> {
        let cancelled = match self.grant(Method::TaskCancel) {
            Ok(grant) => self.server.gateway.cancel(grant, TaskRef { task_id }).await.map(|_| ()),
            Err(failure) => Err(failure),
        };
        match cancelled {
            Err(Failure { code: ErrorCode::WrongPhase, .. }) | Ok(()) => Ok(()),
            Err(failure) => Err(crate::envelope::error_of(failure, Some(task_id))),
        }
    }

    /// The answer to a call that is a task.
    pub(super) fn created(&self, task: &TaskView) -> Box<RawValue> {
        let created = described(task).with("resultType", "task");
        created.raw("_meta", &stateless::answered_by(result::about(task)).into_text()).into_raw()
    }

    /// A task, with its result if it has ended.
    pub(super) fn detailed(&self, view: &View, task: &TaskView) -> Object {
        let object = described(task);
        match status(task.phase) {
            "completed" => {
                let form = Form::of_task(view, task);
                object.raw("result", result::of(self, view, form, task).get())
            }
            _ => object,
        }
    }

    /// Tells of the changes of some tasks, under the id of the request that asked for it, until all have ended.
    pub(super) async fn tell_tasks(&self, subscription: &str, tasks: Vec<TaskId>) {
        let all = tasks.into_iter().map(|task| self.tell_task(subscription, task));
        futures_util::future::join_all(all).await;
        std::future::pending::<()>().await;
    }

    async fn tell_task(&self, subscription: &str, task_id: TaskId) {
        let Ok(grant) = self.grant(Method::TaskSubscribe) else { return };
        let gateway = &self.server.gateway;
        let Ok(mut following) = gateway.follow(grant, TaskRef { task_id }).await else { return };
        loop {
            let task = following.view();
            // What it may be told can change while it listens.
            let Ok(grant) = self.grant(Method::TaskSubscribe) else { return };
            let (agent, capability) = (task.to_agent.as_ref(), task.capability.as_ref());
            if gateway.may_be_told(grant.caller(), agent, capability).is_err() {
                return;
            }
            let meta = Object::default().raw(SUBSCRIPTION_ID, subscription);
            let params = self.detailed(&self.view(), &task).raw("_meta", &meta.into_text());
            self.line.say(super::notice::task(params)).await;
            if !following.changed().await {
                return;
            }
        }
    }

    /// Which of these tasks the caller may hear of.
    pub(super) async fn known_tasks(&self, ids: &[String]) -> Vec<TaskId> {
        let mut known = Vec::new();
        for id in ids.iter().take(LISTENED_MAX) {
            let task = self.known_task(id).await.ok().map(|task| task.task_id);
            // One that is named twice is told of once.
            known.extend(task.filter(|task| !known.contains(task)));
        }
        known
    }
}

/// Where a task is, in the words of the extension. What an agent could not do is completed all the same: the result says
/// so. Only an error of the protocol would be `failed`, and that comes before there is a task.
const fn status(phase: PhaseName) -> &'static str {
    match phase {
        PhaseName::Submitted | PhaseName::Routed | PhaseName::Delivered | PhaseName::Accepted => "working",
        PhaseName::Completed | PhaseName::Failed | PhaseName::Expired | PhaseName::DeadLettered => "completed",
        PhaseName::Cancelled => "cancelled",
    }
}

fn described(task: &TaskView) -> Object {
    let kept_for = task.deadline_at.since(task.created_at);
    let message = task.progress.as_ref().and_then(|said| Progress::default().next(said)).and_then(|told| told.message);
    Object::default()
        .with("taskId", &task.task_id)
        .with("status", status(task.phase))
        .maybe("statusMessage", message)
        .with("createdAt", &task.created_at)
        .with("lastUpdatedAt", &updated_at(task))
        .with("ttlMs", &(kept_for + KEPT_AT_LEAST).as_ms())
        .with("pollIntervalMs", &POLL_INTERVAL_MS)
}

/// For how long a task that has ended can be asked for, at least.
const KEPT_AT_LEAST: reach_schemas::Span = reach_schemas::Span::from_hours(1);

fn updated_at(task: &TaskView) -> Timestamp {
    let attempts = task.attempts.iter().flat_map(|attempt| {
        [Some(attempt.started_at), attempt.delivered_at, attempt.accepted_at, attempt.ended_at].into_iter().flatten()
    });
    attempts.chain(task.finished_at).fold(task.created_at, Timestamp::max)
}
