//! What can go wrong, as one enum. Every refusal of the gateway has a variant of its own kind and keeps the
//! gateway's words; what happens on the way there and back is `Transport`.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use reach_schemas::error::Retry;
use reach_schemas::{ErrorCode, Failure, RawJson, Suggestion, TaskId, TaskView};

/// The result of whatever this crate does.
pub type Result<T> = std::result::Result<T, Error>;

/// The words of a refusal, or of a task that did not end well.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Which error it is.
    pub code: ErrorCode,
    /// What is wrong, in words.
    pub message: String,
    /// The task that it is about, where there is one.
    pub task_id: Option<TaskId>,
    /// Not before this time has passed.
    pub retry_after: Option<Duration>,
    /// What was near, if nobody fitted.
    pub suggestions: Vec<Suggestion>,
    /// Anything more: the agent's data, or the gateway's details.
    pub data: Option<RawJson>,
}

impl Refusal {
    /// A refusal of which there is no more to say than its message.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), task_id: None, retry_after: None, suggestions: Vec::new(), data: None }
    }

    /// Whether sending the same request again can help.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        self.code.retry_of(self.retry_after.is_some())
    }
}

/// What went wrong. Ask [`Error::code`], [`Error::is_retryable`] and [`Error::task_id`] where the kind does not matter.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody fits; `suggestions` says what is near and what each lacks.
    #[error("no agent fits: {}", .0.message)]
    NoCandidate(Box<Refusal>),
    /// The gateway is full, and nothing was taken on; come back after `retry_after`.
    #[error("overloaded: {}", .0.message)]
    Overloaded(Box<Refusal>),
    /// The gateway cannot do it now (store away, disk full, about to stop, or a fault of its own).
    #[error("gateway unavailable: {}", .0.message)]
    Unavailable(Box<Refusal>),
    /// The agent did not answer in time.
    #[error("the agent did not answer in time: {}", .0.message)]
    Timeout(Box<Refusal>),
    /// The agent failed, refused, answered what does not fit, could not be reached, or was lost.
    #[error("task failed ({}): {}", .0.code.name(), .0.message)]
    TaskFailed(Box<Refusal>),
    /// A `write` may or may not have happened; it was not sent again.
    #[error("outcome unknown: {}", .0.message)]
    OutcomeUnknown(Box<Refusal>),
    /// The idempotency key was used before, for another request.
    #[error("idempotency key was used for another request: {}", .0.message)]
    IdempotencyKeyReused(Box<Refusal>),
    /// The first request with this key is not finished, and joining it was not wanted.
    #[error("a request with this idempotency key is in flight: {}", .0.message)]
    IdempotencyInFlight(Box<Refusal>),
    /// The caller may not do this.
    #[error("forbidden: {}", .0.message)]
    Forbidden(Box<Refusal>),
    /// The gateway does not know who calls: no token, or one that it does not take (any more). An agent that has a key has
    /// shown it by then; `superseded` is that another copy of it has come, and this one is to stop.
    #[error("not known who calls ({}): {}", .0.code.name(), .0.message)]
    Unauthenticated(Box<Refusal>),
    /// No such agent or task, or none that the caller may know of.
    #[error("not found: {}", .0.message)]
    NotFound(Box<Refusal>),
    /// The task was called off.
    #[error("cancelled: {}", .0.message)]
    Cancelled(Box<Refusal>),
    /// The deadline passed before any agent finished.
    #[error("expired: {}", .0.message)]
    Expired(Box<Refusal>),
    /// Another attempt has taken over the task.
    #[error("stale fencing token: {}", .0.message)]
    StaleToken(Box<Refusal>),
    /// The task is in a phase in which this cannot be done.
    #[error("wrong phase: {}", .0.message)]
    WrongPhase(Box<Refusal>),
    /// Another agent has claimed the task.
    #[error("claim lost: {}", .0.message)]
    ClaimLost(Box<Refusal>),
    /// The request itself is wrong; sending it again will not help.
    #[error("refused ({}): {}", .0.code.name(), .0.message)]
    Invalid(Box<Refusal>),
    /// The wait is over and the task is not; it goes on, and can be waited for again.
    #[error("task {task_id} has not ended within {}", humane(*.waited))]
    WaitTimeout {
        /// The task.
        task_id: TaskId,
        /// How long it was waited for.
        waited: Duration,
        /// What kept us from asking, if the last try failed.
        #[source]
        source: Option<Arc<Error>>,
    },
    /// The gateway was not reached, or its answer did not come back.
    #[error("{message}")]
    Transport {
        /// What happened.
        message: String,
        /// Whether the request may have reached the gateway.
        sent: bool,
        /// Why.
        #[source]
        source: Option<Arc<dyn StdError + Send + Sync>>,
    },
    /// What came back is not what the wire promises.
    #[error("{message}")]
    Protocol {
        /// What is wrong with it.
        message: String,
        /// Why.
        #[source]
        source: Option<Arc<dyn StdError + Send + Sync>>,
    },
    /// An argument or setting that cannot be used.
    #[error("{0}")]
    Config(String),
}

/// That an answer did not come in time: the source of a [`Error::Transport`].
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no answer within {}", humane(*.0))]
pub(crate) struct Late(pub(crate) Duration);

fn humane(duration: Duration) -> reach_schemas::Span {
    duration.into()
}

