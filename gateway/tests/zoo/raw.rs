//! Agents that are no web service at all: sockets that break or are never closed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_reach_sdk::ErrorCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::animal::{Animal, Habit};
use crate::world::{ATTEMPT, SLACK, UNKNOWN, World, card};

/// What a socket saw.
#[derive(Clone, Default)]
struct Seen {
    /// The first lines of the requests that came whole.
    requests: Arc<Mutex<Vec<String>>>,
    /// How many connections are open, and how many were at most.
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Seen {
    fn deliveries(&self) -> usize {
        self.requests.lock().unwrap().iter().filter(|line| line.starts_with("POST ")).count()
    }
}

/// Reads one request with its body, and gives its first line. None: the other side closed.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return Some(head.lines().next()?.to_owned());
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A port that reads each request, writes `answer`, and closes; or, without an answer, never writes and never closes.
async fn port(answer: Option<&'static str>) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/work", listener.local_addr().unwrap());
    let seen = Seen::default();
    let noted = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let noted = noted.clone();
            let now_open = noted.open.fetch_add(1, Ordering::SeqCst) + 1;
            noted.most.fetch_max(now_open, Ordering::SeqCst);
            tokio::spawn(async move {
                while let Some(line) = request(&mut stream).await {
                    noted.requests.lock().unwrap().push(line);
                    if let Some(answer) = answer {
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        break;
                    }
                }
                noted.open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (url, seen)
}

/// A world with a raw agent that is asked first, and its healthy twin.
async fn beside_a_twin(url: &str) -> (World, Animal) {
    let mut world = World::new().await;
    let twin = Animal::born("twin", Habit::Works).await;
    world.take_in(card(&twin.url(), "twin", 10)).await;
    let raw = card(url, "sick", 100);
    world.register(&raw).await;
    world.beat(&raw, 0).await;
    (world, twin)
}

/// One that answers so, whatever it is asked, and closes, is lost: a read goes to its twin, and a write to nobody.
async fn is_lost(answer: &'static str) {
    let (url, seen) = port(Some(answer)).await;
    let (world, twin) = beside_a_twin(&url).await;
    let read = world.ask("look_up").await;
    read.is_answered_by("twin", SLACK);
    assert_eq!(read.tried(), [("sick".to_owned(), Some(ErrorCode::AgentLost)), ("twin".to_owned(), None)]);
    let write = world.ask("change").await;
    write.is_over(UNKNOWN.0, UNKNOWN.1, SLACK);
    assert_eq!((seen.deliveries(), twin.times(write.view.task_id)), (2, 0));
}

#[tokio::test]
async fn one_that_dies_in_the_midst_of_its_answer_is_lost_and_half_a_result_is_none() {
    // What there is of it is JSON by itself.
    let half = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"by\":\"sick\"}";
    is_lost(half).await;
}

#[tokio::test]
async fn one_that_closes_without_a_word_is_lost() {
    is_lost("").await;
}

#[tokio::test]
async fn one_that_never_closes_a_connection_does_not_make_the_gateway_leak_them() {
    let (url, seen) = port(None).await;
    let (world, twin) = beside_a_twin(&url).await;
    let asked: Vec<_> = (0..24).map(|_| world.ask("look_up")).collect();
    for ended in futures_util::future::join_all(asked).await {
        ended.is_answered_by("twin", ATTEMPT + SLACK * 2);
    }
    assert_eq!(twin.handed().len(), 24);
    // Eight seats, each with its delivery and at worst the word to stop it.
    let most = seen.most.load(Ordering::SeqCst);
    println!("{most} connections at most, {} deliveries", seen.deliveries());
    assert!((1..=16).contains(&most), "{most}");
    // The agent never closes: that all are closed is the gateway's doing.
    let began = Instant::now();
    while seen.open.load(Ordering::SeqCst) > 0 {
        assert!(began.elapsed() < SLACK * 2, "{} connections are left open", seen.open.load(Ordering::SeqCst));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
