//! Every path of the port that is no REST: one table, from which the router is made, and by which the audit log calls what
//! was asked for.

use http::Method as Verb;

use super::{door, mcp, servers};
use crate::oauth;
use crate::rest::ROUTES;

/// What is behind a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behind {
    /// The gateway's own MCP server.
    Mcp,
    /// The same over WebSocket.
    McpSocket,
    /// The card of that server.
    ServerCard,
    /// What can be reached.
    Catalog,
    /// The card of an agent.
    AgentCard,
    /// An MCP server, as it is.
    Server,
    /// How clients get tokens (RFC 8414).
    AuthorizationServer,
    /// Where tokens are for (RFC 9728).
    ProtectedResource,
    /// The public keys.
    Keys,
    /// Tokens for clients.
    Token,
    /// The end of a token.
    Revoke,
    /// How a token is.
    Introspect,
}

/// One path, and with which methods it is asked.
#[derive(Debug)]
pub struct Path {
    /// The HTTP methods.
    pub verbs: &'static [Verb],
    /// The path; the part in braces may be anything, and with a star any number of parts.
    pub path: &'static str,
    /// What is behind it.
    pub behind: Behind,
}

const ALL: &[Verb] = &[Verb::POST, Verb::GET, Verb::DELETE];
const GET: &[Verb] = &[Verb::GET];
const POST: &[Verb] = &[Verb::POST];

const fn path(verbs: &'static [Verb], path: &'static str, behind: Behind) -> Path {
    Path { verbs, path, behind }
}

/// Every path that is no REST.
pub static PATHS: &[Path] = &[
    path(ALL, mcp::PATH, Behind::Mcp),
    path(GET, mcp::SOCKET_PATH, Behind::McpSocket),
    path(GET, mcp::CARD_PATH, Behind::ServerCard),
    path(GET, mcp::CATALOG_PATH, Behind::Catalog),
    path(GET, mcp::AGENT_CARD_PATH, Behind::AgentCard),
    path(ALL, servers::PATH, Behind::Server),
    path(GET, "/.well-known/oauth-authorization-server", Behind::AuthorizationServer),
    path(GET, door::RESOURCE_METADATA, Behind::ProtectedResource),
    path(GET, "/.well-known/oauth-protected-resource/{*path}", Behind::ProtectedResource),
    path(GET, "/.well-known/jwks.json", Behind::Keys),
    path(POST, oauth::TOKEN, Behind::Token),
    path(POST, oauth::REVOKE, Behind::Revoke),
    path(POST, oauth::INTROSPECT, Behind::Introspect),
];

/// By which path of the tables something is asked: in our own words, whatever its caller put in them.
pub(super) fn template_of(asked: &str) -> &'static str {
    let known = ROUTES.iter().map(|route| route.path).chain(PATHS.iter().map(|path| path.path));
    known.into_iter().find(|template| is_of(asked, template)).unwrap_or("(another path)")
}

fn is_of(asked: &str, template: &str) -> bool {
    let (mut asked, mut parts) = (asked.split('/'), template.split('/'));
    loop {
        match (asked.next(), parts.next()) {
            (None, None) => return true,
            (Some(_), Some(part)) if part.starts_with("{*") => return true,
            (Some(one), Some(part)) if one == part || (part.starts_with('{') && !one.is_empty()) => {}
            (Some(_) | None, _) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_by_its_template_and_never_by_what_its_caller_wrote() {
        for (asked, template) in [
            ("/tasks", "/tasks"),
            ("/tasks/a-secret", "/tasks/{id}"),
            ("/tasks/a-secret/result", "/tasks/{id}/result"),
            ("/servers/x/mcp", "/servers/{name}/mcp"),
            ("/agents/a@b/agent-card.json", "/agents/{id}/agent-card.json"),
            ("/.well-known/oauth-protected-resource/mcp/x", "/.well-known/oauth-protected-resource/{*path}"),
            ("/tasks/", "(another path)"),
            ("/a-secret", "(another path)"),
        ] {
            assert_eq!(template_of(asked), template, "{asked}");
        }
    }
}
