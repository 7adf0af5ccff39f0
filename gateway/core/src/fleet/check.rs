//! Holding a card to what a card may say. All that is wrong with it is told at once, so that its owner corrects it once.

mod address;
mod form;
mod inspection;
mod tool;

use std::collections::BTreeSet;
use std::sync::Arc;

use reach_schemas::card::limits::{
    AVAILABILITY_MAX, BREAKER_WINDOW_MAX, CALLBACKS_MAX, CAPABILITIES_MAX, DEPENDENCIES_MAX, ENDPOINTS_MAX,
    EXCLUSIONS_MAX, FALLBACK_MAX, INTERVAL_MIN, NAME_MAX, PATTERNS_MAX, PROBE_TIMEOUT_MAX, SPAN_MAX, STATIC_MAX,
    TAGS_MAX, TEXT_MAX, TOOL_MAX, UTC_OFFSET_MAX, UTC_OFFSET_MIN,
};
use reach_schemas::{AgentCard, BreakerPolicy, Capability, FallbackStep, Hours, Protocol, RawJson, Span};

pub use self::form::{form_mistakes, policy_form_mistakes};
pub use self::inspection::{CardError, MISTAKES_MAX, Mistake};

use self::inspection::Inspection;
use super::{Checked, Defaults};
use crate::schema::Schema;

/// The shortest span that is one: nothing at all is no time to do anything in.
const SPAN_MIN: Span = Span::from_ms(1);

impl Checked {
    /// Checks a card and compiles its schemas.
    ///
    /// # Errors
    /// All that is wrong with it, up to [`MISTAKES_MAX`] mistakes.
    pub fn new(card: AgentCard) -> Result<Self, CardError> {
        let mut inspection = Inspection::default();
        inspection.card(&card);
        // A card with too many capabilities is refused; those beyond are not worth the work.
        let capabilities = card.capabilities.iter().take(CAPABILITIES_MAX).enumerate();
        let schemas = capabilities.map(|(at, capability)| inspection.schemas(at, capability)).collect();
        inspection.into_result()?;
        let warnings = warnings(&card);
        Ok(Self { card: Arc::new(card), schemas, warnings })
    }

    /// The card.
    #[must_use]
    pub fn card(&self) -> &AgentCard {
        &self.card
    }
}

impl Defaults {
    /// Holds what capabilities go by that do not say to what a card may say of them.
    ///
    /// # Errors
    /// All that is wrong, with its place in the configuration.
    pub fn check(&self) -> Result<(), CardError> {
        let mut inspection = Inspection::default();
        let breakers = [
            ("read", &self.breaker.read),
            ("idempotent_write", &self.breaker.idempotent_write),
            ("write", &self.breaker.write),
        ];
        for (effect, policy) in breakers {
            inspection.breaker(&format!("defaults.breaker.{effect}"), policy);
        }
        let timeouts = [("fast", self.timeout.fast), ("normal", self.timeout.normal), ("long", self.timeout.long)];
        for (tier, timeout) in timeouts {
            inspection.span(format_args!("defaults.timeout.{tier}"), timeout, SPAN_MIN, SPAN_MAX);
        }
        inspection.into_result()
    }
}

fn warnings(card: &AgentCard) -> Vec<String> {
    let mut warnings = Vec::new();
    if card.endpoints.iter().all(|endpoint| endpoint.protocol == Protocol::Queue) {
        warnings.push("it names no way to be reached: it will be sent nothing, and must call task/claim".to_owned());
    }
    for capability in &card.capabilities {
        let name = &capability.name;
        if capability.description.is_empty() && capability.tags.is_empty() {
            warnings.push(format!("{name} has no description and no tags: no intent will find it"));
        }
        if capability.fallback.contains(&FallbackStep::Agent(card.agent_id.clone())) {
            warnings.push(format!("the fallback of {name} asks this agent itself, once every try has failed"));
        }
    }
    warnings
}

