//! A gateway process, agents registered with it that never miss a heartbeat, and one who asks.

use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::call::AgentView;
use agent_reach_sdk::{Client, ErrorCode, PhaseName, TaskView};
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::animal::{Animal, Habit};
use crate::victim::Victim;

/// The longest that anything here is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long one attempt may take.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(1);
/// Within this time after an attempt was given up, its task is done elsewhere or over: waits between tries, and a machine
/// that is slow.
pub(crate) const SLACK: Duration = Duration::from_secs(4);

/// All of it.
pub(crate) struct World {
    pub(crate) client: Client,
    hearts: Vec<JoinHandle<()>>,
    victim: Victim,
    _folder: tempfile::TempDir,
}

/// How a task ended, and after what time.
pub(crate) struct Ended {
    pub(crate) view: TaskView,
    pub(crate) took: Duration,
}

impl World {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let victim = Victim::start(folder.path(), "").await;
        let client = victim.client().await;
        Self { client, hearts: Vec::new(), victim, _folder: folder }
    }

    /// A sick agent and a healthy twin that is asked second.
    pub(crate) async fn with(habit: Habit) -> (Self, Animal, Animal) {
        let mut world = Self::new().await;
        let (sick, twin) = (Animal::born("sick", habit).await, Animal::born("twin", Habit::Works).await);
        world.take_in(card(&sick.url(), "sick", 100)).await;
        world.take_in(card(&twin.url(), "twin", 10)).await;
        (world, sick, twin)
    }

    /// Registers an agent, and has its heart beat.
    pub(crate) async fn take_in(&mut self, card: Value) {
        self.register(&card).await;
        self.beat(&card, 0).await;
    }

    pub(crate) async fn register(&self, card: &Value) {
        let _: Value = self.client.call("agent/register", card).await.unwrap();
    }

    /// Beats for the agent from now on, with this load.
    pub(crate) async fn beat(&mut self, card: &Value, load: u32) {
        let (client, beat) = (self.client.clone(), json!({ "agent_id": card["agent_id"], "current_load": load }));
        let _: Value = client.call("agent/heartbeat", &beat).await.unwrap();
        self.hearts.push(tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(400)).await;
                let _: Result<Value, _> = client.call("agent/heartbeat", &beat).await;
            }
        }));
    }

    /// Asks for something, and waits for the end.
    pub(crate) async fn ask(&self, capability: &str) -> Ended {
        self.ask_within(capability, Duration::from_secs(20)).await
    }

    /// Asks for something that is of use for so long, and waits for the end.
    pub(crate) async fn ask_within(&self, capability: &str, deadline: Duration) -> Ended {
        let began = Instant::now();
        let task = self.client.task(capability).timeout(deadline).submit().await.unwrap();
        let view = self.client.wait_for_end(task.id(), PATIENCE).await.unwrap();
        Ended { view, took: began.elapsed() }
    }

    /// Where connected agents call in.
    pub(crate) fn socket_url(&self) -> String {
        format!("ws://127.0.0.1:{}/rpc/ws", self.victim.port)
    }

    /// Keeps the gateway from storing anything for as long as the connection lives.
    pub(crate) fn blocked_disk(&self) -> Connection {
        let connection = Connection::open(self.victim.database()).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    }

    /// How often the router was asked for a capability.
    pub(crate) async fn routed(&self, capability: &str) -> usize {
        let mut stream = TcpStream::connect(("127.0.0.1", self.victim.port)).await.unwrap();
        let ask = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(ask).await.unwrap();
        let mut metrics = String::new();
        stream.read_to_string(&mut metrics).await.unwrap();
        let name = format!("reach_router_seconds_count{{capability=\"{capability}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.trim().parse().ok()).unwrap_or(0)
    }

    pub(crate) async fn agent(&self, name: &str) -> AgentView {
        self.client.agent(&format!("{name}@zoo").parse().unwrap()).await.unwrap()
    }

    /// Waits until an agent is so, and says after how long it was.
    pub(crate) async fn until(&self, name: &str, within: Duration, is_so: impl Fn(&AgentView) -> bool) -> Duration {
        let began = Instant::now();
        loop {
            let view = self.agent(name).await;
            if is_so(&view) {
                return began.elapsed();
            }
            assert!(began.elapsed() < within, "{name} is not so after {within:?}: {view:?}");
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.hearts.iter().for_each(JoinHandle::abort);
    }
}

/// A card of an agent that reads with `look_up` and writes with `change`; the heavier one is asked first.
pub(crate) fn card(url: &str, name: &str, weight: u8) -> Value {
    let capability = |does: &str, effect: &str| {
        json!({
            "name": does, "effect": effect, "routing_weight": weight, "timeout": format!("{}ms", ATTEMPT.as_millis()),
            "output_schema": { "type": "object", "required": ["by"] },
        })
    };
    json!({
        "agent_id": format!("{name}@zoo"), "heartbeat_interval": "2s", "max_concurrency": 8,
        "endpoints": [{ "protocol": "http", "address": url }],
        "capabilities": [capability("look_up", "read"), capability("change", "write")],
    })
}

impl Ended {
    /// What was tried: whom, and why it failed.
    pub(crate) fn tried(&self) -> Vec<(String, Option<ErrorCode>)> {
        let told = |attempt: &agent_reach_sdk::schemas::AttemptView| {
            (attempt.agent_id.name().to_owned(), attempt.failure.as_ref().map(|failure| failure.code))
        };
        self.view.attempts.iter().map(told).collect()
    }

    /// Holds it to have been answered by this agent, within this time.
    #[track_caller]
    pub(crate) fn is_answered_by(&self, name: &str, within: Duration) {
        assert_eq!(self.view.phase, PhaseName::Completed, "{:?}", self.view);
        let result: Value = self.view.result.as_ref().unwrap().read().unwrap();
        assert_eq!(result["by"], name, "{:?}", self.view);
        self.took_at_most(within);
    }

    /// Holds it to have ended without a result, in this phase and for this reason, within this time.
    #[track_caller]
    pub(crate) fn is_over(&self, phase: PhaseName, code: ErrorCode, within: Duration) {
        assert_eq!(
            (self.view.phase, self.view.failure.as_ref().map(|it| it.code)),
            (phase, Some(code)),
            "{:?}",
            self.view
        );
        self.took_at_most(within);
    }

    #[track_caller]
    fn took_at_most(&self, within: Duration) {
        println!("{:?} after {:?}, at most {within:?}: {:?}", self.view.phase, self.took, self.tried());
        assert!(self.took <= within, "took {:?}, at most {within:?}", self.took);
    }
}

/// A read goes to the sick one first, which fails in this way, and is answered by the twin: each was handed it once.
#[track_caller]
pub(crate) fn went_on_to_the_twin(ended: &Ended, code: ErrorCode, sick: &Animal, twin: &Animal, within: Duration) {
    ended.is_answered_by("twin", within);
    assert_eq!(ended.tried(), [("sick".to_owned(), Some(code)), ("twin".to_owned(), None)]);
    assert_eq!((sick.times(ended.view.task_id), twin.times(ended.view.task_id)), (1, 1));
}

/// A write was handed to the sick one once and to nobody else, and is over like this.
#[track_caller]
pub(crate) fn was_handed_out_once(
    ended: &Ended,
    end: (PhaseName, ErrorCode),
    sick: &Animal,
    twin: &Animal,
    within: Duration,
) {
    ended.is_over(end.0, end.1, within);
    assert_eq!((sick.times(ended.view.task_id), twin.times(ended.view.task_id)), (1, 0));
}

/// The end of a write of which nobody knows whether it happened.
pub(crate) const UNKNOWN: (PhaseName, ErrorCode) = (PhaseName::DeadLettered, ErrorCode::OutcomeUnknown);
