//! Who is let in, once for every request whatever its path: its head shows who it is by, and what was found out goes along
//! with it. Also what those are told who are not let in (RFC 6750, section 3; RFC 9728, section 5.1).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use reach_schemas::{ErrorCode, Failure, Span};

use super::app::{App, problem};
use super::mcp;
use super::paths::template_of;
use super::until::Until;
use crate::envelope::{error_of, refused};
use crate::identity::{Mode, Pass};
use crate::mcp::server::Waits;
use crate::mcp::wire::sse;
use crate::ops::identity::Ended;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Where a client finds out how it can get a token (RFC 9728).
pub(super) const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

/// What everybody may see: how the gateway is, what its words mean, and how one gets in.
fn is_public(path: &str) -> bool {
    let is_listing = path == mcp::CATALOG_PATH;
    matches!(path, "/healthz" | "/openapi.json" | "/errors" | mcp::CARD_PATH)
        || path.starts_with("/errors/")
        || path.starts_with("/oauth/")
        || (path.starts_with("/.well-known/") && !is_listing)
}

/// Where somebody may come who has no token yet, to be given one. What else is asked there is refused call by call.
fn is_for_newcomers(method: &Method, path: &str) -> bool {
    *method == Method::POST && matches!(path, "/rpc" | "/agent/register")
}

/// Where frames of JSON-RPC come in: what they ask is counted, and refused, call by call.
fn is_of_frames(path: &str) -> bool {
    path == "/rpc" || path == mcp::PATH || path.starts_with("/servers/")
}

/// Lets a request in, with what was found out of who it is by; or says why not. Who is known is counted here, whatever it asks
/// for.
pub(super) fn admit(app: &App, request: &mut Request) -> Result<Pass, Response> {
    name_the_host(request);
    let path = request.uri().path();
    let pass = match app.gateway.authenticate(request.headers()) {
        Ok(Pass::Nobody) if !is_public(path) && !is_for_newcomers(request.method(), path) => {
            let failure = app.gateway.check(&Pass::Nobody).err().unwrap_or_else(unknown);
            let failure = app.gateway.refuse(&Pass::Nobody, template_of(path), failure);
            return Err(turned_away(app, path, request.headers(), failure));
        }
        Ok(pass) => pass,
        Err(_) if is_public(path) => Pass::Nobody,
        Err(stranger) => {
            let (who, failure) = (stranger.name(), stranger.failure);
            app.gateway.refused(who, template_of(path), failure.code, &failure.message);
            return Err(turned_away(app, path, request.headers(), failure));
        }
    };
    if !is_of_frames(path)
        && let Err(too_fast) = app.gateway.count(&pass)
    {
        let too_fast = app.gateway.refuse(&pass, template_of(path), too_fast);
        return Err(problem(too_fast.into()));
    }
    request.extensions_mut().insert(pass.clone());
    Ok(pass)
}

/// HTTP/2 has the host in the address (RFC 9113, section 8.3.1); here it is read from one place.
fn name_the_host(request: &mut Request) {
    if request.headers().contains_key(header::HOST) {
        return;
    }
    let named = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = named {
        request.headers_mut().insert(header::HOST, host);
    }
}

fn unknown() -> Failure {
    Failure::new(ErrorCode::Unauthenticated, "it is not known who calls")
}

/// What is answered to one who is not let in, or not any more. That it was refused is written down already.
fn turned_away(app: &App, path: &str, headers: &HeaderMap, failure: Failure) -> Response {
    let code = failure.code;
    let mut response = if is_of_frames(path) {
        let text = refused(error_of(failure, None));
        (StatusCode::UNAUTHORIZED, [(header::CONTENT_TYPE, JSON)], text).into_response()
    } else {
        problem(failure.into())
    };
    // Each endpoint of MCP is a resource of its own: what is told of it is below its own path.
    let below = if path == mcp::PATH || path.starts_with("/servers/") { path } else { "" };
    challenge_at(app, headers, below, &mut response, Some(code));
    response
}

/// Adds what a client needs to know that was refused for who it is. `code`: why, if it was for its token.
pub(super) fn challenge(app: &App, headers: &HeaderMap, response: &mut Response, code: Option<ErrorCode>) {
    challenge_at(app, headers, "", response, code);
}

