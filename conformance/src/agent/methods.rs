//! The methods that agents call, as the runner answers them in the gateway's place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reach_schemas::{AgentCard, ErrorCode, Method, Span, TaskId};
use serde_json::{Value, json};

use super::desk::{Answer, Beat, Desk, Pull, Registration, keep};
use super::work::{Event, Key, now};
use crate::schema;

/// The longest that a claim waits here.
const CLAIM_WAIT_MAX: Duration = Duration::from_secs(60);
/// How many reports that are wrong are kept.
const WRONG_MAX: usize = 20;

/// Why a call is refused.
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

/// Who calls, as far as the way tells.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// The WebSocket that the call came over. None: HTTP.
    pub(crate) connection: Option<u64>,
    /// What the caller calls us by.
    pub(crate) host: String,
    /// The token that it shows.
    pub(crate) token: Option<String>,
}

impl Caller {
    /// Whether the call may be made. A WebSocket was looked at when it was opened.
    pub(crate) fn may(&self, desk: &Desk, call: Option<Call>, params: &str) -> Result<(), Refusal> {
        let is_open = match call {
            Some(Call::Prove) => true,
            Some(Call::Register) => serde_json::from_str::<Value>(params).is_ok_and(|value| value["proof"].is_string()),
            Some(Call::Heartbeat | Call::Farewell | Call::Claim | Call::Report(_)) | None => false,
        };
        if is_open || self.connection.is_some() {
            return Ok(());
        }
        let admitted = desk.change(|state| state.tokens.admit(self.token.as_deref(), false));
        admitted.map_err(|code| Refusal { code, message: "who are you? see docs/identity.md".to_owned() })
    }
}

/// What a call is answered with, as JSON.
pub(crate) type Answered = Result<String, Refusal>;

fn refuse(code: ErrorCode, message: impl Into<String>) -> Answered {
    Err(Refusal { code, message: message.into() })
}

/// What agents call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Register,
    /// The agent shows its key.
    Prove,
    Heartbeat,
    Farewell,
    Claim,
    Report(Report),
}

/// What agents say of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    Accept,
    Progress,
    Complete,
    Fail,
    Release,
}

const CALLS: [(Method, Call); 11] = [
    (Method::TokenIssue, Call::Prove),
    (Method::AgentRegister, Call::Register),
    (Method::AgentHeartbeat, Call::Heartbeat),
    (Method::AgentDrain, Call::Farewell),
    (Method::AgentDeregister, Call::Farewell),
    (Method::TaskClaim, Call::Claim),
    (Method::TaskAccept, Call::Report(Report::Accept)),
    (Method::TaskProgress, Call::Report(Report::Progress)),
    (Method::TaskComplete, Call::Report(Report::Complete)),
    (Method::TaskFail, Call::Report(Report::Fail)),
    (Method::TaskRelease, Call::Report(Report::Release)),
];

impl Call {
    /// The call with this name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        CALLS.iter().find(|(method, _)| method.name() == name).map(|(_, call)| *call)
    }
}

impl Report {
    const fn schema(self) -> &'static str {
        match self {
            Self::Accept => "Accept",
            Self::Progress => "Progress",
            Self::Complete => "Complete",
            Self::Fail => "Fail",
            Self::Release => "Release",
        }
    }

    const fn phase(self) -> &'static str {
        match self {
            Self::Accept | Self::Progress => "accepted",
            Self::Complete => "completed",
            Self::Fail => "failed",
            Self::Release => "submitted",
        }
    }

    const fn is_end(self) -> bool {
        match self {
            Self::Accept | Self::Progress => false,
            Self::Complete | Self::Fail | Self::Release => true,
        }
    }
}

