//! Each MCP server at an address of its own, `/servers/{name}/mcp`: what a client would find if it reached the server itself,
//! names and words unchanged, in the era that both are of. Streamable HTTP in front; HTTP or a process behind.

mod answer;
mod events;
mod fronts;
mod head;
mod key;
mod places;
mod process;
mod relay;
mod said;
mod shared;
mod talk;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use reach_schemas::{Failure, Method};

use self::fronts::Fronts;
use self::places::{Bounds, Places};
use super::app::App;
use super::until::Until;
use super::{HttpSettings, body, door};
use crate::envelope::{Frame, Limits};
use crate::gateway::Gateway;
use crate::identity::Speaker;
use crate::mcp::server::agent_of;
use crate::mcp::wire::{Era, Revision, header, sse};

/// Where a server is served.
pub(in crate::transport) const PATH: &str = "/servers/{name}/mcp";
/// How long after a look whether its client may still use a server the next one is had. What changes meanwhile is seen then.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How often it is looked though nothing changed: a token that is over says nothing.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The sessions of all servers.
pub(in crate::transport) struct Servers {
    http: Fronts<relay::Behind>,
    stdio: Fronts<process::Behind>,
    places: Places,
}

impl Servers {
    pub(in crate::transport) fn new(settings: &HttpSettings) -> Self {
        let bounds = Bounds {
            all: settings.processes_max,
            namespace: settings.processes_per_namespace_max,
            caller: settings.processes_per_caller_max,
        };
        Self { http: Fronts::new(), stdio: Fronts::new(), places: Places::new(bounds) }
    }

    /// Ends sessions once their client is not let in any more, or may not use their server; until it is dropped.
    pub(in crate::transport) async fn watch(&self, gateway: &Gateway) {
        let (mut cards, mut identities) = (gateway.cards(), gateway.identity().changes());
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                Ok(()) = cards.changed() => {}
                Ok(()) = identities.changed() => {}
            }
            if self.http.is_empty() && self.stdio.is_empty() {
                continue;
            }
            let may = |speaker: &Speaker, name: &str| {
                gateway.check(&speaker.pass()).is_ok() && gateway.may_use_server(&gateway.caller(speaker), name)
            };
            self.http.end_unless(may);
            self.stdio.end_unless(may);
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Answers on the address of a server; a caller that is refused is written down.
pub(in crate::transport) async fn handle(app: Arc<App>, request: Request) -> Response {
    let (gateway, pass) = (Arc::clone(&app.gateway), door::pass_of(request.extensions()));
    let response = answered(app, request).await;
    if let Some(answer::Refusal(code, why)) = response.extensions().get() {
        gateway.refused(pass.to_string(), PATH, *code, why);
    }
    response
}

async fn answered(app: Arc<App>, request: Request) -> Response {
    let (mut parts, content) = request.into_parts();
    let named = RawPathParams::from_request_parts(&mut parts, &()).await;
    let name = named.ok().and_then(|params| params.iter().next().map(|(_, name)| name.to_owned())).unwrap_or_default();
    let pass = door::pass_of(&parts.extensions);
    let speaker = agent_of(&parts.headers).ok().and_then(|agent| app.gateway.speaker(&pass, agent).ok());
    let Some(speaker) = speaker else { return answer::no_server(&name) };
    let granted = app.gateway.count(&pass).and_then(|()| app.gateway.grant(&pass, speaker.agent(), Method::Reach));
    let grant = match granted {
        Ok(grant) => grant,
        Err(failure) => return answer::refused(b"", failure),
    };
    // One that the caller may not use is answered as one that is not there, before anything of the request is read.
    let is_open = app.gateway.may_use_server(grant.caller(), &name);
    let known = is_open.then(|| app.gateway.upstreams().get(&name)).flatten();
    let Some(server) = known else { return answer::no_server(&name) };
    let body = match body::read(content, app.settings.body_max, app.settings.body_timeout).await {
        Ok(body) => body,
        Err(error) => {
            let status = error.status();
            return answer::error(status, b"", error.into_failure());
        }
    };
    if let Err(failure) = pace_batch(&app.gateway, &speaker, &body) {
        return answer::refused(&body, failure);
    }
    let body = match key::of_body(grant.caller(), body) {
        Ok(body) => body,
        Err(failure) => return answer::refusal(StatusCode::BAD_REQUEST, b"", failure),
    };
    key::of_head(grant.caller(), &mut parts.headers);
    let is_stateless = is_stateless(&parts.headers);
    let response = if server.is_http() {
        relay::relay(&app, &server, &speaker, &parts, body, is_stateless).await
    } else if is_stateless {
        shared::post(&app, &server, &parts, body).await
    } else {
        process::handle(&app, &server, &speaker, &parts, body).await
    };
    while_open(&app, speaker, name, response)
}

/// Counts what a batch asks beyond its first message, which was counted with the request.
fn pace_batch(gateway: &Gateway, speaker: &Speaker, body: &[u8]) -> Result<(), Failure> {
    if !body.trim_ascii_start().starts_with(b"[") {
        return Ok(());
    }
    match Frame::parse(body, &Limits::default()) {
        Frame::Batch(messages) => messages.iter().skip(1).try_for_each(|_| gateway.count_speaker(speaker)),
        Frame::Single(_) => Ok(()),
    }
}

/// A stream of events ends once its reader may not use the server any more.
fn while_open(app: &Arc<App>, speaker: Speaker, name: String, response: Response) -> Response {
    if !sse::is_stream(response.headers()) || speaker.agent().is_none() {
        return response;
    }
    let gateway = Arc::clone(&app.gateway);
    let closed = async move {
        let mut cards = gateway.cards();
        loop {
            cards.mark_unchanged();
            if !gateway.may_use_server(&gateway.caller(&speaker), &name) {
                return None;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
            if cards.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    };
    response.map(|body| Body::new(Until { body, ended: Box::pin(closed) }))
}

/// Whether a request says in its head that it stands alone: by its revision, and where it names none by a header that
/// only such requests have.
fn is_stateless(headers: &HeaderMap) -> bool {
    match headers.get(header::PROTOCOL_VERSION).and_then(|value| value.to_str().ok()) {
        Some(named) => Revision::by_name(named).is_some_and(|revision| revision.era() == Era::Stateless),
        None => headers.get(header::METHOD).is_some_and(|method| method != "initialize"),
    }
}
