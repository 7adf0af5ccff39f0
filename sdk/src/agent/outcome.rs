//! How an attempt ended, and what the gateway is told of it.

use std::fmt::Display;
use std::time::Duration;

use reach_schemas::call::{Complete, Fail, Release};
use reach_schemas::{FencingToken, Method, RawJson, TaskId};
use serde::Serialize;

/// Why a handler did not succeed, and what the gateway may do about it.
///
/// Any error turns into a final failure by `?`: the same task would fail again. Say [`HandlerError::retryable`] where
/// another try can help, and [`HandlerError::not_started`] only if nothing at all has happened.
#[derive(Debug, Clone)]
pub struct HandlerError {
    kind: Kind,
    message: String,
    retry_after: Option<Duration>,
    data: Option<RawJson>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Final,
    Retryable,
    NotStarted,
    Poison,
}

impl HandlerError {
    fn new(kind: Kind, message: &dyn Display) -> Self {
        Self { kind, message: message.to_string(), retry_after: None, data: None }
    }

    /// It failed, and would again.
    pub fn failed(message: impl Display) -> Self {
        Self::new(Kind::Final, &message)
    }

    /// It failed, and another try, here or elsewhere, can help.
    pub fn retryable(message: impl Display) -> Self {
        Self::new(Kind::Retryable, &message)
    }

    /// Nothing at all has happened: even a `write` may safely be tried again.
    pub fn not_started(message: impl Display) -> Self {
        Self::new(Kind::NotStarted, &message)
    }

    /// The task breaks whoever takes it: to the dead letters with it, at once.
    pub fn poison(message: impl Display) -> Self {
        Self::new(Kind::Poison, &message)
    }

    /// Not before this time has passed.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Anything more that the caller should see. What cannot be written as JSON is left out.
    #[must_use]
    pub fn data(mut self, data: &(impl Serialize + ?Sized)) -> Self {
        self.data = RawJson::of(data).ok();
        self
    }
}

impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::failed(error)
    }
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// With a result, and the tokens of a language model that it took.
    Completed(RawJson, Option<u64>),
    Failed(HandlerError),
    /// The gateway had it stopped and wants to hear no more of it.
    Stopped,
}

impl Outcome {
    /// What the gateway is told.
    pub(super) fn report(&self, task_id: TaskId, token: FencingToken) -> Option<(Method, RawJson)> {
        match self {
            Self::Stopped => None,
            Self::Completed(result, token_count) => {
                let result = Some(result.clone());
                written(Method::TaskComplete, &Complete { task_id, token, result, token_count: *token_count })
            }
            Self::Failed(HandlerError { kind: Kind::Poison, message, .. }) => {
                let release = Release { task_id, token, poison: true, message: Some(message.clone()) };
                written(Method::TaskRelease, &release)
            }
            Self::Failed(error) => {
                let fail = Fail {
                    task_id,
                    token,
                    message: error.message.clone(),
                    retryable: error.kind != Kind::Final,
                    started: error.kind != Kind::NotStarted,
                    retry_after: error.retry_after.map(Into::into),
                    data: error.data.clone(),
                };
                written(Method::TaskFail, &fail)
            }
        }
    }

    /// Roughly how much memory it holds.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Completed(result, _) => result.get().len(),
            Self::Failed(error) => error.message.len() + error.data.as_ref().map_or(0, |data| data.get().len()),
            Self::Stopped => 0,
        }
    }

    pub(super) fn is_success(&self) -> bool {
        matches!(self, Self::Completed(..))
    }
}

fn written(method: Method, params: &impl Serialize) -> Option<(Method, RawJson)> {
    RawJson::of(params).ok().map(|params| (method, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: HandlerError, method: Method, expected: &str) {
        let (told, params) = Outcome::Failed(error).report(TaskId::from_parts(0, 0), FencingToken(2)).unwrap();
        assert_eq!(told, method);
        assert!(params.get().contains(expected), "{} has no {expected}", params.get());
    }

    #[test]
    fn the_gateway_learns_whether_to_try_again_and_whether_it_began() {
        check(HandlerError::failed("no"), Method::TaskFail, r#""retryable":false,"started":true"#);
        check(HandlerError::retryable("no"), Method::TaskFail, r#""retryable":true,"started":true"#);
        check(HandlerError::not_started("no"), Method::TaskFail, r#""retryable":true,"started":false"#);
        check(HandlerError::poison("no"), Method::TaskRelease, r#""poison":true"#);
        let later = HandlerError::retryable("no").retry_after(Duration::from_secs(2));
        check(later, Method::TaskFail, r#""retry_after":"2s""#);
    }
}
