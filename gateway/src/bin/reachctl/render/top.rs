//! How well tasks reach their agents: the whole in some lines, then agents, capabilities and the latest refusals.

use std::cmp::Reverse;

use agent_reach_sdk::schemas::call::{
    AgentFigures, AgentState, CapabilityFigures, Latency, LatestRefusal, Overview, TaskFigures,
};

use super::text::{count, lasting, when};
use super::{Grid, Look, Shape, Tone, sheet};

/// How many capabilities and refusals are shown.
const CAPABILITIES_MAX: usize = 10;
const REFUSALS_MAX: usize = 5;
/// Rates below these are not well: of the whole and of one agent.
const WELL: f64 = 0.98;
const AGENT_WELL: f64 = 0.95;

/// The whole picture.
pub(crate) fn whole(overview: &Overview, look: &Look) -> String {
    let mut parts = vec![total(overview, look)];
    if !overview.agents.is_empty() {
        parts.push(agents(&overview.agents, look));
    }
    if !overview.capabilities.is_empty() {
        parts.push(capabilities(&overview.capabilities, look));
    }
    if !overview.latest_refusals.is_empty() {
        parts.push(refusals(&overview.latest_refusals, look));
    }
    parts.join("\n")
}

/// What is compared from look to look, for readers that are no terminal: figures, without times that change each time.
pub(crate) fn lines(overview: &Overview) -> Vec<(String, String)> {
    let total = ("total".to_owned(), format!("{}; {}", rates(&overview.total), now(overview)));
    let of_agent = |agent: &AgentFigures| {
        let line = format!(
            "{} tasks={} queue={} success={} answered={} failed={}{}",
            agent.state.as_str(),
            in_flight(agent),
            agent.queue,
            rate(agent.total.success_rate),
            agent.total.answered,
            agent.total.failed,
            if agent.breakers.is_empty() { String::new() } else { format!(" breakers: {}", breakers(agent)) }
        );
        (agent.agent_id.to_string(), line)
    };
    let of_capability =
        |one: &CapabilityFigures| (name(one), format!("asked={} {}", one.figures.asked, rates(&one.figures)));
    let mut lines = vec![total];
    lines.extend(overview.agents.iter().map(of_agent));
    lines.extend(overview.capabilities.iter().map(of_capability));
    lines
}

/// `99.2%`, or `-` where nothing was asked.
fn rate(rate: Option<f64>) -> String {
    // What is not all is not shown as all.
    rate.map_or("-".to_owned(), |rate| format!("{:.1}%", (rate * 1000.0).floor() / 10.0))
}

fn rates(figures: &TaskFigures) -> String {
    let (success, completion) = (rate(figures.success_rate), rate(figures.completion_rate));
    let (timely, hit) = (rate(figures.timely_rate), rate(figures.hit_rate));
    format!("success {success}, completed {completion}, in time {timely}, first choice {hit}")
}

/// `45us`, `12ms`, `1.2s`.
fn took(ms: f64) -> String {
    match ms {
        ms if ms < 1.0 => format!("{:.0}us", ms * 1e3),
        ms if ms < 10.0 => format!("{ms:.1}ms"),
        ms if ms < 1e3 => format!("{ms:.0}ms"),
        ms if ms < 1e5 => format!("{:.1}s", ms / 1e3),
        ms => lasting(agent_reach_sdk::Span::from_ms(ms as u64)),
    }
}

fn quantiles(latency: Option<Latency>) -> String {
    let Some(Latency { p50_ms, p90_ms, p95_ms, p99_ms, .. }) = latency else { return String::new() };
    format!("P50 {}, P90 {}, P95 {}, P99 {}", took(p50_ms), took(p90_ms), took(p95_ms), took(p99_ms))
}

fn now(overview: &Overview) -> String {
    let open: u64 = overview.open.values().sum();
    let mut now = format!("{open} open, {} waiting", overview.waiting.all());
    if overview.before_people > 0 {
        now.push_str(&format!(", {} before people", overview.before_people));
    }
    if overview.breakers_open > 0 {
        let breakers = usize::try_from(overview.breakers_open).unwrap_or(usize::MAX);
        now.push_str(&format!(", {} not closed", count(breakers, "breaker", "breakers")));
    }
    now
}

