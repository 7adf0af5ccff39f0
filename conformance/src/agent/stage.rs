//! An agent on the stage: which acts there are, what they share, and which profiles apply.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reach_schemas::{Protocol, RawJson, Span, TaskId};
use serde_json::Value;

use super::acts;
use super::desk::Desk;
use super::links::{Courier, Link};
use super::options::{Asked, Options};
use super::plan::{Offer, Plan};
use super::process::Process;
use super::started::Started;
use super::work::{Event, Key, Work, now};
use super::{http, serve};
use crate::engine::{self, Act, Findings, Outcome, Selection, Stage, Stop};
use crate::exchange::{Exchange, Way};

/// Every act, in the order in which they are done.
const ACTS: &[&str] = &[
    "register",
    "card",
    "work",
    "probe",
    "unknown",
    "trace",
    "bad_input",
    "garbage",
    "rpc",
    "texts",
    "large",
    "empty",
    "twice",
    "slow",
    "reports",
    "cancel",
    "deadline",
    "crowd",
    "claims",
    "lease",
    "heartbeat",
    "numbers",
    "tokens",
    "reconnect",
    "superseded",
    "leave",
    "calm",
];

/// A capability that has answered, and how.
pub(crate) struct Usable {
    /// Which offer of the plan.
    pub(crate) offer: usize,
    /// How long it took.
    pub(crate) took: Duration,
}

/// Work that takes a while.
#[derive(Clone)]
pub(crate) struct Slow {
    pub(crate) offer: usize,
    pub(crate) params: RawJson,
    /// The shortest that it took.
    pub(crate) takes: Duration,
    /// When it ran, so that heartbeats within can be looked at.
    pub(crate) between: (Instant, Instant),
}

/// The agent, and what is known of it.
pub(crate) struct Agent {
    pub(crate) desk: Arc<Desk>,
    pub(crate) options: Options,
    pub(crate) rng: Rng,
    pub(crate) card: Option<Value>,
    pub(crate) plan: Option<Plan>,
    pub(crate) courier: Option<Courier>,
    pub(crate) usable: Vec<Usable>,
    pub(crate) slow: Option<Slow>,
    pub(crate) registered_at: Option<Instant>,
    /// The agent's process, if the runner started it.
    pub(crate) started: Option<Started>,
    /// Where the runner listens.
    pub(crate) address: Option<SocketAddr>,
    /// Why there is no free text, or no number that comes back, once this was looked for.
    pub(crate) no_text: Option<String>,
    pub(crate) no_number: Option<String>,
    pub(crate) no_probe: Option<String>,
    pub(crate) has_accepted: bool,
    /// What was asked for that may keep the agent busy for as long as it runs, and that cannot be held against it.
    pub(crate) busy_with: Option<String>,
    /// Whether the last work was not answered at all.
    pub(super) in_doubt: AtomicBool,
}

/// Checks an agent. `tell` is told where the runner listens. `Err`: the check could not begin.
pub(crate) async fn check(
    options: Options,
    selection: &Selection,
    exchange: Arc<Exchange>,
    tell: impl Fn(&str),
) -> Result<Outcome, String> {
    let desk = Desk::new(exchange.clone());
    // Before anybody can come.
    desk.change(|state| state.tokens.are_demanded = options.demands_tokens);
    let mut address = None;
    if let Some(listen) = options.listen {
        let bound = serve::listen(listen, desk.clone()).await;
        let flag = if matches!(options.asked, Asked::Listen) { "--ws-listen" } else { "--listen" };
        let bound = bound.map_err(|error| {
            format!("cannot listen on {listen}: {error}; name another address, or any that is free: {flag} 127.0.0.1:0")
        })?;
        tell(&format!("listening as the agent's gateway on http://{bound}"));
        address = Some(bound);
    }
    let started = match &options.start {
        Some(line) => Some(Started::start(line, address, options.demands_tokens)?),
        None => None,
    };
    let bound = options.timeout * 4;
    let mut agent = Agent {
        rng: Rng::with_seed(options.seed),
        card: options.card.clone(),
        plan: None,
        courier: None,
        usable: Vec::new(),
        slow: None,
        registered_at: None,
        no_text: None,
        no_number: None,
        no_probe: None,
        has_accepted: false,
        busy_with: None,
        in_doubt: AtomicBool::new(false),
        started,
        address,
        desk,
        options,
    };
    Ok(engine::run(&mut agent, selection, &exchange, bound).await)
}

impl Agent {
    /// The plan, which there is once the agent has registered.
    pub(crate) fn plan(&self) -> Result<&Plan, Stop> {
        self.plan.as_ref().ok_or_else(|| Stop("there is no card to go by".to_owned()))
    }

    /// Who brings it work.
    pub(crate) fn courier(&self) -> Result<Courier, Stop> {
        self.courier.clone().ok_or_else(|| Stop("there is no way to the agent".to_owned()))
    }

