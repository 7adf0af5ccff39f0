//! Makes a world out of a seed: how many there are of what, how bad the weather is, and who wants what.

use reach_core::fleet::{Fleet, Settings};
use reach_core::retry::{Share, Shares};
use reach_schemas::call::{OnFailed, OnInFlight};
use reach_schemas::{
    AgentCard, BreakerPolicy, Capability, CapabilityName, Effect, Endpoint, FallbackStep, Mode, Protocol, RawJson,
    Span, Submit,
};
use serde_json::json;

use crate::agent::Agent;
use crate::caller::{Caller, Wish};
use crate::gateway::Gateway;
use crate::people;
use crate::world::{BEGIN, Happening, Weather, World};

/// What agents of every world may offer.
const CAPABILITIES: [(&str, Effect); 5] = [
    ("look", Effect::Read),
    ("set", Effect::IdempotentWrite),
    ("pay", Effect::Write),
    ("mail", Effect::Write),
    ("spare", Effect::Read),
];

/// Worlds are small: their budgets of retries are, too.
pub(crate) const SHARES: Shares =
    Shares { agent: Share { firsts_per_retry: 10, free: 3 }, caller: Share { firsts_per_retry: 5, free: 12 } };

pub(crate) fn settings() -> Settings {
    Settings { retries: SHARES, human_wait: people::WAIT, ..Settings::default() }
}

