//! The families of `GET /metrics`: their names, what they mean, and their labels. Names of agents and capabilities have a
//! plain alphabet and nothing else that comes from outside is a label, so that no value needs escaping. What is not told
//! apart has the label `_other`, which no name can be.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use reach_core::evaluation::{Buckets, TaskCounts};
use reach_schemas::PhaseName;
use reach_schemas::call::Latency;

use crate::ops::snapshot::{AttemptsOf, Snapshot, TasksOf};
use crate::spans::Counts;

/// The label of what is not told apart.
const OTHER: &str = "_other";
/// Microseconds in seconds.
const MICROS: f64 = 1e-6;

/// Everything that is measured, to be written.
#[derive(Debug)]
pub(super) struct Families(pub(super) Snapshot);

impl Collector for Families {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        process(&mut writer, &self.0)?;
        now(&mut writer, &self.0)?;
        store(&mut writer, &self.0)?;
        webhooks(&mut writer, &self.0)?;
        window(&mut writer, &self.0)?;
        tasks(&mut writer, &self.0.tasks)?;
        attempts(&mut writer, &self.0.attempts)?;
        let refusals = self.0.refusals.iter().map(|(code, count)| ([("reason", code.name())], *count));
        writer.counters("refusals", "Requests that were refused and became no task, by error", refusals)
    }
}

/// Writes families one after the other.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauges<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, &'l str); N], f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values.into_iter().try_for_each(|(labels, value)| family.encode_family(&labels)?.encode_gauge(&value))
    }

    fn counters<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, &'l str); N], u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values.into_iter().try_for_each(|(labels, value)| {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)
        })
    }

    /// Times that were counted in microseconds.
    fn times<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, &'l str); N], &'l Buckets)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        values
            .into_iter()
            .try_for_each(|(labels, buckets)| histogram(&mut family.encode_family(&labels)?, buckets, MICROS))
    }
}

fn histogram(encoder: &mut MetricEncoder<'_>, buckets: &Buckets, unit: f64) -> fmt::Result {
    encoder.encode_histogram::<NoLabelSet>(buckets.sum(unit), buckets.count(), &buckets.each(unit), None)
}

fn process(writer: &mut Writer<'_>, all: &Snapshot) -> fmt::Result {
    writer.gauges("build", "Always 1; which version it is", [([("version", env!("CARGO_PKG_VERSION"))], 1.0)])?;
    let up_for = all.up_for.as_secs_f64();
    writer
        .0
        .encode_descriptor("uptime", "How long it has been running", Some(&Unit::Seconds), MetricType::Gauge)?
        .encode_gauge(&up_for)?;
    if let Some(bytes) = all.resident_bytes {
        let help = "How much memory the process has";
        let mut family =
            writer.0.encode_descriptor("process_resident_memory", help, Some(&Unit::Bytes), MetricType::Gauge)?;
        family.encode_gauge(&bytes)?;
    }
    writer.gauge("connections", "Open connections of callers and agents", all.connections as f64)?;
    writer.gauge("sessions", "Open connections over which agents can be pushed work", all.sessions as f64)?;
    writer.gauge("waiters", "Tasks whose end is waited for", all.waiters as f64)?;
    let Counts { exported, dropped, failed } = all.spans;
    let spans = [("exported", exported), ("dropped", dropped), ("failed", failed)];
    let help = "Spans of sampled traces, by what became of them on the way to their receiver";
    writer.counters("spans", help, spans.map(|(outcome, count)| ([("outcome", outcome)], count)))
}

