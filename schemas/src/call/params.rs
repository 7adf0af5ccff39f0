//! What the methods take. A field that is not known is refused by name, so that a slip of the pen is not ignored.

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, Callback, CapabilityName, FencingToken, IdempotencyKey, Mode, Namespace, PhaseName, RawJson, Span, TaskId,
    Traceparent, WebhookId, WebhookState,
};

macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $type:ty),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type),* }
    )* };
}

/// What a finished task of the same key that did not end well means for a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailed {
    /// It is answered with the same failure.
    #[default]
    Replay,
    /// The task is sent again, under the same id.
    Retry,
}

/// What an unfinished task of the same key means for a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnInFlight {
    /// It joins the first and gets the same result.
    #[default]
    Join,
    /// It is refused.
    Reject,
}

/// What a caller wants done. At least one of `to_agent`, `capability` and `intent` must be given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Submit {
    /// Ask this agent and no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<AgentId>,
    /// Ask for this capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityName>,
    /// What is wanted, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Look in this namespace only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// The parameters; they must fit the capability's input schema and reach the agent as they are written here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<RawJson>,
    /// How it finds its agent.
    pub mode: Mode,
    /// 0 to 9, 9 first. None: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(max = 9)))]
    pub priority: Option<u8>,
    /// The caller's name for this intention: the same key and request give the same task, for 24 h after it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// If the key's task did not end well.
    pub on_failed: OnFailed,
    /// If the key's task is not finished.
    pub on_in_flight: OnInFlight,
    /// How long one attempt may take. None: as the capability has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_timeout: Option<Span>,
    /// How long all of it may take, from now. None: 5 minutes, or an hour for the tier `long`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
    /// How many tries at most, 1 to 10. None: 3. An agent that is full, or that gives the work back before it has begun,
    /// has not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = 10)))]
    pub tries: Option<u32>,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// W3C `traceparent` of whoever asks: what is done for the task hangs under it. None: a trace of its own begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Traceparent>,
    /// Who is told of the end by a signed webhook, at most 16. A replay keeps those of the first request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = crate::card::limits::CALLBACKS_MAX)))]
    pub callbacks: Vec<Callback>,
    /// For `reach`: how long to wait for the end, at most 5 min. None: the attempt's timeout and a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
}

params! {
    /// `agent/heartbeat`: still here.
    Heartbeat {
        /// Who.
        agent_id: AgentId,
        /// How many tasks it works on now.
        #[serde(default)]
        current_load: u32,
        /// How many it holds beside those.
        #[serde(default)]
        queue_depth: u32,
        /// The state of what it needs, by name: `up`, `degraded` or `down`.
        #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
        dependency_status: std::collections::BTreeMap<String, DependencyState>,
        /// Attempts whose leases it renews.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        working_on: Vec<Working>,
    }
    /// An attempt that an agent still works on.
    Working {
        /// The task.
        task_id: TaskId,
        /// Its attempt.
        token: FencingToken,
    }
    /// A method that takes no parameters.
    Nothing {}
    /// Names one agent.
    AgentRef {
        /// Which.
        agent_id: AgentId,
    }
    /// `agent/list`: which agents.
    AgentList {
        /// Only those of this namespace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<Namespace>,
        /// At most so many, 1 to 1000. None: 100.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
        limit: Option<u32>,
        /// Go on after this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<AgentId>,
    }
    /// `capability/find`: what could do this?
    CapabilityFind {
        /// In words. None: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<String>,
        /// Only those of this namespace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<Namespace>,
        /// Who asks: only what it may call is shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_agent: Option<AgentId>,
        /// At most so many, 1 to 1000. None: 5.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
        limit: Option<u32>,
    }
    /// Names one task.
    TaskRef {
        /// Which.
        task_id: TaskId,
    }
    /// `task/wait`: until it ends, or until the wait is over.
    TaskWait {
        /// Which.
        task_id: TaskId,
        /// How long, at most 5 min. None: 30 s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Span>,
    }
    /// `task/list` and `dead_letter/list`: which tasks, newest first.
    TaskList {
        /// Only those in this phase.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<PhaseName>,
        /// Only those that this agent has or had.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<AgentId>,
        /// At most so many, 1 to 1000. None: 50.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
        limit: Option<u32>,
        /// Go on with those older than this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<TaskId>,
    }
    /// `task/claim`: give me work.
    Claim {
        /// Who pulls.
        agent_id: AgentId,
        /// Only this task, as it was offered. None: whatever is next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_id: Option<TaskId>,
        /// At most so many tasks, 1 to 100. None: 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::CLAIM_MAX)))]
        limit: Option<u32>,
        /// How long to wait for work, at most 5 min. None: not at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Span>,
        /// How long the lease on each is, 100 ms to 15 min; accept, progress and heartbeat renew it. None: 30 s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease: Option<Span>,
    }
    /// `task/accept`: I have it, and shall work on it now.
    Accept {
        /// Which.
        task_id: TaskId,
        /// Of which attempt.
        token: FencingToken,
    }
    /// `task/progress`: still at it. Renews the attempt's lease.
    Progress {
        /// Which.
        task_id: TaskId,
        /// Of which attempt.
        token: FencingToken,
        /// Anything that tells how far it is; passed to those who subscribed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<RawJson>,
    }
    /// `task/complete`: done.
    Complete {
        /// Which.
        task_id: TaskId,
        /// Of which attempt.
        token: FencingToken,
        /// The result. None: `null`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<RawJson>,
        /// How many tokens of a language model the attempt took. None: not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_count: Option<u64>,
    }
    /// `task/fail`: it did not work.
    Fail {
        /// Which.
        task_id: TaskId,
        /// Of which attempt.
        token: FencingToken,
        /// What is wrong, in words.
        message: String,
        /// Whether another try, here or elsewhere, can help.
        #[serde(default)]
        retryable: bool,
        /// Whether the work had begun. Say `false` only if nothing at all has happened.
        #[serde(default = "started")]
        started: bool,
        /// Not before this time has passed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Span>,
        /// Anything more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<RawJson>,
    }
    /// `task/release`: give it back, not begun and not counted as a try; or, as poison, never give it to anyone again.
    Release {
        /// Which.
        task_id: TaskId,
        /// Of which attempt.
        token: FencingToken,
        /// It breaks whoever takes it: to the dead letters at once.
        #[serde(default)]
        poison: bool,
        /// Why, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }
    /// `task/subscribe`: tell me on this connection whenever the task changes.
    Subscribe {
        /// Which.
        task_id: TaskId,
    }
    /// `webhook/list`: which webhooks, newest first.
    WebhookList {
        /// Only those in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<WebhookState>,
        /// Only those of this task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_id: Option<TaskId>,
        /// At most so many, 1 to 1000. None: 50.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
        limit: Option<u32>,
        /// Go on with those older than this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<WebhookId>,
    }
    /// Names one webhook.
    WebhookRef {
        /// Which.
        webhook_id: WebhookId,
    }
    /// `webhook/retry`: send them again now, with the whole schedule before them.
    WebhookRetry {
        /// These, at most 1000, whatever their state. Empty: all that failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        webhook_ids: Vec<WebhookId>,
        /// At most so many, 1 to 1000. None: all of `webhook_ids`, or 100.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
        limit: Option<u32>,
    }
}

fn started() -> bool {
    true
}

/// The state of something that an agent needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DependencyState {
    /// Works.
    Up,
    /// Works badly.
    Degraded,
    /// Does not work.
    Down,
}
