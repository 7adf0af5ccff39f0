//! Watching a task, and calling it off when its caller has gone.

use std::time::Duration;

use agent_reach_sdk::{Client, Completed, Error, ErrorCode, PhaseName, Watch};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::soon;
use crate::view::{TASK, completed, error, task};
use crate::ws_gateway::{Peer, WsGateway};

/// A view with this progress.
fn at(percent: u32) -> Value {
    let mut view = task("accepted");
    view["progress"] = json!(percent);
    view
}

async fn subscribed(gateway: &WsGateway, view: Value) -> Peer {
    let mut peer = gateway.accept().await;
    let call = peer.expect("task/subscribe").await;
    assert_eq!(call["params"]["task_id"], TASK);
    peer.answer(&call, view).await;
    peer
}

/// The next thing that is told.
async fn next(watch: &mut Watch) -> (PhaseName, Option<u32>) {
    let view = soon(watch.next()).await.unwrap().expect("it has not ended");
    (view.phase, view.progress.map(|progress| progress.read().unwrap()))
}

async fn watching(gateway: &WsGateway) -> Watch {
    let client = Client::builder().url(format!("http://{}", gateway.address)).connect().await.unwrap();
    client.watch(TASK.parse().unwrap()).unwrap()
}

#[tokio::test]
async fn a_watch_tells_each_change_once_through_a_lost_connection_and_then_the_end() {
    let gateway = WsGateway::start().await;
    let mut watch = watching(&gateway).await;
    let mut peer = subscribed(&gateway, task("submitted")).await;
    assert_eq!(next(&mut watch).await, (PhaseName::Submitted, None));
    peer.notify("task/changed", at(10)).await;
    assert_eq!(next(&mut watch).await, (PhaseName::Accepted, Some(10)));
    peer.notify("task/changed", at(10)).await;
    peer.notify("task/changed", at(20)).await;
    assert_eq!(next(&mut watch).await, (PhaseName::Accepted, Some(20)));
    drop(peer);
    let mut peer = subscribed(&gateway, at(60)).await;
    assert_eq!(next(&mut watch).await, (PhaseName::Accepted, Some(60)));
    peer.notify("task/changed", completed(&json!("done"))).await;
    assert_eq!(next(&mut watch).await, (PhaseName::Completed, None));
    assert!(soon(watch.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn an_answer_that_a_change_has_overtaken_is_not_told_after_it() {
    let gateway = WsGateway::start().await;
    let mut watch = watching(&gateway).await;
    let mut peer = gateway.accept().await;
    let call = peer.expect("task/subscribe").await;
    peer.notify("task/changed", at(10)).await;
    assert_eq!(next(&mut watch).await, (PhaseName::Accepted, Some(10)));
    peer.answer(&call, task("submitted")).await;
    let told = tokio::time::timeout(Duration::from_millis(200), watch.next()).await;
    assert!(told.is_err(), "an older view is told: {told:?}");
    peer.notify("task/changed", completed(&json!("done"))).await;
    assert_eq!(next(&mut watch).await, (PhaseName::Completed, None));
}

#[tokio::test]
async fn a_task_that_is_not_there_cannot_be_watched() {
    let gateway = WsGateway::start().await;
    let mut watch = watching(&gateway).await;
    let refusing = async {
        let mut peer = gateway.accept().await;
        let call = peer.expect("task/subscribe").await;
        peer.refuse(&call, error(ErrorCode::TaskNotFound, None)).await;
        peer
    };
    let (next, _peer) = soon(async { tokio::join!(watch.next(), refusing) }).await;
    assert!(matches!(next, Err(Error::NotFound(_))), "{next:?}");
}

/// A task that is asked for, and is to be called off with its caller; the peer has its submit.
async fn asked(gateway: &WsGateway) -> (Client, Peer, JoinHandle<Result<Completed, Error>>, Value) {
    let (client, mut peer) = gateway.client().await;
    let asking = client.clone();
    let reaching = tokio::spawn(async move { asking.task("work").cancel_on_drop().reach().await });
    let submit = peer.expect("task/submit").await;
    (client, peer, reaching, submit)
}

#[tokio::test]
async fn a_task_is_called_off_when_its_caller_goes_while_it_waits() {
    let gateway = WsGateway::start().await;
    let (_client, mut peer, reaching, submit) = asked(&gateway).await;
    peer.answer(&submit, task("submitted")).await;
    peer.expect("task/wait").await;
    reaching.abort();
    assert_eq!(peer.expect("task/cancel").await["params"]["task_id"], TASK);
}

#[tokio::test]
async fn a_task_is_called_off_when_its_caller_goes_before_its_id_is_known() {
    let gateway = WsGateway::start().await;
    let (_client, mut peer, reaching, submit) = asked(&gateway).await;
    reaching.abort();
    assert!(soon(reaching).await.unwrap_err().is_cancelled());
    peer.answer(&submit, task("submitted")).await;
    assert_eq!(peer.expect("task/cancel").await["params"]["task_id"], TASK);
}

#[tokio::test]
async fn a_task_that_has_ended_is_not_called_off() {
    let gateway = WsGateway::start().await;
    let (client, mut peer, reaching, submit) = asked(&gateway).await;
    peer.answer(&submit, task("submitted")).await;
    let wait = peer.expect("task/wait").await;
    peer.answer(&wait, completed(&json!(1))).await;
    assert_eq!(soon(reaching).await.unwrap().unwrap().result::<u32>().unwrap(), 1);
    let again = tokio::spawn(async move { client.get(TASK.parse().unwrap()).await });
    // The next thing that is said is the next call, and no word of calling off.
    let get = peer.expect("task/get").await;
    peer.answer(&get, completed(&json!(1))).await;
    assert!(soon(again).await.unwrap().is_ok());
}
