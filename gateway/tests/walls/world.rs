//! A gateway with agents on both sides of walls, and callers who ask it over every road.

use std::sync::Arc;

use reach_core::access::{Caller, Grant, authorize};
use reach_gateway::gateway::{Gateway, Settings};
use reach_gateway::transport::HttpSettings;
use reach_schemas::call::{AgentRef, Nothing, PolicyPut};
use reach_schemas::{AgentCard, AgentId, Failure, Permission};
use serde_json::{Value, json};

use crate::common::web::Web;
use crate::common::{Running, start_with};

pub(crate) struct World {
    pub(crate) running: Running,
    pub(crate) web: Web,
}

impl World {
    pub(crate) async fn start() -> Self {
        let running = start_with(Settings::default(), HttpSettings::default()).await;
        Self { web: Web::new(&running), running }
    }

    pub(crate) const fn gateway(&self) -> &Arc<Gateway> {
        &self.running.gateway
    }

    /// Registers an agent that pulls its work.
    pub(crate) async fn register(&self, card: &Value) {
        let card: AgentCard = serde_json::from_value(card.clone()).unwrap();
        self.gateway().register(operator(Permission::Serve), card, None).await.unwrap();
    }

    /// Puts a policy in the place of the one that stands.
    pub(crate) async fn put_policy(&self, across: &str, rules: &Value) -> Result<Vec<String>, Failure> {
        let version = self.gateway().policy(operator(Permission::Operate), Nothing {}).await.unwrap().version;
        let put = json!({ "version": version, "across": across, "rules": rules });
        let put: PolicyPut = serde_json::from_value(put).unwrap();
        Ok(self.gateway().put_policy(operator(Permission::Operate), put).await?.warnings)
    }

    /// What an agent may, as it stands now.
    pub(crate) fn grant(&self, agent: &str, permission: Permission) -> Grant {
        authorize(self.gateway().caller_named(&id(agent)), permission).unwrap()
    }

    /// Calls a method of JSON-RPC, and gives its result or its error.
    pub(crate) async fn call(&self, method: &str, params: &Value) -> Value {
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = self.web.post("/rpc", &frame).await.json();
        if answer["error"].is_object() { answer["error"].clone() } else { answer["result"].clone() }
    }

    /// Asks the MCP server as an agent, or as the operator if it names none, and gives its result or its error.
    pub(crate) async fn mcp(&self, agent: &str, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "walls", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        if !agent.is_empty() {
            headers.push(("reach-agent", agent));
        }
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        let reply = self.web.post_with("/mcp", &headers, &frame).await;
        // One answer comes as JSON, or as the last event of a stream.
        let text = reply.text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let answer: Value = serde_json::from_str(text.unwrap_or(&reply.text)).unwrap_or_else(|_| panic!("{reply:?}"));
        if answer["error"].is_object() { answer["error"].clone() } else { answer["result"].clone() }
    }

    /// Reads a page as an agent, without the address of the port.
    pub(crate) async fn page(&self, agent: &str, path: &str) -> Value {
        let reply = self.web.ask(reqwest::Method::GET, path, &[("reach-agent", agent)], None).await;
        json!(reply.text.replace(&self.running.address.to_string(), "here"))
    }

    /// Shows an agent to another.
    pub(crate) fn shown(&self, agent: &str, to: &str) -> Value {
        let request = AgentRef { agent_id: id(agent) };
        told(self.gateway().agent(self.grant(to, Permission::Discover), &request))
    }
}

/// A result or a failure, as JSON.
pub(crate) fn told<T: serde::Serialize>(result: Result<T, Failure>) -> Value {
    match result {
        Ok(value) => serde_json::to_value(value).unwrap(),
        Err(failure) => json!({ "failure": failure }),
    }
}

pub(crate) fn id(agent: &str) -> AgentId {
    agent.parse().unwrap()
}

pub(crate) fn operator(permission: Permission) -> Grant {
    authorize(Caller::OPERATOR, permission).unwrap()
}

/// An agent that offers one thing.
pub(crate) fn card(agent: &str, capability: &Value, access: &Value) -> Value {
    json!({ "agent_id": agent, "capabilities": [capability], "access": access })
}

pub(crate) fn rule(ruling: &str, subject: &str, actions: &[&str], object: &str, capability: Option<&str>) -> Value {
    let mut rule = json!({ "ruling": ruling, "subject": subject, "actions": actions, "object": object });
    if let Some(capability) = capability {
        rule["capability"] = json!(capability);
    }
    rule
}
