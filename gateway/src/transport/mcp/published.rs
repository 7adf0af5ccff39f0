//! Documents that a client reads before it connects: what is here, and where.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use reach_schemas::{AgentId, ErrorCode, Failure};
use serde_json::Value;

use super::{AGENT_CARD_PATH, CATALOG_PATH};
use crate::identity::Speaker;
use crate::mcp::server::{SERVER_CARD, agent_of};
use crate::rest::Problem;
use crate::transport::app::{App, problem};
use crate::transport::door;

const JSON: &str = "application/json";

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
    let (kind, document) = match what {
        // The card of the server is for everybody.
        Published::ServerCard => (SERVER_CARD, Ok(app.mcp.server_card(&base))),
        Published::Catalog => {
            let speaker = speaker(&app, CATALOG_PATH, &parts);
            (JSON, speaker.and_then(|speaker| app.mcp.ai_catalog(&base, &speaker)))
        }
        Published::AgentCard => {
            let named = RawPathParams::from_request_parts(&mut parts, &()).await;
            let named = named.ok().and_then(|params| params.iter().next().map(|(_, part)| part.to_owned()));
            let asked = named.unwrap_or_default().parse::<AgentId>();
            let asked = asked.map_err(|error| Failure::new(ErrorCode::AgentNotFound, error.to_string()));
            let speaker = speaker(&app, AGENT_CARD_PATH, &parts);
            (JSON, speaker.and_then(|speaker| app.mcp.agent_card(&base, &speaker, asked?)))
        }
    };
    match document {
        Ok(document) => answer(kind, &document),
        Err(failure) => problem(Problem::from(failure)),
    }
}

fn speaker(app: &App, what: &str, parts: &Parts) -> Result<Speaker, Failure> {
    let agent = agent_of(&parts.headers).map_err(|error| Failure::new(ErrorCode::InvalidRequest, error.message()))?;
    app.mcp.speaker(&door::pass_of(&parts.extensions), agent, what)
}

fn answer(kind: &'static str, document: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60")),
        (header::VARY, HeaderValue::from_static("reach-agent, authorization")),
    ];
    (StatusCode::OK, headers, document.to_string()).into_response()
}
