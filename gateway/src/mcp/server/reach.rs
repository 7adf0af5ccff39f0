//! The `reach_*` tools: for hosts that cannot show their model every tool, five that find what there is and use it.

use std::borrow::Cow;

use reach_core::access::Grant;
use reach_schemas::call::{CapabilityFind, TaskRef, TaskWait, WAIT_MAX};
use reach_schemas::{
    AgentId, CapabilityName, ErrorCode, Failure, IdempotencyKey, Method, RawJson, Span, Submit, TaskId, TaskView,
    Traceparent,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::asking::{Asking, meta};
use super::result;
use crate::envelope::{Outcome, refusal};
use crate::mcp::catalog::View;
use crate::mcp::wire::object::{Members, Object};
use crate::rpc::{decode, decode_params};

/// How many tools are found if the caller does not say, and at most.
const FOUND: u32 = 5;
const FOUND_MAX: u32 = 50;
/// How long `reach_wait` waits if its caller does not say, in seconds.
const WAIT_S: u64 = 30;

/// One of these tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Cancel,
    Explain,
    Find,
    Submit,
    Wait,
}

/// What they are called; nothing else is.
pub(super) const NAMES: &[&str] = &["reach_cancel", "reach_explain", "reach_find", "reach_submit", "reach_wait"];

impl Tool {
    /// Every one, in the order of their names.
    const ALL: [Self; 5] = [Self::Cancel, Self::Explain, Self::Find, Self::Submit, Self::Wait];

    pub(super) fn by_name(name: &str) -> Option<Self> {
        NAMES.iter().zip(Self::ALL).find(|(own, _)| **own == name).map(|(_, tool)| tool)
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Cancel => "Calls a task off, by its id.",
            Self::Explain => {
                "Tells why a task went where it went: who was considered, how each was judged, and what became of every \
                 attempt."
            }
            Self::Find => {
                "Finds tools for what you want to do, in words, best first, with the schemas of their arguments. Call what \
                 was found with reach_submit, or by its name."
            }
            Self::Submit => {
                "Has something done: by a tool's name as reach_find tells it, by a capability, or by an intent in words, \
                 for which the best agent is chosen. Gives the task, with its result if it ends within wait_seconds. With an \
                 idempotency_key, sending the same again does nothing twice."
            }
            Self::Wait => "Waits for the end of a task, and gives its result.",
        }
    }

    const fn schema(self) -> &'static str {
        match self {
            Self::Find => {
                r#"{"type":"object","properties":{"intent":{"type":"string","description":"What you want to do, in a sentence."},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many to find; 5 if left out."}},"required":["intent"],"additionalProperties":false}"#
            }
            Self::Submit => {
                r#"{"type":"object","properties":{"tool":{"type":"string","description":"The name of a tool, as reach_find tells it."},"capability":{"type":"string"},"agent":{"type":"string","description":"Ask this agent (name@namespace) and no other."},"intent":{"type":"string","description":"What is wanted, in words."},"arguments":{"type":"object","description":"As the schema of the tool has them."},"idempotency_key":{"type":"string","description":"Your name for this intention; the same key and request run once."},"wait_seconds":{"type":"integer","minimum":0,"maximum":300,"description":"How long to wait for the result; 0 if left out."}},"additionalProperties":false}"#
            }
            Self::Wait => {
                r#"{"type":"object","properties":{"task_id":{"type":"string"},"wait_seconds":{"type":"integer","minimum":0,"maximum":300,"description":"30 if left out."}},"required":["task_id"],"additionalProperties":false}"#
            }
            Self::Cancel | Self::Explain => {
                r#"{"type":"object","properties":{"task_id":{"type":"string"}},"required":["task_id"],"additionalProperties":false}"#
            }
        }
    }

    const fn annotations(self) -> &'static str {
        match self {
            Self::Explain | Self::Find | Self::Wait => {
                r#"{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true}"#
            }
            Self::Cancel => r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":true}"#,
            Self::Submit => r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}"#,
        }
    }
}