fn now(writer: &mut Writer<'_>, all: &Snapshot) -> fmt::Result {
    let open = PhaseName::ALL.into_iter().filter(|phase| !phase.is_final());
    let open =
        open.map(|phase| ([("phase", phase.as_str())], all.open.phases.get(&phase).copied().unwrap_or(0) as f64));
    writer.gauges("tasks_open", "Open tasks, by phase", open)?;
    let waiting = all.open.waiting;
    let waiting =
        [("fast", waiting.fast), ("normal", waiting.normal), ("long", waiting.long), ("unrouted", waiting.unrouted)];
    let waiting = waiting.map(|(tier, count)| ([("tier", tier)], count as f64));
    writer.gauges("tasks_waiting", "Open tasks that wait for an agent, by tier", waiting)?;
    let help = "Open tasks that wait for a person, or are with one";
    writer.gauge("tasks_before_people", help, all.open.before_people as f64)?;
    let agents = all.fleet.agents.iter().map(|(state, count)| ([("state", state.as_str())], *count as f64));
    writer.gauges("agents", "Agents, by state", agents)?;
    let breakers = [("open", all.fleet.breakers_open), ("half_open", all.fleet.breakers_half_open)];
    let breakers = breakers.map(|(state, count)| ([("state", state)], count as f64));
    writer.gauges("breakers", "Circuit breakers that are not closed, by state", breakers)?;
    let taken = all.fleet.seats.iter().map(|(tier, taken, _)| ([("tier", tier.as_str())], f64::from(*taken)));
    writer.gauges("seats_taken", "Attempts that are out, by tier", taken)?;
    let most = all.fleet.seats.iter().map(|(tier, _, most)| ([("tier", tier.as_str())], f64::from(*most)));
    writer.gauges("seats_max", "Attempts that may be out at once, by tier", most)
}

fn store(writer: &mut Writer<'_>, all: &Snapshot) -> fmt::Result {
    let help = "How long batches of commands took to be durable";
    writer.times("store_commit", help, [([], &all.batches.took)])?;
    let help = "How many commands a batch had";
    histogram(
        &mut writer.0.encode_descriptor("store_batch_size", help, None, MetricType::Histogram)?,
        &all.batches.size,
        1.0,
    )?;
    writer.gauge("store_waiting", "Commands that wait for their batch", all.store_waiting as f64)
}

/// How webhooks are told. What only the store knows is left out while it cannot be read.
fn webhooks(writer: &mut Writer<'_>, all: &Snapshot) -> fmt::Result {
    let told = &all.webhooks_told;
    let ended = [("delivered", told.delivered), ("failed", told.given_up), ("gone", told.gone)];
    let ended = ended.map(|(state, count)| ([("state", state)], count));
    writer.counters("webhooks", "Webhooks whose sending has ended, by how", ended)?;
    let help = "Tries to send a webhook that failed, whether others came after them or not";
    writer.counters("webhook_tries_failed", help, [([], told.tries_failed)])?;
    let Some(kept) = &all.webhooks_kept else { return Ok(()) };
    writer.gauge("webhooks_waiting", "Webhooks that will be sent, or sent again", kept.waiting as f64)?;
    let kept_badly = [("failed", kept.failed), ("gone", kept.gone)];
    let kept_badly = kept_badly.map(|(state, count)| ([("state", state)], count as f64));
    writer.gauges(
        "webhooks_undelivered",
        "Webhooks that are kept and will not be sent unless asked for",
        kept_badly,
    )?;
    let waits_for = kept.waiting_since.map_or(0.0, |since| all.at.since(since).as_secs_f64());
    let help = "How long the webhook that was made first of those that wait has waited";
    let mut family =
        writer.0.encode_descriptor("webhooks_oldest_waiting", help, Some(&Unit::Seconds), MetricType::Gauge)?;
    family.encode_gauge(&waits_for)
}

