//! `tools/call` is a task: routed, tried again, explained, and once only under its key. The caller is told of its progress
//! and may call it off; if its connection is lost, work that nobody can ask for again is called off, and work under a key
//! goes on.

use std::borrow::Cow;

use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::{ErrorCode, Failure, IdempotencyKey, Method, RawJson, Submit, Tier, Traceparent};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::asking::{Asking, meta};
use super::in_flight::Working;
use super::progress::{Progress, Told};
use super::result::{self, Form};
use super::{notice, reach, tasks};
use crate::envelope::{Outcome, refusal};
use crate::mcp::catalog::{Tool, View, WRAPPED};
use crate::mcp::wire::meta::Meta;
use crate::mcp::wire::object::Members;
use crate::ops::follow::Following;
use crate::rpc::decode_params;

/// How alike the names must be that an unknown one may have been meant for, 0 to 1, and how many of them are told.
const ALIKE_MIN: f64 = 0.6;
const NEAR_MAX: usize = 5;
/// How much of an unknown name is told back.
const NAME_MAX: usize = 128;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) idempotency_key: Option<Cow<'a, str>>,
}

impl Asking<'_> {
    pub(super) async fn call_tool(&self, id: &str, params: Option<&RawValue>) -> Outcome {
        let (call, meta) = (decode_params::<Params<'_>>(params)?, meta(params)?);
        if let Some(tool) = reach::Tool::by_name(&call.name) {
            return self.call_reach(tool, params).await;
        }
        let view = self.view();
        let tool = view.get(&call.name).ok_or_else(|| no_tool(&view, &call.name))?;
        let submit = self.submit(tool, &call, &meta)?;
        if self.is_stateless() && tool.tier == Tier::Long && tasks::takes_tasks(&meta) {
            return Ok(self.create_task(&view, tool, submit).await);
        }
        let is_keyed = submit.idempotency_key.is_some();
        let working = self.begin(id);
        let grant = self.grant(Method::Reach).inspect_err(|failure| self.note_unused(failure));
        let taken_on = match grant {
            Ok(grant) => self.server.gateway.follow_new(grant, submit).await,
            Err(failure) => Err(failure),
        };
        let mut following = match taken_on {
            Ok(following) => following,
            Err(failure) => return Ok(result::refused(self, &view, &failure, None)),
        };
        let token = meta.progress_token.map(RawValue::get);
        if !self.follow(&mut following, working.as_ref(), token, is_keyed).await {
            self.line.silence();
            return Err(refusal(ErrorCode::Cancelled, "the request was called off"));
        }
        Ok(if following.is_final() {
            result::of(self, &view, Form::of(tool), &following.view())
        } else {
            self.stopping(&view, Form::of(tool), &mut following).await
        })
    }

    /// Takes a call on that is answered by a task, or by its result if that is there already.
    async fn create_task(&self, view: &View, tool: &Tool, submit: Submit) -> Box<RawValue> {
        let grant = self.grant(Method::TaskSubmit).inspect_err(|failure| self.note_unused(failure));
        let taken_on = match grant {
            Ok(grant) => self.server.gateway.submit(grant, submit).await,
            Err(failure) => Err(failure),
        };
        match taken_on {
            Ok(task) if task.phase.is_final() => result::of(self, view, Form::of(tool), &task),
            Ok(task) => self.created(&task),
            Err(failure) => result::refused(self, view, &failure, None),
        }
    }

    /// The task that a call is.
    fn submit(&self, tool: &Tool, call: &Params<'_>, meta: &Meta<'_>) -> Result<Submit, ErrorObjectOwned> {
        let invalid = |message: String| refusal(ErrorCode::InvalidParams, message);
        let arguments = match call.arguments.map(RawValue::get) {
            None | Some("null") => "{}",
            Some(text) if text.starts_with('{') => text,
            Some(_) => return Err(invalid("`arguments` must be an object".to_owned())),
        };
        let params = if tool.shape.is_wrapped { unwrapped(arguments)? } else { arguments };
        let params = RawJson::parse(params).map_err(|error| invalid(format!("`arguments`: {error}")))?;
        let key = one_key(call.idempotency_key.as_deref(), meta.idempotency_key.as_deref()).map_err(invalid)?;
        // A trace that is broken must not break the call.
        let traceparent = meta.traceparent.as_deref().and_then(|text| text.parse::<Traceparent>().ok());
        Ok(Submit {
            to_agent: tool.to_agent.clone(),
            capability: Some(tool.capability.clone()),
            params: Some(params),
            idempotency_key: key,
            from_agent: self.speaker.agent().cloned(),
            traceparent: traceparent.or(self.traceparent),
            ..Submit::default()
        })
    }

    /// Follows a task to its end, or until the gateway stops. False: it was called off.
    async fn follow(
        &self,
        following: &mut Following,
        working: Option<&Working<'_>>,
        token: Option<&str>,
        is_keyed: bool,
    ) -> bool {
        let mut progress = Progress::default();
        let is_followed = loop {
            tokio::select! {
                biased;
                () = cancelled(working) => break false,
                () = self.line.gone(), if !self.outlives_connection && !is_keyed => break false,
                is_changed = following.changed() => {
                    if !is_changed {
                        break true;
                    }
                    // The last word on the way comes with the end where the end came first to be looked at.
                    if let (Some(token), Some(said)) = (token, following.view().progress)
                        && let Some(told) = progress.next(&said)
                    {
                        tokio::select! {
                            () = self.tell(token, told) => {}
                            () = cancelled(working) => break false,
                            () = following.stopping() => {}
                        }
                    }
                    if following.is_final() {
                        break true;
                    }
                }
            }
        };
        if !is_followed {
            following.give_up().await;
        }
        is_followed
    }

    /// Waits while the client takes nothing: what comes meanwhile waits with the follower, and the newest of it stays.
    async fn tell(&self, token: &str, told: Told) {
        let Told { progress, total, message } = told;
        self.line.say(notice::progress(token, progress, total, message.as_deref())).await;
    }

    /// What is said of a task that goes on when the gateway does not.
    async fn stopping(&self, view: &View, form: Form<'_>, following: &mut Following) -> Box<RawValue> {
        match following.promised().await {
            Ok(task) if task.phase.is_final() => result::of(self, view, form, &task),
            Ok(task) => {
                let message =
                    "the gateway is about to stop, and the call is not finished; it goes on when the gateway is back";
                let failure = Failure::new(ErrorCode::ShuttingDown, message);
                result::refused(self, view, &failure, Some(task.task_id))
            }
            Err(failure) => result::refused(self, view, &failure, None),
        }
    }
}

