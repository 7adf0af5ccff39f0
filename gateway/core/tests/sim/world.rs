//! A world: gateways, agents and callers around one store, a network that cannot be trusted, and one seed for all of
//! it. Time jumps from one happening to the next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fastrand::Rng;
use reach_core::task::Task;
use reach_core::task::event::Word as SaidByPerson;
use reach_schemas::{AgentId, Delivery, FencingToken, Span, TaskId, Timestamp};

use crate::agent::{Agent, Outcome, Word};
use crate::births::Insert;
use crate::caller::{Answer, Caller};
use crate::checks::Checks;
use crate::coverage::{Coverage, Covered};
use crate::gateway::{Commit, Fx, Gateway};
use crate::store::Store;

/// How many lines of its story a broken world shows.
const LINES: usize = 40;
/// More happenings than this mean that something goes round in circles.
const HAPPENINGS_MAX: u64 = 400_000;
pub(crate) const BEGIN: Timestamp = Timestamp::from_ms(1_780_000_000_000);

/// One life of a gateway: what it has begun dies with it.
pub(crate) type Life = (usize, u32);

/// What happens next.
pub(crate) enum Happening {
    // At callers.
    Ask { caller: usize, wish: usize },
    Answered { caller: usize, wish: usize, answer: Answer },
    Look { caller: usize, wish: usize },
    Operator,
    // At people.
    PersonLooks(usize),
    // At gateways.
    Take { gateway: usize, person: usize, task: TaskId },
    PersonSays { gateway: usize, task: TaskId, token: FencingToken, word: SaidByPerson },
    Submit { gateway: usize, caller: usize, wish: usize, is_other: bool },
    Cancel { gateway: usize, task: TaskId },
    Redrive { gateway: usize, task: TaskId },
    Insert(Life, Box<Insert>),
    Commit(Life, Box<Commit>),
    Effect(Life, Arc<Task>, Fx, bool),
    Wake(Life, TaskId),
    Sweep(Life),
    Crash(Life),
    Restart(usize),
    HttpAnswer(Life, TaskId, FencingToken, Outcome),
    Report { gateway: usize, agent: usize, task: TaskId, token: FencingToken, word: Word },
    Pull { gateway: usize, agent: usize, only: Option<TaskId> },
    Beat { gateway: usize, agent: usize, holds: Vec<(TaskId, FencingToken)> },
    Register { gateway: usize, agent: usize },
    Drain { gateway: usize, agent: usize },
    Disconnected { life: Life, agent: usize },
    // At agents.
    Deliver { agent: usize, from: Life, delivery: Box<Delivery> },
    Offered { agent: usize, gateway: usize, task: TaskId },
    Stop { agent: usize, task: TaskId, token: FencingToken },
    Work { agent: usize, life: u32, task: TaskId, token: FencingToken, word: Option<Word> },
    AgentBeat(usize),
    AgentPull(usize),
    AgentMood(usize),
    AgentCrash(usize),
    AgentRestart(usize),
    Connect { agent: usize, gateway: usize },
}

/// How bad the weather is: each is a chance from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    pub(crate) lost: f64,
    pub(crate) doubled: f64,
    pub(crate) late: f64,
    pub(crate) gateway_crash: f64,
    pub(crate) agent_crash: f64,
    pub(crate) flap: f64,
    pub(crate) bad_work: f64,
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) rng: Rng,
    pub(crate) now: Timestamp,
    queue: BTreeMap<(Timestamp, u64), Happening>,
    happened: u64,
    asked: u64,
    pub(crate) store: Store,
    pub(crate) gateways: Vec<Gateway>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) agent_at: BTreeMap<AgentId, usize>,
    pub(crate) callers: Vec<Caller>,
    pub(crate) weather: Weather,
    /// Whether seats are counted anew from time to time.
    pub(crate) recounts: bool,
    pub(crate) heals_at: Timestamp,
    pub(crate) ends_at: Timestamp,
    pub(crate) coverage: Coverage,
    pub(crate) checks: Checks,
    lines: VecDeque<String>,
    pub(crate) history: u64,
    names: BTreeMap<TaskId, usize>,
    broken: Option<String>,
}

impl World {
    pub(crate) fn empty(seed: u64) -> Self {
        Self {
            seed,
            rng: Rng::with_seed(seed),
            now: BEGIN,
            queue: BTreeMap::new(),
            happened: 0,
            asked: 0,
            store: Store::default(),
            gateways: Vec::new(),
            agents: Vec::new(),
            agent_at: BTreeMap::new(),
            callers: Vec::new(),
            weather: Weather::default(),
            recounts: true,
            heals_at: BEGIN,
            ends_at: BEGIN,
            coverage: Coverage::default(),
            checks: Checks::default(),
            lines: VecDeque::new(),
            history: 0xcbf2_9ce4_8422_2325,
            names: BTreeMap::new(),
            broken: None,
        }
    }

