//! The tools of a server: which capability is which, and calling one.

use std::collections::HashMap;
use std::sync::Arc;

use reach_schemas::{AgentCard, CapabilityName, RawJson};
use tokio::time::Instant;

use super::Server;
use crate::mcp::wire::code;
use crate::upstream::ask::{Ask, quoted};
use crate::upstream::card::{names, tool_name};
use crate::upstream::catalogue::Catalogue;
use crate::upstream::mirror::{self, Mirrored};
use crate::upstream::reply::{Fault, Hears, Reply};

/// A tool, as far as calling it needs.
pub(super) struct Tool {
    name: String,
    mirrored: Vec<Mirrored>,
}

/// One call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// What is called.
    pub capability: &'a CapabilityName,
    /// With what: an object. None: an empty one.
    pub arguments: Option<&'a RawJson>,
    /// What the work is to be done once for, as whoever does it is handed it.
    pub idempotency_key: Option<&'a str>,
    /// The trace that it belongs to.
    pub traceparent: Option<&'a str>,
}

impl Server {
    /// Calls a tool. What the server says of its progress is heard.
    ///
    /// # Errors
    /// There is no answer: why, and whether the call may have arrived.
    pub async fn call(&self, call: &ToolCall<'_>, until: Instant, hears: Hears<'_>) -> Result<Reply, Fault> {
        let own = self.spec.timeout.map(|timeout| Instant::now() + timeout.into());
        let until = own.map_or(until, |own| own.min(until));
        let tool = self.tool(call.capability, until).await;
        match self.call_tool(&tool, call, until, hears).await {
            // The schema that says which headers are wanted has changed (2026-07-28, Transports).
            Ok(Reply::Refused(rejection)) if rejection.code == i64::from(code::HEADER_MISMATCH) => {
                self.catalogue(until).await?;
                let tool = self.tool(call.capability, until).await;
                self.call_tool(&tool, call, until, hears).await
            }
            other => other,
        }
    }

    async fn call_tool(
        &self,
        tool: &Tool,
        call: &ToolCall<'_>,
        until: Instant,
        hears: Hears<'_>,
    ) -> Result<Reply, Fault> {
        let arguments = call.arguments.map_or("{}", RawJson::get);
        let members = format!(r#""name":{},"arguments":{arguments}"#, quoted(&tool.name));
        let mirrored = mirror::headers(&tool.mirrored, arguments);
        let ask = Ask {
            method: "tools/call",
            members: &members,
            name: Some(&tool.name),
            mirrored: &mirrored,
            idempotency_key: call.idempotency_key,
            traceparent: call.traceparent,
            wants_progress: true,
        };
        self.ask(&ask, until, hears).await
    }

    /// The tool that a capability is. One that is not known is asked for; then it is taken for its own name.
    async fn tool(&self, capability: &CapabilityName, until: Instant) -> Arc<Tool> {
        if let Some(tool) = self.tools.load().get(capability) {
            return Arc::clone(tool);
        }
        // That the list cannot be had now will be seen by the call itself.
        let _ = self.catalogue(until).await;
        let known = self.tools.load().get(capability).map(Arc::clone);
        known.unwrap_or_else(|| Arc::new(Tool { name: capability.to_string(), mirrored: Vec::new() }))
    }

    /// Asks for everything that the server has to offer, and remembers which tool is which capability.
    ///
    /// # Errors
    /// The list of tools cannot be had.
    pub async fn catalogue(&self, until: Instant) -> Result<Catalogue, Fault> {
        let greeting = self.link(until).await?.greeting.clone();
        let catalogue = Catalogue::read(self, greeting, until).await?;
        let by_name: HashMap<String, &RawJson> =
            catalogue.tools.iter().filter_map(|tool| Some((tool_name(tool)?, tool))).collect();
        let tool = |(capability, name): (CapabilityName, String)| {
            let mirrored = by_name.get(&name).map(|tool| mirror::of_tool(tool)).unwrap_or_default();
            (capability, Arc::new(Tool { name, mirrored }))
        };
        self.tools.store(Arc::new(names(&catalogue).into_iter().map(tool).collect()));
        Ok(catalogue)
    }

    /// Remembers which tool is which capability from a card that was made before.
    pub fn remember(&self, card: &AgentCard) {
        let tools = card.capabilities.iter().filter_map(|capability| {
            let raw = capability.tool.as_ref()?;
            let tool = Tool { name: tool_name(raw)?, mirrored: mirror::of_tool(raw) };
            Some((capability.name.clone(), Arc::new(tool)))
        });
        let mut known = HashMap::clone(&self.tools.load());
        known.extend(tools);
        self.tools.store(Arc::new(known));
    }
}
