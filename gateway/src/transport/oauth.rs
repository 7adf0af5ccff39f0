//! The paths of OAuth 2, and the documents that lead to them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;

use super::app::{App, problem};
use super::{body, door};
use crate::oauth::{self, Asked};
use crate::rest::Problem;

/// How large a form may be, in bytes.
const FORM_MAX: usize = 64 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// How clients get tokens.
pub(super) fn authorization_server(app: &App, request: &Request) -> Response {
    document(&oauth::authorization_server(&door::base(app, request.headers())))
}

/// What tokens are for, below a path.
pub(super) fn protected_resource(app: &App, request: &Request) -> Response {
    let path = request.uri().path().strip_prefix(door::RESOURCE_METADATA).unwrap_or_default();
    document(&oauth::protected_resource(&door::base(app, request.headers()), path))
}

/// A document that everybody may read and keep for a while.
fn document(document: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, JSON),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300")),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    ];
    (StatusCode::OK, headers, document.to_string()).into_response()
}

/// The public keys. Whoever has them as they are is told so.
pub(super) fn jwks(app: &App, request: &Request) -> Response {
    let (text, max_age, tag) = oauth::jwks(&app.gateway);
    let known = request.headers().get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').any(|one| one.trim() == "*" || one.trim().trim_start_matches("W/") == tag);
    let cached = format!("public, max-age={max_age}");
    let headers = [(header::ETAG, tag), (header::CACHE_CONTROL, cached)];
    if is_known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (StatusCode::OK, headers, [(header::CONTENT_TYPE, JSON)], text).into_response()
}

/// Answers a form.
pub(super) async fn form(app: Arc<App>, asked: Asked, request: Request) -> Response {
    let (parts, content) = request.into_parts();
    let content = match body::read(content, FORM_MAX, app.settings.body_timeout).await {
        Ok(content) => content,
        Err(error) => {
            let status = error.status();
            return problem(Problem::from(error.into_failure()).with_status(status));
        }
    };
    let (pass, base) = (door::pass_of(&parts.extensions), door::own_base(&app, &parts.headers));
    let answer = oauth::answer(&app.gateway, &pass, (asked, &base), &parts.headers, &content).await;
    let mut response = answer.map(Body::from);
    door::challenge(&app, &parts.headers, &mut response, None);
    response
}