impl World {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut world = Self::empty(seed);
        let storm = world.between(12_000, 30_000);
        world.heals_at = BEGIN + Span::from_ms(storm);
        // The last that was late or dead by then is back after some seconds; a last wish has 15 s, and then a person.
        world.ends_at = world.heals_at + Span::from_secs(31) + people::WAIT;
        world.weather = world.forecast();
        world.add_gateways();
        world.recounts = world.gateways.len() > 1 || world.weather.gateway_crash > 0.0;
        world.add_agents();
        world.add_callers(storm);
        world.add_people();
        world.after(2_000, Happening::Operator);
        world
    }

    fn forecast(&mut self) -> Weather {
        let is_calm = self.chance(0.15);
        let mut up_to = |most: f64| {
            let share = self.rng.f64();
            if is_calm || self.rng.f64() < 0.25 { 0.0 } else { share * most }
        };
        Weather {
            lost: up_to(0.15),
            doubled: up_to(0.2),
            late: up_to(0.1),
            gateway_crash: up_to(0.1),
            agent_crash: up_to(0.3),
            flap: up_to(0.15),
            bad_work: up_to(0.9),
        }
    }

    fn add_gateways(&mut self) {
        for number in 0..self.rng.usize(1..=3) {
            let ahead = Span::from_ms(self.between(0, 8));
            let fleet = Fleet::new(settings());
            self.gateways.push(Gateway { is_up: true, ahead, fleet, ..Gateway::default() });
            let ms = self.between(100, 600);
            self.after(ms, Happening::Sweep((number, 0)));
        }
    }

    fn add_agents(&mut self) {
        let count = self.rng.usize(1..=8);
        let policies: Vec<Capability> = CAPABILITIES.iter().map(|one| self.capability(one, count)).collect();
        for number in 0..count {
            let protocol = [Protocol::Http, Protocol::Websocket, Protocol::Queue][self.rng.usize(0..3)];
            let mut card = self.card(number, protocol, &policies);
            self.differ(&mut card, count);
            self.agent_at.insert(card.agent_id.clone(), number);
            self.agents.push(Agent::new(card, protocol));
            for gateway in 0..self.gateways.len() {
                self.register(gateway, number);
                self.connect(number, gateway);
            }
            let (beat, mood) = (self.between(0, 900), self.between(500, 5_000));
            self.after(beat, Happening::AgentBeat(number));
            self.after(mood, Happening::AgentMood(number));
            if protocol == Protocol::Queue {
                self.after(beat, Happening::AgentPull(number));
            }
        }
    }

    fn capability(&mut self, (name, effect): &(&str, Effect), agents: usize) -> Capability {
        let mut chain = (0..self.rng.usize(0..=2)).map(|_| self.fallback(agents)).collect::<Vec<_>>();
        if self.chance(0.3) {
            chain.push(FallbackStep::Human("desk".parse().expect("the name is well-formed")));
        }
        let base: Capability = serde_json::from_value(json!({ "name": name })).expect("a name makes a capability");
        // One that asks for itself is refused by name.
        let itself = FallbackStep::Capability(base.name.clone());
        let chain = chain.into_iter().filter(|step| *step != itself).collect();
        Capability {
            effect: *effect,
            timeout: Some(Span::from_ms(self.between(1_000, 3_000))),
            breaker: Some(BreakerPolicy {
                open_for: Span::from_ms(700),
                open_for_max: Span::from_ms(2_000),
                ..BreakerPolicy::for_effect(*effect)
            }),
            fallback: chain,
            cancellable: self.chance(0.5),
            lateral: [None, None, Some(true), Some(false)][self.rng.usize(0..4)],
            ..base
        }
    }

    fn fallback(&mut self, agents: usize) -> FallbackStep {
        let name = |name: &str| name.parse::<CapabilityName>().expect("the name is well-formed");
        match self.between(0, 6) {
            0 => FallbackStep::Capability(name("spare")),
            1 => FallbackStep::Capability(name("mail")),
            2 => FallbackStep::Capability(name("pay")),
            3 | 4 => {
                FallbackStep::Agent(format!("a{}@n", self.rng.usize(0..agents)).parse().expect("the id is well-formed"))
            }
            5 => FallbackStep::Static(RawJson::parse("\"fixed\"").expect("a text is JSON")),
            _ => FallbackStep::Instruction("ask again".to_owned()),
        }
    }

    /// Agents that offer the same need not have the same stand in for it.
    fn differ(&mut self, card: &mut AgentCard, agents: usize) {
        for capability in &mut card.capabilities {
            if self.chance(0.3) {
                let itself = FallbackStep::Capability(capability.name.clone());
                let steps = (0..self.rng.usize(0..=2)).map(|_| self.fallback(agents));
                capability.fallback = steps.filter(|step| *step != itself).collect();
            }
        }
    }

    fn card(&mut self, number: usize, protocol: Protocol, policies: &[Capability]) -> AgentCard {
        let mut capabilities: Vec<Capability> = policies.iter().filter(|_| self.rng.f64() < 0.6).cloned().collect();
        if capabilities.is_empty() {
            capabilities.push(policies[0].clone());
        }
        if self.chance(0.1) {
            // What one says may be repeated, another says may not.
            capabilities[0].effect = Effect::Write;
        }
        let address = if protocol == Protocol::Http { "http://127.0.0.1:1/".to_owned() } else { String::new() };
        let base: AgentCard = serde_json::from_value(json!({ "agent_id": format!("a{number}@n"), "capabilities": [] }))
            .expect("an id makes a card");
        AgentCard {
            capabilities,
            endpoints: if protocol == Protocol::Queue {
                Vec::new()
            } else {
                vec![Endpoint { protocol, version: "1".to_owned(), address }]
            },
            heartbeat_interval: Span::from_secs(1),
            max_concurrency: u32::try_from(self.between(1, 3)).unwrap_or(1),
            ..base
        }
    }

    fn add_callers(&mut self, storm: u64) {
        for number in 0..self.rng.usize(1..=6) {
            let id = format!("c{number}@n").parse().expect("the id is well-formed");
            self.callers.push(Caller { id, wishes: Vec::new() });
            for wish in 0..self.rng.usize(4..=16) {
                let (submit, ms) = (self.wish(number, wish), self.between(50, storm));
                self.want(number, submit, false, ms);
            }
            let submit = self.last_wish(number);
            self.want(number, submit, true, storm + 13_000 + 300 * number as u64);
        }
    }

    fn want(&mut self, caller: usize, submit: Submit, is_in_fine_weather: bool, ms: u64) {
        let wish = self.callers[caller].wishes.len();
        self.callers[caller].wishes.push(Wish { submit, task: None, asks: 0, is_in_fine_weather });
        self.after(ms, Happening::Ask { caller, wish });
    }

    fn wish(&mut self, caller: usize, wish: usize) -> Submit {
        let (name, _) = CAPABILITIES[self.rng.usize(0..CAPABILITIES.len())];
        let has_key = self.chance(0.8);
        let key = has_key.then(|| format!("k{wish}").parse().expect("the key is well-formed"));
        Submit {
            capability: name.parse().ok(),
            mode: [Mode::Direct, Mode::Direct, Mode::Queue, Mode::Broadcast][self.rng.usize(0..4)],
            idempotency_key: key,
            on_failed: if self.chance(0.3) { OnFailed::Retry } else { OnFailed::Replay },
            on_in_flight: if self.chance(0.2) { OnInFlight::Reject } else { OnInFlight::Join },
            deadline: Some(Span::from_ms(self.between(800, 11_000))),
            tries: if self.chance(0.3) { Some(u32::try_from(self.between(1, 5)).unwrap_or(1)) } else { None },
            from_agent: Some(self.callers[caller].id.clone()),
            priority: if self.chance(0.2) { Some(9) } else { None },
            ..Submit::default()
        }
    }

    /// What is asked for in fine weather is something that somebody offers.
    fn last_wish(&mut self, caller: usize) -> Submit {
        let agent = self.rng.usize(0..self.agents.len());
        let offers = &self.agents[agent].card.capabilities;
        let capability = offers[self.rng.usize(0..offers.len())].name.clone();
        Submit {
            capability: Some(capability),
            idempotency_key: "last".parse().ok(),
            deadline: Some(Span::from_secs(15)),
            from_agent: Some(self.callers[caller].id.clone()),
            ..Submit::default()
        }
    }
}
