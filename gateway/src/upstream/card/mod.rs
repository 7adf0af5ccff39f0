//! The agent cards of a server: made of what it says, with what its owner says laid over. Nothing is asked here.

mod name;
mod overlay;

use std::borrow::Cow;
use std::collections::BTreeSet;

use reach_core::schema::Schema;
use reach_schemas::card::limits::{CAPABILITIES_MAX, NAME_MAX, TAGS_MAX, TEXT_MAX, TOOL_MAX};
use reach_schemas::{
    AgentCard, AgentId, AgentName, Capability, CapabilityName, Effect, Endpoint, Protocol, RawJson, SERVER_PREFIX,
    ServerSpec,
};
use serde::Deserialize;

use super::catalogue::Catalogue;

/// What stands between a server's name and the number of a further card.
const PART: char = '.';
/// How long a server's own name for its second card and those after it may be.
const AGENT_NAME_MAX: usize = 64;

/// The cards of a server, and what is odd about them.
#[derive(Debug, Clone, Default)]
pub struct Cards {
    /// One for each 256 tools.
    pub cards: Vec<AgentCard>,
    /// What was left out or does not agree, and why.
    pub warnings: Vec<String>,
}

/// A tool, as far as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    description: Option<Cow<'a, str>>,
    input_schema: RawJson,
    #[serde(borrow, default)]
    annotations: Option<Annotations<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Annotations<'a> {
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
    read_only_hint: Option<bool>,
    idempotent_hint: Option<bool>,
}

impl Tool<'_> {
    /// What it does to the world, by its own account (2026-07-28, Tools, ToolAnnotations).
    fn effect(&self) -> Effect {
        let hints = self.annotations.as_ref();
        if hints.and_then(|hints| hints.read_only_hint) == Some(true) {
            Effect::Read
        } else if hints.and_then(|hints| hints.idempotent_hint) == Some(true) {
            Effect::IdempotentWrite
        } else {
            Effect::Write
        }
    }

    fn description(&self) -> String {
        let title = self.title.as_deref().or(self.annotations.as_ref().and_then(|hints| hints.title.as_deref()));
        let told = self.description.as_deref().unwrap_or_default().trim();
        cut(if told.is_empty() { title.unwrap_or_default() } else { told }, TEXT_MAX)
    }
}

/// The beginning of a text, whole characters, in so many bytes.
fn cut(text: &str, max: usize) -> String {
    text[..text.floor_char_boundary(max)].to_owned()
}

/// The name of the tool that a capability was made of.
#[must_use]
pub fn tool_name(tool: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct Name<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    tool.read::<Name<'_>>().ok().map(|tool| tool.name.into_owned())
}

/// The names of the capabilities of a catalogue's tools, each with its tool. A tool that cannot be read has none.
#[must_use]
pub fn names(catalogue: &Catalogue) -> Vec<(CapabilityName, String)> {
    let tools: Vec<String> = catalogue.tools.iter().filter_map(tool_name).collect();
    let texts: Vec<&str> = tools.iter().map(String::as_str).collect();
    name::of(&texts).into_iter().zip(tools).collect()
}

/// Makes the cards of a server.
#[must_use]
pub fn cards(spec: &ServerSpec, catalogue: &Catalogue) -> Cards {
    let mut made = Cards { cards: Vec::new(), warnings: catalogue.warnings.clone() };
    let capabilities = overlay::lay(&spec.card, capabilities(catalogue, &mut made.warnings), &mut made.warnings);
    for (part, capabilities) in capabilities.chunks(CAPABILITIES_MAX).enumerate() {
        match agent_id(spec, part) {
            Some(agent) => made.cards.push(card(spec, catalogue, agent, capabilities.to_vec())),
            None => made.warnings.push(format!(
                "its name is too long to be split: tools from {} on are left out",
                part * CAPABILITIES_MAX
            )),
        }
    }
    if made.cards.len() > 1 {
        let agents: Vec<&str> = made.cards.iter().map(|card| card.agent_id.as_str()).collect();
        made.warnings
            .push(format!("it has more than {CAPABILITIES_MAX} tools, so they are offered by {}", agents.join(", ")));
    }
    made
}

