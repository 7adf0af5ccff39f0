//! What came of a call, as the result of a tool. An agent's own word is passed on as it is; a refusal is a result as well,
//! in words that a model can act on. `_meta` says which task it was and how it ended.

use reach_schemas::error::Retry;
use reach_schemas::{CapabilityName, ErrorCode, Failure, Lack, RawJson, Suggestion, TaskId, TaskView};
use serde_json::value::RawValue;

use super::asking::Asking;
use super::stateless;
use crate::envelope::error_of;
use crate::mcp::catalog::{Output, Tool, View};
use crate::mcp::wire::meta::SERVER_INFO;
use crate::mcp::wire::object::{Members, Object};

/// The keys of `_meta` that are this gateway's own begin so.
const OWN: &str = "agent-reach/";
/// The task.
const REACH_ID: &str = "agent-reach/reachId";
/// How it ended, in one word.
const OUTCOME: &str = "agent-reach/outcome";
/// Who did it.
const AGENT: &str = "agent-reach/agent";
/// What was asked first, if something else answered.
const FALLBACK_FROM: &str = "agent-reach/fallbackFrom";
/// Whether the call is answered by what an earlier one with its key did.
const REPLAYED: &str = "agent-reach/replayed";
/// What went wrong, for programs.
const ERROR: &str = "agent-reach/error";

/// What is known of the results of a call before it has one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form<'a> {
    is_tool: bool,
    output: Output,
    capability: Option<&'a CapabilityName>,
}

impl<'a> Form<'a> {
    /// Of a call of a tool.
    pub(super) fn of(tool: &'a Tool) -> Self {
        Self { is_tool: tool.shape.is_tool, output: tool.shape.output, capability: Some(&tool.capability) }
    }

    /// Of a task that was a call of a tool, by what was asked first; nothing is known of what nobody offers any more.
    pub(super) fn of_task(view: &'a View, task: &'a TaskView) -> Self {
        let capability = task.fallback_from.as_ref().or(task.capability.as_ref());
        let asked = task.to_agent.as_ref().zip(capability);
        let tool = asked.and_then(|(agent, capability)| view.tool_of(agent, capability));
        tool.map_or(Self { is_tool: false, output: Output::Any, capability }, Self::of)
    }
}

/// The result of a task that has ended.
pub(super) fn of(asking: &Asking<'_>, view: &View, form: Form<'_>, task: &TaskView) -> Box<RawValue> {
    let meta = about(task);
    match (&task.result, &task.failure) {
        (Some(result), _) if form.is_tool && task.fallback_from.is_none() => {
            verbatim(asking, result, meta).unwrap_or_else(|| plain(asking, form, result, about(task)))
        }
        (Some(result), _) => plain(asking, form, result, meta),
        (None, Some(failure)) => {
            // A tool's own "no" comes back as its server said it.
            let own = failure.data.as_ref().filter(|_| form.is_tool && failure.code == ErrorCode::AgentFailed);
            own.and_then(|data| verbatim(asking, data, about(task)))
                .unwrap_or_else(|| failed(asking, view, failure, meta, Some(task.task_id)))
        }
        (None, None) => {
            let code = task.phase.error_code();
            let failure = Failure::new(code, format!("the task ended as {}", task.phase.as_str()));
            failed(asking, view, &failure, meta, Some(task.task_id))
        }
    }
}

/// The result of a call that was not taken on, or not finished.
pub(super) fn refused(asking: &Asking<'_>, view: &View, failure: &Failure, task: Option<TaskId>) -> Box<RawValue> {
    let meta = Object::default().maybe(REACH_ID, task).with(OUTCOME, failure.code.outcome());
    failed(asking, view, failure, meta, task)
}

/// What `_meta` says of a task.
pub(super) fn about(task: &TaskView) -> Object {
    Object::default()
        .with(REACH_ID, &task.task_id)
        .maybe(OUTCOME, task.outcome.as_ref())
        .maybe(AGENT, task.to_agent.as_ref())
        .maybe(FALLBACK_FROM, task.fallback_from.as_ref())
        .maybe(REPLAYED, task.replayed.then_some(true))
}

fn text(text: &str) -> String {
    format!("[{}]", Object::default().with("type", "text").with("text", text).into_text())
}

