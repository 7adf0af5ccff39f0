//! A gateway process, and an agent that fails all that it gets until it heals, and notes what reaches it from then on.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::Delivery;
use agent_reach_sdk::schemas::call::{GatewayHealth, Redriven, Tasks};
use agent_reach_sdk::{Client, PhaseName, TaskId, TaskView, Timestamp};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::victim::Victim;

/// The longest that anything here is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// All of it.
pub(crate) struct Desk {
    pub(crate) victim: Victim,
    pub(crate) client: Client,
    pub(crate) agent: Clerk,
    _folder: tempfile::TempDir,
}

/// The agent: it fails `work`, and hangs at `crawl`.
#[derive(Clone, Default)]
pub(crate) struct Clerk(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    is_well: bool,
    handed: Vec<(Instant, TaskId)>,
}

impl Clerk {
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/work", post(work))
            .route("/healthz", get(async || axum::Json(json!({}))))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/work")
    }

    /// From now on it does its work.
    pub(crate) fn heals(&self) {
        self.0.lock().unwrap().is_well = true;
    }

    /// What reached it since it healed, in order.
    pub(crate) fn handed(&self) -> Vec<TaskId> {
        self.0.lock().unwrap().handed.iter().map(|(_, task)| *task).collect()
    }

    /// When.
    pub(crate) fn arrivals(&self) -> Vec<Instant> {
        self.0.lock().unwrap().handed.iter().map(|(at, _)| *at).collect()
    }
}

async fn work(State(clerk): State<Clerk>, body: Bytes) -> Response {
    let delivery: Delivery = serde_json::from_slice(&body).unwrap();
    {
        let mut notes = clerk.0.lock().unwrap();
        if notes.is_well {
            notes.handed.push((Instant::now(), delivery.task_id));
            return axum::Json(json!({ "done": true })).into_response();
        }
    }
    if delivery.capability.as_str() == "crawl" {
        return std::future::pending().await;
    }
    let flaw = json!({ "message": "the printer is on fire" });
    (StatusCode::INTERNAL_SERVER_ERROR, axum::Json(flaw)).into_response()
}

/// Its card. It never goes out of routing, however much of its work fails.
fn clerk(address: &str) -> Value {
    let breaker = json!({ "failures_in_row": 1000, "window": 1000, "window_min": 1000, "open_above": 1.0 });
    let capability =
        |name: &str, timeout: &str| json!({ "name": name, "effect": "read", "timeout": timeout, "breaker": breaker });
    json!({
        "agent_id": "clerk@desk", "heartbeat_interval": "10m", "max_concurrency": 64,
        "access": { "callable_by": ["*@desk", "*@other"] },
        "endpoints": [{ "protocol": "http", "address": address }],
        "capabilities": [capability("work", "10s"), capability("crawl", "200ms")],
    })
}

impl Desk {
    pub(crate) async fn open() -> Self {
        let (folder, agent) = (tempfile::tempdir().unwrap(), Clerk::default());
        let address = agent.listen().await;
        let victim = Victim::start(folder.path(), "").await;
        let client = victim.client().await;
        let editor = |name: &str| {
            let access = json!({ "may_call": ["*@desk"] });
            json!({ "agent_id": name, "heartbeat_interval": "10m", "access": access, "capabilities": [{ "name": "edit" }] })
        };
        for card in [clerk(&address), editor("editor@other"), editor("clerk@other")] {
            let _: Value = client.call("agent/register", &card).await.unwrap();
        }
        Self { victim, client, agent, _folder: folder }
    }

    /// Submits so many tasks with these fields beside the usual ones, and waits until all are dead letters. The newest
    /// last.
    pub(crate) async fn give_up_on(&self, count: usize, more: Value) -> Vec<TaskId> {
        let mut submit = json!({ "capability": "work", "tries": 1, "deadline": "60s" });
        submit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.client.call::<TaskView>("task/submit", &submit).await.unwrap().task_id);
        }
        for id in &ids {
            let view = self.client.wait_for_end(*id, PATIENCE).await.unwrap();
            assert_eq!(view.phase, PhaseName::DeadLettered, "{view:?}");
        }
        ids
    }

    pub(crate) async fn redrive(&self, which: Value) -> Redriven {
        self.client.call("dead_letter/redrive", &which).await.unwrap()
    }

    pub(crate) async fn get(&self, id: TaskId) -> TaskView {
        self.client.call("task/get", &json!({ "task_id": id })).await.unwrap()
    }

    pub(crate) async fn ended_at(&self, id: TaskId) -> Timestamp {
        self.get(id).await.finished_at.unwrap()
    }

    /// All dead letters as they are.
    pub(crate) async fn dead_letters(&self) -> Vec<TaskView> {
        let answer: Tasks = self.client.call("dead_letter/list", &json!({ "limit": 1000 })).await.unwrap();
        answer.tasks
    }

    /// Waits until some task is open.
    pub(crate) async fn until_some_are_open(&self) {
        let began = Instant::now();
        loop {
            let health = reqwest::get(format!("{}/healthz", self.victim.url())).await.unwrap().text().await.unwrap();
            let health: GatewayHealth = serde_json::from_str(&health).unwrap();
            if health.open.values().sum::<u64>() > 0 {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "nothing is open");
        }
    }

    /// Waits until all of them have ended, and gives those that were given up on again.
    pub(crate) async fn given_up_again(&self, ids: &[TaskId]) -> Vec<TaskId> {
        let mut given_up = Vec::new();
        for id in ids {
            let view = self.client.wait_for_end(*id, PATIENCE).await.unwrap();
            given_up.extend((view.phase == PhaseName::DeadLettered).then_some(*id));
        }
        given_up
    }

    /// Waits until all of them are completed.
    pub(crate) async fn all_complete(&self, ids: &[TaskId]) {
        for id in ids {
            let view = self.client.wait_for_end(*id, PATIENCE).await.unwrap();
            assert_eq!(view.phase, PhaseName::Completed, "{view:?}");
        }
    }

    /// Runs the operator's tool, which is to succeed; what it printed and what it noted beside.
    pub(crate) async fn reachctl(&self, args: &[&str]) -> (String, String) {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_reachctl"));
        command.args(args).env("AGENT_REACH_URL", self.victim.url()).env("COLUMNS", "100").stdin(Stdio::null());
        let output = command.output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }
}
