//! Agents: the table, and one of them whole.

use agent_reach_sdk::schemas::call::{AgentState, AgentView, LastProbe, Registered};
use agent_reach_sdk::schemas::{Endpoint, Protocol};

use super::text::{clean, count, lasting, share, shorten, when};
use super::{Grid, Look, Shape, Tone, sheet};

/// How many characters of the capabilities' names a table shows.
const NAMES_MAX: usize = 60;
/// How many characters of the reason of a failed probe are shown.
const WHY_MAX: usize = 200;

/// The table of agents; `limit` is how many were asked for.
pub(crate) fn table(agents: &[AgentView], limit: u32, look: &Look) -> String {
    if agents.is_empty() {
        return "no agents\n".to_owned();
    }
    let mut grid = Grid::new(&[
        ("AGENT", Shape::Fixed),
        ("STATE", Shape::Fixed),
        ("TASKS", Shape::Number),
        ("BY", Shape::Fixed),
        ("SEEN", Shape::Fixed),
        ("CAPABILITIES", Shape::Text),
    ]);
    for agent in agents {
        let card = &agent.card;
        grid.row(
            tone(agent),
            [
                card.agent_id.to_string(),
                agent.state.as_str().to_owned(),
                format!("{}/{}", agent.in_flight, card.max_concurrency),
                reached_by(agent),
                when(agent.seen_at, look.now),
                offers(agent),
            ],
        );
    }
    let mut text = grid.render(look);
    if agents.len() >= limit as usize {
        text.push_str(&format!("the first {limit}; more with --limit\n"));
    }
    text
}

/// What is compared from look to look.
pub(crate) fn line(agent: &AgentView) -> (String, String) {
    let line = format!(
        "{} tasks={}/{} by={} {}",
        agent.state.as_str(),
        agent.in_flight,
        agent.card.max_concurrency,
        reached_by(agent),
        offers(agent)
    );
    (agent.card.agent_id.to_string(), line)
}

fn tone(agent: &AgentView) -> Tone {
    match agent.state {
        AgentState::Alive if agent.breakers.is_empty() => Tone::Plain,
        AgentState::Alive | AgentState::Suspect | AgentState::Overloaded | AgentState::Draining => Tone::Warn,
        AgentState::Dead | AgentState::Ejected => Tone::Bad,
    }
}

/// The names of what it offers; what the breakers keep from it says so.
fn offers(agent: &AgentView) -> String {
    let name = |capability: &agent_reach_sdk::Capability| match agent.breakers.get(&capability.name) {
        Some(breaker) => format!("{} (breaker {breaker})", capability.name),
        None => capability.name.to_string(),
    };
    let names: Vec<String> = agent.card.capabilities.iter().map(name).collect();
    shorten(&names.join(", "), NAMES_MAX)
}

fn reached_by(agent: &AgentView) -> String {
    match agent.card.endpoints.first() {
        Some(Endpoint { protocol: Protocol::Websocket, .. }) if !agent.connected => "websocket (off)".to_owned(),
        Some(endpoint) => endpoint.protocol.as_str().to_owned(),
        None if agent.connected => "connection".to_owned(),
        None => "queue".to_owned(),
    }
}

/// One agent, whole.
pub(crate) fn sheet_of(agent: &AgentView, look: &Look) -> String {
    let card = &agent.card;
    let access = |patterns: &Option<Vec<agent_reach_sdk::schemas::AgentPattern>>| match patterns {
        Some(patterns) if patterns.is_empty() => "nobody".to_owned(),
        Some(patterns) => patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        None => format!("*@{}", card.agent_id.namespace_str()),
    };
    let rows = [
        ("agent", Tone::Head, card.agent_id.to_string()),
        ("name", Tone::Plain, card.display_name.clone().unwrap_or_default()),
        ("state", tone(agent), agent.state.as_str().to_owned()),
        ("what for", Tone::Plain, card.description.clone()),
        ("team", Tone::Plain, card.owner_team.clone().unwrap_or_default()),
        ("version", Tone::Plain, format!("{} (generation {})", card.version, agent.generation)),
        ("seen", Tone::Plain, seen(agent, look)),
        ("probe", probe_tone(agent), agent.probe.as_ref().map_or_else(String::new, |last| probe(last, look))),
        ("tasks", Tone::Plain, tasks(agent)),
        ("reached by", Tone::Plain, endpoints(agent)),
        ("called by", Tone::Plain, access(&card.access.callable_by)),
        ("may call", Tone::Plain, access(&card.access.may_call)),
        ("needs", Tone::Plain, card.dependencies.join(", ")),
        ("tags", Tone::Plain, card.tags.join(", ")),
    ];
    let mut text = sheet(rows, look);
    text.push('\n');
    text.push_str(&capabilities(agent, look));
    text
}

