//! Cards and capabilities to begin with: everything at its default but the name.

use reach_schemas::{Access, AgentCard, Capability, Effect, ProbePolicy, Span, Tier, TrustLevel};

use crate::error::{Error, Result};

/// A card with this id, `name@namespace`, and all else at its default.
///
/// ```
/// use agent_reach_sdk::{AgentCard, card};
/// # fn main() -> Result<(), agent_reach_sdk::Error> {
/// let card = AgentCard { max_concurrency: 4, ..card("counter@demo")? };
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Config`] if the id cannot be one.
pub fn card(agent_id: impl AsRef<str>) -> Result<AgentCard> {
    Ok(AgentCard {
        agent_id: agent_id.as_ref().parse().map_err(Error::config)?,
        version: "1".to_owned(),
        display_name: None,
        owner_team: None,
        description: String::new(),
        capabilities: Vec::new(),
        endpoints: Vec::new(),
        heartbeat_interval: Span::from_secs(10),
        probe: ProbePolicy::default(),
        max_concurrency: 16,
        priority: 5,
        tags: Vec::new(),
        trust_level: TrustLevel::default(),
        availability: Vec::new(),
        dependencies: Vec::new(),
        access: Access::default(),
        on_failure_callbacks: Vec::new(),
    })
}

/// A capability with this name and all else at its default. The default effect is `write`: say [`Effect::Read`] where
/// work may be repeated freely.
///
/// # Errors
/// [`Error::Config`] if the name cannot be one.
pub fn capability(name: impl AsRef<str>) -> Result<Capability> {
    Ok(Capability {
        name: name.as_ref().parse().map_err(Error::config)?,
        description: String::new(),
        exclusions: Vec::new(),
        tags: Vec::new(),
        input_schema: None,
        output_schema: None,
        tool: None,
        routing_weight: 50,
        tier: Tier::default(),
        timeout: None,
        effect: Effect::default(),
        cancellable: false,
        breaker: None,
        fallback: Vec::new(),
        lateral: None,
        learned_weight: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_wire() {
        let wire: AgentCard = serde_json::from_str(r#"{"agent_id":"a@n","capabilities":[{"name":"c"}]}"#).unwrap();
        let ours = AgentCard { capabilities: vec![capability("c").unwrap()], ..card("a@n").unwrap() };
        assert_eq!(ours, wire);
    }
}
