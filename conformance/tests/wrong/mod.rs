//! An agent that is written by hand, from the documentation only, without any SDK. It does everything right, but for one
//! fault that is planted.

#![allow(dead_code, reason = "each of the tests that share this module uses a part of it")]
#![allow(clippy::wildcard_enum_match_arm, reason = "most places care for one fault of many")]

pub(crate) mod http;
pub(crate) mod papers;
pub(crate) mod report;
pub(crate) mod socket;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::watch;

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    // The card.
    UnknownCardField,
    UnusableSchema,
    UnknownVersion,
    NoDescription,
    NoEffect,
    // Registration and heartbeat.
    NeverRegisters,
    NeverRegistersAgain,
    RegistersAnother,
    NeverBeats,
    BeatsForAnother,
    BeatsWithUnknownField,
    ChokesOnUnknownAnswer,
    BeatsTooOften,
    HidesLoad,
    // Work.
    NeverAnswers,
    AnswersText,
    AnswersPlainType,
    BreaksSchema,
    AnswersSlowText,
    BreaksSlowSchema,
    ChokesOnUnknownMember,
    NeedsTrace,
    TakesBadInput,
    BlamesItselfForBadInput,
    TakesWrongTypes,
    TakesOutOfRange,
    TakesUnknownMembers,
    TakesBadInputElsewhere,
    PutsBadInputOff,
    RedirectsBadInput,
    DoesNotStartBadInput,
    FailsWhatItOffers,
    FailsWhatCannotBeTried,
    GoesSilent,
    LimpsAfterBadInput,
    LimpsAfterGarbage,
    TakesGarbage,
    ManglesUnicode,
    RoundsNumbers,
    DropsLarge,
    DropsEmpty,
    DoesAttemptTwice,
    DoesKeyTwice,
    DoesAttemptTwiceMeanwhile,
    DoesKeyTwiceMeanwhile,
    RefusesRepeats,
    TakesOlderToken,
    // Cancelling, and how much at once.
    IgnoresCancel,
    IgnoresCancelWhenLate,
    LimpsAfterCancel,
    NoDelete,
    TakesLess,
    TakesMore,
    NeverSaysWhen,
    LimpsAfterCrowd,
    // Probes.
    ProbeFails,
    ProbeLies,
    ProbeWaitsForWork,
    // Reports.
    ReportsUnknownToken,
    ReportsOnce,
    ReportsStaleForever,
    ReportsStaleEachSecond,
    WorksBeforeAccept,
    CompletesBeforeAccept,
    NeverAccepts,
    // The connection.
    AnswersUnknownMethods,
    RoundsIds,
    AnswersNotifications,
    NeverComesBack,
    ComesBackSilently,
    ForgetsResults,
    Floods,
    FloodsBeats,
    /// None at all: an id is a JSON value, however it is written.
    EscapesIds,
    ClosesAtOnce,
    // Pulling.
    ClaimsTooMuch,
    ClaimsHastily,
    NeverRenews,
    ForgetsLostTask,
    // Who it is.
    NeverJoins,
    ProvesToAnother,
    ForgetsToken,
    KeepsOldToken,
    NeverShowsKeyAgain,
    ShowsAnotherKey,
    GoesOnWhenSuperseded,
}

/// How the agent is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Http,
    Socket,
    Queue,
}

/// How many attempts it works on at once.
const SEATS: usize = 3;
/// Between two heartbeats.
const INTERVAL: &str = "600ms";
pub(crate) const BEAT: Duration = Duration::from_millis(250);

/// What becomes of a delivery.
pub(crate) enum Admission {
    /// It is to be worked on; the receiver tells when it is called off.
    Run(watch::Receiver<bool>),
    /// It was done before.
    Done(String),
    /// It runs already.
    Running,
    /// It comes too late, or a second time where it should not.
    Stale,
    Full,
    /// It is no delivery, or its parameters are wrong.
    Bad(String),
    /// It falls over.
    Broken,
    /// It is answered over HTTP with this status.
    Odd(u16),
    /// Nothing is said.
    Silence,
}