fn total(overview: &Overview, look: &Look) -> String {
    let total = &overview.total;
    let tone = if total.success_rate.is_none_or(|rate| rate >= WELL) { Tone::Good } else { Tone::Bad };
    let asked = format!("{} asked in {}", total.asked, lasting(overview.window.min(overview.up_for)));
    let refused: Vec<String> = overview.refused.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let mut also: Vec<String> =
        [(total.fallbacks, "fallbacks"), (total.retries, "retries"), (total.cancelled, "called off")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
    if !refused.is_empty() {
        also.push(format!("refused: {}", refused.join(", ")));
    }
    sheet(
        [
            ("total", tone, rates(total)),
            ("", Tone::Plain, format!("{asked}, {:.1} a second, {}", overview.ended_per_second, now(overview))),
            ("also", Tone::Warn, also.join(", ")),
            ("router", Tone::Plain, quantiles(total.router)),
            ("agents", Tone::Plain, quantiles(total.target)),
            ("tasks", Tone::Plain, quantiles(total.whole)),
        ],
        look,
    )
}

fn in_flight(agent: &AgentFigures) -> String {
    format!("{}/{}", agent.in_flight, agent.max_concurrency)
}

fn breakers(agent: &AgentFigures) -> String {
    let breakers: Vec<String> = agent.breakers.iter().map(|(name, state)| format!("{name} {state}")).collect();
    breakers.join(", ")
}

fn tone(agent: &AgentFigures) -> Tone {
    let is_failing = agent.total.success_rate.is_some_and(|rate| rate < AGENT_WELL);
    match agent.state {
        AgentState::Dead | AgentState::Ejected => Tone::Bad,
        AgentState::Suspect | AgentState::Overloaded | AgentState::Draining => Tone::Warn,
        AgentState::Alive if is_failing || !agent.breakers.is_empty() => Tone::Warn,
        AgentState::Alive => Tone::Plain,
    }
}

/// The table of agents: what is not well first, then what is busiest.
fn agents(agents: &[AgentFigures], look: &Look) -> String {
    let mut grid = Grid::new(&[
        ("AGENT", Shape::Text),
        ("STATE", Shape::Fixed),
        ("TASKS", Shape::Number),
        ("QUEUE", Shape::Number),
        ("SUCCESS", Shape::Number),
        ("ENDED", Shape::Number),
        ("P50", Shape::Number),
        ("P99", Shape::Number),
        ("BREAKERS", Shape::Text),
    ]);
    let mut sorted: Vec<&AgentFigures> = agents.iter().collect();
    let ended = |agent: &AgentFigures| agent.total.answered + agent.total.failed;
    sorted.sort_by_key(|agent| (tone(agent) == Tone::Plain, Reverse(ended(agent))));
    for agent in sorted {
        let quantile =
            |of: fn(&Latency) -> f64| agent.total.target.as_ref().map_or("-".to_owned(), |all| took(of(all)));
        grid.row(
            tone(agent),
            [
                agent.agent_id.to_string(),
                agent.state.as_str().to_owned(),
                in_flight(agent),
                agent.queue.to_string(),
                rate(agent.total.success_rate),
                ended(agent).to_string(),
                quantile(|all| all.p50_ms),
                quantile(|all| all.p99_ms),
                breakers(agent),
            ],
        );
    }
    grid.render(look)
}

fn name(one: &CapabilityFigures) -> String {
    one.capability.as_ref().map_or("(others)".to_owned(), ToString::to_string)
}

/// The table of capabilities, those that are asked most first.
fn capabilities(capabilities: &[CapabilityFigures], look: &Look) -> String {
    let mut grid = Grid::new(&[
        ("CAPABILITY", Shape::Text),
        ("ASKED", Shape::Number),
        ("SUCCESS", Shape::Number),
        ("COMPLETED", Shape::Number),
        ("IN TIME", Shape::Number),
        ("HITS", Shape::Number),
        ("P50", Shape::Number),
        ("P99", Shape::Number),
    ]);
    let mut sorted: Vec<&CapabilityFigures> = capabilities.iter().collect();
    sorted.sort_by_key(|one| Reverse(one.figures.asked));
    for one in sorted.into_iter().take(CAPABILITIES_MAX) {
        let figures = &one.figures;
        let quantile = |of: fn(&Latency) -> f64| figures.whole.as_ref().map_or("-".to_owned(), |all| took(of(all)));
        let is_well = figures.success_rate.is_none_or(|rate| rate >= AGENT_WELL);
        grid.row(
            if is_well { Tone::Plain } else { Tone::Warn },
            [
                name(one),
                figures.asked.to_string(),
                rate(figures.success_rate),
                rate(figures.completion_rate),
                rate(figures.timely_rate),
                rate(figures.hit_rate),
                quantile(|all| all.p50_ms),
                quantile(|all| all.p99_ms),
            ],
        );
    }
    grid.render(look)
}

fn refusals(refusals: &[LatestRefusal], look: &Look) -> String {
    let mut grid = Grid::new(&[
        ("REFUSED", Shape::Fixed),
        ("WHY", Shape::Fixed),
        ("WHO ASKED", Shape::Text),
        ("FOR", Shape::Text),
    ]);
    for refusal in refusals.iter().take(REFUSALS_MAX) {
        let named = [&refusal.to_agent].into_iter().flatten().map(ToString::to_string);
        let wanted: Vec<String> = named.chain(refusal.capability.iter().map(ToString::to_string)).collect();
        grid.row(
            Tone::Plain,
            [
                when(refusal.at, look.now),
                refusal.code.name().to_owned(),
                refusal.from_agent.as_ref().map(ToString::to_string).unwrap_or_default(),
                wanted.join(" "),
            ],
        );
    }
    grid.render(look)
}
