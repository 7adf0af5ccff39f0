//! Which agents are made of which MCP server. Who asks for a server's agents, as each relayed request does, finds them by its
//! name and walks nobody else's.

use std::collections::{BTreeMap, BTreeSet};

use reach_schemas::{AgentCard, AgentId, Protocol, SERVER_PREFIX};

use super::{Fleet, Node};

/// The server that an agent is made of, by name.
#[must_use]
pub fn server_name(card: &AgentCard) -> Option<&str> {
    let endpoints = card.endpoints.iter().filter(|endpoint| endpoint.protocol == Protocol::Mcp);
    endpoints.filter_map(|endpoint| endpoint.address.strip_prefix(SERVER_PREFIX)).next()
}

/// Agents by the name of their server; a server without agents takes no room.
#[derive(Debug, Default)]
pub(super) struct ByServer(BTreeMap<Box<str>, BTreeSet<AgentId>>);

impl ByServer {
    pub(super) fn insert(&mut self, card: &AgentCard) {
        if let Some(server) = server_name(card) {
            self.0.entry(server.into()).or_default().insert(card.agent_id.clone());
        }
    }

    pub(super) fn remove(&mut self, card: &AgentCard) {
        let Some(server) = server_name(card) else { return };
        if let Some(agents) = self.0.get_mut(server) {
            agents.remove(&card.agent_id);
            if agents.is_empty() {
                self.0.remove(server);
            }
        }
    }
}

impl Fleet {
    /// The agents that are made of a server, in the order of their ids.
    pub fn made_of(&self, server: &str) -> impl Iterator<Item = &Node> {
        self.by_server.0.get(server).into_iter().flatten().filter_map(|agent| self.node(agent))
    }
}
