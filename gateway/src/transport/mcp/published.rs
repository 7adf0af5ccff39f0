//! Documents that a client reads before it connects: what is here, and where.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use reach_schemas::{AgentId, ErrorCode, Failure};
use serde_json::Value;

use crate::mcp::server::{SERVER_CARD, agent_of};
use crate::rest::Problem;
use crate::transport::app::{App, problem};
use crate::transport::door;

/// What is published.
#[derive(Debug, Clone, Copy)]
pub(in crate::transport) enum Published {
    ServerCard,
    Catalog,
    AgentCard,
}

/// Answers with a document, whose addresses are those by which the gateway was called.
pub(in crate::transport) async fn published(app: Arc<App>, what: Published, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let base = door::base(&app, &parts.headers);
    let agent = match agent_of(&parts.headers) {
        Ok(agent) => agent,
        Err(error) => return problem(Failure::new(ErrorCode::InvalidRequest, error.message()).into()),
    };
    let speaker = match app.gateway.speaker(&door::pass_of(&parts.extensions), agent) {
        Ok(speaker) => Some(speaker),
        // The card of the server is for everybody.
        Err(_) if matches!(what, Published::ServerCard) => None,
        Err(failure) => return problem(failure.into()),
    };
    let speaker = speaker.unwrap_or_default();
    let document = match what {
        Published::ServerCard => Ok(app.mcp.server_card(&base)),
        Published::Catalog => app.mcp.ai_catalog(&base, &speaker),
        Published::AgentCard => {
            let named = RawPathParams::from_request_parts(&mut parts, &()).await;
            let named = named.ok().and_then(|params| params.iter().next().map(|(_, part)| part.to_owned()));
            let asked = named.unwrap_or_default().parse::<AgentId>();
            let asked = asked.map_err(|error| Failure::new(ErrorCode::AgentNotFound, error.to_string()));
            asked.and_then(|asked| app.mcp.agent_card(&base, &speaker, asked))
        }
    };
    let kind = match what {
        Published::ServerCard => SERVER_CARD,
        Published::Catalog | Published::AgentCard => "application/json",
    };
    match document {
        Ok(document) => answer(kind, &document),
        Err(failure) => problem(Problem::from(failure)),
    }
}

fn answer(kind: &'static str, document: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60")),
        (header::VARY, HeaderValue::from_static("reach-agent, authorization")),
    ];
    (StatusCode::OK, headers, document.to_string()).into_response()
}
