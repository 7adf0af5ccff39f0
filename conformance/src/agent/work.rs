//! One delivery as it goes out, and what becomes of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reach_schemas::{AgentId, CapabilityName, Effect, FencingToken, RawJson, Span, TaskId, Timestamp};
use serde::Serialize;

/// Names an attempt: its task and its fencing token.
pub(crate) type Key = (TaskId, u64);

/// An attempt to be delivered.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) task_id: TaskId,
    pub(crate) token: u64,
    pub(crate) agent_id: AgentId,
    pub(crate) capability: CapabilityName,
    pub(crate) effect: Effect,
    pub(crate) params: Option<RawJson>,
    pub(crate) idempotency_key: String,
    pub(crate) traceparent: Option<String>,
    pub(crate) attempt_timeout: Duration,
    /// Whether members are added that nobody knows.
    pub(crate) has_unknown: bool,
}

#[derive(Serialize)]
struct Delivery<'a> {
    task_id: TaskId,
    token: FencingToken,
    attempt: u64,
    agent_id: &'a AgentId,
    capability: &'a CapabilityName,
    effect: Effect,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawJson>,
    from_agent: &'static str,
    idempotency_key: &'a str,
    attempt_until: Timestamp,
    deadline_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_from_a_newer_gateway: Option<Unknown>,
}

#[derive(Serialize)]
struct Unknown {
    region: &'static str,
    hops: [u8; 3],
}

impl Work {
    pub(crate) fn key(&self) -> Key {
        (self.task_id, self.token)
    }

    /// The same task, under the next token.
    pub(crate) fn next_attempt(&self) -> Self {
        Self { token: self.token + 1, ..self.clone() }
    }

    /// When this attempt is taken back, counted from now.
    pub(crate) fn until(&self) -> Timestamp {
        now() + Span::from(self.attempt_timeout)
    }

    /// As JSON.
    pub(crate) fn to_json(&self) -> String {
        let until = self.until();
        let delivery = Delivery {
            task_id: self.task_id,
            token: FencingToken(self.token),
            attempt: self.token,
            agent_id: &self.agent_id,
            capability: &self.capability,
            effect: self.effect,
            params: self.params.as_ref(),
            from_agent: "checker@conformance",
            idempotency_key: &self.idempotency_key,
            attempt_until: until,
            deadline_at: until + Span::from_mins(5),
            traceparent: self.traceparent.as_deref(),
            x_from_a_newer_gateway: self.has_unknown.then_some(Unknown { region: "eu", hops: [1, 2, 3] }),
        };
        serde_json::to_string(&delivery).expect("a delivery is made of types that can be written as JSON")
    }
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(Span::from(since).as_ms())
}

/// Something that became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// It went out, or was taken from the queue.
    Sent,
    /// The agent has it, and will report.
    Accepted,
    /// The agent is still at it.
    Progress,
    /// A heartbeat renewed its lease.
    Renewed,
    /// The result, as it was written.
    Result { text: String, is_json: bool, says_json: bool },
    /// It failed.
    Failed { for_good: bool, why: String },
    /// Nothing has begun.
    Refused { is_full: bool, says_when: bool, why: String },
    /// The agent gave it back.
    Released,
    /// There was no answer, or the connection broke.
    Lost(String),
}

impl Event {
    /// Whether the attempt has ended with it.
    pub(crate) const fn is_end(&self) -> bool {
        match self {
            Self::Sent | Self::Accepted | Self::Progress | Self::Renewed => false,
            Self::Result { .. } | Self::Failed { .. } | Self::Refused { .. } | Self::Released | Self::Lost(_) => true,
        }
    }

    /// In words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Sent => "it was sent".to_owned(),
            Self::Accepted => "it was accepted".to_owned(),
            Self::Progress => "progress was told".to_owned(),
            Self::Renewed => "its lease was renewed by a heartbeat".to_owned(),
            Self::Result { text, .. } => format!("the result {}", crate::exchange::short(text)),
            Self::Failed { for_good: true, why } => format!("a failure for good: {why}"),
            Self::Failed { for_good: false, why } => format!("a failure that asks for another try: {why}"),
            Self::Refused { is_full: true, why, .. } => format!("a refusal as full: {why}"),
            Self::Refused { is_full: false, why, .. } => format!("a refusal before it began: {why}"),
            Self::Released => "it was given back".to_owned(),
            Self::Lost(why) => format!("no answer: {why}"),
        }
    }
}