/// Answers a call.
pub(crate) async fn answer(desk: &Arc<Desk>, call: Call, params: &str, caller: &Caller) -> Answered {
    let Ok(value) = serde_json::from_str::<Value>(params) else {
        return refuse(ErrorCode::ParseError, "the params are no JSON");
    };
    match call {
        Call::Register if value.get("card").is_some() => prove_and_register(desk, &value, caller),
        Call::Register => register(desk, params, &value, caller.connection),
        Call::Prove => prove(desk, &value, value["agent_id"].as_str().unwrap_or_default(), caller),
        Call::Heartbeat => heartbeat(desk, &value),
        Call::Farewell => Ok(farewell(desk)),
        Call::Claim => claim(desk, &value).await,
        Call::Report(report) => reported(desk, report, params, &value),
    }
}

fn prove(desk: &Desk, value: &Value, agent_id: &str, caller: &Caller) -> Answered {
    let (join, proof) = (value["join"].as_str(), value["proof"].as_str().unwrap_or_default());
    let given = desk.change(|state| state.tokens.prove(agent_id, join, proof, &caller.host));
    match given {
        Ok(token) => Ok(token.to_string()),
        Err(why) => refuse(ErrorCode::Unauthenticated, why),
    }
}

/// A card with what shows that its agent may have it.
fn prove_and_register(desk: &Desk, value: &Value, caller: &Caller) -> Answered {
    let card = &value["card"];
    let token = prove(desk, value, card["agent_id"].as_str().unwrap_or_default(), caller)?;
    let registered = register(desk, &card.to_string(), card, caller.connection)?;
    let mut registered: Value = serde_json::from_str(&registered).unwrap_or_default();
    registered["token"] = serde_json::from_str(&token).unwrap_or_default();
    Ok(registered.to_string())
}

fn register(desk: &Desk, text: &str, card: &Value, connection: Option<u64>) -> Answered {
    let id = card["agent_id"].as_str().unwrap_or_default().to_owned();
    let Some(capabilities) = card["capabilities"].as_array().filter(|_| !id.is_empty()) else {
        return refuse(ErrorCode::InvalidCard, "a card has an agent_id and a list of capabilities");
    };
    let names: Vec<&Value> = capabilities.iter().map(|capability| &capability["name"]).collect();
    let interval = interval(card);
    let (generation, is_first) = desk.change(|state| {
        let is_first = state.registrations.is_empty();
        if state.registrations.len() < 100 {
            state.registrations.push(Registration { at: Instant::now(), card: text.to_owned(), connection });
        }
        if let Some(open) = state.connection.as_mut().filter(|open| Some(open.number) == connection) {
            open.is_registered = true;
        }
        (state.registrations.len(), is_first)
    });
    let endpoints = card.get("endpoints").cloned().unwrap_or_else(|| json!([]));
    Ok(json!({
        "agent_id": id, "cluster": "reach-conformance", "generation": generation, "unchanged": !is_first,
        "capabilities": names, "endpoints": endpoints, "heartbeat_due_at": now() + interval,
    })
    .to_string())
}

/// The heartbeat's interval as a card has it.
pub(crate) fn interval(card: &Value) -> Span {
    let own = card["heartbeat_interval"].as_str().and_then(|text| text.parse().ok());
    own.unwrap_or_else(|| serde_json::from_str::<AgentCard>(MINIMAL).map_or(Span::ZERO, |card| card.heartbeat_interval))
}

/// A card in which nothing is said but what must be, for what is meant then.
const MINIMAL: &str = r#"{"agent_id":"a@n","capabilities":[]}"#;