type Key = (String, u64);

#[derive(Default)]
struct Memory {
    running: BTreeMap<Key, watch::Sender<bool>>,
    done: BTreeMap<Key, String>,
    keys: BTreeMap<String, String>,
    newest: BTreeMap<String, u64>,
    /// Until when each attempt has time.
    until: BTreeMap<Key, Instant>,
    entries: u64,
    /// How many deliveries there were.
    deliveries: u64,
    /// The next delivery fails.
    limps: bool,
}

/// The agent.
pub(crate) struct Agent {
    pub(crate) fault: Fault,
    pub(crate) over: Over,
    pub(crate) papers: papers::Papers,
    memory: Mutex<Memory>,
    /// One entry is made at a time.
    entering: tokio::sync::Mutex<()>,
}

impl Agent {
    pub(crate) fn new(fault: Fault, over: Over) -> Arc<Self> {
        let (papers, memory, entering) = (papers::Papers::new(fault), Mutex::default(), tokio::sync::Mutex::default());
        Arc::new(Self { fault, over, papers, memory, entering })
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// The card. `address` is where it listens.
    pub(crate) fn card(&self, address: &str) -> Value {
        let endpoints = match self.over {
            Over::Http => json!([{ "protocol": "http", "address": address }]),
            Over::Socket => json!([{ "protocol": "websocket" }]),
            Over::Queue => json!([]),
        };
        let text = json!({
            "type": "object", "required": ["text"], "additionalProperties": false,
            "properties": { "text": { "type": "string" }, "number": { "type": "number" } },
            "examples": [{ "text": "one two", "number": 5 }],
        });
        let mut note = text.clone();
        note["properties"]["ms"] = json!({ "type": "integer", "minimum": 0, "maximum": 5000 });
        let counted = json!({
            "type": "object", "required": ["words"], "properties": { "words": { "type": "integer" } },
        });
        let mut card = json!({
            "agent_id": "hand@made", "version": "3", "description": "Made by hand.", "max_concurrency": SEATS,
            "heartbeat_interval": INTERVAL, "probe": { "timeout": "2s" }, "endpoints": endpoints,
            "capabilities": [
                { "name": "count_words", "description": "Counts words.", "effect": "read", "input_schema": text, "output_schema": counted },
                { "name": "nap", "description": "Sleeps for a while.", "effect": "read", "cancellable": true,
                  "input_schema": { "type": "object", "required": ["ms"], "properties": { "ms": { "type": "integer", "minimum": 0, "maximum": 5000 } }, "examples": [{ "ms": 5 }] },
                  "output_schema": { "type": "object", "required": ["napped"] } },
                { "name": "enter", "description": "Enters a line.", "effect": "idempotent_write", "input_schema": note },
                { "name": "stamp", "description": "Stamps a number.", "effect": "write", "input_schema": note },
            ],
        });
        match self.fault {
            Fault::UnknownCardField => card["colour"] = json!("red"),
            Fault::UnusableSchema => card["capabilities"][3]["output_schema"] = json!({ "type": "objekt" }),
            Fault::FailsWhatItOffers => card["capabilities"].as_array_mut().unwrap().push(json!({
                "name": "spell", "description": "Spells.", "effect": "read",
                "input_schema": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
            })),
            Fault::FailsWhatCannotBeTried => card["capabilities"].as_array_mut().unwrap().push(json!({
                "name": "spell", "description": "Spells.", "effect": "read",
                "input_schema": { "type": "string", "pattern": "^abracadabra$" },
            })),
            Fault::UnknownVersion => card["endpoints"][0]["version"] = json!("9"),
            Fault::NoDescription => drop(card["capabilities"][0].as_object_mut().unwrap().remove("description")),
            Fault::NoEffect => drop(card["capabilities"][3].as_object_mut().unwrap().remove("effect")),
            _ => {}
        }
        card
    }

    /// The card that it registers with after the first time.
    pub(crate) fn card_again(&self, address: &str) -> Value {
        let mut card = self.card(address);
        if self.has(Fault::RegistersAnother) {
            card["capabilities"].as_array_mut().unwrap().pop();
        }
        card
    }

    pub(crate) fn heartbeat(&self) -> Value {
        let memory = self.memory.lock().unwrap();
        let load = memory.running.len();
        let working_on: Vec<Value> =
            memory.running.keys().map(|(task, token)| json!({ "task_id": task, "token": token })).collect();
        drop(memory);
        let mut beat = json!({ "agent_id": "hand@made", "current_load": load });
        match self.fault {
            Fault::BeatsForAnother => beat["agent_id"] = json!("other@made"),
            Fault::BeatsWithUnknownField => beat["mood"] = json!("good"),
            Fault::HidesLoad => beat["current_load"] = json!(0),
            Fault::NeverRenews => {}
            _ if self.over == Over::Queue => beat["working_on"] = json!(working_on),
            _ => {}
        }
        beat
    }

    pub(crate) fn health(&self) -> Value {
        match self.fault {
            Fault::ProbeLies => json!({ "queue_depth": "none", "failure_rate_10m": 0.0 }),
            _ => json!({ "queue_depth": 0, "failure_rate_10m": 0.0, "last_task_ms": 3 }),
        }
    }

    /// How long a probe waits before it is answered.
    pub(crate) fn probe_pause(&self) -> Duration {
        let is_busy = !self.memory.lock().unwrap().running.is_empty();
        if self.has(Fault::ProbeWaitsForWork) && is_busy { Duration::from_secs(4) } else { Duration::ZERO }
    }

    /// Decides on a delivery, before any of its work.
    pub(crate) fn admit(&self, delivery: &Value) -> Admission {
        let named = delivery["task_id"].as_str().zip(delivery["token"].as_u64());
        let Some((task, token)) = named else {
            if self.has(Fault::LimpsAfterGarbage) {
                self.memory.lock().unwrap().limps = true;
            }
            return if self.has(Fault::TakesGarbage) {
                Admission::Done("{}".to_owned())
            } else {
                Admission::Bad("this is no delivery".to_owned())
            };
        };
        let mut memory = self.memory.lock().unwrap();
        memory.deliveries += 1;
        if std::mem::take(&mut memory.limps) {
            return Admission::Broken;
        }
        if let Some(early) = self.early(delivery, &mut memory) {
            return early;
        }
        let key = (task.to_owned(), token);
        let newest = memory.newest.get(task).copied().unwrap_or_default();
        if token < newest && !self.has(Fault::TakesOlderToken) {
            return Admission::Stale;
        }
        let is_stamp = delivery["capability"] == "stamp";
        if let Some(done) = memory.done.get(&key) {
            match self.fault {
                Fault::DoesAttemptTwice if is_stamp => {}
                Fault::RefusesRepeats => return Admission::Stale,
                _ => return Admission::Done(done.clone()),
            }
        }
        let is_known = memory.newest.contains_key(task) && delivery["capability"] == "nap";
        let is_again = is_stamp && self.has(Fault::DoesAttemptTwiceMeanwhile);
        if (memory.running.contains_key(&key) && !is_again) || (is_known && self.has(Fault::ForgetsLostTask)) {
            return Admission::Running;
        }
        let bound = match self.fault {
            Fault::TakesLess => SEATS - 1,
            Fault::TakesMore => usize::MAX,
            _ => SEATS,
        };
        if memory.running.len() >= bound {
            memory.limps = self.has(Fault::LimpsAfterCrowd);
            return Admission::Full;
        }
        let (sender, receiver) = watch::channel(false);
        memory.newest.insert(task.to_owned(), newest.max(token));
        memory.until.insert(key.clone(), Instant::now() + left(delivery));
        memory.running.insert(key, sender);
        Admission::Run(receiver)
    }

    /// What is said at once, by what is in the delivery.
    fn early(&self, delivery: &Value, memory: &mut Memory) -> Option<Admission> {
        let text = delivery["params"]["text"].as_str();
        let is_large = text.is_some_and(|text| text.len() > 500_000);
        match self.fault {
            Fault::NeverAnswers => return Some(Admission::Silence),
            Fault::GoesSilent if memory.deliveries > 6 => return Some(Admission::Silence),
            Fault::FailsWhatCannotBeTried if delivery["capability"] == "spell" => return Some(Admission::Broken),
            Fault::ChokesOnUnknownMember if delivery.get("x_from_a_newer_gateway").is_some() => {
                return Some(Admission::Bad("unknown member".to_owned()));
            }
            Fault::NeedsTrace if delivery.get("traceparent").is_none() => return Some(Admission::Broken),
            Fault::DropsLarge if is_large => return Some(Admission::Silence),
            Fault::DropsEmpty if delivery.get("params").is_none() => return Some(Admission::Silence),
            _ => {}
        }
        if is_good(delivery) {
            let is_broken = self.has(Fault::FailsWhatItOffers) && delivery["capability"] == "spell";
            return is_broken.then_some(Admission::Broken);
        }
        let params = &delivery["params"];
        let done = || Admission::Done(r#"{"words":0,"napped":0}"#.to_owned());
        let has_params = delivery.get("params").is_some();
        memory.limps = self.has(Fault::LimpsAfterBadInput) && has_params;
        Some(match self.fault {
            Fault::TakesBadInput if has_params => Admission::Done(r#"{"words":0}"#.to_owned()),
            Fault::BlamesItselfForBadInput if has_params => Admission::Broken,
            Fault::TakesWrongTypes if params.get("text").or(params.get("ms")).is_some() => done(),
            Fault::TakesOutOfRange if params["ms"].is_i64() => done(),
            Fault::TakesUnknownMembers if text.is_some() && !params["number"].is_object() => done(),
            Fault::TakesBadInputElsewhere if has_params && delivery["capability"] == "stamp" => done(),
            Fault::PutsBadInputOff if has_params => Admission::Odd(425),
            Fault::RedirectsBadInput if has_params => Admission::Odd(307),
            Fault::DoesNotStartBadInput if has_params => Admission::Odd(500),
            _ => Admission::Bad("the parameters are wrong".to_owned()),
        })
    }

    /// Does the work. None: it was called off. `text` is the delivery as it came.
    pub(crate) async fn work(&self, text: &str, mut called_off: watch::Receiver<bool>) -> Option<String> {
        let delivery: Value = serde_json::from_str(text).unwrap();
        let params = &delivery["params"];
        let result = match delivery["capability"].as_str().unwrap() {
            "nap" => {
                let sleep = tokio::time::sleep(Duration::from_millis(params["ms"].as_u64().unwrap()));
                let off = async {
                    if self.has(Fault::IgnoresCancel) || called_off.wait_for(|off| *off).await.is_err() {
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! {
                    () = sleep => Some(self.nap(params)),
                    () = off => None,
                }
            }
            "count_words" => Some(self.count(params, text)),
            name => Some(self.enter(name, &delivery).await),
        };
        let key = (delivery["task_id"].as_str().unwrap().to_owned(), delivery["token"].as_u64().unwrap());
        let mut memory = self.memory.lock().unwrap();
        memory.running.remove(&key);
        if let Some(result) = &result {
            memory.done.insert(key, result.clone());
        }
        result
    }

    fn count(&self, params: &Value, delivery: &str) -> String {
        let text = params["text"].as_str().unwrap();
        let said =
            if self.has(Fault::ManglesUnicode) { text.replace(|c: char| !c.is_ascii(), "?") } else { text.to_owned() };
        let words = json!(text.split_whitespace().count());
        let words = if self.has(Fault::BreaksSchema) { json!(words.to_string()) } else { words };
        let number = match number(delivery) {
            Some(number) if self.has(Fault::RoundsNumbers) => number.parse::<f64>().unwrap().to_string(),
            Some(number) => number,
            None => "null".to_owned(),
        };
        format!(r#"{{"words":{words},"text":{},"number":{number}}}"#, json!(said))
    }

    fn nap(&self, params: &Value) -> String {
        let is_slow = params["ms"].as_u64() > Some(500);
        match self.fault {
            Fault::AnswersSlowText if is_slow => "it took long".to_owned(),
            Fault::BreaksSlowSchema if is_slow => "{}".to_owned(),
            _ => json!({ "napped": params["ms"] }).to_string(),
        }
    }

    async fn enter(&self, name: &str, delivery: &Value) -> String {
        let is_keyed = name == "enter" && !self.has(Fault::DoesKeyTwice);
        let _one_at_a_time = match self.fault {
            Fault::DoesKeyTwiceMeanwhile => None,
            _ if is_keyed => Some(self.entering.lock().await),
            _ => None,
        };
        let key = delivery["idempotency_key"].as_str().unwrap().to_owned();
        if let Some(result) = self.memory.lock().unwrap().keys.get(&key).filter(|_| is_keyed) {
            return result.clone();
        }
        tokio::time::sleep(Duration::from_millis(delivery["params"]["ms"].as_u64().unwrap_or_default())).await;
        let mut memory = self.memory.lock().unwrap();
        memory.entries += 1;
        let result = json!({ "entry": memory.entries }).to_string();
        memory.keys.insert(key, result.clone());
        result
    }

    /// Calls an attempt off.
    pub(crate) fn call_off(&self, task: &str, token: u64) {
        let mut memory = self.memory.lock().unwrap();
        let key = (task.to_owned(), token);
        memory.limps = self.has(Fault::LimpsAfterCancel) && !memory.until.contains_key(&key);
        let is_late = memory.until.get(&key).is_some_and(|until| *until <= Instant::now());
        if self.has(Fault::IgnoresCancelWhenLate) && is_late {
            return;
        }
        if let Some(sender) = memory.running.get(&key) {
            sender.send_replace(true);
        }
    }

    /// How many more it could work on.
    pub(crate) fn room(&self) -> usize {
        let bound = if self.has(Fault::TakesMore) { 100 } else { SEATS };
        bound.saturating_sub(self.memory.lock().unwrap().running.len())
    }
}

/// Whether the parameters fit the schema of the card.
fn is_good(delivery: &Value) -> bool {
    let Some(params) = delivery["params"].as_object() else { return false };
    let is_span = |value: &Value| value.as_u64().is_some_and(|ms| ms <= 5000);
    match delivery["capability"].as_str().unwrap_or_default() {
        "nap" => params.get("ms").is_some_and(is_span),
        name => {
            let fits = |(member, value): (&String, &Value)| match member.as_str() {
                "text" => value.is_string(),
                "number" => value.is_number(),
                "ms" => name != "count_words" && is_span(value),
                _ => name == "spell",
            };
            params.contains_key("text") && params.iter().all(fits)
        }
    }
}

/// The number among the parameters, digit by digit.
fn number(delivery: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Delivery<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default)]
        number: Option<&'a RawValue>,
    }
    serde_json::from_str::<Delivery<'_>>(delivery).unwrap().params.number.map(|number| number.get().to_owned())
}

/// How long an attempt has left.
fn left(delivery: &Value) -> Duration {
    let until: reach_schemas::Timestamp = delivery["attempt_until"].as_str().unwrap().parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = reach_schemas::Timestamp::from_ms(u64::try_from(now.as_millis()).unwrap());
    until.since(now).into()
}
