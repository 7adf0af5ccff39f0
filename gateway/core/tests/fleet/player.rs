//! Plays the lines of a story on one fleet. It begins on a Monday at 08:00 UTC.
//!
//! `agent ID [ws|queue] [caps=work] [read|idem] [max=4] [weight=50] [hours=08:00-18:00] [callable=PATTERN]
//! [may=PATTERN] [needs=PARAMETER] [beat=10s] [says=WORDS] [not=WORDS] [timeout=15s] [fixed]` registers one.
//! `route TASK [to=ID] [cap=work] [say=WORDS] [in=NAMESPACE] [by=ID] [with=JSON] [tried=ID,ID] [try=1] [retry|orphan]
//! [yields]` routes; `look` does so and takes nothing; `offer` finds who may claim; `message` and `hint` read the last
//! refusal. What becomes of it:
//! `end TASK well|answered|badly|neutral [took=100ms] [after=7s]`, `drop TASK`, `claim TASK ID`. What agents do:
//! `beat ID [load=0] [queue=0]`, `open ID`, `close ID`, `drain ID`, `leave ID`, `probe ID ok|failed [took=50ms] [queue=1]
//! [failing=0.5] [succeeded=7s]`. `state ID`, `flight ID` and `last ID` look, the latter at the last probe; `sound ID` and
//! `busy ID` read from the last decision how sound and how busy the agent was, `learned ID` what outcomes made of its weight.

use std::collections::BTreeMap;

use fastrand::Rng;
use reach_core::access::Caller;
use reach_core::bulkhead::Seat;
use reach_core::fleet::{Ask, Checked, Fleet, Settings, Unroutable, Yields};
use reach_core::health::HealthPolicy;
use reach_core::probe::Probed;
use reach_core::retry::Turn;
use reach_core::task::ending::Ending;
use reach_core::task::{EndedAttempt, Target};
use reach_schemas::call::{HealthReport, Heartbeat};
use reach_schemas::error::Retry;
use reach_schemas::{
    AgentCard, AgentId, Capability, CapabilityName, Decision, FencingToken, Mode, RawJson, Score, Span, TaskId,
    Timestamp,
};
use serde_json::json;

use crate::script::{self, Line};

/// Plays a story, and checks that it comes out as it is written.
#[track_caller]
pub(crate) fn check(story: &str) {
    let mut player = Player::new();
    script::check(story, |line| player.play(line));
}

/// A fleet, and what was last said of it.
pub(crate) struct Player {
    pub(crate) fleet: Fleet,
    pub(crate) rng: Rng,
    pub(crate) decision: Option<Decision>,
    message: String,
    hint: String,
    out: BTreeMap<String, (Seat, AgentId, CapabilityName)>,
}

fn begin() -> Timestamp {
    "2026-11-30T08:00:00Z".parse().unwrap()
}

fn words(text: &str) -> String {
    text.replace('_', " ")
}

fn card(line: &Line<'_>) -> AgentCard {
    let ids = |name| line.set(name).map(|text| text.split(',').collect::<Vec<_>>());
    let capability = |name: &str| {
        let schema = line.set("needs").map(|name| json!({"type": "object", "required": [name]}));
        json!({
            "name": name,
            "description": line.set("says").map(words).unwrap_or_default(),
            "exclusions": line.set("not").map(words).into_iter().collect::<Vec<_>>(),
            "routing_weight": line.read_set::<u8>("weight").unwrap_or(50),
            "effect": if line.has("read") { "read" } else if line.has("idem") { "idempotent_write" } else { "write" },
            "input_schema": schema,
            "timeout": line.set("timeout"),
            "learned_weight": line.has("fixed").then_some(false),
        })
    };
    let capabilities: Vec<_> = line.set("caps").unwrap_or("work").split(',').map(capability).collect();
    let endpoints = match (line.has("ws"), line.has("queue")) {
        (true, _) => json!([{"protocol": "websocket"}]),
        (_, true) => json!([]),
        (false, false) => json!([{"protocol": "http", "address": "http://127.0.0.1:1/"}]),
    };
    let hours = line.set("hours").and_then(|hours| hours.split_once('-'));
    let card = json!({
        "agent_id": line.word(0),
        "capabilities": capabilities,
        "endpoints": endpoints,
        "max_concurrency": line.read_set::<u32>("max").unwrap_or(4),
        "heartbeat_interval": line.set("beat").unwrap_or("10s"),
        "availability": hours.map(|(from, to)| json!({"from": from, "to": to})).into_iter().collect::<Vec<_>>(),
        "access": {"callable_by": ids("callable"), "may_call": ids("may")},
    });
    serde_json::from_value(card).unwrap()
}

/// A wait; one that chance drew a part of is only `later`.
fn wait(span: Span) -> String {
    if span.as_ms().is_multiple_of(1000) { format!("in {span}") } else { "later".to_owned() }
}

