//! What a server's owner says, laid over what the server says. Where the two do not agree the owner's word stands, and the
//! disagreement is told.

use reach_schemas::{AgentCard, AgentId, Capability, CapabilityName, Effect, Overlay};

use super::tool_name;

/// A capability of which only the name is known.
pub(super) fn plain(name: CapabilityName) -> Capability {
    serde_json::from_value(serde_json::json!({ "name": name })).expect("a capability needs no more than a name")
}

/// A card of which only the agent and the capabilities are known.
pub(super) fn bare(agent_id: AgentId, capabilities: Vec<Capability>) -> AgentCard {
    let card = serde_json::json!({ "agent_id": agent_id, "capabilities": [] });
    let card: AgentCard = serde_json::from_value(card).expect("a card needs no more than an agent and capabilities");
    AgentCard { capabilities, ..card }
}

/// Lays what is said of single tools over the capabilities made of them.
pub(super) fn lay(overlay: &Overlay, capabilities: Vec<Capability>, warnings: &mut Vec<String>) -> Vec<Capability> {
    let mut is_used = vec![false; overlay.capabilities.len()];
    let mut laid = Vec::with_capacity(capabilities.len());
    for capability in capabilities {
        let tool = capability.tool.as_ref().and_then(tool_name).unwrap_or_default();
        let is_meant = |name: &str| name == tool || name == capability.name.as_str();
        let Some(at) = overlay.capabilities.iter().position(|said| is_meant(&said.name)) else {
            if !overlay.only_named {
                laid.push(capability);
            }
            continue;
        };
        is_used[at] = true;
        let said = &overlay.capabilities[at];
        if said.hidden {
            continue;
        }
        if let Some(effect) = said.effect.filter(|effect| *effect < capability.effect) {
            let (by_hand, by_server) = (word(effect), word(capability.effect));
            warnings
                .push(format!("tool {tool}: the card by hand says {by_hand}, by the server's hints it is {by_server}"));
        }
        laid.push(Capability {
            description: said.description.clone().unwrap_or(capability.description),
            exclusions: said.exclusions.clone().unwrap_or(capability.exclusions),
            tags: said.tags.clone().unwrap_or(capability.tags),
            routing_weight: said.routing_weight.unwrap_or(capability.routing_weight),
            tier: said.tier.unwrap_or(capability.tier),
            timeout: said.timeout.or(capability.timeout),
            effect: said.effect.unwrap_or(capability.effect),
            cancellable: said.cancellable.unwrap_or(capability.cancellable),
            breaker: said.breaker.or(capability.breaker),
            fallback: said.fallback.clone().unwrap_or(capability.fallback),
            lateral: said.lateral.or(capability.lateral),
            ..capability
        });
    }
    let missing = overlay.capabilities.iter().zip(is_used).filter(|(_, is_used)| !is_used);
    warnings.extend(
        missing.map(|(said, _)| format!("the card by hand names {:?}, which the server does not have", said.name)),
    );
    laid
}

/// Lays the rest over the card.
pub(super) fn lay_on_card(overlay: &Overlay, card: &mut AgentCard) {
    fn put<T: Clone>(place: &mut T, said: Option<&T>) {
        if let Some(said) = said {
            place.clone_from(said);
        }
    }
    if overlay.display_name.is_some() {
        card.display_name.clone_from(&overlay.display_name);
    }
    card.owner_team.clone_from(&overlay.owner_team);
    put(&mut card.description, overlay.description.as_ref());
    put(&mut card.max_concurrency, overlay.max_concurrency.as_ref());
    put(&mut card.priority, overlay.priority.as_ref());
    put(&mut card.tags, overlay.tags.as_ref());
    put(&mut card.trust_level, overlay.trust_level.as_ref());
    put(&mut card.availability, overlay.availability.as_ref());
    put(&mut card.access, overlay.access.as_ref());
    put(&mut card.probe, overlay.probe.as_ref());
    put(&mut card.on_failure_callbacks, overlay.on_failure_callbacks.as_ref());
}

const fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::IdempotentWrite => "idempotent_write",
        Effect::Write => "write",
    }
}
