//! The paths of OAuth 2, and the documents that lead to them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;

use super::app::{App, problem};
use super::{body, door};
use crate::oauth::{self, Asked};
use crate::rest::Problem;

/// How large a form may be, in bytes.
const FORM_MAX: usize = 64 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The routes.
pub(super) fn router(app: &Arc<App>) -> Router {
    let metadata = document(app, |base, _| oauth::authorization_server(base));
    let resource = document(app, oauth::protected_resource);
    let below = format!("{}/{{*path}}", door::RESOURCE_METADATA);
    let keys = Arc::clone(app);
    Router::new()
        .route("/.well-known/oauth-authorization-server", metadata)
        .route(door::RESOURCE_METADATA, resource.clone())
        .route(&below, resource)
        .route("/.well-known/jwks.json", on(MethodFilter::GET, async move |request: Request| jwks(&keys, &request)))
        .route(oauth::TOKEN, form(app, Asked::Token))
        .route(oauth::REVOKE, form(app, Asked::Revoke))
        .route(oauth::INTROSPECT, form(app, Asked::Introspect))
}

/// A document about the gateway at an address, and a path below it.
fn document(app: &Arc<App>, make: fn(&str, &str) -> Value) -> MethodRouter {
    let app = Arc::clone(app);
    on(MethodFilter::GET, async move |request: Request| {
        let path = request.uri().path().strip_prefix(door::RESOURCE_METADATA).unwrap_or_default();
        let document = make(&door::base(&app, request.headers()), path);
        let headers = [
            (header::CONTENT_TYPE, JSON),
            (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300")),
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
        ];
        (StatusCode::OK, headers, document.to_string()).into_response()
    })
}

/// The public keys. Whoever has them as they are is told so.
fn jwks(app: &App, request: &Request) -> Response {
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

fn form(app: &Arc<App>, asked: Asked) -> MethodRouter {
    let app = Arc::clone(app);
    on(MethodFilter::POST, move |request: Request| {
        let app = Arc::clone(&app);
        async move {
            let (parts, content) = request.into_parts();
            let content = match body::read(content, FORM_MAX, app.settings.body_timeout).await {
                Ok(content) => content,
                Err(error) => {
                    let status = error.status();
                    return problem(Problem::from(error.into_failure()).with_status(status));
                }
            };
            let (pass, base) = (door::pass_of(&parts.extensions), door::base(&app, &parts.headers));
            let answer = oauth::answer(&app.gateway, &pass, (asked, &base), &parts.headers, &content).await;
            let mut response = answer.map(Body::from);
            door::challenge(&app, &parts.headers, &mut response, None);
            response
        }
    })
}