fn lacks(decision: &Decision) -> String {
    let near = decision.suggestions.iter().map(|near| {
        let reasons: Vec<&str> = near.lacks.iter().map(|lack| lack.reason.as_str()).collect();
        format!("{} {} {}", near.agent_id, near.capability, reasons.join("+"))
    });
    near.collect::<Vec<_>>().join(", ")
}

impl Player {
    pub(crate) fn new() -> Self {
        let health = HealthPolicy { slow_start_step: Span::ZERO, ..HealthPolicy::default() };
        Self {
            fleet: Fleet::new(Settings { health, ..Settings::default() }),
            rng: Rng::with_seed(3),
            decision: None,
            message: String::new(),
            hint: String::new(),
            out: BTreeMap::new(),
        }
    }

    pub(crate) fn play(&mut self, line: &Line<'_>) -> String {
        let now = begin() + line.at;
        let agent = || line.word(0).parse::<AgentId>().unwrap();
        match line.verb {
            "agent" => return self.register(line, now),
            "route" | "look" | "offer" => return self.route(line, now),
            "message" => return self.message.clone(),
            "hint" => return self.hint.clone(),
            "end" => return self.end(line, now),
            "drop" => {
                let (seat, agent, capability) = self.out.remove(line.word(0)).unwrap();
                self.fleet.abandon(seat, &agent, &capability, now, &mut self.rng);
            }
            "claim" => {
                let (seat, agent) = (seat(line), line.word(1).parse().unwrap());
                let capability = line.set("cap").unwrap_or("work").parse().unwrap();
                self.fleet.claimed(seat, &agent, &capability, now, &mut self.rng);
                self.out.insert(line.word(0).to_owned(), (seat, agent, capability));
            }
            "beat" => {
                let beat = Heartbeat {
                    agent_id: agent(),
                    current_load: line.read_set("load").unwrap_or_default(),
                    queue_depth: line.read_set("queue").unwrap_or_default(),
                    dependency_status: BTreeMap::new(),
                    working_on: Vec::new(),
                };
                self.fleet.heartbeat(&beat, now);
            }
            "open" => self.fleet.connected(&agent(), now),
            "close" => return format!("{} left", self.fleet.disconnected(&agent())),
            "drain" => return self.fleet.drain(&agent(), true).to_string(),
            "leave" => return self.fleet.remove(&agent()).is_some().to_string(),
            "probe" => {
                let _ = self.fleet.probed(&agent(), &probed(line), now);
            }
            "last" => return self.last_probe(&agent()),
            "sound" => return self.of_score(&agent(), |score| score.soundness),
            "busy" => return self.of_score(&agent(), |score| score.load),
            "learned" => return self.of_score(&agent(), |score| (score.learned * 100.0).round() / 100.0),
            "state" => return self.state(&agent(), now),
            "flight" => return self.fleet.in_flight(&agent()).to_string(),
            other => panic!("no such line: {other}"),
        }
        String::new()
    }

    fn register(&mut self, line: &Line<'_>, now: Timestamp) -> String {
        match Checked::new(card(line)) {
            Ok(checked) => {
                let done = self.fleet.register(checked, now);
                format!("{} {}", if done.unchanged { "same" } else { "card" }, done.generation)
            }
            Err(error) => error.to_string(),
        }
    }

    fn state(&self, agent: &AgentId, now: Timestamp) -> String {
        let Some(node) = self.fleet.node(agent) else { return "unknown".to_owned() };
        let view = node.view(self.fleet.in_flight(agent), now);
        let breakers = view.breakers.iter().map(|(capability, state)| format!(", {capability} {state}"));
        format!("{:?}{}", view.state, breakers.collect::<String>()).to_lowercase()
    }

    fn last_probe(&self, agent: &AgentId) -> String {
        let Some(last) = self.fleet.node(agent).and_then(|node| node.last_probe.clone()) else {
            return "none".to_owned();
        };
        let depth = last.said.and_then(|said| said.queue_depth).map(|depth| format!(" queue {depth}"));
        let why = last.why.map(|why| format!(" {why}"));
        let told = [depth, why].into_iter().flatten().collect::<String>();
        format!("after {}{told}, {} failed, {} slow", last.at.since(begin()), last.failed_in_row, last.slow_in_row)
    }

    fn of_score(&self, agent: &AgentId, term: impl Fn(&Score) -> f64) -> String {
        let candidates = self.decision.iter().flat_map(|decision| &decision.candidates);
        let score = candidates.filter(|one| &one.agent_id == agent).find_map(|one| one.score.as_ref());
        score.map_or_else(|| "not scored".to_owned(), |score| term(score).to_string())
    }