fn end(asking: &Asking<'_>, result: Object, meta: Object) -> Box<RawValue> {
    if asking.is_stateless() {
        stateless::complete_with(result, meta).into_raw()
    } else {
        result.raw("_meta", &meta.into_text()).into_raw()
    }
}

/// A result that has the form of a tool's already: every member as it came, but for who answers. None: it is no object.
fn verbatim(asking: &Asking<'_>, result: &RawJson, mut meta: Object) -> Option<Box<RawValue>> {
    let mut whole = Object::default();
    for (name, value) in Members::of(result.get()).ok()?.0 {
        match name.as_ref() {
            "_meta" => {
                let theirs = Members::of(value.get()).map(|members| members.0).unwrap_or_default();
                for (key, value) in theirs {
                    if key != SERVER_INFO && !key.starts_with(OWN) {
                        meta = meta.raw(&key, value.get());
                    }
                }
            }
            "resultType" => {}
            name => whole = whole.raw(name, value.get()),
        }
    }
    Some(end(asking, whole, meta))
}

/// Any other result: as text, and where it is an object, as that, too.
fn plain(asking: &Asking<'_>, form: Form<'_>, result: &RawJson, meta: Object) -> Box<RawValue> {
    let string = result.read::<String>().ok();
    let whole = Object::default().raw("content", &text(string.as_deref().unwrap_or(result.get())));
    let is_object = result.get().trim_start().starts_with('{');
    let is_structured = match form.output {
        Output::Any | Output::Object => is_object,
        Output::Other(_) => asking.is_stateless(),
    };
    // What stands in for the agent need not be what the agent promises; a client that checks would throw it away.
    let misfits = |capability| asking.server.gateway.misfits(capability, result);
    let fits = form.output == Output::Any || form.capability.is_none_or(|capability| misfits(capability).is_empty());
    let whole = if is_structured && fits { whole.raw("structuredContent", result.get()) } else { whole };
    end(asking, whole.with("isError", &!fits), meta)
}

/// The result of a tool that answers with an object of its own.
pub(super) fn structured(asking: &Asking<'_>, content: Object, meta: Object, is_error: bool) -> Box<RawValue> {
    let content = content.into_text();
    let whole = Object::default().raw("content", &text(&content)).raw("structuredContent", &content);
    end(asking, whole.with("isError", &is_error), meta)
}

fn failed(asking: &Asking<'_>, view: &View, failure: &Failure, meta: Object, task: Option<TaskId>) -> Box<RawValue> {
    let error = error_of(failure.clone(), task);
    let meta = match error.data() {
        Some(data) => meta.raw(ERROR, data.get()),
        None => meta,
    };
    let whole = Object::default().raw("content", &text(&in_words(view, failure))).with("isError", &true);
    end(asking, whole, meta)
}

/// What a model needs to go on: what is wrong, whether to try again, and what else there is.
fn in_words(view: &View, failure: &Failure) -> String {
    let mut words = format!("{}: {}", failure.code.name(), failure.message);
    let advice = match (failure.retry(), failure.retry_after) {
        (Retry::Never, _) => "Sending the same call again will not help.".to_owned(),
        (Retry::Later, Some(after)) => format!("The same call may work after {after}."),
        (Retry::Later, None) => "The same call may work later.".to_owned(),
        (Retry::Judge, _) => {
            "It is not known whether the work was done: find that out before you call this again.".to_owned()
        }
    };
    words.push_str(&format!("\n{advice}"));
    if !failure.suggestions.is_empty() {
        words.push_str("\nNear are:");
        for suggestion in &failure.suggestions {
            words.push_str(&format!("\n- {}", suggested(view, suggestion)));
        }
    }
    words
}

fn suggested(view: &View, suggestion: &Suggestion) -> String {
    let Suggestion { agent_id, capability, description, lacks, .. } = suggestion;
    let name = view.name_of(agent_id, capability).map_or_else(|| capability.to_string(), |name| format!("tool {name}"));
    let lacks: Vec<String> = lacks.iter().map(lack).collect();
    let description = if description.is_empty() { String::new() } else { format!(" ({description})") };
    format!("{name} of {agent_id}{description}: {}", lacks.join("; "))
}

fn lack(lack: &Lack) -> String {
    let reason = lack.reason.as_str();
    if lack.detail.is_empty() { reason.to_owned() } else { format!("{reason}, {}", lack.detail) }
}
