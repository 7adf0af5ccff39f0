//! Each MCP server at an address of its own, `/servers/{name}/mcp`: what a client would find if it reached the server itself,
//! names and words unchanged, in the era that both are of. Streamable HTTP in front; HTTP or a process behind.

mod answer;
mod events;
mod fronts;
mod head;
mod process;
mod relay;
mod said;
mod shared;
mod talk;

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use reach_schemas::{ErrorCode, Method};
use tokio::sync::Semaphore;

use self::fronts::Fronts;
use super::app::App;
use super::{body, door};
use crate::mcp::server::agent_of;
use crate::mcp::wire::{Era, Revision, header};

/// Where a server is served.
pub(in crate::transport) const PATH: &str = "/servers/{name}/mcp";
/// How many processes there may be at once for sessions of clients.
const PROCESSES_MAX: usize = 256;

/// The sessions of all servers.
pub(in crate::transport) struct Servers {
    http: Fronts<relay::Behind>,
    stdio: Fronts<process::Behind>,
    processes: Arc<Semaphore>,
}

impl Servers {
    pub(in crate::transport) fn new() -> Self {
        Self { http: Fronts::new(), stdio: Fronts::new(), processes: Arc::new(Semaphore::new(PROCESSES_MAX)) }
    }
}

/// Answers on the address of a server.
pub(in crate::transport) async fn handle(app: Arc<App>, request: Request) -> Response {
    let (mut parts, content) = request.into_parts();
    let named = RawPathParams::from_request_parts(&mut parts, &()).await;
    let name = named.ok().and_then(|params| params.iter().next().map(|(_, name)| name.to_owned())).unwrap_or_default();
    let pass = door::pass_of(&parts.extensions);
    let speaker = agent_of(&parts.headers).ok().and_then(|agent| app.gateway.speaker(&pass, agent).ok());
    let granted = speaker.map(|speaker| app.gateway.grant(&pass, speaker.agent(), Method::Reach)).transpose();
    let grant = match granted {
        Ok(grant) => grant,
        Err(failure) => {
            app.gateway.refused(pass.to_string(), PATH, failure.code, &failure.message);
            return answer::error(StatusCode::FORBIDDEN, b"", failure);
        }
    };
    // One that the caller may not use is answered as one that is not there, before anything of the request is read.
    let is_open = grant.is_some_and(|grant| app.gateway.may_use_server(grant.caller(), &name));
    let known = is_open.then(|| app.gateway.upstreams().get(&name)).flatten();
    let Some(server) = known else {
        app.gateway.refused(pass.to_string(), PATH, ErrorCode::AgentNotFound, "");
        return answer::no_server(&name);
    };
    let body = match body::read(content, app.settings.body_max, app.settings.body_timeout).await {
        Ok(body) => body,
        Err(error) => {
            let status = error.status();
            return answer::error(status, b"", error.into_failure());
        }
    };
    let is_stateless = is_stateless(&parts.headers);
    if server.is_http() {
        relay::relay(&app, &server, &parts, body, is_stateless).await
    } else if is_stateless {
        shared::post(&app, &server, &parts, body).await
    } else {
        process::handle(&app, &server, &parts, body).await
    }
}

/// Whether a request says in its head that it stands alone: by its revision, and where it names none by a header that
/// only such requests have.
fn is_stateless(headers: &HeaderMap) -> bool {
    match headers.get(header::PROTOCOL_VERSION).and_then(|value| value.to_str().ok()) {
        Some(named) => Revision::by_name(named).is_some_and(|revision| revision.era() == Era::Stateless),
        None => headers.get(header::METHOD).is_some_and(|method| method != "initialize"),
    }
}
