//! Plays the lines of a story on one task.
//!
//! `task [tries=3] [deadline=60s] [cap=work] [intent=..] [pulled]` begins. Whom it goes to: `assign AGENT [ws|queue|process]`
//! (else HTTP) and `offer AGENT,AGENT`, both with `[write|idem]` (else read), `[stoppable]`, `[timeout=10s]`,
//! `[lateral=yes|no]`, `[of=CAPABILITY]`, `[people=1h]` and `[chain=cap:X,agent:X,static:X,say:X,human:X]`; `defer UNTIL`,
//! `give-up`. Then `claim AGENT [lease=30s]`, `delivered`, `accept`, `progress`, `renew`, `release`, `poison` and
//! `complete`, each with the token; `preempt TOKEN PRIORITY`; `fail TOKEN not-started|retryable|for-good|unknown
//! [after=1s] [code=overloaded]`; `cancel`, `due`, `redrive DEADLINE [at=3s]`. People `take NAME [lease=30m]` and, each with the
//! token, `answer`, `decline [nothing-happened]` and `return`. `tried`, `view`, `record` and `people` look and change
//! nothing.
//!
//! What is counted goes over all tasks of the story: `figures`, `agent NAME` and `refusals` show it, and `refuse CODE`
//! has a request refused.

use std::sync::Arc;

use fastrand::Rng;
use reach_core::evaluation::Evaluation;
use reach_core::task::ending::Ending;
use reach_core::task::event::{Trace, Word};
use reach_core::task::{Assignment, Birth, Effects, Event, Offered, Phase, Plan, Refusal, Task, Wanted, step};
use reach_schemas::{
    AgentId, Decision, Effect, ErrorCode, Failure, FallbackStep, FencingToken, Mode, Protocol, RawJson, Span, Stage,
    Submit, TakeEnding, TaskId, Tier, Timestamp,
};

use crate::figures;
use crate::script::{self, Line};

const BEGIN: Timestamp = Timestamp::from_ms(1_780_000_000_000);

/// Plays a story, and checks that it comes out as it is written.
#[track_caller]
pub(crate) fn check(story: &str) {
    let mut player = Player { task: None, rng: Rng::with_seed(7), evaluation: Evaluation::default() };
    script::check(story, |line| player.play(line));
}

/// As [`check`], for stories of what is counted: events go through, and only what is asked for is written down.
#[track_caller]
pub(crate) fn check_figures(story: &str) {
    let mut player = Player { task: None, rng: Rng::with_seed(7), evaluation: Evaluation::default() };
    script::check(story, |line| {
        let told = player.play(line);
        assert!(!told.starts_with("no: "), "{line:?}: {told}");
        if matches!(line.verb, "figures" | "agent" | "refusals") { told } else { String::new() }
    });
}

struct Player {
    task: Option<Task>,
    rng: Rng,
    evaluation: Evaluation,
}

fn agent(name: &str) -> AgentId {
    format!("{name}@n").parse().unwrap()
}

fn name(agent: &AgentId) -> &str {
    agent.name()
}

pub(crate) fn decision() -> Decision {
    Decision {
        at: BEGIN,
        attempt: 1,
        stage: Stage::Exact,
        chosen: None,
        considered: 0,
        candidates: Vec::new(),
        rejected: std::collections::BTreeMap::new(),
        intent: None,
        rule: None,
        suggestions: Vec::new(),
        queue: None,
        took_us: None,
    }
}

fn chain(text: &str) -> Vec<FallbackStep> {
    let read = |step: &str| match step.split_once(':').unwrap() {
        ("cap", name) => FallbackStep::Capability(name.parse().unwrap()),
        ("agent", name) => FallbackStep::Agent(agent(name)),
        ("human", queue) => FallbackStep::Human(queue.parse().unwrap()),
        ("static", json) => FallbackStep::Static(RawJson::parse(json).unwrap()),
        (_, words) => FallbackStep::Instruction(words.to_owned()),
    };
    text.split(',').map(read).collect()
}