/// The agent of a server's first card, and of those after it.
fn agent_id(spec: &ServerSpec, part: usize) -> Option<AgentId> {
    if part == 0 {
        return Some(AgentId::new(&spec.name, &spec.namespace));
    }
    let name = format!("{}{PART}{}", spec.name, part + 1);
    let name: AgentName = if name.len() > AGENT_NAME_MAX { return None } else { name.parse().ok()? };
    Some(AgentId::new(&name, &spec.namespace))
}

fn capabilities(catalogue: &Catalogue, warnings: &mut Vec<String>) -> Vec<Capability> {
    let mut tools: Vec<(Tool<'_>, &RawJson)> = Vec::with_capacity(catalogue.tools.len());
    let mut seen = BTreeSet::new();
    for (at, raw) in catalogue.tools.iter().enumerate() {
        let shown = tool_name(raw).unwrap_or_else(|| format!("number {}", at + 1));
        match raw.read::<Tool<'_>>() {
            Ok(tool) if tool.name.is_empty() => warnings.push(format!("tool {shown} has no name and is left out")),
            Ok(tool) if !tool.input_schema.get().trim_start().starts_with('{') => {
                warnings.push(format!("tool {shown} has an input schema that is no object and is left out"));
            }
            Ok(_) if raw.get().len() > TOOL_MAX => {
                warnings.push(format!("tool {shown} is described in more than {TOOL_MAX} bytes and is left out"));
            }
            Ok(tool) if !seen.insert(tool.name.clone().into_owned()) => {
                warnings.push(format!("tool {shown} is there twice; the first one is taken"));
            }
            Ok(tool) => tools.push((tool, raw)),
            Err(error) => warnings.push(format!("tool {shown} cannot be read and is left out: {error}")),
        }
    }
    let names = name::of(&tools.iter().map(|(tool, _)| tool.name.as_ref()).collect::<Vec<_>>());
    tools.into_iter().zip(names).map(|((tool, raw), name)| capability(&tool, raw, name, warnings)).collect()
}

fn capability(tool: &Tool<'_>, raw: &RawJson, name: CapabilityName, warnings: &mut Vec<String>) -> Capability {
    let input_schema = match Schema::compile(&tool.input_schema) {
        Ok(_) => Some(tool.input_schema.clone()),
        Err(error) => {
            warnings.push(format!("tool {}: its arguments are not checked here: {error}", tool.name));
            None
        }
    };
    Capability {
        description: tool.description(),
        effect: tool.effect(),
        input_schema,
        tool: Some(raw.clone()),
        // Every request can be called off, whether or not the server heeds it.
        cancellable: true,
        ..overlay::plain(name)
    }
}

fn card(spec: &ServerSpec, catalogue: &Catalogue, agent_id: AgentId, capabilities: Vec<Capability>) -> AgentCard {
    let greeting = &catalogue.greeting;
    let mut description = greeting.instructions.clone().unwrap_or_default().trim().to_owned();
    for (what, names) in [("Prompts", &catalogue.prompts), ("Resources", &catalogue.resources)] {
        if !names.is_empty() {
            let space = if description.is_empty() { "" } else { "\n" };
            description.push_str(&format!("{space}{what}: {}.", names.join(", ")));
        }
    }
    let mut card = overlay::bare(agent_id, capabilities);
    if let Some(version) = greeting.version.as_deref().filter(|version| !version.is_empty()) {
        card.version = cut(version, NAME_MAX);
    }
    card.display_name = greeting.title.as_deref().map(|title| cut(title, NAME_MAX));
    card.description = cut(&description, TEXT_MAX);
    let names = catalogue.prompts.iter().chain(&catalogue.resources).filter(|name| name.len() <= NAME_MAX);
    card.tags = names.take(TAGS_MAX).cloned().collect();
    card.endpoints = vec![Endpoint {
        protocol: Protocol::Mcp,
        version: "1".to_owned(),
        address: format!("{SERVER_PREFIX}{}", spec.name),
    }];
    overlay::lay_on_card(&spec.card, &mut card);
    card
}

#[cfg(test)]
mod tests;