impl Inspection {
    fn card(&mut self, card: &AgentCard) {
        if card.capabilities.is_empty() {
            self.wrong("capabilities", "is empty: an agent is sent only what it declares, so declare at least one");
        }
        self.count("capabilities", card.capabilities.len(), CAPABILITIES_MAX);
        self.length("version", &card.version, NAME_MAX);
        self.length("display_name", card.display_name.as_deref().unwrap_or_default(), NAME_MAX);
        self.length("owner_team", card.owner_team.as_deref().unwrap_or_default(), NAME_MAX);
        self.length("description", &card.description, TEXT_MAX);
        self.span("heartbeat_interval", card.heartbeat_interval, INTERVAL_MIN, SPAN_MAX);
        self.span("probe.interval", card.probe.interval, INTERVAL_MIN, SPAN_MAX);
        self.span("probe.timeout", card.probe.timeout, SPAN_MIN, PROBE_TIMEOUT_MAX);
        if let Some(command) = &card.probe.command {
            self.probe_command(card, command);
        }
        if card.max_concurrency == 0 {
            self.wrong("max_concurrency", "is 0: an agent that takes no work says agent/drain instead");
        }
        if card.priority > 9 {
            self.wrong("priority", "is above 9");
        }
        self.texts("tags", &card.tags, TAGS_MAX, NAME_MAX);
        self.texts("dependencies", &card.dependencies, DEPENDENCIES_MAX, NAME_MAX);
        self.count("access.callable_by", card.access.callable_by.as_ref().map_or(0, Vec::len), PATTERNS_MAX);
        self.count("access.may_call", card.access.may_call.as_ref().map_or(0, Vec::len), PATTERNS_MAX);
        self.hours(&card.availability);
        self.reached_at(card);
        self.capabilities(&card.capabilities);
    }

    fn probe_command(&mut self, card: &AgentCard, command: &str) {
        self.length("probe.command", command, TEXT_MAX);
        if command.trim().is_empty() {
            self.wrong("probe.command", "is empty: leave it out, and the agent's own command must be there");
        }
        if card.endpoints.iter().all(|endpoint| endpoint.protocol != Protocol::Process) {
            self.wrong("probe.command", "checks agents with a `process` endpoint, and the card has none");
        }
    }

    fn reached_at(&mut self, card: &AgentCard) {
        self.count("endpoints", card.endpoints.len(), ENDPOINTS_MAX);
        for (at, endpoint) in card.endpoints.iter().take(ENDPOINTS_MAX).enumerate() {
            if let Err(says) = address::of_endpoint(endpoint) {
                self.wrong(format_args!("endpoints[{at}].address"), says);
            }
            if endpoint.version != "1" {
                self.wrong(format_args!("endpoints[{at}].version"), "is not spoken here; version \"1\" is");
            }
        }
        self.count("on_failure_callbacks", card.on_failure_callbacks.len(), CALLBACKS_MAX);
        for (at, callback) in card.on_failure_callbacks.iter().take(CALLBACKS_MAX).enumerate() {
            if let Err(says) = address::of_http(callback) {
                self.wrong(format_args!("on_failure_callbacks[{at}]"), says);
            }
        }
    }

    fn hours(&mut self, availability: &[Hours]) {
        self.count("availability", availability.len(), AVAILABILITY_MAX);
        for (at, hours) in availability.iter().take(AVAILABILITY_MAX).enumerate() {
            self.count(format_args!("availability[{at}].days"), hours.days.len(), 7);
            if !(UTC_OFFSET_MIN..=UTC_OFFSET_MAX).contains(&hours.utc_offset_minutes) {
                let says = format!(
                    "is {}: offsets from UTC are {UTC_OFFSET_MIN} to {UTC_OFFSET_MAX} minutes",
                    hours.utc_offset_minutes
                );
                self.wrong(format_args!("availability[{at}].utc_offset_minutes"), says);
            }
        }
    }

    fn capabilities(&mut self, capabilities: &[Capability]) {
        let mut names = BTreeSet::new();
        for (at, capability) in capabilities.iter().take(CAPABILITIES_MAX).enumerate() {
            let path = format!("capabilities[{at}]");
            if !names.insert(&capability.name) {
                self.wrong(format_args!("{path}.name"), format!("{} is declared twice", capability.name));
            }
            self.capability(&path, capability);
        }
    }

