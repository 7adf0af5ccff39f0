//! A gateway, an agent that pulls its work, and the operator: one client that plays all of them.

use std::time::Instant;

use reach_gateway::gateway::Settings;
use reach_gateway::outbound::Guard;
use reach_gateway::transport::HttpSettings;
use reach_gateway::webhook;
use reach_schemas::Span;
use serde_json::{Value, json};

use crate::common::peer::{Over, Peer, client};
use crate::common::{Running, start_with};
use crate::receiver::PATIENCE;

/// How webhooks are sent in these tests: to this machine, and tried again soon, or as is said.
pub(crate) fn soon(retries: &[u64]) -> webhook::Settings {
    webhook::Settings {
        guard: Guard::allowing(vec!["127.0.0.0/8".parse().unwrap()]),
        retries: retries.iter().map(|ms| Span::from_ms(*ms)).collect(),
        ..webhook::Settings::default()
    }
}

/// One who plays caller, agent and operator.
pub(crate) struct World {
    peer: Peer,
    _running: Option<Running>,
}

impl World {
    /// A gateway in this process, and `worker@n` that pulls `work`.
    pub(crate) async fn start(webhooks: webhook::Settings) -> Self {
        let settings = Settings { webhooks, ..Settings::default() };
        let running = start_with(settings, HttpSettings::default()).await;
        let peer = Peer::connect(&running, Over::Http).await;
        let mut world = Self { peer, _running: Some(running) };
        world.register(&[]).await;
        world
    }

    /// The same over a gateway that runs at an address.
    pub(crate) async fn over(url: &str) -> Self {
        let peer = Peer::Http { client: client(), url: format!("{url}/rpc") };
        let mut world = Self { peer, _running: None };
        world.register(&[]).await;
        world
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.peer.call(1, method, &params).await
    }

    #[track_caller]
    fn result(method: &str, answer: &Value) -> Value {
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        Self::result(method, &answer)
    }

    /// Registers the agent with these receivers of its failures.
    pub(crate) async fn register(&mut self, callbacks: &[&str]) {
        let card = json!({
            "agent_id": "worker@n", "on_failure_callbacks": callbacks, "heartbeat_interval": "10m",
            "capabilities": [{ "name": "work", "description": "Does the work." }],
        });
        self.call("agent/register", card).await;
    }

    /// Registers the agent with a capability that says more.
    pub(crate) async fn register_with(&mut self, more: Value) {
        let mut capability = json!({ "name": "work", "description": "Does the work." });
        capability.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let card = json!({ "agent_id": "worker@n", "heartbeat_interval": "10m", "capabilities": [capability] });
        self.call("agent/register", card).await;
    }

    /// Has the agent claim a task, and fail it so that another try may help.
    pub(crate) async fn fail(&mut self, task: &str) {
        let token = self.claim(task).await;
        let params = json!({ "task_id": task, "token": token, "message": "it broke", "retryable": true });
        self.call("task/fail", params).await;
    }

    /// Submits a task with these receivers, and gives its id.
    pub(crate) async fn submit(&mut self, callbacks: &[&str]) -> String {
        self.submit_with(callbacks, json!({})).await["task_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn submit_with(&mut self, callbacks: &[&str], more: Value) -> Value {
        let callbacks: Vec<Value> = callbacks.iter().map(|url| json!({ "url": url })).collect();
        let mut submit = json!({ "capability": "work", "mode": "queue", "callbacks": callbacks });
        submit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call("task/submit", submit).await
    }

    /// Submits a task with a receiver and calls it off: the shortest way to an end.
    pub(crate) async fn end_one(&mut self, callback: &str) -> String {
        let task = self.submit(&[callback]).await;
        self.call("task/cancel", json!({ "task_id": task })).await;
        task
    }

    /// Has the agent claim a task, and answer with this result.
    pub(crate) async fn complete(&mut self, task: &str, result: Value) {
        let token = self.claim(task).await;
        self.call("task/complete", json!({ "task_id": task, "token": token, "result": result })).await;
    }

    /// Has the agent claim a task, and give up on it for all.
    pub(crate) async fn poison(&mut self, task: &str) {
        let token = self.claim(task).await;
        let params = json!({ "task_id": task, "token": token, "poison": true, "message": "it breaks me" });
        assert_eq!(self.call("task/release", params).await["phase"], "dead_lettered");
    }

    async fn claim(&mut self, task: &str) -> Value {
        let claimed = self.call("task/claim", json!({ "agent_id": "worker@n", "task_id": task })).await;
        claimed["tasks"][0]["token"].clone()
    }

    /// All webhooks, the oldest first.
    pub(crate) async fn webhooks(&mut self) -> Vec<Value> {
        let mut listed = self.call("webhook/list", json!({ "limit": 1000 })).await;
        let mut webhooks = std::mem::take(listed["webhooks"].as_array_mut().unwrap());
        webhooks.reverse();
        webhooks
    }

    /// Looks at all webhooks until they are as wanted.
    pub(crate) async fn until(&mut self, what: &str, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let webhooks = self.webhooks().await;
            if is_so(&webhooks) {
                return webhooks;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: {webhooks:#?}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Waits until all webhooks are in these states, the oldest first.
    pub(crate) async fn states(&mut self, states: &[&str]) -> Vec<Value> {
        let are = |webhooks: &[Value]| webhooks.iter().map(|webhook| &webhook["state"]).eq(states);
        self.until(&format!("{states:?} were to be"), are).await
    }
}