fn plan(line: &Line<'_>) -> Plan {
    Plan {
        effect: match (line.has("write"), line.has("idem")) {
            (true, _) => Effect::Write,
            (_, true) => Effect::IdempotentWrite,
            (false, false) => Effect::Read,
        },
        tier: Tier::Normal,
        attempt_timeout: line.read_set("timeout").unwrap_or(Span::from_secs(10)),
        lateral: line.set("lateral").map(|word| word == "yes"),
        cancellable: line.has("stoppable"),
        fallback: line.set("chain").map(chain).unwrap_or_default(),
        human_wait: line.read_set("people").unwrap_or(Span::from_hours(1)),
    }
}

fn token(line: &Line<'_>) -> FencingToken {
    FencingToken(line.word(0).parse().unwrap())
}

fn text(words: &str) -> RawJson {
    RawJson::of(words).unwrap()
}

fn born(line: &Line<'_>) -> Task {
    let intent = line.set("intent").map(|words| words.replace('_', " "));
    let capability = intent.is_none().then(|| line.set("cap").unwrap_or("work").parse().unwrap());
    let mode = if line.has("pulled") { Mode::Queue } else { Mode::Direct };
    let submit = Submit { intent, capability, mode, tries: line.read_set("tries"), ..Submit::default() };
    let (id, created_at) = (TaskId::from_parts(BEGIN.as_ms(), 1), BEGIN + line.at);
    let birth = Birth { id, scope: "caller@n".to_owned(), has_scoped_key: true, submit, created_at };
    Task::new(birth, line.read_set("deadline").unwrap_or(Span::from_secs(60)))
}

impl Player {
    fn play(&mut self, line: &Line<'_>) -> String {
        let now = BEGIN + line.at;
        match line.verb {
            "task" => {
                self.task = Some(born(line));
                return String::new();
            }
            "refuse" => {
                let code = ErrorCode::by_name(line.word(0)).unwrap();
                self.evaluation.refused(&Submit::default(), code, now);
                return String::new();
            }
            "figures" => return figures::told(&self.evaluation.figures(now)),
            "agent" => return figures::agent(&self.evaluation, line.word(0), now),
            "refusals" => return figures::refusals(&self.evaluation, now),
            _ => {}
        }
        let task = self.task.as_ref().expect("a story begins with a task");
        match line.verb {
            "tried" => return tried(task),
            "view" => return view(task),
            "asked" => return asked(task),
            "record" => return record(task),
            "people" => return people(task),
            _ => {}
        }
        match step(task, self.event(line, task), now, &mut self.rng) {
            Err(refusal) => refused(refusal),
            Ok(step) => {
                let told = tell(&step.state.phase, step.state.token, step.state.attempts.last(), &step.effects, now);
                let next = Task { birth: Arc::clone(&task.birth), version: task.version + 1, state: step.state };
                self.evaluation.stepped(&next, &step.effects, now);
                self.task = Some(next);
                told
            }
        }
    }

