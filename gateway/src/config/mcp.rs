//! `[mcp]`: what the gateway's own MCP server shows, and how many sessions it keeps.

use reach_schemas::Span;
use serde::Deserialize;

use crate::mcp::server::{Settings, Shown};

/// The section as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// `capabilities`: every capability is a tool. `reach`: five tools find and use them. `both`.
    pub tools: Option<String>,
    /// How many sessions there may be at once.
    pub sessions_max: Option<usize>,
    /// For how long a session is kept that nobody uses.
    pub session_idle: Option<String>,
}

/// What the section means.
pub(super) fn check(section: Section, tools: Option<String>, mistakes: &mut Vec<String>) -> Settings {
    let mut settings = Settings::default();
    if let Some(tools) = tools.or(section.tools) {
        match Shown::by_name(&tools) {
            Some(shown) => settings.tools = shown,
            None => mistakes.push(format!("mcp.tools: {tools:?} is none of \"capabilities\", \"reach\" and \"both\"")),
        }
    }
    match section.sessions_max {
        Some(0) => mistakes.push("mcp.sessions_max: is 0: no client with a handshake could connect".to_owned()),
        Some(sessions_max) => settings.sessions.sessions_max = sessions_max,
        None => {}
    }
    match section.session_idle.map(|text| text.parse::<Span>()) {
        Some(Ok(span)) if span > Span::ZERO => settings.sessions.idle_max = span.into(),
        Some(Ok(_)) => mistakes.push("mcp.session_idle: is zero".to_owned()),
        Some(Err(error)) => mistakes.push(format!("mcp.session_idle: {error}")),
        None => {}
    }
    settings
}