/// The figures of the last 15 minutes. What nothing can be said of is left out.
fn window(writer: &mut Writer<'_>, all: &Snapshot) -> fmt::Result {
    let figures = &all.figures;
    let rates = [
        ("success_ratio", "Share of tasks that an agent answered, over 15 min", figures.success_rate),
        ("completion_ratio", "Share of tasks that completed, over 15 min", figures.completion_rate),
        ("timely_ratio", "Share of tasks that completed within the promise, over 15 min", figures.timely_rate),
        ("hit_ratio", "Share of routed tasks that the first choice answered, over 15 min", figures.hit_rate),
    ];
    for (name, help, rate) in rates {
        if let Some(rate) = rate {
            writer.gauge(name, help, rate)?;
        }
    }
    let agents = all.agent_success_rates().map(|(agent, rate)| ([("agent", agent.as_str())], rate));
    writer.gauges("agent_success_ratio", "Share of attempts that the agent answered, over 15 min", agents)?;
    let quantiles = |(of, latency): (&'static str, Option<Latency>)| {
        let latency = latency.into_iter();
        let each = |latency: Latency| {
            [("0.5", latency.p50_ms), ("0.9", latency.p90_ms), ("0.95", latency.p95_ms), ("0.99", latency.p99_ms)]
        };
        latency.flat_map(each).map(move |(quantile, ms)| ([("of", of), ("quantile", quantile)], ms / 1e3))
    };
    let help = "Quantiles of the time that the router, the agents and whole tasks took, over 15 min";
    let mut family = writer.0.encode_descriptor("latency", help, Some(&Unit::Seconds), MetricType::Gauge)?;
    let mut values = all.latencies().into_iter().flat_map(quantiles);
    values.try_for_each(|(labels, value)| family.encode_family(&labels)?.encode_gauge(&value))
}

fn capability(tasks: &TasksOf) -> (&'static str, &str) {
    ("capability", tasks.capability.as_ref().map_or(OTHER, |name| name.as_str()))
}

fn tasks(writer: &mut Writer<'_>, tasks: &[TasksOf]) -> fmt::Result {
    let ended = tasks.iter().flat_map(|of| {
        of.outcomes.iter().map(move |((phase, outcome), count)| {
            ([capability(of), ("phase", phase.as_str()), ("outcome", *outcome)], *count)
        })
    });
    writer.counters(
        "tasks_ended",
        "Tasks that ended, by the capability that was asked for and how they ended",
        ended,
    )?;
    type Count = fn(&TaskCounts) -> u64;
    let counts: [(&str, &str, Count); 6] = [
        ("tasks_answered", "Tasks to which an agent gave the last word", |counts| counts.answered),
        ("tasks_timely", "Tasks that completed within the promise", |counts| counts.timely),
        ("tasks_routed", "Direct tasks that had an agent", |counts| counts.routed),
        ("tasks_hit", "Direct tasks that the first choice answered", |counts| counts.hits),
        ("fallbacks", "Tasks that went down their fallback chain", |counts| counts.fallbacks),
        ("retries", "Attempts that were not the first of their task", |counts| counts.retries),
    ];
    for (name, help, count) in counts {
        writer.counters(name, help, tasks.iter().map(|of| ([capability(of)], count(&of.counts))))?;
    }
    let router = tasks.iter().map(|of| ([capability(of)], &of.router));
    writer.times("router", "How long the router took to choose", router)?;
    let whole = tasks.iter().map(|of| ([capability(of)], &of.whole));
    writer.times("task", "How long tasks took from being taken on to their end", whole)
}

fn agent_and_capability(attempts: &AttemptsOf) -> [(&'static str, &str); 2] {
    let names = attempts.label.as_ref().map(|(agent, capability)| (agent.as_str(), capability.as_str()));
    let (agent, capability) = names.unwrap_or((OTHER, OTHER));
    [("agent", agent), ("capability", capability)]
}

fn attempts(writer: &mut Writer<'_>, attempts: &[AttemptsOf]) -> fmt::Result {
    let ended = attempts.iter().flat_map(|of| {
        let [agent, capability] = agent_and_capability(of);
        let counts =
            [("answered", of.counts.answered), ("failed", of.counts.failed), ("given_back", of.counts.given_back)];
        counts.map(|(ending, count)| ([agent, capability, ("ending", ending)], count))
    });
    writer.counters("attempts", "Attempts that ended, by agent, capability and how they ended", ended)?;
    let target = attempts.iter().map(|of| (agent_and_capability(of), &of.target));
    writer.times("target", "How long agents took for an attempt, answered or failed", target)
}