    fn event(&self, line: &Line<'_>, task: &Task) -> Event {
        let asked = line.set("of").map(|name| name.parse().unwrap());
        let asked = asked.or_else(|| task.state.target.capability.clone());
        let capability = asked.unwrap_or_else(|| "work".parse().unwrap());
        match line.verb {
            "assign" => {
                let protocol =
                    [("ws", Protocol::Websocket), ("queue", Protocol::Queue), ("process", Protocol::Process)]
                        .into_iter()
                        .find_map(|(word, protocol)| line.has(word).then_some(protocol))
                        .unwrap_or(Protocol::Http);
                let assignment = Assignment { agent_id: agent(line.word(0)), capability, protocol, plan: plan(line) };
                Event::Assign { assignment, decision: decision() }
            }
            "offer" => {
                let to = line.word(0).split(',');
                let to = to.map(|name| Offered { agent_id: agent(name), capability: capability.clone() }).collect();
                Event::Offer { to, plan: plan(line), decision: decision() }
            }
            "defer" => {
                let wanted = (line.has("out") || line.has("busy")).then(|| Wanted {
                    capability,
                    plan: plan(line),
                    is_out: line.has("out"),
                });
                Event::Defer { until: BEGIN + line.word(0).parse().unwrap(), wanted, decision: decision() }
            }
            "give-up" => {
                Event::GiveUp { failure: Failure::new(ErrorCode::NoCandidate, "nobody fits"), decision: decision() }
            }
            "claim" => Event::Claim {
                agent_id: agent(line.word(0)),
                lease: line.read_set("lease").unwrap_or(Span::from_secs(30)),
            },
            "delivered" => Event::Delivered { token: token(line) },
            "accept" => Event::Accept { token: token(line) },
            "progress" => {
                let words = line.word(1);
                Event::Progress { token: token(line), progress: (!words.is_empty()).then(|| text(words)) }
            }
            "renew" => Event::Renew { token: token(line) },
            "complete" => {
                let token_count = line.read_set("tokens");
                Event::Complete { token: token(line), result: text(line.word(1)), token_count }
            }
            "fail" => fail(line),
            "release" => Event::Release { token: token(line) },
            "poison" => {
                Event::Poison { token: token(line), failure: Failure::new(ErrorCode::AgentFailed, "it breaks me") }
            }
            "preempt" => Event::Preempt { token: token(line), priority: line.word(1).parse().unwrap() },
            "take" => Event::Take {
                by: line.word(0).to_owned(),
                lease: line.read_set("lease").unwrap_or(Span::from_mins(30)),
            },
            "answer" => Event::Person { token: token(line), word: Word::Answer { result: text(line.word(1)) } },
            "decline" => {
                let failure = Failure::new(ErrorCode::HumanRefused, "a person refused it");
                let word = Word::Refuse { failure, nothing_happened: line.has("nothing-happened") };
                Event::Person { token: token(line), word }
            }
            "return" => Event::Person { token: token(line), word: Word::Return },
            "cancel" => Event::Cancel,
            "due" => Event::Due,
            "redrive" => Event::Redrive {
                not_before: BEGIN + line.read_set("at").unwrap_or(line.at),
                deadline_at: BEGIN + line.at + line.word(0).parse().unwrap(),
            },
            other => panic!("no such event: {other}"),
        }
    }
}

fn fail(line: &Line<'_>) -> Event {
    let (code, trace) = match line.word(1) {
        "not-started" => (ErrorCode::Unreachable, Trace::NotStarted),
        "never-sent" => (ErrorCode::Timeout, Trace::NeverSent),
        "retryable" => (ErrorCode::AgentFailed, Trace::FailedRetryable),
        "for-good" => (ErrorCode::AgentFailed, Trace::FailedForGood),
        "unknown" => (ErrorCode::AgentLost, Trace::Unknown),
        other => panic!("no such trace: {other}"),
    };
    let code = line.set("code").map_or(code, |name| ErrorCode::by_name(name).unwrap());
    let failure = Failure { retry_after: line.read_set("after"), ..Failure::new(code, "it failed") };
    Event::Fail { token: token(line), failure, trace }
}

fn refused(refusal: Refusal) -> String {
    let why = match refusal {
        Refusal::StaleToken { newest } => format!("stale, the newest is {}", newest.0),
        Refusal::WrongPhase { phase } => format!("it is {}", phase.as_str()),
        Refusal::ClaimLost => "claimed by another".to_owned(),
        Refusal::NotOffered => "not offered".to_owned(),
        Refusal::NotTaken => "nobody has it".to_owned(),
        Refusal::Already => "so already".to_owned(),
        Refusal::NotDue => "not due".to_owned(),
    };
    format!("no: {why}")
}

/// A wait in words that chance does not change: `at once`, `within 200ms` (drawn from its upper half), or the span.
fn wait(span: Span) -> String {
    let mut bound = Span::from_ms(200);
    if span == Span::ZERO {
        return "at once".to_owned();
    }
    while bound < span && bound < Span::from_mins(1) {
        bound = bound.times(2);
    }
    let is_drawn = span.times(2) >= bound && !span.as_ms().is_multiple_of(1000);
    if is_drawn { format!("within {bound}") } else { format!("in {span}") }
}