fn challenge_at(app: &App, headers: &HeaderMap, below: &str, response: &mut Response, code: Option<ErrorCode>) {
    if app.gateway.identity().mode() == Mode::Open {
        return;
    }
    let base = base(app, headers);
    let error = match (response.status(), code) {
        (StatusCode::UNAUTHORIZED, _) if !headers.contains_key(header::AUTHORIZATION) => String::new(),
        (StatusCode::UNAUTHORIZED, Some(code)) => {
            format!(r#"error="invalid_token", error_uri="{base}/errors/{}", "#, code.name())
        }
        (StatusCode::UNAUTHORIZED, None) => r#"error="invalid_token", "#.to_owned(),
        (StatusCode::FORBIDDEN, _) => r#"error="insufficient_scope", scope="agent", "#.to_owned(),
        (_, _) => return,
    };
    let value = format!(r#"Bearer realm="agent-reach", {error}resource_metadata="{base}{RESOURCE_METADATA}{below}""#);
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
}

/// The address by which the gateway is called: as it is set, else as the caller says.
pub(super) fn base(app: &App, headers: &HeaderMap) -> String {
    match &app.gateway.identity().settings().public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("{}://{}", scheme(app), host_of(headers).unwrap_or("127.0.0.1:7340")),
    }
}

/// By which of its names the gateway was called, for those who say for which gateway they show something: a name with the port
/// that it listens on, or any where its own is set, which counts then. Another name is that of something in between, or
/// of another gateway.
pub(super) fn called_by<'a>(app: &App, headers: &'a HeaderMap) -> Option<&'a str> {
    let is_set = app.gateway.identity().settings().public_url.is_some();
    let is_ours = |host: &&str| {
        let usual = if app.settings.tls.is_some() { 443 } else { 80 };
        let port = host.parse::<Authority>().ok().map(|host| host.port_u16().unwrap_or(usual));
        port == Some(app.listens_on.port())
    };
    host_of(headers).filter(|host| is_set || is_ours(host))
}

/// The address by which the gateway was called if that is its own, else the one that it listens on: for whom tokens are, and to
/// whom clients speak that ask for one.
pub(super) fn own_base(app: &App, headers: &HeaderMap) -> String {
    match called_by(app, headers) {
        Some(_) => base(app, headers),
        None => format!("{}://{}", scheme(app), app.listens_on),
    }
}

fn scheme(app: &App) -> &'static str {
    if app.settings.tls.is_some() { "https" } else { "http" }
}

/// By which name the gateway was called, whatever it is.
fn host_of(headers: &HeaderMap) -> Option<&str> {
    // A quote would end the text in which it is told.
    headers.get(header::HOST)?.to_str().ok().filter(|host| !host.contains(['"', '\\', ' ']))
}

/// What was found out of who a request is by, when it was let in.
pub(super) fn pass_of(extensions: &Extensions) -> Pass {
    extensions.get().cloned().unwrap_or(Pass::Nobody)
}

/// What is needed of a request to turn its caller away while it is worked on.
pub(super) struct Asked {
    path: String,
    headers: HeaderMap,
}

impl Asked {
    /// None: it is answered in any case. Who was not asked who it is stays whoever it is; frames of JSON-RPC see to it call by
    /// call; and by what leads to a token, or ends one, a caller ends what it came with.
    pub(super) fn of(pass: &Pass, request: &Request) -> Option<Self> {
        let (path, headers) = (request.uri().path(), request.headers());
        if !pass.can_end() || is_public(path) || is_for_newcomers(request.method(), path) {
            return None;
        }
        let kept = [header::HOST, header::AUTHORIZATION].into_iter();
        let headers = kept.filter_map(|name| headers.get(&name).cloned().map(|value| (name, value))).collect();
        Some(Self { path: path.to_owned(), headers })
    }
}

/// Waits for an answer for as long as its caller may have it. If that ends before, the caller is turned away at once, as its
/// next request would be, and what was begun goes on as if the caller had gone away.
pub(super) async fn while_known(
    app: &App,
    pass: &Pass,
    asked: Option<Asked>,
    answer: impl Future<Output = Response>,
) -> Response {
    let Some(asked) = asked else { return answer.await };
    let answer = std::pin::pin!(answer);
    let ended = std::pin::pin!(app.gateway.ended(pass));
    tokio::select! {
        biased;
        Ended { failure, .. } = ended => {
            let failure = app.gateway.refuse(pass, template_of(&asked.path), failure);
            turned_away(app, &asked.path, &asked.headers, failure)
        }
        response = answer => response,
    }
}

/// Says when to come again, in whole seconds.
pub(super) fn come_again(response: &mut Response, wait: Option<Span>) {
    if let Some(wait) = wait {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_ms().div_ceil(1000)));
    }
}

/// A stream of events ends when its reader may not read it any more; the calls that wait on it are told why. `asked`: where it
/// was asked for.
pub(super) fn guarded(app: &Arc<App>, pass: Pass, asked: Uri, response: Response) -> Response {
    if !(pass.can_end() && sse::is_stream(response.headers())) {
        return response;
    }
    let gateway = Arc::clone(&app.gateway);
    let waits = response.extensions().get::<Waits>().cloned();
    let ended = Box::pin(async move {
        let Ended { failure, .. } = gateway.ended(&pass).await;
        // A stream that only stays open until its reader lets go of it is over already.
        if waits.as_ref().is_some_and(Waits::is_over) {
            return None;
        }
        let failure = gateway.refuse(&pass, template_of(asked.path()), failure);
        waits.map(|waits| waits.refused(&failure))
    });
    response.map(|body| Body::new(Until { body, ended }))
}
