//! The standard road to a token (OAuth 2): forms and documents in, documents out, over the same use cases as `token/...`. It
//! opens no socket.

mod form;
mod metadata;
mod token;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, PRAGMA, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use reach_schemas::{ErrorCode, Failure, Span};
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::identity::Pass;

pub use metadata::{authorization_server, jwks, protected_resource};

/// Where clients get tokens.
pub const TOKEN: &str = "/oauth/token";
/// Where they end them (RFC 7009).
pub const REVOKE: &str = "/oauth/revoke";
/// Where they ask about them (RFC 7662).
pub const INTROSPECT: &str = "/oauth/introspect";

/// What tokens of agents are for, in the words of OAuth.
pub const SCOPE: &str = "agent";

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What is asked by a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A token.
    Token,
    /// The end of one.
    Revoke,
    /// How one is.
    Introspect,
}

impl Asked {
    /// Where it is asked.
    const fn path(self) -> &'static str {
        match self {
            Self::Token => TOKEN,
            Self::Revoke => REVOKE,
            Self::Introspect => INTROSPECT,
        }
    }
}

/// Answers a form. `base`: the address by which the gateway is called.
pub async fn answer(
    gateway: &Gateway,
    pass: &Pass,
    (asked, base): (Asked, &str),
    headers: &HeaderMap,
    body: &[u8],
) -> Response<Bytes> {
    let answered = match asked {
        Asked::Token => token::token(gateway, base, headers, body).await,
        Asked::Revoke | Asked::Introspect => {
            match token::about(gateway, pass, (base, asked.path()), headers, body).await {
                Ok(about) if asked == Asked::Revoke => token::revoke(gateway, about).await,
                Ok(about) => Ok(token::introspect(gateway, &about)),
                Err(refused) => Err(refused),
            }
        }
    };
    let answered = answered.inspect_err(|refused| {
        gateway.refused(pass.to_string(), asked.path(), refused.code, &refused.description);
    });
    answered.map_or_else(Refused::into_response, |answer| document(StatusCode::OK, &answer))
}

/// A document that nobody may keep.
fn document(status: StatusCode, document: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(document.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// A refusal, in the words of OAuth (RFC 6749, section 5.2).
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    /// What it is called everywhere else.
    code: ErrorCode,
    error: &'static str,
    description: String,
    /// When to come again.
    retry_after: Option<Span>,
}

impl Refused {
    fn new(error: &'static str, description: impl Into<String>) -> Self {
        let (status, code) = (StatusCode::BAD_REQUEST, ErrorCode::InvalidRequest);
        Self { status, code, error, description: description.into(), retry_after: None }
    }

    fn into_response(self) -> Response<Bytes> {
        let told = json!({ "error": self.error, "error_description": self.description });
        let mut response = document(self.status, &told);
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_ms().div_ceil(1000)));
        }
        response
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        let status = StatusCode::from_u16(failure.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let error = match status {
            StatusCode::UNAUTHORIZED => "invalid_client",
            StatusCode::FORBIDDEN => "unauthorized_client",
            StatusCode::TOO_MANY_REQUESTS => "temporarily_unavailable",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request",
        };
        let Failure { code, message, retry_after, .. } = failure;
        Self { status, code, error, description: message, retry_after }
    }
}