fn tell(
    phase: &Phase,
    token: FencingToken,
    attempt: Option<&reach_core::task::Attempt>,
    effects: &Effects,
    now: Timestamp,
) -> String {
    let who = attempt.map(|attempt| name(&attempt.agent_id)).unwrap_or_default();
    let held = |word: &str, phase: &Phase| {
        let until = phase.until().unwrap_or_default().since(BEGIN);
        format!("{word} {who}#{} until {until}", token.0)
    };
    let mut told = match phase {
        Phase::Submitted { not_before, offered } if offered.is_empty() => {
            format!("again {}", wait(not_before.since(now)))
        }
        Phase::Submitted { offered, .. } => format!("offered to {}", offered.len()),
        Phase::Human { lease_until: None } => "waits for a person".to_owned(),
        Phase::Human { lease_until: Some(until) } => format!("with a person #{} until {}", token.0, until.since(BEGIN)),
        Phase::Routed(_) => held("routed", phase),
        Phase::Delivered(_) => held("delivered", phase),
        Phase::Accepted(_) => held("accepted", phase),
        Phase::Completed { result } => format!("completed {}", result.get()),
        Phase::Failed(failure) => format!("failed {}", failure.code.name()),
        Phase::Cancelled => "cancelled".to_owned(),
        Phase::Expired(failure) => format!("expired {}", failure.code.name()),
        Phase::DeadLettered(failure) => format!("dead {}", failure.code.name()),
    };
    told.push_str(&follows(effects));
    told
}

fn follows(effects: &Effects) -> String {
    let list = |agents: Vec<&AgentId>| agents.into_iter().map(name).collect::<Vec<_>>().join(",");
    let mut told = String::new();
    if effects.deliver {
        told.push_str("; deliver");
    }
    if !effects.offer.is_empty() {
        told.push_str(&format!("; offer {}", list(effects.offer.iter().map(|offer| &offer.agent_id).collect())));
    }
    if !effects.withdraw.is_empty() {
        told.push_str(&format!("; withdraw {}", list(effects.withdraw.iter().collect())));
    }
    if let Some((agent, token)) = &effects.stop {
        told.push_str(&format!("; stop {}#{}", name(agent), token.0));
    }
    if let Some(ended) = &effects.ended {
        let how = match ended.ending {
            Ending::Succeeded => "well",
            Ending::Answered => "answered",
            Ending::Failed => "badly",
            Ending::Neutral => "neutral",
        };
        told.push_str(&format!("; #{} ended {how}", ended.token.0));
    }
    told
}

fn tried(task: &Task) -> String {
    let names: Vec<&str> = task.state.tried().map(name).collect();
    if names.is_empty() { "nobody".to_owned() } else { names.join(" ") }
}

/// Whom it is for now, and for what.
fn asked(task: &Task) -> String {
    let target = &task.state.target;
    let agent = target.to_agent.as_ref().map_or("anyone".to_owned(), AgentId::to_string);
    format!("{agent} for {}", target.capability.as_ref().map_or("anything", |name| name.as_str()))
}

fn record(task: &Task) -> String {
    let Some(record) = task.record() else { return "none".to_owned() };
    let from = |name: &AgentId| name.name().to_owned();
    format!(
        "{} {}/{} {}ms tokens {:?} error {:?} instead of {:?}",
        record.status_code,
        record.to_agent.as_ref().map_or("-".to_owned(), from),
        record.method.map_or("-".to_owned(), |method| method.to_string()),
        record.latency_ms,
        record.token_count,
        record.error_message,
        record.fallback_from.map(|name| name.to_string()),
    )
}

/// Where it waits, until when at most, who took it and how that ended, and what is unsure.
fn people(task: &Task) -> String {
    let Some(human) = task.view().human else { return "nobody".to_owned() };
    let mut told = format!("{} until {}", human.queue, task.state.deadline_at.since(BEGIN));
    for take in human.takes {
        told.push_str(&format!("; {} {}", take.by, take.ending.map_or("has it", TakeEnding::as_str)));
    }
    for write in human.unsure {
        told.push_str(&format!("; unsure of {write}"));
    }
    told
}

fn view(task: &Task) -> String {
    let view = task.view();
    let mut told = view.outcome.unwrap_or_else(|| view.phase.as_str().to_owned());
    if let Some(from) = view.fallback_from {
        told.push_str(&format!(" instead of {from}"));
    }
    if let Some(failure) = view.failure {
        told.push_str(&format!(": {}", failure.message));
    }
    told
}