    /// Takes up a card: what is in it, and the way to the agent.
    pub(crate) fn take_up(&mut self, card: Value) -> Result<(), String> {
        let plan = Plan::read(&card, &self.options.samples, &mut self.rng);
        self.card = Some(card);
        let plan = plan?;
        let link = match (&self.options.asked, plan.protocol) {
            (Asked::Process(line), _) => Link::Process(Process::new(line.clone())),
            (Asked::Http(url), Protocol::Http) => {
                let url = url.clone().or_else(|| plan.address.clone()).ok_or("its endpoint has no address")?;
                Link::Http { client: http::client()?, url }
            }
            (Asked::Http(Some(url)), _) => Link::Http { client: http::client()?, url: url.clone() },
            (Asked::Listen, Protocol::Websocket) => Link::Socket,
            (Asked::Listen, Protocol::Queue) => Link::Queue,
            (Asked::Http(_) | Asked::Listen, other) => {
                return Err(format!("its first endpoint is {}; check it by that way", other.as_str()));
            }
        };
        self.plan = Some(plan);
        self.courier = Some(Courier { desk: self.desk.clone(), link, timeout: self.options.timeout });
        Ok(())
    }

    /// The way's name, as profiles have it.
    pub(crate) fn way(&self) -> Option<&'static str> {
        self.courier.as_ref().map(|courier| match courier.link {
            Link::Http { .. } => "http",
            Link::Socket => "websocket",
            Link::Queue => "queue",
            Link::Process(_) => "process",
        })
    }

    /// A new task for an offer.
    pub(crate) fn task(&mut self, offer: usize, params: Option<RawJson>) -> Result<Work, Stop> {
        let random = (u128::from(self.rng.u64(..)) << 64) | u128::from(self.rng.u64(..));
        let task_id = TaskId::from_parts(now().as_ms(), random);
        let traceparent = format!("00-{:032x}-{:016x}-01", random | 1, self.rng.u64(1..));
        let plan = self.plan()?;
        let Offer { name, effect, attempt_timeout, .. } = &plan.offers[offer];
        Ok(Work {
            task_id,
            token: 1,
            agent_id: plan.agent_id.clone(),
            capability: name.clone(),
            effect: *effect,
            params,
            idempotency_key: format!("checker@conformance/{task_id}"),
            traceparent: Some(traceparent),
            attempt_timeout: Duration::from(*attempt_timeout).min(self.options.timeout),
            has_unknown: false,
        })
    }

    /// A new task for the quickest capability that works, with its parameters.
    pub(crate) fn easy_task(&mut self) -> Result<Work, Stop> {
        let usable = self.usable.first().ok_or_else(no_work)?;
        let offer = usable.offer;
        let params = self.plan()?.offers[offer].inputs.params.as_ref().map(super::plan::raw);
        self.task(offer, params)
    }

    /// Delivers, and waits for the end. `Err`: there was none in time.
    pub(crate) async fn do_work(&self, work: &Work) -> Result<(Event, Duration), String> {
        let Some(courier) = &self.courier else { return Err("there is no way to the agent".to_owned()) };
        let seen = self.desk.events(work.key()).len();
        let began = Instant::now();
        courier.deliver(work);
        let ended = self.end_after(work.key(), seen, work.attempt_timeout + Duration::from_millis(500)).await;
        let is_silent = matches!(ended, None | Some((_, Event::Lost(_))));
        self.heard();
        if is_silent {
            self.missed();
            // As a gateway does: what is out of time is called off. Whether that is taken is judged elsewhere.
            let _ = courier.cancel(work.key()).await;
        }
        match ended {
            Some((at, event)) => Ok((event, at.duration_since(began))),
            None => Err(format!("nothing within {} ms", work.attempt_timeout.as_millis())),
        }
    }

    /// Waits for an end of an attempt among its events past the first few.
    pub(crate) async fn end_after(&self, key: Key, seen: usize, within: Duration) -> Option<(Instant, Event)> {
        let found = self.desk.wait(within, |state| {
            let events = state.attempts.get(&key)?;
            events.iter().skip(seen).find(|(_, event)| event.is_end()).cloned()
        });
        found.await
    }

    /// So long, or as long as a step may take.
    pub(crate) fn at_most(&self, time: Duration) -> Duration {
        time.min(self.options.timeout)
    }

    /// Gives the agent so much time. Nothing that is judged depends on its being enough.
    pub(crate) async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// How many effects there were, if there is a file in which they are counted.
    pub(crate) fn effects(&self) -> Option<usize> {
        let path: &PathBuf = self.options.effects.as_ref()?;
        Some(std::fs::read_to_string(path).unwrap_or_default().lines().count())
    }

    /// The interval between heartbeats.
    pub(crate) fn interval(&self) -> Duration {
        self.plan.as_ref().map_or(Span::from_secs(10), |plan| plan.interval).into()
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.options.card.is_none()
    }

    pub(crate) fn note(&self, text: &str) {
        self.desk.exchange.add(Way::Note, text);
    }
}

