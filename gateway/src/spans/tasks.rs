//! The spans of tasks: of each step with what the router decided, of each attempt, and of the whole. Attempts and wholes may
//! outlive the gateway that began them, so they are made of the instants that are stored with the task.

use std::borrow::Cow;

use reach_core::task::{Attempt, Effects, Task};
use reach_schemas::{AgentId, CapabilityName, Decision, Protocol, SpanId, Stage, Traceparent};

use super::{Ended, Nanos, Side, Spans, Value};

/// A step that is being taken.
#[derive(Debug, Clone, Copy)]
pub struct Stepping {
    /// The event that it takes the task on by.
    pub event: &'static str,
    /// When it began. None: nobody wants to know.
    pub began: Option<Nanos>,
}

type Attributes = Vec<(&'static str, Value)>;

impl Spans {
    /// A step was committed, and `effects` is what follows from it.
    pub fn stepped(&self, task: &Task, effects: &Effects, stepping: Stepping) {
        let Some(began) = stepping.began else { return };
        let decision = matches!(stepping.event, "assign" | "offer" | "defer" | "give_up");
        if let Some(decision) = task.state.decisions.last().filter(|_| decision) {
            self.put(routed(task, decision));
        }
        self.put(step(task, effects, stepping.event, began, self.now()));
        let ended = effects.ended.as_ref();
        let ended = ended.and_then(|ended| task.state.attempts.iter().find(|attempt| attempt.token == ended.token));
        if let Some(attempt) = ended {
            self.put(self.attempt(task, attempt));
        }
        if effects.changed && task.state.finished_at.is_some() {
            self.put(whole(task));
        }
    }

    fn attempt(&self, task: &Task, attempt: &Attempt) -> Ended {
        let mut attributes = about(task, Some((&attempt.agent_id, &attempt.capability)));
        attributes.push(("agent_reach.protocol", attempt.protocol.as_str().to_owned().into()));
        attributes.push(("agent_reach.fencing_token", attempt.token.0.into()));
        let error = attempt.failure.as_ref();
        attributes.extend(error.map(|failure| ("error.type", failure.code.name().into())));
        let moments = [("delivered", attempt.delivered_at), ("accepted", attempt.accepted_at)];
        let began = Nanos::from(attempt.started_at);
        Ended {
            side: if attempt.protocol == Protocol::Queue { Side::Producer } else { Side::Client },
            ended: attempt.ended_at.map_or_else(|| self.now(), Nanos::from).max(began),
            events: moments.into_iter().filter_map(|(name, at)| Some((at?.into(), name))).collect(),
            error: error.map(|failure| failure.message.clone()),
            attributes,
            ..within(
                task.attempt_span(attempt.token),
                task.span().parent_id(),
                format!("attempt {}", attempt.capability),
                began,
            )
        }
    }
}

/// A span within the gateway that has not lasted.
fn within(context: Traceparent, parent: SpanId, name: impl Into<Cow<'static, str>>, at: Nanos) -> Ended {
    Ended {
        context,
        parent: Some(parent),
        is_parent_remote: false,
        side: Side::Internal,
        name: name.into(),
        began: at,
        ended: at,
        attributes: Vec::new(),
        events: Vec::new(),
        error: None,
    }
}

fn new_span(above: &Traceparent) -> Traceparent {
    above.under(super::scope::new_span_id())
}

fn about(task: &Task, whom: Option<(&AgentId, &CapabilityName)>) -> Attributes {
    let mut attributes: Attributes = vec![("reach_id", task.id().to_string().into())];
    if let Some((agent, capability)) = whom {
        attributes.push(("agent_reach.to_agent", agent.as_str().to_owned().into()));
        attributes.push(("agent_reach.capability", capability.as_str().to_owned().into()));
    }
    attributes
}

/// What the router decided. It took so long until then.
fn routed(task: &Task, decision: &Decision) -> Ended {
    let chosen = decision.chosen.as_ref().map(|chosen| (&chosen.agent_id, &chosen.capability));
    let mut attributes = about(task, chosen);
    let stage = match decision.stage {
        Stage::Exact => "exact",
        Stage::Rule => "rule",
        Stage::Intent => "intent",
        Stage::Human => "human",
    };
    attributes.push(("agent_reach.stage", stage.into()));
    attributes.push(("agent_reach.considered", u64::from(decision.considered).into()));
    attributes.push(("agent_reach.attempt", u64::from(decision.attempt).into()));
    let (above, at, took) = (task.span(), Nanos::from(decision.at), decision.took_us.unwrap_or(0));
    attributes.push(("agent_reach.took_us", took.into()));
    let ended = Nanos(at.0.saturating_add(took.saturating_mul(1000)));
    Ended { ended, attributes, ..within(new_span(&above), above.parent_id(), "route", at) }
}

/// A step, from the event to the end of its commit.
fn step(task: &Task, effects: &Effects, event: &'static str, began: Nanos, ended: Nanos) -> Ended {
    let token = effects.ended.as_ref().map(|ended| ended.token);
    let token = token.or_else(|| task.live_attempt().map(|attempt| attempt.token));
    let above = token.map_or_else(|| task.span(), |token| task.attempt_span(token));
    let mut attributes = about(task, None);
    attributes.push(("agent_reach.phase", task.state.phase.name().as_str().into()));
    Ended { ended, attributes, ..within(new_span(&above), above.parent_id(), format!("step {event}"), began) }
}

/// All of a task that has ended.
fn whole(task: &Task) -> Ended {
    let record = task.record();
    let began = Nanos::from(task.state.redriven_at.unwrap_or(task.birth.created_at));
    let ended = task.state.finished_at.map_or(began, Nanos::from);
    let named = record.as_ref().and_then(|record| Some((record.to_agent.as_ref()?, record.method.as_ref()?)));
    let mut attributes = about(task, named);
    let (mut error, mut name) = (None, Cow::Borrowed("task"));
    if let Some(record) = record {
        let texts = [
            ("agent_reach.from_agent", record.from_agent.map(|agent| agent.to_string())),
            ("agent_reach.fallback_from", record.fallback_from.map(|name| name.to_string())),
            ("agent_reach.status_code", Some(record.status_code)),
        ];
        attributes.extend(texts.into_iter().filter_map(|(key, text)| Some((key, text?.into()))));
        attributes.extend(record.token_count.map(|count| ("agent_reach.token_count", count.into())));
        name = record.method.map_or(name, |method| format!("task {method}").into());
        error = record.error_message;
    }
    Ended {
        parent: task.parent_span(),
        ended,
        attributes,
        error,
        ..within(task.span(), task.span().parent_id(), name, began)
    }
}