async fn cancelled(working: Option<&Working<'_>>) {
    match working {
        Some(working) => working.cancelled().await,
        None => std::future::pending().await,
    }
}

/// What was wrapped because it is no object.
fn unwrapped(arguments: &str) -> Result<&str, ErrorObjectOwned> {
    let members = Members::of(arguments).ok();
    let inner = members.and_then(|members| members.get(WRAPPED)).map(RawValue::get);
    inner.ok_or_else(|| refusal(ErrorCode::InvalidParams, format!("`arguments` must have the member `{WRAPPED}`")))
}

/// The key, which may stand in two places.
pub(super) fn one_key(beside: Option<&str>, in_meta: Option<&str>) -> Result<Option<IdempotencyKey>, String> {
    if let (Some(one), Some(other)) = (beside, in_meta)
        && one != other
    {
        return Err("`idempotencyKey` and `_meta.idempotencyKey` differ; give one".to_owned());
    }
    let key = beside.or(in_meta).map(str::parse::<IdempotencyKey>).transpose();
    key.map_err(|error| format!("`idempotencyKey`: {error}"))
}

fn no_tool(view: &View, given: &str) -> ErrorObjectOwned {
    let shown: String = given.chars().take(NAME_MAX).collect();
    let alike = |name: &str| strsim::normalized_damerau_levenshtein(&shown, name);
    let mut near: Vec<(f64, &str)> = view.tools().iter().map(|tool| (alike(&tool.name), tool.name.as_str())).collect();
    near.retain(|(alike, _)| *alike >= ALIKE_MIN);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<&str> = near.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect();
    let hint = if near.is_empty() { "tools/list shows all".to_owned() } else { format!("near: {}", near.join(", ")) };
    refusal(ErrorCode::InvalidParams, format!("unknown tool {shown:?}; {hint}"))
}
