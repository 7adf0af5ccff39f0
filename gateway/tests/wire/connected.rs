//! Agents that keep a connection open, and are pushed their work over it.

use serde_json::{Value, json};

use crate::common::peer::{Over, Peer};
use crate::common::{Running, start};

/// An agent behind its connection.
struct Agent(Peer);

impl Agent {
    async fn connect(running: &Running, agent: &str, over: Over) -> Self {
        let mut peer = Peer::connect(running, over).await;
        let card = json!({
            "agent_id": agent, "endpoints": [{ "protocol": "websocket" }],
            "capabilities": [{ "name": "work", "effect": "read" }],
        });
        let answer = peer.call(1, "agent/register", &card).await;
        assert_eq!(answer["result"]["agent_id"], agent, "{answer}");
        Self(peer)
    }

    /// The next message of the gateway.
    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.0.read().await).unwrap()
    }

    /// The work that is pushed next; the gateway is told that it is here.
    async fn accept(&mut self) -> Value {
        let request = self.read().await;
        assert_eq!(request["method"], "task/deliver", "{request}");
        self.0.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": {} }).to_string().as_bytes()).await;
        request["params"].clone()
    }

    /// Says that a task is done.
    async fn complete(&mut self, task: &Value, result: Value) -> Value {
        let word = json!({ "task_id": task["task_id"], "token": task["token"], "result": result });
        self.0.call(2, "task/complete", &word).await
    }
}

async fn submit(caller: &mut Peer, params: Value) -> Value {
    let view = caller.call(1, "task/submit", &json!({ "capability": "work", "params": params })).await;
    view["result"]["task_id"].clone()
}

#[tokio::test]
async fn a_connected_agent_is_pushed_work_says_that_it_has_it_and_completes_it() {
    for over in [Over::WebSocket, Over::Stdio] {
        let running = start().await;
        let mut agent = Agent::connect(&running, "a@n", over).await;
        let mut caller = Peer::connect(&running, Over::Http).await;
        let task = submit(&mut caller, json!({ "n": 1 })).await;
        let work = agent.accept().await;
        assert_eq!((&work["task_id"], &work["params"], &work["attempt"]), (&task, &json!({ "n": 1 }), &json!(1)));
        let word = json!({ "task_id": task, "token": work["token"] });
        let accepted = agent.0.call(3, "task/accept", &word).await;
        assert_eq!(accepted["result"]["phase"], "accepted", "{over:?}: {accepted}");
        assert_eq!(agent.complete(&work, json!([1])).await["result"]["phase"], "completed");
        let done = caller.call(2, "task/wait", &json!({ "task_id": task })).await;
        assert_eq!((&done["result"]["outcome"], &done["result"]["result"]), (&json!("REACH_OK"), &json!([1])));
    }
}

#[tokio::test]
async fn work_that_was_pushed_over_a_connection_that_is_lost_goes_to_another_agent() {
    let running = start().await;
    let mut agents = [
        Agent::connect(&running, "a@n", Over::WebSocket).await,
        Agent::connect(&running, "b@n", Over::WebSocket).await,
    ];
    let mut caller = Peer::connect(&running, Over::Http).await;
    let task = submit(&mut caller, json!({})).await;
    let [a, b] = &mut agents;
    let (pushed, is_first) = tokio::select! {
        pushed = a.read() => (pushed, true),
        pushed = b.read() => (pushed, false),
    };
    assert_eq!(pushed["method"], "task/deliver");
    let [a, b] = agents;
    let (lost, mut left) = if is_first { (a, b) } else { (b, a) };
    drop(lost);
    let work = left.accept().await;
    assert_eq!((&work["task_id"], &work["attempt"]), (&task, &json!(2)), "{work}");
    let late = json!({ "task_id": task, "token": pushed["params"]["token"] });
    let refused = caller.call(2, "task/complete", &late).await;
    assert_eq!(refused["error"]["data"]["code"], "stale_token", "{refused}");
    left.complete(&work, json!("b")).await;
    let done = caller.call(3, "task/wait", &json!({ "task_id": task })).await;
    assert_eq!(done["result"]["result"], "b", "{done}");
}

#[tokio::test]
async fn a_push_is_one_line_however_the_caller_wrote_its_params() {
    let running = start().await;
    let mut agent = Agent::connect(&running, "a@n", Over::Stdio).await;
    let mut caller = Peer::connect(&running, Over::Http).await;
    let frame = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task/submit\",\"params\":\n{\"capability\":\"work\",\"params\":{\r\n\"n\":\n1.10}}}";
    caller.send(frame.as_bytes()).await;
    assert!(agent.0.read().await.contains(r#""params":{  "n": 1.10}"#));
}

#[tokio::test]
async fn a_task_that_is_called_off_is_stopped_at_its_agent() {
    let running = start().await;
    let mut agent = Agent::connect(&running, "a@n", Over::WebSocket).await;
    let mut caller = Peer::connect(&running, Over::Http).await;
    let task = submit(&mut caller, json!({})).await;
    let work = agent.accept().await;
    assert_eq!(caller.call(2, "task/cancel", &json!({ "task_id": task })).await["result"]["phase"], "cancelled");
    let stop = agent.read().await;
    assert_eq!((&stop["method"], &stop["params"]["token"]), (&json!("task/stop"), &work["token"]), "{stop}");
}

#[tokio::test]
async fn a_stop_waits_for_the_word_that_pushed_work_arrived() {
    let running = start().await;
    let mut agent = Agent::connect(&running, "a@n", Over::WebSocket).await;
    let mut caller = Peer::connect(&running, Over::Http).await;
    let task = submit(&mut caller, json!({})).await;
    let request = agent.read().await;
    running.stop.cancel();
    let late = agent.0.call(7, "agent/list", &json!({})).await;
    assert_eq!(late["error"]["data"]["code"], "shutting_down", "{late}");
    agent.0.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": {} }).to_string().as_bytes()).await;
    running.served.await.unwrap().unwrap();
    let view =
        running.gateway.get(grant(), reach_schemas::call::TaskRef { task_id: task.as_str().unwrap().parse().unwrap() });
    let view = view.await.unwrap();
    assert_eq!(view.attempts.len(), 1, "{view:?}");
    assert!(view.attempts[0].failure.is_none(), "{view:?}");
}

fn grant() -> reach_core::access::Grant {
    reach_core::access::authorize(reach_core::access::Caller::OPERATOR, reach_schemas::Permission::OwnTask).unwrap()
}