fn heartbeat(desk: &Desk, value: &Value) -> Answered {
    let fits = schema::fits("Heartbeat", value);
    let card = desk.look(|state| state.registrations.last().map(|registration| registration.card.clone()));
    let Some(card) = card.and_then(|card| serde_json::from_str::<Value>(&card).ok()) else {
        return refuse(ErrorCode::AgentNotFound, "nobody has registered here");
    };
    let is_other = value["agent_id"] != card["agent_id"];
    let wrong = match (&fits, is_other) {
        (Err(why), _) => Some(why.clone()),
        (Ok(()), true) => Some(format!("it names {}, and the card {}", value["agent_id"], card["agent_id"])),
        (Ok(()), false) => None,
    };
    let load = value["current_load"].as_u64().unwrap_or_default();
    for key in value["working_on"].as_array().into_iter().flatten().filter_map(named) {
        if desk.look(|state| state.attempts.contains_key(&key) && !state.lost.contains(&key)) {
            desk.note(key, Event::Renewed);
        }
    }
    let (was_disowned, had_unknown, stops, waiting) = desk.change(|state| {
        let was_disowned = std::mem::take(&mut state.disown_next) && !is_other;
        let had_unknown = state.disowned.is_some() && !was_disowned;
        let beat = Beat { at: Instant::now(), wrong: wrong.clone(), load };
        keep(&mut state.beats, beat.clone());
        state.disowned = state.disowned.take().or_else(|| was_disowned.then(|| beat.clone()));
        state.puzzled = state.puzzled.take().or_else(|| had_unknown.then_some(beat));
        (was_disowned, had_unknown, std::mem::take(&mut state.stops), state.queue.len())
    });
    if was_disowned || is_other {
        return refuse(ErrorCode::AgentNotFound, "no such agent is registered; register again");
    }
    if let Err(why) = fits {
        return refuse(ErrorCode::InvalidParams, why);
    }
    let stop: Vec<Value> =
        stops.into_iter().map(|(task_id, token)| json!({ "task_id": task_id, "token": token })).collect();
    let mut answer = json!({ "heartbeat_due_at": now() + interval(&card), "waiting": waiting });
    if !stop.is_empty() {
        answer["stop"] = Value::Array(stop);
    }
    let token = desk.change(|state| {
        let brings = std::mem::take(&mut state.tokens.brings_next);
        let token = brings.then(|| state.tokens.give(card["agent_id"].as_str().unwrap_or_default()));
        state.tokens.brought_at = token.as_ref().map(|_| Instant::now()).or(state.tokens.brought_at);
        token
    });
    if let Some(token) = token {
        answer["token"] = token;
    }
    if had_unknown {
        answer["x_from_a_newer_gateway"] = json!({ "pace": [1, 2], "note": "pass over this" });
    }
    Ok(answer.to_string())
}

fn farewell(desk: &Desk) -> String {
    desk.change(|state| {
        if state.farewells.len() < 100 {
            state.farewells.push(Instant::now());
        }
    });
    json!({ "in_flight": 0 }).to_string()
}

