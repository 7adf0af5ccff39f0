//! Callers that leave hardly any time, and agents that nobody can connect to. A write that was provably never sent is no
//! outcome that is unknown: it says that nothing was sent, or goes to another; and it is held against no agent.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use agent_reach_sdk::{ErrorCode, PhaseName};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::animal::{Animal, Habit};
use crate::world::{ATTEMPT, PATIENCE, SLACK, World, card};

/// How much time they leave, and how many there are: no more than the agent has seats, and more than the two that open its
/// breaker if they fail.
const HURRY: Duration = Duration::from_millis(20);
const WRITES: usize = 6;

#[tokio::test]
async fn a_write_whose_time_was_over_before_it_was_stored_was_never_sent_and_says_so() {
    let mut world = World::new().await;
    let agent = Animal::born("agent", Habit::Works).await;
    world.take_in(card(&agent.url(), "agent", 50)).await;
    let blocked = world.blocked_disk();
    let ask = || {
        let client = world.client.clone();
        tokio::spawn(async move { client.task("change").timeout(HURRY).submit().await })
    };
    let asked: Vec<_> = (0..WRITES).map(|_| ask()).collect();
    // All of them have their deadlines, and none is stored.
    let began = Instant::now();
    while world.routed("change").await < WRITES {
        assert!(began.elapsed() < PATIENCE, "they were not all routed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(HURRY * 2).await;
    drop(blocked);
    for asked in asked {
        let task = asked.await.unwrap().unwrap();
        let view = world.client.wait_for_end(task.id(), PATIENCE).await.unwrap();
        let failure = view.failure.as_ref().unwrap();
        assert_eq!((view.phase, failure.code), (PhaseName::Expired, ErrorCode::Expired), "{view:?}");
        assert!(failure.message.contains("nothing was sent"), "{}", failure.message);
        assert_eq!(view.attempts[0].failure.as_ref().unwrap().code, ErrorCode::Timeout);
        assert_eq!(agent.times(task.id()), 0);
    }
    // Nobody has anything against the agent.
    world.ask("change").await.is_answered_by("agent", ATTEMPT + SLACK);
}

/// A port whose queue of connections is full: whoever connects waits. It is so as long as what is given lives.
async fn full_port() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let (address, mut queued, mut in_vain) = (listener.local_addr().unwrap(), Vec::new(), 0);
    while in_vain < 3 {
        match tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
            Ok(stream) => queued.push(stream.unwrap()),
            Err(_) => in_vain += 1,
        }
    }
    (address, listener, queued)
}

#[tokio::test]
async fn a_write_to_one_that_lets_nobody_connect_was_never_sent_and_goes_to_another() {
    let (address, _listener, _queued) = full_port().await;
    let mut world = World::new().await;
    let twin = Animal::born("twin", Habit::Works).await;
    world.take_in(card(&format!("http://{address}/work"), "full", 100)).await;
    world.take_in(card(&twin.url(), "twin", 10)).await;
    let ended = world.ask("change").await;
    ended.is_answered_by("twin", ATTEMPT + SLACK);
    assert_eq!(ended.tried(), [("full".to_owned(), Some(ErrorCode::Timeout)), ("twin".to_owned(), None)]);
    let failure = ended.view.attempts[0].failure.as_ref().unwrap();
    assert!(failure.message.contains("nothing was sent"), "{}", failure.message);
}