fn seen(agent: &AgentView, look: &Look) -> String {
    let (seen, registered) = (when(agent.seen_at, look.now), when(agent.registered_at, look.now));
    format!("{seen}, a heartbeat each {}; registered {registered}", lasting(agent.card.heartbeat_interval))
}

fn probe_tone(agent: &AgentView) -> Tone {
    match &agent.probe {
        Some(LastProbe { why: Some(_), .. }) => Tone::Bad,
        Some(last) if last.slow_in_row > 0 => Tone::Warn,
        Some(_) | None => Tone::Plain,
    }
}

/// When the last probe was, how it ended, and what it said.
fn probe(last: &LastProbe, look: &Look) -> String {
    let took = lasting(last.took);
    let mut lines = vec![match &last.why {
        Some(why) => {
            let failed = format!("failed {} after {took}: {}", when(last.at, look.now), shorten(&clean(why), WHY_MAX));
            if last.failed_in_row > 1 { format!("{failed}\n{} in a row", last.failed_in_row) } else { failed }
        }
        None => format!("passed {} in {took}", when(last.at, look.now)),
    }];
    if last.slow_in_row > 0 {
        lines.push(format!("{} slow, with none quick between", last.slow_in_row));
    }
    if let Some(said) = &last.said {
        let words = [
            said.queue_depth.map(|depth| format!("{depth} waiting")),
            said.failure_rate_10m.map(|rate| format!("{} of the last 10 min failed", share(rate))),
            said.last_success_at.map(|at| format!("last success {}", when(at, look.now))),
            said.last_task_ms.map(|ms| format!("last task {}", lasting(agent_reach_sdk::Span::from_ms(ms)))),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        lines.extend((!words.is_empty()).then(|| format!("it says: {}", words.join(", "))));
    }
    lines.join("\n")
}

fn tasks(agent: &AgentView) -> String {
    let has = format!("{} of {}", agent.in_flight, agent.card.max_concurrency);
    if agent.reported_load == agent.in_flight { has } else { format!("{has}; it says {}", agent.reported_load) }
}

fn endpoints(agent: &AgentView) -> String {
    let mut all: Vec<String> = agent
        .card
        .endpoints
        .iter()
        .map(|endpoint| format!("{} {}", endpoint.protocol.as_str(), endpoint.address).trim_end().to_owned())
        .collect();
    if all.is_empty() {
        all.push("it pulls its work".to_owned());
    }
    if agent.connected {
        all.push("a connection is open".to_owned());
    }
    all.join("\n")
}

fn capabilities(agent: &AgentView, look: &Look) -> String {
    use agent_reach_sdk::Effect;
    let mut grid = Grid::new(&[
        ("CAPABILITY", Shape::Fixed),
        ("WEIGHT", Shape::Number),
        ("TIER", Shape::Fixed),
        ("EFFECT", Shape::Fixed),
        ("BREAKER", Shape::Fixed),
        ("WHAT IT DOES", Shape::Text),
    ]);
    for capability in &agent.card.capabilities {
        let breaker = agent.breakers.get(&capability.name);
        let effect = match capability.effect {
            Effect::Read => "read",
            Effect::IdempotentWrite => "idempotent_write",
            Effect::Write => "write",
        };
        let breaker_word = breaker.map_or("closed", String::as_str);
        grid.row(
            if breaker.is_some() { Tone::Warn } else { Tone::Plain },
            [
                capability.name.to_string(),
                capability.routing_weight.to_string(),
                capability.tier.as_str().to_owned(),
                effect.to_owned(),
                breaker_word.to_owned(),
                capability.description.clone(),
            ],
        );
    }
    grid.render(look)
}

/// The answer to a registration.
pub(crate) fn registered(answer: &Registered, _: &Look) -> String {
    let names: Vec<&str> = answer.capabilities.iter().map(|name| name.as_str()).collect();
    let was = if answer.unchanged { "was registered already" } else { "is registered" };
    let offers = count(names.len(), "capability", "capabilities");
    let mut text =
        format!("{} {was} (generation {}) with {offers}: {}\n", answer.agent_id, answer.generation, names.join(", "));
    for warning in &answer.warnings {
        text.push_str(&format!("  warning: {}\n", super::text::clean(warning)));
    }
    text
}
