//! WebSocket: how connections open and end, and what they bound.

use futures_util::{SinkExt, StreamExt};
use reach_gateway::gateway::Settings;
use reach_gateway::transport::HttpSettings;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::common::peer::{Over, Peer, Socket, connect};
use crate::common::{start, start_with};

/// How often an agent tells of its progress, word after word.
const STEPS: u64 = 40;

/// The code that the gateway closes with. What it says before that is passed over.
async fn close_code(socket: &mut Socket) -> Option<u16> {
    while let Some(message) = socket.next().await {
        if let Ok(Message::Close(close)) = message {
            return close.map(|close| close.code.into());
        }
    }
    None
}

#[tokio::test]
async fn a_message_that_is_too_large_or_malformed_closes_the_connection_with_its_reason() {
    let running = start_with(Settings::default(), HttpSettings { body_max: 1000, ..HttpSettings::default() }).await;
    let mut socket = connect(&running).await;
    socket.send(Message::text("x".repeat(1001))).await.unwrap();
    assert_eq!(close_code(&mut socket).await, Some(1009));
    let mut socket = connect(&running).await;
    let not_utf8 = Frame::message(vec![0xff], OpCode::Data(Data::Text), true);
    socket.send(Message::Frame(not_utf8)).await.unwrap();
    assert_eq!(close_code(&mut socket).await, Some(1007));
}

#[tokio::test]
async fn a_stop_closes_with_going_away_once_what_is_in_flight_is_answered() {
    let running = start().await;
    let mut peer = Peer::connect(&running, Over::WebSocket).await;
    let card = json!({ "agent_id": "a@n", "capabilities": [{ "name": "c" }] });
    peer.call(1, "agent/register", &card).await;
    peer.send(br#"{"jsonrpc":"2.0","id":2,"method":"task/claim","params":{"agent_id":"a@n","wait":"5m"}}"#).await;
    assert_eq!(peer.call(3, "no/such", &json!({})).await["error"]["code"], -32601);
    running.stop.cancel();
    let answer: Value = serde_json::from_str(&peer.read().await).unwrap();
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 2, "result": { "tasks": [] } }));
    let Peer::WebSocket(mut socket) = peer else { unreachable!() };
    assert_eq!(close_code(&mut socket).await, Some(1001));
    running.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_agent_is_connected_as_long_as_its_connection_is() {
    let running = start().await;
    let mut agent = Peer::connect(&running, Over::WebSocket).await;
    let card = json!({ "agent_id": "a@n", "capabilities": [{ "name": "c" }] });
    agent.call(1, "agent/register", &card).await;
    let mut other = Peer::connect(&running, Over::Http).await;
    let mut is_connected =
        async || other.call(1, "agent/get", &json!({ "agent_id": "a@n" })).await["result"]["connected"].clone();
    assert_eq!(is_connected().await, true);
    drop(agent);
    while is_connected().await == true {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_subscriber_hears_of_every_change_until_the_end() {
    for over in [Over::WebSocket, Over::Stdio] {
        let running = start().await;
        let mut agent = Peer::connect(&running, Over::Http).await;
        agent.call(1, "agent/register", &json!({ "agent_id": "a@n", "capabilities": [{ "name": "c" }] })).await;
        let mut caller = Peer::connect(&running, over).await;
        let task =
            caller.call(1, "task/submit", &json!({ "capability": "c", "params": {} })).await["result"]["task_id"]
                .clone();
        let seen = caller.call(2, "task/subscribe", &json!({ "task_id": task })).await;
        assert_eq!(seen["result"]["task_id"], task, "{seen}");
        let claimed = agent.call(2, "task/claim", &json!({ "agent_id": "a@n" })).await["result"]["tasks"][0].clone();
        let word = json!({ "task_id": task, "token": claimed["token"] });
        for step in 1..=STEPS {
            let progress = json!({ "task_id": task, "token": claimed["token"], "progress": step });
            let noted = agent.call(3, "task/progress", &progress).await;
            assert_eq!(noted["result"]["phase"], "delivered", "{noted}");
        }
        agent.call(4, "task/complete", &word).await;
        let mut heard = Vec::new();
        loop {
            let push: Value = serde_json::from_str(&caller.read().await).unwrap();
            assert_eq!((&push["method"], &push["params"]["task_id"]), (&json!("task/changed"), &task), "{push}");
            if push["params"]["phase"] == "completed" {
                break;
            }
            heard.extend(push["params"]["progress"].as_u64());
        }
        assert_eq!(heard, (1..=STEPS).collect::<Vec<_>>(), "{over:?}: all that was noted is told");
    }
}

#[tokio::test]
async fn what_is_in_flight_on_one_connection_is_bounded_and_the_rest_is_refused() {
    let running = start().await;
    let mut peer = Peer::connect(&running, Over::WebSocket).await;
    peer.call(1, "agent/register", &json!({ "agent_id": "a@n", "capabilities": [{ "name": "c" }] })).await;
    let claim = r#"{"jsonrpc":"2.0","id":2,"method":"task/claim","params":{"agent_id":"a@n","wait":"5m"}}"#;
    for _ in 0..1025 {
        peer.send(claim.as_bytes()).await;
    }
    let refused: Value = serde_json::from_str(&peer.read().await).unwrap();
    assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&json!(2), &json!("overloaded")), "{refused}");
}

#[tokio::test]
async fn an_answer_to_nothing_is_not_answered() {
    for over in [Over::WebSocket, Over::Stdio] {
        let running = start().await;
        let mut peer = Peer::connect(&running, over).await;
        for stray in [r#"{"jsonrpc":"2.0","id":1,"result":1}"#, r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#] {
            assert_eq!(peer.ask(stray.as_bytes()).await, None, "{over:?}: {stray}");
        }
    }
}