    fn capability(&mut self, path: &str, capability: &Capability) {
        self.length(format_args!("{path}.description"), &capability.description, TEXT_MAX);
        self.texts(&format!("{path}.exclusions"), &capability.exclusions, EXCLUSIONS_MAX, TEXT_MAX);
        self.texts(&format!("{path}.tags"), &capability.tags, TAGS_MAX, NAME_MAX);
        if capability.routing_weight > 100 {
            self.wrong(format_args!("{path}.routing_weight"), "is above 100");
        }
        if let Some(tool) = &capability.tool {
            self.length(format_args!("{path}.tool"), tool.get(), TOOL_MAX);
            if !tool::is_one(tool) {
                let says = "is no tool of MCP: an object with a `name`, and an `inputSchema` that is an object";
                self.wrong(format_args!("{path}.tool"), says);
            }
        }
        if let Some(timeout) = capability.timeout {
            self.span(format_args!("{path}.timeout"), timeout, SPAN_MIN, SPAN_MAX);
        }
        if let Some(policy) = &capability.breaker {
            self.breaker(&format!("{path}.breaker"), policy);
        }
        self.fallback(&format!("{path}.fallback"), capability);
    }

    fn fallback(&mut self, path: &str, capability: &Capability) {
        self.count(path, capability.fallback.len(), FALLBACK_MAX);
        for (at, step) in capability.fallback.iter().take(FALLBACK_MAX).enumerate() {
            match step {
                FallbackStep::Capability(name) if *name == capability.name => {
                    let says =
                        format!("is {name} itself: a fallback asks for something else once every try has failed");
                    self.wrong(format_args!("{path}[{at}].capability"), says);
                }
                FallbackStep::Capability(_) | FallbackStep::Agent(_) => {}
                FallbackStep::Static(result) => {
                    self.length(format_args!("{path}[{at}].static"), result.get(), STATIC_MAX);
                }
                FallbackStep::Instruction(text) => {
                    self.length(format_args!("{path}[{at}].instruction"), text, TEXT_MAX);
                }
                FallbackStep::Human(_) if at + 1 < capability.fallback.len() => {
                    let says = "stands before other steps: a person is the last that is asked, so put it last";
                    self.wrong(format_args!("{path}[{at}].human"), says);
                }
                FallbackStep::Human(_) => {}
            }
        }
    }

    fn breaker(&mut self, path: &str, policy: &BreakerPolicy) {
        let counts = [("failures_in_row", policy.failures_in_row), ("window", policy.window)];
        for (field, count) in counts.into_iter().filter(|(_, count)| !(1..=BREAKER_WINDOW_MAX).contains(count)) {
            self.wrong(format_args!("{path}.{field}"), format!("is {count}: it is 1 to {BREAKER_WINDOW_MAX}"));
        }
        if policy.window_min == 0 || policy.window_min > policy.window {
            let says = format!("is {}: it is 1 to `window`, which is {}", policy.window_min, policy.window);
            self.wrong(format_args!("{path}.window_min"), says);
        }
        let rates = [("open_above", policy.open_above), ("close_below", policy.close_below)];
        // Not a number is within no range.
        for (field, rate) in rates.into_iter().filter(|(_, rate)| !(0.0..=1.0).contains(rate)) {
            self.wrong(format_args!("{path}.{field}"), format!("is {rate}: it is a rate, 0 to 1"));
        }
        self.span(format_args!("{path}.in_row_within"), policy.in_row_within, SPAN_MIN, SPAN_MAX);
        self.span(format_args!("{path}.open_for_max"), policy.open_for_max, SPAN_MIN, SPAN_MAX);
        self.span(format_args!("{path}.open_for"), policy.open_for, SPAN_MIN, SPAN_MAX);
        if policy.open_for > policy.open_for_max {
            let says =
                format!("is {}: it is at most `open_for_max`, which is {}", policy.open_for, policy.open_for_max);
            self.wrong(format_args!("{path}.open_for"), says);
        }
    }

    /// Compiles the schemas of one capability.
    fn schemas(&mut self, at: usize, capability: &Capability) -> (Option<Schema>, Option<Schema>) {
        let mut compile = |schema: Option<&RawJson>, field: &str| {
            let compiled = schema.map(Schema::compile).transpose();
            compiled.unwrap_or_else(|error| {
                self.schema(format_args!("capabilities[{at}].{field} of {}", capability.name), error.to_string());
                None
            })
        };
        (
            compile(capability.input_schema.as_ref(), "input_schema"),
            compile(capability.output_schema.as_ref(), "output_schema"),
        )
    }
}