async fn claim(desk: &Desk, value: &Value) -> Answered {
    let card = desk.look(|state| state.registrations.last().map(|registration| registration.card.clone()));
    let card: Value = card.and_then(|card| serde_json::from_str(&card).ok()).unwrap_or_default();
    let limit = value["limit"].as_u64().unwrap_or(1);
    let span = |name: &str| value[name].as_str().and_then(|text| text.parse::<Span>().ok());
    let wait = span("wait").map_or(Duration::ZERO, Duration::from);
    let lease = span("lease").unwrap_or(Span::from_secs(30));
    let wrong = match schema::fits("Claim", value) {
        Err(why) => Some(why),
        Ok(()) if value["agent_id"] != card["agent_id"] => Some(format!("it names {}", value["agent_id"])),
        Ok(()) if !(1..=100).contains(&limit) => Some(format!("limit is {limit}, and may be 1 to 100")),
        Ok(()) if wait > Duration::from_secs(300) => Some("wait is more than 5 min".to_owned()),
        Ok(()) if lease < Span::from_ms(100) || lease > Span::from_mins(15) => {
            Some(format!("lease is {lease}, and may be 100 ms to 15 min"))
        }
        Ok(()) => None,
    };
    desk.change(|state| {
        let pull = Pull { at: Instant::now(), wrong: wrong.clone(), is_patient: !wait.is_zero() };
        keep(&mut state.pulls, pull);
    });
    if let Some(why) = wrong {
        return refuse(ErrorCode::InvalidParams, why);
    }
    let limit = usize::try_from(limit).unwrap_or(1);
    let found = |state: &super::desk::State| (!state.queue.is_empty()).then_some(());
    desk.wait(wait.min(CLAIM_WAIT_MAX), found).await;
    let taken: Vec<_> = desk.change(|state| {
        let count = limit.min(state.queue.len());
        state.queue.drain(..count).collect()
    });
    desk.change(|state| state.leases.extend(taken.iter().map(|work| (work.key(), lease.into()))));
    for work in &taken {
        desk.note(work.key(), Event::Sent);
    }
    let tasks: Vec<String> = taken.iter().map(super::work::Work::to_json).collect();
    Ok(format!(r#"{{"tasks":[{}]}}"#, tasks.join(",")))
}

fn reported(desk: &Desk, report: Report, text: &str, value: &Value) -> Answered {
    let wrong = |why: String| {
        desk.change(|state| {
            if state.wrong_reports.len() < WRONG_MAX {
                state.wrong_reports.push(format!("{}: {why}", report.schema()));
            }
        });
    };
    if let Err(why) = schema::fits(report.schema(), value) {
        wrong(why.clone());
        return refuse(ErrorCode::InvalidParams, why);
    }
    let Some(key) = named(value).filter(|key| desk.look(|state| state.attempts.contains_key(key))) else {
        wrong(format!("it names token {} of {}, which was not given out", value["token"], value["task_id"]));
        return refuse(ErrorCode::TaskNotFound, "no such attempt was given out");
    };
    take_report(desk, report, text, value, key)
}

/// The attempt that is named.
fn named(value: &Value) -> Option<Key> {
    let task_id = value["task_id"].as_str().and_then(|text| text.parse::<TaskId>().ok());
    task_id.zip(value["token"].as_u64())
}

fn take_report(desk: &Desk, report: Report, text: &str, value: &Value, key: Key) -> Answered {
    let is_end = report.is_end();
    let scripted = desk.change(|state| {
        state.good_reports += 1;
        if is_end {
            *state.ends_told.entry(key).or_default() += 1;
        }
        if state.lost.contains(&key) {
            return Some(Answer::Lost);
        }
        state.answers.get_mut(&key).filter(|_| is_end).and_then(|answers| match answers.front() {
            // What is stale stays so.
            Some(Answer::Stale) => Some(Answer::Stale),
            Some(Answer::Unavailable | Answer::Lost) => answers.pop_front(),
            None => None,
        })
    });
    match scripted {
        Some(Answer::Unavailable) => {
            return refuse(ErrorCode::StoreUnavailable, "the store cannot be written just now");
        }
        Some(Answer::Stale) => {
            desk.note(key, told(report, text, value));
            return refuse(ErrorCode::StaleToken, "another attempt has taken over");
        }
        Some(Answer::Lost) => return refuse(ErrorCode::StaleToken, "its lease ran out, and another attempt has begun"),
        None => desk.note(key, told(report, text, value)),
    }
    let mut noted = json!({ "phase": report.phase() });
    if !is_end {
        noted["attempt_until"] = json!(now() + Span::from_secs(30));
    }
    Ok(noted.to_string())
}

/// What a report says.
fn told(report: Report, text: &str, value: &Value) -> Event {
    match report {
        Report::Accept => Event::Accepted,
        Report::Progress => Event::Progress,
        Report::Release => Event::Released,
        Report::Fail => {
            let flag = |name: &str, default: bool| value[name].as_bool().unwrap_or(default);
            let why = format!("task/fail: {}", value["message"].as_str().unwrap_or_default());
            Event::Failed { for_good: !flag("retryable", false) && flag("started", true), why }
        }
        Report::Complete => {
            let result = serde_json::from_str::<Completed<'_>>(text).ok().and_then(|completed| completed.result);
            let text = result.map_or("null", serde_json::value::RawValue::get).to_owned();
            Event::Result { text, is_json: true, says_json: true }
        }
    }
}

#[derive(serde::Deserialize)]
struct Completed<'a> {
    #[serde(borrow, default)]
    result: Option<&'a serde_json::value::RawValue>,
}
