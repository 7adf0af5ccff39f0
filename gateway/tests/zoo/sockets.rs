//! Connected agents that go wrong.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_reach_sdk::{ErrorCode, TaskId};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::animal::{Animal, Habit};
use crate::world::{ATTEMPT, Ended, SLACK, UNKNOWN, World, card};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How a connected agent answers `task/deliver`. A probe it always answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    /// Not at all.
    Mute,
    /// It says that it has it, and that was that.
    Forgets,
    /// It hangs up, and calls again.
    HangsUp,
    /// It says that it has it, hangs up, calls again, and does not report.
    Flaps,
    /// With words that are no JSON, and an answer that was asked by nobody.
    Babbles,
    /// It says that it has it, and completes it twice.
    Repeats,
}

/// What a connected agent was handed.
type Handed = Arc<Mutex<Vec<TaskId>>>;

fn times(handed: &Handed, task: TaskId) -> usize {
    handed.lock().unwrap().iter().filter(|id| **id == task).count()
}

async fn say(socket: &mut Socket, message: Value) {
    // A socket that is closed is the other side's answer.
    let _ = socket.send(Message::text(message.to_string())).await;
}

/// Connects, and registers over the connection.
async fn call_in(url: &str, card: &Value) -> Socket {
    let (mut socket, _) = connect_async(url).await.unwrap();
    say(&mut socket, json!({ "jsonrpc": "2.0", "id": 1, "method": "agent/register", "params": card })).await;
    let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
    assert!(answer.contains("heartbeat_due_at"), "{answer}");
    socket
}

/// Answers what comes until the connection is over.
async fn serve(mut socket: Socket, manner: Manner, handed: Handed) {
    while let Some(Ok(message)) = socket.next().await {
        let Ok(request) = serde_json::from_str::<Value>(message.to_text().unwrap_or_default()) else { continue };
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": {} });
        match request["method"].as_str() {
            Some("agent/probe") => say(&mut socket, answer).await,
            Some("task/deliver") => {
                let params = &request["params"];
                handed.lock().unwrap().push(serde_json::from_value(params["task_id"].clone()).unwrap());
                match manner {
                    Manner::Mute => {}
                    Manner::Forgets => say(&mut socket, answer).await,
                    Manner::HangsUp => return,
                    Manner::Flaps => {
                        say(&mut socket, answer).await;
                        return;
                    }
                    Manner::Babbles => {
                        let _ = socket.send(Message::text("what was that?")).await;
                        say(&mut socket, json!({ "jsonrpc": "2.0", "id": 987_654, "result": { "by": "nobody" } }))
                            .await;
                    }
                    Manner::Repeats => {
                        say(&mut socket, answer).await;
                        for by in ["first", "second"] {
                            let done = json!({
                                "task_id": params["task_id"], "token": params["token"], "result": { "by": by },
                            });
                            let method = "task/complete";
                            say(&mut socket, json!({ "jsonrpc": "2.0", "id": by, "method": method, "params": done }))
                                .await;
                        }
                    }
                }
            }
            Some(_) | None => {}
        }
    }
}

/// A connected agent that is asked first, and a healthy twin over HTTP.
async fn world(manner: Manner) -> (World, Handed, Animal) {
    let mut world = World::new().await;
    let twin = Animal::born("twin", Habit::Works).await;
    world.take_in(card(&twin.url(), "twin", 10)).await;
    let mut sick = card("", "sick", 100);
    sick["endpoints"] = json!([{ "protocol": "websocket" }]);
    let url = world.socket_url();
    let socket = call_in(&url, &sick).await;
    world.beat(&sick, 0).await;
    let handed = Handed::default();
    let noted = handed.clone();
    tokio::spawn(async move {
        let mut socket = socket;
        loop {
            serve(socket, manner, noted.clone()).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            socket = call_in(&url, &sick).await;
        }
    });
    (world, handed, twin)
}

/// The read is answered by the twin; the write is over with its outcome unknown. Each was handed out once.
async fn check(manner: Manner, code: ErrorCode, within: Duration) {
    let (world, handed, twin) = world(manner).await;
    let read = world.ask("look_up").await;
    read.is_answered_by("twin", within);
    assert_eq!(read.tried(), [("sick".to_owned(), Some(code)), ("twin".to_owned(), None)]);
    world.until("sick", SLACK, |agent| agent.connected).await;
    let write = world.ask("change").await;
    write.is_over(UNKNOWN.0, UNKNOWN.1, within);
    let counts = [&read, &write].map(|ended| (times(&handed, ended.view.task_id), twin.times(ended.view.task_id)));
    assert_eq!(counts, [(1, 1), (1, 0)]);
}

#[tokio::test]
async fn one_that_never_says_that_it_has_the_work_is_left_when_its_attempt_is_over() {
    check(Manner::Mute, ErrorCode::Timeout, ATTEMPT + SLACK).await;
}

#[tokio::test]
async fn one_that_says_that_it_has_the_work_and_forgets_it_is_left_when_its_attempt_is_over() {
    check(Manner::Forgets, ErrorCode::Timeout, ATTEMPT + SLACK).await;
}

#[tokio::test]
async fn one_that_hangs_up_when_it_is_handed_work_is_lost_at_once_though_it_calls_again() {
    check(Manner::HangsUp, ErrorCode::AgentLost, SLACK).await;
}

#[tokio::test]
async fn one_that_loses_its_connection_with_work_in_hand_may_report_until_its_attempt_is_over() {
    check(Manner::Flaps, ErrorCode::Timeout, ATTEMPT + SLACK).await;
}

#[tokio::test]
async fn one_that_babbles_is_not_understood_and_left_when_its_attempt_is_over() {
    check(Manner::Babbles, ErrorCode::Timeout, ATTEMPT + SLACK).await;
}

#[tokio::test]
async fn of_two_results_over_one_connection_the_first_stands() {
    let (world, handed, twin) = world(Manner::Repeats).await;
    for does in ["look_up", "change"] {
        let ended: Ended = world.ask(does).await;
        ended.is_answered_by("first", SLACK);
        assert_eq!((times(&handed, ended.view.task_id), twin.handed().len()), (1, 0));
    }
}