    /// Lets everything happen until the world ends. What was wrong, if anything was.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        while let Some(((at, _), happening)) = self.queue.pop_first() {
            if at > self.ends_at {
                break;
            }
            self.now = at;
            self.happen(happening);
            self.happened += 1;
            if self.happened > HAPPENINGS_MAX {
                self.fail(format!("more than {HAPPENINGS_MAX} things happened"));
            }
            if let Some(what) = &self.broken {
                return Err(self.told(what));
            }
        }
        self.check_the_end();
        self.broken.as_ref().map_or(Ok(()), |what| Err(self.told(what)))
    }

    fn told(&self, what: &str) -> String {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        format!(
            "{}\n\nthe world of seed {} is broken: {what}\nreplay it with: REACH_SIM_SEED={} cargo nextest run -p \
             reach-core --test sim --no-capture\n",
            lines.join("\n"),
            self.seed,
            self.seed
        )
    }

    /// Something that must never be, is.
    pub(crate) fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    pub(crate) fn after(&mut self, ms: u64, happening: Happening) {
        // Two of the same moment keep the order in which they were asked for.
        self.asked += 1;
        self.queue.insert((self.now + Span::from_ms(ms), self.asked), happening);
    }

    /// Something between `from` and `to`, both included.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        self.rng.u64(from..=to)
    }

    pub(crate) fn chance(&mut self, chance: f64) -> bool {
        self.rng.f64() < chance
    }

    pub(crate) fn is_stormy(&self) -> bool {
        self.now < self.heals_at
    }

    /// A mishap: never once the weather is fine.
    pub(crate) fn mishap(&mut self, chance: f64) -> bool {
        self.is_stormy() && self.chance(chance)
    }

    /// When a message arrives, each time that it does.
    pub(crate) fn journeys(&mut self) -> Vec<u64> {
        if self.mishap(self.weather.lost) {
            return Vec::new();
        }
        let mut journeys = vec![self.between(1, 20)];
        if self.mishap(self.weather.late) {
            journeys[0] += self.between(200, 8_000);
        }
        if self.mishap(self.weather.doubled) {
            journeys.push(self.between(1, 3_000));
        }
        journeys
    }

    /// Sends a message; it may be lost, late or doubled.
    pub(crate) fn send(&mut self, message: impl Fn() -> Happening) {
        for ms in self.journeys() {
            self.after(ms, message());
        }
    }

    pub(crate) fn any_gateway(&mut self) -> usize {
        self.rng.usize(0..self.gateways.len())
    }

    pub(crate) fn cover(&mut self, path: Covered) {
        self.coverage.take(path);
    }

    /// Writes a line of the world's story.
    pub(crate) fn log(&mut self, line: std::fmt::Arguments<'_>) {
        let text = format!("{:>6} {line}", self.now.since(BEGIN).as_ms());
        for byte in text.bytes() {
            self.history = (self.history ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if self.lines.len() >= LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(text);
    }

    /// A short name for a task, the same in each run of a seed.
    pub(crate) fn name(&mut self, id: TaskId) -> usize {
        let next = self.names.len();
        *self.names.entry(id).or_insert(next)
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Ask { caller, wish } => self.ask(caller, wish),
            Happening::Answered { caller, wish, answer } => self.answered(caller, wish, answer),
            Happening::Look { caller, wish } => self.look(caller, wish),
            Happening::Operator => self.operate(),
            Happening::PersonLooks(person) => self.person_looks(person),
            Happening::Take { gateway, person, task } => self.take(gateway, person, task),
            Happening::PersonSays { gateway, task, token, word } => self.person_says(gateway, task, token, word),
            Happening::Submit { gateway, caller, wish, is_other } => self.submit(gateway, caller, wish, is_other),
            Happening::Cancel { gateway, task } => self.cancel(gateway, task),
            Happening::Redrive { gateway, task } => self.redrive(gateway, task),
            Happening::Insert(life, insert) => self.insert(life, *insert),
            Happening::Commit(life, commit) => self.commit(life, *commit),
            Happening::Effect(life, task, fx, is_born) => self.effect(life, &task, fx, is_born),
            Happening::Wake(life, task) => self.wake(life, task),
            Happening::Sweep(life) => self.sweep(life),
            Happening::Crash(life) => self.crash(life),
            Happening::Restart(gateway) => self.restart(gateway),
            Happening::HttpAnswer(life, task, token, outcome) => self.http_answer(life, task, token, outcome),
            Happening::Report { gateway, agent, task, token, word } => self.report(gateway, agent, task, token, word),
            Happening::Pull { gateway, agent, only } => self.claim(gateway, agent, only),
            Happening::Beat { gateway, agent, holds } => self.beat(gateway, agent, &holds),
            Happening::Register { gateway, agent } => self.register(gateway, agent),
            Happening::Drain { gateway, agent } => self.drain(gateway, agent),
            Happening::Disconnected { life, agent } => self.disconnected(life, agent),
            Happening::Deliver { agent, from, delivery } => self.take_delivery(agent, from, &delivery),
            Happening::Offered { agent, gateway, task } => self.hear_of(agent, gateway, task),
            Happening::Stop { agent, task, token } => self.stop_work(agent, task, token),
            Happening::Work { agent, life, task, token, word } => self.work(agent, life, task, token, word),
            Happening::AgentBeat(agent) => self.agent_beat(agent),
            Happening::AgentPull(agent) => self.agent_pull(agent),
            Happening::AgentMood(agent) => self.agent_mood(agent),
            Happening::AgentCrash(agent) => self.agent_crash(agent),
            Happening::AgentRestart(agent) => self.agent_restart(agent),
            Happening::Connect { agent, gateway } => self.connect(agent, gateway),
        }
    }
}
