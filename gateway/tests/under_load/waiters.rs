//! Ten thousand wait at once: they cost little memory and no CPU, and are all woken by the one commit.

use std::time::{Duration, Instant};

use agent_reach_sdk::{Agent, AgentHandle, Client, Context, Effect, HandlerError, PhaseName, Task, capability};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

use crate::figures::usage;
use crate::victim::{Victim, lively, patient};

const CONNECTIONS: usize = 100;
const EACH: usize = 100;
const IDLE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent that holds its work until it is let go.
async fn holder(url: &str) -> (AgentHandle, watch::Sender<bool>) {
    let (go, gone) = watch::channel(false);
    let work = move |_: Task, _: Context| {
        let mut gone = gone.clone();
        async move {
            gone.wait_for(|gone| *gone).await.map_err(|_| HandlerError::failed("the test is over"))?;
            Ok::<_, HandlerError>("done")
        }
    };
    let offer = agent_reach_sdk::Capability {
        effect: Effect::Read,
        timeout: Some(agent_reach_sdk::Span::from_mins(2)),
        ..capability("hold").unwrap()
    };
    let connection = Client::builder().url(url).retry(patient());
    let agent = Agent::builder(lively("holder@many")).connection(connection).capability(offer, work);
    let agent = agent.start().await.unwrap();
    (agent, go)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_waiters_are_woken_at_once_and_poll_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let (agent, go) = holder(&victim.url()).await;
    let client = victim.client().await;
    let task = client.task("hold").timeout(Duration::from_secs(120)).submit().await.unwrap();

    let mut sockets = Vec::new();
    for _ in 0..CONNECTIONS {
        let url = format!("ws://127.0.0.1:{}/rpc/ws", victim.port);
        sockets.push(tokio_tungstenite::connect_async(url).await.unwrap().0);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (_, before_kib) = usage(victim.pid());
    let wait = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "task/wait", "params": {"task_id": task.id(), "wait": "60s"}});
    for socket in &mut sockets {
        for id in 0..EACH {
            socket.send(Message::text(wait(id).to_string())).await.unwrap();
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (idle_from, waiting_kib) = usage(victim.pid());
    tokio::time::sleep(IDLE).await;
    let (idle_to, _) = usage(victim.pid());

    let readers: Vec<_> = sockets
        .into_iter()
        .map(|mut socket| {
            tokio::spawn(async move {
                let mut answered = 0;
                while answered < EACH {
                    let Some(Ok(message)) = socket.next().await else { panic!("a connection was lost") };
                    let Message::Text(text) = message else { continue };
                    let answer: Value = serde_json::from_str(text.as_str()).unwrap();
                    assert_eq!(answer["result"]["phase"], "completed", "{answer}");
                    answered += 1;
                }
                Instant::now()
            })
        })
        .collect();
    let released = Instant::now();
    go.send(true).unwrap();
    let mut last = released;
    for reader in readers {
        last = last.max(tokio::time::timeout(PATIENCE, reader).await.expect("a waiter was not woken").unwrap());
    }
    assert_eq!(client.wait_for_end(task.id(), PATIENCE).await.unwrap().phase, PhaseName::Completed);

    let count = CONNECTIONS * EACH;
    let each_bytes = (waiting_kib.saturating_sub(before_kib)) * 1024 / count as u64;
    let idle_cpu = idle_to - idle_from;
    println!(
        "{count} waiters on {CONNECTIONS} connections: {each_bytes} bytes of the gateway's memory each; {idle_cpu} ms of CPU in \
         {} s of waiting; the last was woken {:.0} ms after the agent was let go",
        IDLE.as_secs(),
        (last - released).as_secs_f64() * 1000.0
    );
    // Ten thousand that looked once a second would need 30,000 reads in this time.
    assert!(idle_cpu < 300, "{idle_cpu} ms of CPU were used while nothing happened");
    assert!(each_bytes < 16 * 1024, "{each_bytes} bytes a waiter");
    agent.drain(Duration::from_millis(100)).await;
}