/// No capability works.
pub(crate) fn no_work() -> Stop {
    Stop("no capability gave a result that could be gone on with, see answers-work and result-is-json".to_owned())
}

impl Stage for Agent {
    fn acts(&self) -> &'static [&'static str] {
        ACTS
    }

    fn perform<'a>(&'a mut self, act: &'static str, findings: &'a mut Findings<'_>) -> BoxFuture<'a, Act> {
        match act {
            "register" => acts::begin::register(self, findings).boxed(),
            "card" => acts::begin::card(self, findings).boxed(),
            "work" => acts::work::work(self, findings).boxed(),
            "probe" => acts::begin::probe(self, findings).boxed(),
            "unknown" => acts::work::unknown(self, findings).boxed(),
            "trace" => acts::work::trace(self, findings).boxed(),
            "bad_input" => acts::input::bad_input(self, findings).boxed(),
            "garbage" => acts::input::garbage(self, findings).boxed(),
            "rpc" => acts::link::rpc(self, findings).boxed(),
            "texts" => acts::input::texts(self, findings).boxed(),
            "large" => acts::input::large(self, findings).boxed(),
            "empty" => acts::input::empty(self, findings).boxed(),
            "twice" => acts::once::twice(self, findings).boxed(),
            "slow" => acts::slow::slow(self, findings).boxed(),
            "reports" => acts::once::reports(self, findings).boxed(),
            "cancel" => acts::slow::cancel(self, findings).boxed(),
            "deadline" => acts::slow::deadline(self, findings).boxed(),
            "crowd" => acts::crowd::crowd(self, findings).boxed(),
            "lease" => acts::lease::lease(self, findings).boxed(),
            "claims" => acts::link::claims(self, findings).boxed(),
            "reconnect" => acts::link::reconnect(self, findings).boxed(),
            "numbers" => acts::input::numbers(self, findings).boxed(),
            "heartbeat" => acts::heart::heartbeat(self, findings).boxed(),
            "tokens" => acts::identity::tokens(self, findings).boxed(),
            "superseded" => acts::identity::superseded(self, findings).boxed(),
            "leave" => acts::heart::leave(self, findings).boxed(),
            "calm" => acts::heart::calm(self, findings).boxed(),
            other => futures_util::future::ready(Err(Stop(format!("there is no act {other}")))).boxed(),
        }
    }

    fn is_in_doubt(&self) -> bool {
        self.is_silent()
    }

    fn ask_again(&mut self) -> BoxFuture<'_, Result<(), String>> {
        self.ask_for_sign().boxed()
    }

    fn why_not(&self, profile: &str) -> Option<String> {
        let offers = self.plan.as_ref().map(|plan| plan.offers.as_slice()).unwrap_or_default();
        let no = |why: &str| Some(why.to_owned());
        let declares = |yes: bool, what: &str| if yes { None } else { Some(format!("no capability {what}")) };
        match profile {
            "card" | "work" => None,
            "registration" if self.is_waited_for() => None,
            "registration" => no("the card came from a file, and the agent was not asked to register"),
            "output_schema" => declares(offers.iter().any(|offer| offer.output.is_some()), "has an output_schema"),
            "input_schema" => declares(
                offers.iter().any(|offer| !offer.inputs.bad.is_empty()),
                "has an input_schema that refuses anything",
            ),
            "effects" => declares(offers.iter().any(Offer::is_effectful), "is a write or idempotent_write"),
            "idempotent" => declares(
                offers.iter().any(|offer| offer.effect == reach_schemas::Effect::IdempotentWrite),
                "is an idempotent_write",
            ),
            "cancel" => declares(offers.iter().any(|offer| offer.is_cancellable), "is cancellable"),
            "text" => self.no_text.clone(),
            "numbers" => self.no_number.clone(),
            "probe" => self.no_probe.clone(),
            "identity" => acts::identity::why_not(self),
            "wire" if self.way() == Some("process") => no("a command reads parameters, and no messages"),
            "wire" if self.way() == Some("queue") => no("nothing but answers is sent to an agent that pulls"),
            "wire" => None,
            "reports" | "accepts" => match self.way() {
                Some("http") if !self.has_accepted => no("it answers with the result itself, and never with 202"),
                Some("process") => no("a command ends with its result"),
                _ => None,
            },
            way if self.way() == Some(way) => None,
            "http" | "websocket" | "queue" | "process" => {
                Some(format!("the agent is reached by {}", self.way().unwrap_or("another way")))
            }
            other => Some(format!("{other} is checked by another kind of run")),
        }
    }
}
