//! An agent on a WebSocket when things go wrong: lost connections, a gateway that forgets or refuses it.

use agent_reach_sdk::{Agent, Context, Error, ErrorCode, Span, Task, capability, card};
use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::agent_ws::{CALM, OTHER, deliver, echo, start};
use crate::soon;
use crate::view::{AGENT, TASK, delivery, error, noted, registered};
use crate::ws_gateway::WsGateway;

#[tokio::test]
async fn a_result_whose_connection_broke_is_sent_again_after_registering() {
    let gateway = WsGateway::start().await;
    let (_agent, mut peer) = start(&gateway, echo, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    let first = peer.expect("task/complete").await;
    drop(peer);
    let mut peer = gateway.accept().await;
    let register = peer.expect("agent/register").await;
    assert!(peer.is_silent().await, "nothing is said before the gateway knows who speaks");
    peer.answer(&register, registered()).await;
    let again = peer.expect("task/complete").await;
    assert_eq!(again["params"], first["params"]);
    peer.answer(&again, noted()).await;
    deliver(&mut peer, OTHER, 1).await;
    peer.expect("task/complete").await;
}

#[tokio::test]
async fn a_result_that_came_too_late_is_dropped() {
    let gateway = WsGateway::start().await;
    let (agent, mut peer) = start(&gateway, echo, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    let complete = peer.expect("task/complete").await;
    peer.refuse(&complete, error(ErrorCode::StaleToken, None)).await;
    deliver(&mut peer, OTHER, 1).await;
    assert_eq!(peer.expect("task/complete").await["params"]["task_id"], OTHER);
    assert_eq!(agent.load(), 0);
}

#[tokio::test]
async fn a_result_that_is_never_taken_ends_as_a_failure_and_not_in_silence() {
    let gateway = WsGateway::start().await;
    let (_agent, mut peer) = start(&gateway, echo, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    let complete = peer.expect("task/complete").await;
    peer.refuse(&complete, error(ErrorCode::TooLarge, None)).await;
    let fail = peer.expect("task/fail").await;
    assert_eq!(fail["params"]["retryable"], false);
}

#[tokio::test]
async fn a_result_that_is_too_large_for_the_gateway_ends_as_a_failure_and_not_in_an_endless_loop() {
    let gateway = WsGateway::start().await;
    let handler = |_: Task, _: Context| async { Ok("x".repeat(100_000)) };
    let (_agent, mut peer) = start(&gateway, handler, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    peer.expect("task/complete").await;
    peer.close(CloseCode::Size).await;
    let mut peer = gateway.accept().await;
    peer.welcome().await;
    let fail = peer.expect("task/fail").await;
    assert!(fail["params"]["message"].as_str().unwrap().contains("as the test says"), "{fail}");
}

#[tokio::test]
async fn an_agent_that_is_full_says_so() {
    let gateway = WsGateway::start().await;
    let handler = |_: Task, context: Context| async move {
        context.cancelled().await;
        Ok(())
    };
    let (_agent, mut peer) = start(&gateway, handler, CALM).await;
    for n in 0..16 {
        deliver(&mut peer, &format!("01890a5d-ac96-774b-bcce-b302099a80{n:02}"), 1).await;
    }
    peer.request("task/deliver", delivery(TASK, 1, &json!(null))).await;
    let refusal = peer.read().await;
    assert_eq!(refusal["error"]["data"]["code"], "overloaded");
    assert_eq!(refusal["error"]["data"]["retry_after"], "1s");
}

#[tokio::test]
async fn a_result_is_offered_again_to_a_gateway_that_could_not_store_it() {
    let gateway = WsGateway::start().await;
    let (_agent, mut peer) = start(&gateway, echo, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    let complete = peer.expect("task/complete").await;
    peer.refuse(&complete, error(ErrorCode::StoreUnavailable, Some("5ms"))).await;
    assert_eq!(peer.expect("task/complete").await["params"], complete["params"]);
}

#[tokio::test]
async fn a_gateway_that_forgot_the_agent_hears_its_card_again() {
    let gateway = WsGateway::start().await;
    let (_agent, mut peer) = start(&gateway, echo, Span::from_ms(20)).await;
    let beat = peer.expect("agent/heartbeat").await;
    peer.refuse(&beat, error(ErrorCode::AgentNotFound, None)).await;
    let register = peer.expect("agent/register").await;
    assert_eq!(register["params"]["agent_id"], AGENT);
    peer.answer(&register, registered()).await;
    peer.expect("agent/heartbeat").await;
}

#[tokio::test]
async fn a_refused_registration_is_told_and_not_tried_again() {
    let gateway = WsGateway::start().await;
    let agent = Agent::builder(card(AGENT).unwrap())
        .capability(capability("work").unwrap(), echo)
        .url(gateway.url().replace("ws:", "http:"))
        .start();
    let refuse = async {
        let mut peer = gateway.accept().await;
        let register = peer.expect("agent/register").await;
        peer.refuse(&register, error(ErrorCode::InvalidCard, None)).await;
        peer
    };
    let (agent, _peer) = tokio::join!(agent, refuse);
    assert!(matches!(agent.unwrap_err(), Error::Invalid(_)));
}

#[tokio::test]
async fn a_gateway_that_is_not_ready_is_asked_again() {
    let gateway = WsGateway::start().await;
    let agent =
        Agent::builder(card(AGENT).unwrap()).capability(capability("work").unwrap(), echo).url(gateway.url()).start();
    let welcome = async {
        let mut peer = gateway.accept().await;
        let register = peer.expect("agent/register").await;
        peer.refuse(&register, error(ErrorCode::StoreUnavailable, None)).await;
        let mut peer = gateway.accept().await;
        peer.welcome().await;
        peer
    };
    let (agent, _peer) = tokio::join!(agent, welcome);
    assert_eq!(agent.unwrap().agent_id().as_str(), AGENT);
}

#[tokio::test]
async fn bad_work_is_refused_with_a_reason() {
    let gateway = WsGateway::start().await;
    let (_agent, mut peer) = start(&gateway, echo, CALM).await;
    let mut stranger = delivery(TASK, 1, &json!(null));
    stranger["agent_id"] = json!("other@demo");
    let mut unknown = delivery(TASK, 1, &json!(null));
    unknown["capability"] = json!("fly");
    for (params, code) in
        [(stranger, "agent_refused"), (unknown, "agent_refused"), (json!({ "task_id": 1 }), "invalid_params")]
    {
        peer.request("task/deliver", params).await;
        assert_eq!(peer.read().await["error"]["data"]["code"], code);
    }
}

#[tokio::test]
async fn a_capability_without_a_handler_is_a_mistake() {
    let mut card = card(AGENT).unwrap();
    card.capabilities.push(capability("orphan").unwrap());
    let failed = Agent::builder(card).start().await.unwrap_err();
    assert!(failed.to_string().contains("orphan"), "{failed}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_drains_the_agent() {
    // With a listener of our own, a signal that came too early would not end the test's process.
    let _listening = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    let gateway = WsGateway::start().await;
    let (agent, mut peer) = start(&gateway, echo, CALM).await;
    let running = tokio::spawn(agent.run_until_signal());
    tokio::task::yield_now().await;
    let me = std::process::id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &me]).status().unwrap().success());
    for method in ["agent/drain", "agent/deregister"] {
        let word = peer.expect(method).await;
        peer.answer(&word, json!({ "in_flight": 0 })).await;
    }
    soon(running).await.unwrap().unwrap();
}
