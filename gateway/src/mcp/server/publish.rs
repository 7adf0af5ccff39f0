//! What the gateway says of itself and its agents to whoever has not connected yet: a server card, a catalogue, and a card for
//! each agent in the form of A2A. Everything in it is for a caller that may see it anyway.
//!
//! Sources: MCP Server Cards (SEP-2127, schema version 1), AI Catalog 0.9, A2A 1.0 (Agent Card).

use reach_schemas::call::{AgentList, AgentRef, LIST_MAX};
use reach_schemas::{AgentCard, AgentId, Capability, Failure, Method};
use serde_json::{Value, json};

use super::Server;
use crate::identity::Speaker;
use crate::mcp::wire::Revision;

/// The media type of a server card.
pub const SERVER_CARD: &str = "application/mcp-server-card+json";
/// The media type of an agent card.
const AGENT_CARD: &str = "application/a2a-agent-card+json";
/// The name of the server, as cards want it.
const NAME: &str = "dev.agent-reach/gateway";
const DESCRIPTION: &str = "Everything that the agents behind this gateway can do, as tools; each call once.";

impl Server {
    /// The card of the server that is reached at an address such as `http://127.0.0.1:7340`.
    #[must_use]
    pub fn server_card(&self, base: &str) -> Value {
        let versions: Vec<&str> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
        json!({
            "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
            "name": NAME,
            "version": env!("CARGO_PKG_VERSION"),
            "title": "Agent-Reach",
            "description": DESCRIPTION,
            "remotes": [{
                "type": "streamable-http",
                "url": format!("{base}/mcp"),
                "supportedProtocolVersions": versions,
            }],
        })
    }

    /// All that can be reached here: the server, and each agent that the caller may see.
    ///
    /// # Errors
    /// The caller may not list agents.
    pub fn ai_catalog(&self, base: &str, speaker: &Speaker) -> Result<Value, Failure> {
        let publisher = base.split("://").nth(1).unwrap_or(base);
        let publisher = publisher.rsplit_once(':').map_or(publisher, |(host, _)| host);
        let mut entries = vec![json!({
            "identifier": format!("urn:air:{publisher}:gateway"),
            "displayName": "Agent-Reach",
            "type": SERVER_CARD,
            "url": format!("{base}/mcp/server-card"),
        })];
        entries.extend(self.cards(speaker)?.iter().map(|card| {
            json!({
                "identifier": format!("urn:air:{publisher}:{}:{}", card.agent_id.namespace_str(), card.agent_id.name()),
                "displayName": card.display_name.as_deref().unwrap_or(card.agent_id.as_str()),
                "description": card.description,
                "type": AGENT_CARD,
                "url": format!("{base}/agents/{}/agent-card.json", card.agent_id),
            })
        }));
        Ok(json!({ "specVersion": "0.9", "host": { "displayName": "Agent-Reach" }, "entries": entries }))
    }

    /// The card of an agent, in the form of A2A.
    ///
    /// # Errors
    /// There is none that the caller may see.
    pub fn agent_card(&self, base: &str, speaker: &Speaker, asked: AgentId) -> Result<Value, Failure> {
        // The request was counted when it came in.
        let grant = self.gateway.count_named(speaker).and_then(|()| self.grant(speaker, Method::AgentGet));
        let shown = grant.and_then(|grant| self.gateway.agent(grant, &AgentRef { agent_id: asked }));
        let noted = |failure: &Failure| {
            self.note_refused(speaker, "/agents/{id}/agent-card.json", failure.code, &failure.message)
        };
        Ok(a2a(&shown.inspect_err(noted)?.card, base))
    }

    fn cards(&self, speaker: &Speaker) -> Result<Vec<AgentCard>, Failure> {
        let request = AgentList { namespace: None, limit: Some(LIST_MAX), after: None };
        let grant = self.gateway.count_named(speaker).and_then(|()| self.grant(speaker, Method::AgentList));
        let agents = grant.and_then(|grant| self.gateway.agents(grant, &request));
        let noted = |failure: &Failure| {
            self.note_refused(speaker, "/.well-known/ai-catalog.json", failure.code, &failure.message)
        };
        Ok(agents.inspect_err(noted)?.agents.into_iter().map(|agent| agent.card).collect())
    }
}

fn a2a(card: &AgentCard, base: &str) -> Value {
    let skill = |capability: &Capability| {
        let tags = [&card.tags[..], &capability.tags[..]].concat();
        let own = capability.description.as_str();
        let description = if own.is_empty() { capability.name.as_str() } else { own };
        json!({
            "id": capability.name,
            "name": capability.name,
            "description": description,
            "tags": tags,
            "inputModes": ["application/json"],
            "outputModes": ["application/json"],
        })
    };
    json!({
        "name": card.display_name.as_deref().unwrap_or(card.agent_id.as_str()),
        "description": card.description,
        "version": card.version,
        "provider": card.owner_team.as_ref().map(|team| json!({ "organization": team, "url": base })),
        // Each agent is reached through the gateway; where it is itself is not told.
        "supportedInterfaces": [{
            "url": format!("{base}/agent/{}/invoke", card.agent_id),
            "protocolBinding": "https://agent-reach.dev/bindings/invoke",
            "protocolVersion": "1.0",
        }],
        "capabilities": { "streaming": false, "pushNotifications": false },
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": card.capabilities.iter().map(skill).collect::<Vec<_>>(),
    })
}