    fn route(&mut self, line: &Line<'_>, now: Timestamp) -> String {
        let target = Target {
            to_agent: line.read_set("to"),
            capability: line.read_set("cap"),
            intent: line.set("say").map(words),
            namespace: line.read_set("in"),
        };
        let caller = line.read_set("by").map_or(Caller::OPERATOR, |agent| self.fleet.caller(&agent));
        let tried: Vec<AgentId> =
            line.set("tried").map(|ids| ids.split(',').map(|id| id.parse().unwrap()).collect()).unwrap_or_default();
        let params = line.set("with").map(|json| RawJson::parse(json).unwrap());
        let ask = Ask {
            caller: &caller,
            target: &target,
            params: params.as_ref(),
            tried: tried.iter().collect(),
            attempt: line.read_set("try").unwrap_or(1),
            turn: if line.has("retry") {
                Turn::Retry
            } else if line.has("orphan") {
                Turn::Orphan
            } else {
                Turn::First
            },
            attempt_timeout: None,
            yields: line.has("yields").then_some(Yields(&|_| true)),
            seat: seat(line),
        };
        if line.verb == "offer" {
            let offering = self.fleet.offer_to_all(&ask, Mode::Broadcast, now, &mut self.rng);
            return match offering {
                Ok(offering) => {
                    let to = offering.to.iter().map(|offered| offered.agent_id.to_string());
                    format!(
                        "{} ({})",
                        to.collect::<Vec<_>>().join(", "),
                        format!("{:?}", offering.plan.effect).to_lowercase()
                    )
                }
                Err(refusal) => self.refused(refusal, now),
            };
        }
        let routed = if line.verb == "look" {
            self.fleet.resolve(&ask, now, &mut self.rng)
        } else {
            self.fleet.route(&ask, now, &mut self.rng)
        };
        match routed {
            Ok(route) => {
                let (agent, capability) = (route.assignment.agent_id, route.assignment.capability);
                self.decision = Some(route.decision);
                let told = format!("{agent} {capability}");
                if line.verb == "route" {
                    self.out.insert(line.word(0).to_owned(), (ask.seat, agent, capability));
                }
                told
            }
            Err(refusal) => self.refused(refusal, now),
        }
    }

    fn refused(&mut self, refusal: Unroutable, now: Timestamp) -> String {
        let (told, failure, decision) = match refusal {
            Unroutable::NotNow { until, failure, decision, .. } => {
                (format!("{}: {}", wait(until.since(now)), lacks(&decision)), failure, decision)
            }
            Unroutable::Never { failure, decision } => {
                (format!("never, {}: {}", failure.code.name(), lacks(&decision)), failure, decision)
            }
        };
        self.hint = match (failure.retry(), failure.retry_after) {
            (Retry::Later, Some(span)) => format!("later, after {span}"),
            (retry, span) => format!("{retry:?} {span:?}").to_lowercase(),
        };
        self.message = failure.message;
        self.decision = Some(decision);
        told.trim_end_matches(": ").to_owned()
    }

    fn end(&mut self, line: &Line<'_>, now: Timestamp) -> String {
        let (seat, agent_id, capability) = self.out.remove(line.word(0)).unwrap();
        let ending = match line.word(1) {
            "well" => Ending::Succeeded,
            "answered" => Ending::Answered,
            "badly" | "late" => Ending::Failed,
            _ => Ending::Neutral,
        };
        let is_timeout = line.word(1) == "late";
        let took = line.read_set("took").unwrap_or(Span::from_ms(100));
        let retry_after = line.read_set("after");
        let ended = EndedAttempt { agent_id, capability, token: seat.token, ending, took, is_timeout, retry_after };
        match self.fleet.ended(seat, &ended, now, &mut self.rng) {
            Some(reach_core::breaker::Change::Opened { .. }) => "opened".to_owned(),
            Some(reach_core::breaker::Change::Closed) => "closed".to_owned(),
            None => String::new(),
        }
    }
}

fn probed(line: &Line<'_>) -> Probed {
    let report = HealthReport {
        queue_depth: line.read_set("queue"),
        failure_rate_10m: line.read_set("failing"),
        last_success_at: line.read_set("succeeded").map(|at: Span| begin() + at),
        last_task_ms: None,
    };
    let answer = if line.word(1) == "ok" { Ok(report) } else { Err("no answer".to_owned()) };
    Probed { took: line.read_set("took").unwrap_or(Span::from_ms(50)), answer }
}

fn seat(line: &Line<'_>) -> Seat {
    let task_id = TaskId::from_parts(1, line.word(0).parse().unwrap_or_default());
    Seat { task_id, token: FencingToken(line.read_set("try").unwrap_or(1)) }
}

/// The capability of a card that a test writes itself.
pub(crate) fn capability(name: &str) -> Capability {
    serde_json::from_value(json!({ "name": name })).unwrap()
}
