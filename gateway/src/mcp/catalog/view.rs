//! The tools that one caller sees: only of agents that it may reach, and named as if there were no others. So nothing that
//! happens behind a wall changes what is in front of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use reach_core::access::{Caller, may_call};
use reach_schemas::{AgentCard, AgentId, Capability, CapabilityName, Effect, RawJson, Tier};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::name::{Identity, names};
use super::shape::Shape;

/// One capability of one agent.
#[derive(Debug, Clone)]
pub(super) struct Offering {
    pub(super) card: Arc<AgentCard>,
    pub(super) at: usize,
    pub(super) shape: Arc<Shape>,
}

impl Offering {
    fn capability(&self) -> &Capability {
        &self.card.capabilities[self.at]
    }
}

/// One tool.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) capability: CapabilityName,
    /// The one agent that is asked. None: whichever of those that offer it.
    pub(crate) to_agent: Option<AgentId>,
    pub(crate) effect: Effect,
    /// How long it takes, at the longest of those that are asked.
    pub(crate) tier: Tier,
    pub(crate) shape: Arc<Shape>,
}

impl Tool {
    /// Writes its text.
    pub(crate) fn write(&self, is_stateless: bool, out: &mut String) {
        self.shape.write(&self.name, self.effect, is_stateless, out);
    }

    /// About how long its text is.
    pub(crate) fn len(&self) -> usize {
        self.shape.len()
    }
}

/// What one caller sees.
#[derive(Debug)]
pub(crate) struct View {
    /// In the order of their names.
    tools: Vec<Tool>,
    /// The same for the same tools.
    pub(crate) fingerprint: [u8; 32],
}

impl View {
    pub(super) fn of(offerings: &[Offering], caller: &Caller, reserved: &[&str]) -> Self {
        let mut by_capability: BTreeMap<&CapabilityName, Vec<&Offering>> = BTreeMap::new();
        for offering in offerings {
            let capability = &offering.capability().name;
            if may_call(caller, &offering.card.agent_id, &offering.card.access, capability) {
                by_capability.entry(capability).or_default().push(offering);
            }
        }
        let groups: Vec<(Option<&AgentId>, Vec<&Offering>)> = by_capability.into_values().flat_map(split).collect();
        let identity = |(agent, group): &(Option<&'_ AgentId>, Vec<&Offering>)| {
            (group[0].capability().name.clone(), agent.map(|agent| agent.as_str().to_owned()))
        };
        let identities: Vec<(CapabilityName, Option<String>)> = groups.iter().map(identity).collect();
        let identities: Vec<Identity<'_>> = identities
            .iter()
            .map(|(capability, agent)| Identity { capability: capability.as_str(), agent: agent.as_deref() })
            .collect();
        let names = names(&identities, reserved);
        let mut tools: Vec<Tool> =
            groups.into_iter().zip(names).map(|((agent, group), name)| tool(name, agent, &group)).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let fingerprint = fingerprint(&tools);
        Self { tools, fingerprint }
    }

    /// All tools, in the order of their names.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The tool of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().map(|at| &self.tools[at])
    }

    /// The name of the tool by which an agent is asked for a capability.
    pub(crate) fn name_of(&self, agent: &AgentId, capability: &CapabilityName) -> Option<&str> {
        self.tool_of(agent, capability).map(|tool| tool.name.as_str())
    }

    /// The tool by which an agent is asked for a capability.
    pub(crate) fn tool_of(&self, agent: &AgentId, capability: &CapabilityName) -> Option<&Tool> {
        let is_it =
            |tool: &&Tool| tool.capability == *capability && tool.to_agent.as_ref().is_none_or(|asked| asked == agent);
        self.tools.iter().find(is_it)
    }

    /// Those that come after a name.
    pub(crate) fn after(&self, name: &str) -> &[Tool] {
        let at = self.tools.partition_point(|tool| tool.name.as_str() <= name);
        &self.tools[at..]
    }
}

fn tool(name: String, agent: Option<&AgentId>, group: &[&Offering]) -> Tool {
    let first = group[0];
    Tool {
        name,
        capability: first.capability().name.clone(),
        to_agent: agent.cloned(),
        // Whoever is asked, no more is done to the world than is told.
        effect: group.iter().map(|offering| offering.capability().effect).max().unwrap_or_default(),
        tier: group.iter().map(|offering| offering.capability().tier).max().unwrap_or_default(),
        shape: Arc::clone(&first.shape),
    }
}

/// One tool if all mean the same by the capability, else one for each agent.
fn split(group: Vec<&Offering>) -> Vec<(Option<&AgentId>, Vec<&Offering>)> {
    let first = group[0].capability();
    if group.len() == 1 || group[1..].iter().all(|other| mean_the_same(first, other.capability())) {
        return vec![(None, group)];
    }
    group.into_iter().map(|offering| (Some(&offering.card.agent_id), vec![offering])).collect()
}

/// Whether two agents mean the same by a capability of one name: it has the same schemas. The name of a tool of an MCP
/// server was chosen by whoever wrote the server, and two that run the same program may well stand before different
/// data: those are never taken for each other.
fn mean_the_same(one: &Capability, other: &Capability) -> bool {
    one.tool.is_none()
        && other.tool.is_none()
        && same(one.input_schema.as_ref(), other.input_schema.as_ref())
        && same(one.output_schema.as_ref(), other.output_schema.as_ref())
}

fn same(one: Option<&RawJson>, other: Option<&RawJson>) -> bool {
    let value = |raw: &RawJson| raw.read::<Value>().ok();
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one == other || (value(one).is_some() && value(one) == value(other)),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn fingerprint(tools: &[Tool]) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut text = String::new();
    for tool in tools {
        text.clear();
        tool.write(true, &mut text);
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(&text);
    }
    digest.finalize().into()
}
