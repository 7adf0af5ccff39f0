//! MCP over WebSocket: one message a frame. Requests are called off by notice, as over standard input and output.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::SUBPROTOCOL;
use crate::envelope::{error_of, refused};
use crate::mcp::server::agent_of;
use crate::transport::app::App;
use crate::transport::conversation::Conversation;
use crate::transport::door;
use crate::transport::ws::upgrade;

/// Opens a WebSocket, if that is what the request asks for.
pub(in crate::transport) async fn get(app: Arc<App>, request: Request) -> Response {
    let agent = match agent_of(request.headers()) {
        Ok(agent) => agent,
        Err(error) => return (StatusCode::BAD_REQUEST, refused(error)).into_response(),
    };
    match app.mcp.speaker(&door::pass_of(request.extensions()), agent, super::SOCKET_PATH) {
        Ok(speaker) => {
            let open = move |app: &App| Some(Conversation::with_mcp(&app.gateway, &app.mcp, speaker, &app.drain));
            upgrade(app, request, &[SUBPROTOCOL], open).await
        }
        Err(failure) => (StatusCode::FORBIDDEN, refused(error_of(failure, None))).into_response(),
    }
}