/// Writes all of them, each followed by a comma.
pub(super) fn write(out: &mut String) {
    for (name, tool) in NAMES.iter().zip(Tool::ALL) {
        let text = Object::default()
            .with("name", name)
            .with("description", tool.description())
            .raw("inputSchema", tool.schema())
            .raw("annotations", tool.annotations());
        out.push_str(&text.into_text());
        out.push(',');
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    intent: String,
    limit: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Submitted {
    tool: Option<String>,
    capability: Option<CapabilityName>,
    agent: Option<AgentId>,
    intent: Option<String>,
    arguments: Option<RawJson>,
    idempotency_key: Option<IdempotencyKey>,
    wait_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waited {
    task_id: TaskId,
    wait_seconds: Option<u64>,
}

/// What was found, as a tool to call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    capability: CapabilityName,
    agent: AgentId,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exclusions: Vec<String>,
    input_schema: Cow<'a, RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    available: bool,
}

impl Asking<'_> {
    /// Answers a call of one of these tools. What is wrong with it is a result that a model can act on.
    pub(super) async fn call_reach(&self, tool: Tool, params: Option<&RawValue>) -> Outcome {
        let call = decode_params::<super::call::Params<'_>>(params)?;
        let arguments = call.arguments.map_or("{}", RawValue::get);
        let view = self.view();
        let done = match tool {
            Tool::Submit => self.submit_reach(&view, arguments, &call, params).await?,
            Tool::Find => self.find(&view, arguments),
            Tool::Wait => self.wait_reach(arguments).await,
            Tool::Cancel => self.cancel_reach(arguments).await,
            Tool::Explain => self.explain_reach(arguments).await,
        };
        // What is taken on as a task is written down where it is refused.
        let done = if tool == Tool::Submit { done } else { done.inspect_err(|failure| self.note_unused(failure)) };
        Ok(done.unwrap_or_else(|failure| result::refused(self, &view, &failure, None)))
    }

    fn find(&self, view: &View, arguments: &str) -> Result<Box<RawValue>, Failure> {
        let Find { intent, limit } = decode(arguments, "arguments")?;
        let limit = limit.unwrap_or(FOUND).min(FOUND_MAX);
        let request = CapabilityFind { intent: Some(intent), namespace: None, from_agent: None, limit: Some(limit) };
        let found = self.server.gateway.find(self.grant(Method::CapabilityFind)?, &request)?.capabilities;
        let any = RawJson::parse(r#"{"type":"object"}"#).map_err(|error| internal(&error))?;
        let found: Vec<Found<'_>> = found
            .into_iter()
            .map(|found| Found {
                tool: view.name_of(&found.agent_id, &found.capability.name),
                input_schema: Cow::Owned(found.capability.input_schema.unwrap_or_else(|| any.clone())),
                capability: found.capability.name,
                agent: found.agent_id,
                description: found.capability.description,
                exclusions: found.capability.exclusions,
                similarity: found.similarity,
                available: found.available,
            })
            .collect();
        Ok(result::structured(self, Object::default().with("found", &found), Object::default(), false))
    }

    async fn submit_reach(
        &self,
        view: &View,
        arguments: &str,
        call: &super::call::Params<'_>,
        params: Option<&RawValue>,
    ) -> Result<Result<Box<RawValue>, Failure>, jsonrpsee_types::ErrorObjectOwned> {
        let meta = meta(params)?;
        let outer = super::call::one_key(call.idempotency_key.as_deref(), meta.idempotency_key.as_deref())
            .map_err(|why| refusal(ErrorCode::InvalidParams, why))?;
        let traceparent = meta.traceparent.as_deref().and_then(|text| text.parse::<Traceparent>().ok());
        Ok(self.submit_inner(view, arguments, outer, traceparent).await)
    }

    async fn submit_inner(
        &self,
        view: &View,
        arguments: &str,
        outer: Option<IdempotencyKey>,
        traceparent: Option<Traceparent>,
    ) -> Result<Box<RawValue>, Failure> {
        let read = self.handed_in(view, arguments, outer, traceparent);
        let (grant, submit, wait) = read.inspect_err(|failure| self.note_unused(failure))?;
        let task = self.server.gateway.submit(grant, submit).await?;
        if task.phase.is_final() || wait == Span::ZERO {
            return Ok(self.task(&task));
        }
        let request = TaskWait { task_id: task.task_id, wait: Some(wait) };
        let waited = self.server.gateway.wait(self.grant(Method::TaskWait)?, request).await?;
        Ok(self.task(&TaskView { replayed: task.replayed, ..waited }))
    }

    /// A task to take on, the leave to do so, and how long to wait for it.
    fn handed_in(
        &self,
        view: &View,
        arguments: &str,
        outer: Option<IdempotencyKey>,
        traceparent: Option<Traceparent>,
    ) -> Result<(Grant, Submit, Span), Failure> {
        let asked: Submitted = decode(arguments, "arguments")?;
        let invalid = |message: String| Failure::new(ErrorCode::InvalidParams, message);
        if let (Some(one), Some(other)) = (&asked.idempotency_key, &outer)
            && one != other
        {
            return Err(invalid("`idempotency_key` and `idempotencyKey` differ; give one".to_owned()));
        }
        let tool = match &asked.tool {
            Some(name) => Some(view.get(name).ok_or_else(|| {
                invalid(format!("there is no tool {name:?}; reach_find tells the names of those there are"))
            })?),
            None => None,
        };
        let submit = Submit {
            to_agent: asked.agent.or_else(|| tool.and_then(|tool| tool.to_agent.clone())),
            capability: asked.capability.or_else(|| tool.map(|tool| tool.capability.clone())),
            intent: asked.intent,
            params: asked.arguments,
            idempotency_key: asked.idempotency_key.or(outer),
            from_agent: self.speaker.agent().cloned(),
            traceparent: traceparent.or(self.traceparent),
            ..Submit::default()
        };
        Ok((self.grant(Method::TaskSubmit)?, submit, wait(asked.wait_seconds, 0)))
    }

    async fn wait_reach(&self, arguments: &str) -> Result<Box<RawValue>, Failure> {
        let Waited { task_id, wait_seconds } = decode(arguments, "arguments")?;
        let request = TaskWait { task_id, wait: Some(wait(wait_seconds, WAIT_S)) };
        let task = self.server.gateway.wait(self.grant(Method::TaskWait)?, request).await?;
        Ok(self.task(&task))
    }

    async fn cancel_reach(&self, arguments: &str) -> Result<Box<RawValue>, Failure> {
        let request: TaskRef = decode(arguments, "arguments")?;
        let task = self.server.gateway.cancel(self.grant(Method::TaskCancel)?, request).await?;
        Ok(result::structured(self, task_words(&task), result::about(&task), false))
    }

    async fn explain_reach(&self, arguments: &str) -> Result<Box<RawValue>, Failure> {
        let request: TaskRef = decode(arguments, "arguments")?;
        let told = self.server.gateway.explain(self.grant(Method::TaskExplain)?, request).await?;
        let explanation = serde_json::to_string(&told).map_err(|error| internal(&error))?;
        let whole = Members::of(&explanation).map_err(|error| internal(&error))?;
        let whole = whole.0.iter().fold(Object::default(), |object, (name, value)| object.raw(name, value.get()));
        Ok(result::structured(self, whole, result::about(&told.task), false))
    }

    /// A task, and its result if it has ended.
    fn task(&self, task: &TaskView) -> Box<RawValue> {
        let is_error = task.phase.is_final() && task.result.is_none();
        result::structured(self, task_words(task), result::about(task), is_error)
    }
}

fn task_words(task: &TaskView) -> Object {
    Object::default()
        .with("task_id", &task.task_id)
        .with("phase", &task.phase)
        .maybe("outcome", task.outcome.as_ref())
        .maybe("result", task.result.as_ref())
        .maybe("failure", task.failure.as_ref())
        .maybe("to_agent", task.to_agent.as_ref())
        .maybe("capability", task.capability.as_ref())
        .maybe("fallback_from", task.fallback_from.as_ref())
        .maybe("progress", task.progress.as_ref())
        .maybe("replayed", task.replayed.then_some(true))
}

fn wait(seconds: Option<u64>, usual: u64) -> Span {
    Span::from_secs(seconds.unwrap_or(usual)).min(WAIT_MAX)
}

fn internal(error: &serde_json::Error) -> Failure {
    Failure::new(ErrorCode::Internal, format!("the answer cannot be written: {error}"))
}
