//! Reads the body of a request, up to its limits.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use reach_schemas::{ErrorCode, Failure};

/// Why there is no body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    /// It is longer than it may be.
    #[error("the body has more than the {body_max} bytes that are allowed; send less, or the address of what is large")]
    TooLarge {
        /// How long it may be.
        body_max: usize,
    },
    /// It did not come whole in time.
    #[error("the body did not come whole within {0:?}")]
    TooSlow(Duration),
    /// The connection failed.
    #[error("the body could not be read: {0}")]
    Broken(String),
}

impl BodyError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    pub(super) fn into_failure(self) -> Failure {
        let code = match self {
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::TooSlow(_) | Self::Broken(_) => ErrorCode::InvalidRequest,
        };
        Failure::new(code, self.to_string())
    }
}

/// Reads a body whole.
///
/// # Errors
/// It is too large, by its own account or once it is read, too slow, or broken off.
pub(super) async fn read(body: Body, body_max: usize, timeout: Duration) -> Result<Bytes, BodyError> {
    use axum::body::HttpBody as _;
    if body.size_hint().lower() > u64::try_from(body_max).unwrap_or(u64::MAX) {
        return Err(BodyError::TooLarge { body_max });
    }
    let whole = tokio::time::timeout(timeout, Limited::new(body, body_max).collect());
    match whole.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge { body_max }),
        Ok(Err(error)) => Err(BodyError::Broken(error.source().map_or_else(|| error.to_string(), ToString::to_string))),
        Err(_) => Err(BodyError::TooSlow(timeout)),
    }
}
