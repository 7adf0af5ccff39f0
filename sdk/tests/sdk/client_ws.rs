//! Calls over one WebSocket: many at once, through lost connections.

use std::time::Duration;

use agent_reach_sdk::{Client, Error};
use serde_json::json;

use crate::soon;
use crate::view::{TASK, completed, task};
use crate::ws_gateway::WsGateway;

#[tokio::test]
async fn many_calls_share_one_connection_and_answers_find_their_calls() {
    let gateway = WsGateway::start().await;
    let (client, mut peer) = gateway.client().await;
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.call::<u64>("echo", &json!({ "n": n })).await.unwrap() })
        })
        .collect();
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(peer.expect("echo").await);
    }
    for call in asked.iter().rev() {
        peer.answer(call, call["params"]["n"].clone()).await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), n as u64);
    }
}

#[tokio::test]
async fn a_submit_whose_connection_breaks_is_sent_again_under_its_key() {
    let gateway = WsGateway::start().await;
    let (client, mut peer) = gateway.client().await;
    let submitting = tokio::spawn(async move { client.task("sum").submit().await });
    let first = peer.expect("task/submit").await;
    drop(peer);
    let mut peer = gateway.accept().await;
    let again = peer.expect("task/submit").await;
    assert_eq!(again["params"], first["params"]);
    peer.answer(&again, task("submitted")).await;
    assert_eq!(soon(submitting).await.unwrap().unwrap().id().to_string(), TASK);
}

#[tokio::test]
async fn what_may_not_be_repeated_fails_with_its_connection() {
    let gateway = WsGateway::start().await;
    let (client, mut peer) = gateway.client().await;
    let calling = tokio::spawn(async move { client.call::<u64>("echo", &json!({})).await });
    peer.expect("echo").await;
    drop(peer);
    let failed = soon(calling).await.unwrap().unwrap_err();
    assert!(matches!(failed, Error::Transport { sent: true, .. }), "{failed:?}");
}

#[tokio::test]
async fn waiting_outlives_a_lost_connection() {
    let gateway = WsGateway::start().await;
    let (client, mut peer) = gateway.client().await;
    let waiting =
        tokio::spawn(async move { client.wait_for_result(TASK.parse().unwrap(), Duration::from_secs(60)).await });
    peer.expect("task/wait").await;
    drop(peer);
    let mut peer = gateway.accept().await;
    let wait = peer.expect("task/wait").await;
    peer.answer(&wait, completed(&json!("done"))).await;
    assert_eq!(soon(waiting).await.unwrap().unwrap().result::<String>().unwrap(), "done");
}

#[tokio::test]
async fn a_request_that_nobody_answers_is_refused_and_not_left_hanging() {
    let gateway = WsGateway::start().await;
    let (_client, mut peer) = gateway.client().await;
    let id = peer.request("agent/probe", json!({})).await;
    let answer = peer.read().await;
    assert_eq!(answer["id"], id);
    assert_eq!(answer["error"]["data"]["code"], "method_not_found");
}

#[tokio::test]
async fn nobody_there_is_told_at_once() {
    let gateway = WsGateway::start().await;
    let url = gateway.url();
    drop(gateway);
    let failed = Client::builder().url(url).connect().await.unwrap_err();
    assert!(matches!(failed, Error::Transport { sent: false, .. }), "{failed:?}");
}

#[tokio::test]
async fn one_who_is_patient_connects_to_a_gateway_that_comes_later() {
    let gateway = WsGateway::start().await;
    let connecting = tokio::spawn(Client::builder().url(gateway.url()).connect_patiently());
    drop(soon(gateway.accept_raw()).await);
    let peer = gateway.accept().await;
    assert!(soon(connecting).await.unwrap().is_ok());
    drop(peer);
}