impl Error {
    /// The gateway's error code. `None` for what did not come from the gateway.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        self.refusal().map(|refusal| refusal.code)
    }

    /// Whether the same request, with the same idempotency key, can succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match (self, self.refusal()) {
            (_, Some(refusal)) => refusal.retry() == Retry::Later,
            (Self::Transport { .. } | Self::WaitTimeout { .. }, None) => true,
            (_, None) => false,
        }
    }

    /// The task that it is about.
    #[must_use]
    pub fn task_id(&self) -> Option<TaskId> {
        if let Self::WaitTimeout { task_id, .. } = self {
            return Some(*task_id);
        }
        self.refusal().and_then(|refusal| refusal.task_id)
    }

    /// How long to wait before another try, if the gateway said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.refusal().and_then(|refusal| refusal.retry_after)
    }

    /// How long an answer was waited for that did not come, although the request went out: the gateway is there, and may
    /// be at it still. `None` for everything else.
    #[must_use]
    pub fn unanswered_for(&self) -> Option<Duration> {
        let Self::Transport { sent: true, source: Some(source), .. } = self else { return None };
        source.downcast_ref::<Late>().map(|late| late.0)
    }

    /// The gateway's words. `None` for what did not come from the gateway.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::NoCandidate(refusal)
            | Self::Overloaded(refusal)
            | Self::Unavailable(refusal)
            | Self::Timeout(refusal)
            | Self::TaskFailed(refusal)
            | Self::OutcomeUnknown(refusal)
            | Self::IdempotencyKeyReused(refusal)
            | Self::IdempotencyInFlight(refusal)
            | Self::Forbidden(refusal)
            | Self::Unauthenticated(refusal)
            | Self::NotFound(refusal)
            | Self::Cancelled(refusal)
            | Self::Expired(refusal)
            | Self::StaleToken(refusal)
            | Self::WrongPhase(refusal)
            | Self::ClaimLost(refusal)
            | Self::Invalid(refusal) => Some(refusal),
            Self::WaitTimeout { .. } | Self::Transport { .. } | Self::Protocol { .. } | Self::Config(_) => None,
        }
    }

    /// Whether it is certain that the gateway took nothing on, so that even what may not be repeated can be sent again.
    pub(crate) fn took_nothing_on(&self) -> bool {
        match self.code() {
            Some(code) => {
                matches!(code, ErrorCode::Overloaded | ErrorCode::StoreUnavailable | ErrorCode::ShuttingDown)
            }
            None => matches!(self, Self::Transport { sent: false, .. }),
        }
    }

    pub(crate) fn not_sent(message: impl Into<String>, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::Transport { message: message.into(), sent: false, source: Some(Arc::new(source)) }
    }

    pub(crate) fn maybe_sent(message: impl Into<String>) -> Self {
        Self::Transport { message: message.into(), sent: true, source: None }
    }

    /// The request went out, and nothing came back from `whom` for so long.
    pub(crate) fn late(whom: impl std::fmt::Display, waited: Duration) -> Self {
        let late = Late(waited);
        Self::Transport { message: format!("{late} from {whom}"), sent: true, source: Some(Arc::new(late)) }
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::Protocol { message: message.into(), source: None }
    }

    pub(crate) fn unreadable(what: &str, source: serde_json::Error) -> Self {
        Self::Protocol { message: format!("{what} does not have the expected form"), source: Some(Arc::new(source)) }
    }

    pub(crate) fn config(error: impl std::fmt::Display) -> Self {
        Self::Config(error.to_string())
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        use ErrorCode as Code;
        let code = refusal.code;
        let refusal = Box::new(refusal);
        match code {
            Code::ParseError
            | Code::InvalidRequest
            | Code::MethodNotFound
            | Code::InvalidParams
            | Code::InvalidCard
            | Code::InvalidConfig
            | Code::InvalidSchema
            | Code::ParamsMismatch
            | Code::VersionConflict
            | Code::TooLarge => Self::Invalid(refusal),
            Code::AgentNotFound | Code::TaskNotFound | Code::WebhookNotFound => Self::NotFound(refusal),
            Code::Forbidden => Self::Forbidden(refusal),
            Code::Unauthenticated | Code::TokenExpired | Code::TokenRevoked | Code::Superseded => {
                Self::Unauthenticated(refusal)
            }
            Code::IdempotencyKeyReused => Self::IdempotencyKeyReused(refusal),
            Code::IdempotencyInFlight => Self::IdempotencyInFlight(refusal),
            Code::StaleToken => Self::StaleToken(refusal),
            Code::WrongPhase => Self::WrongPhase(refusal),
            Code::ClaimLost => Self::ClaimLost(refusal),
            Code::Cancelled => Self::Cancelled(refusal),
            Code::NoCandidate => Self::NoCandidate(refusal),
            Code::AgentFailed
            | Code::InvalidResult
            | Code::Unreachable
            | Code::AgentRefused
            | Code::AgentLost
            | Code::HumanRefused => Self::TaskFailed(refusal),
            Code::Timeout => Self::Timeout(refusal),
            Code::OutcomeUnknown => Self::OutcomeUnknown(refusal),
            Code::Expired => Self::Expired(refusal),
            Code::Overloaded => Self::Overloaded(refusal),
            Code::StoreUnavailable | Code::StoreFull | Code::ShuttingDown | Code::Internal => {
                Self::Unavailable(refusal)
            }
        }
    }
}

/// The error that a task which did not complete stands for.
pub(crate) fn of_task(view: &TaskView) -> Error {
    let failure = view
        .failure
        .clone()
        .unwrap_or_else(|| Failure::new(view.phase.error_code(), format!("the task ended as {}", view.phase.as_str())));
    let Failure { code, message, data, retry_after, suggestions } = failure;
    Refusal { code, message, task_id: Some(view.task_id), retry_after: retry_after.map(Into::into), suggestions, data }
        .into()
}
