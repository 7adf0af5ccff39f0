//! Quick work keeps its pace while slow work fills every seat that it may have, at the very same agents.

use std::time::Duration;

use agent_reach_sdk::{
    Agent, AgentCard, AgentHandle, Client, Context, Effect, HandlerError, Task, TaskHandle, Tier, capability,
};

use crate::figures::{Times, side_by_side};
use crate::victim::{Victim, lively, patient};

const QUICK: Duration = Duration::from_millis(40);
const SLOW: Duration = Duration::from_millis(1500);
/// How many callers of quick work there are: fewer than the seats that are kept for it.
const CALLERS: usize = 3;
/// How long each half of a round is measured.
const MEASURED: Duration = Duration::from_secs(3);
const ROUNDS: usize = 3;

async fn agent(name: &str, url: &str) -> AgentHandle {
    let does = |work: Duration| {
        move |_: Task, _: Context| async move {
            tokio::time::sleep(work).await;
            Ok::<_, HandlerError>(())
        }
    };
    let offer =
        |name: &str, tier| agent_reach_sdk::Capability { effect: Effect::Read, tier, ..capability(name).unwrap() };
    let card = AgentCard { max_concurrency: 8, ..lively(name) };
    let connection = Client::builder().url(url).retry(patient());
    let agent = Agent::builder(card).connection(connection).http("127.0.0.1:0".parse().unwrap());
    let agent = agent.capability(offer("quick", Tier::Fast), does(QUICK));
    agent.capability(offer("slow", Tier::Long), does(SLOW)).start().await.unwrap()
}

async fn measure(client: &Client) -> Times {
    let client = client.clone();
    let call = move |_, _| {
        let client = client.clone();
        async move { drop(client.task("quick").reach().await.unwrap()) }
    };
    side_by_side(CALLERS, (MEASURED, Duration::ZERO), call).await
}

/// More slow work than there are seats, and more again for as long as it is measured.
async fn saturate(client: &Client) -> Vec<TaskHandle> {
    let mut tasks = Vec::new();
    for _ in 0..64 {
        tasks.push(client.task("slow").submit().await.unwrap());
    }
    tasks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quick_work_keeps_its_p99_while_slow_work_takes_all_that_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let agents = [agent("a@tiers", &victim.url()).await, agent("b@tiers", &victim.url()).await];
    let client = victim.client().await;
    measure(&client).await;
    let (mut best_alone, mut best_beside) = (f64::INFINITY, f64::INFINITY);
    for round in 1..=ROUNDS {
        let alone = measure(&client).await;
        let slow = saturate(&client).await;
        let beside = measure(&client).await;
        // A quarter of each agent's 8 seats was kept for quick work; slow work had all the others.
        for task in &slow {
            let _ = task.cancel().await;
        }
        tokio::time::sleep(SLOW).await;
        println!(
            "round {round}: quick alone p50 {:.1} p99 {:.1} ms ({} calls); beside 64 slow ones p50 {:.1} p99 {:.1} ms ({} \
             calls)",
            alone.quantile_ms(0.5),
            alone.quantile_ms(0.99),
            alone.0.len(),
            beside.quantile_ms(0.5),
            beside.quantile_ms(0.99),
            beside.0.len(),
        );
        best_alone = best_alone.min(alone.quantile_ms(0.99));
        best_beside = best_beside.min(beside.quantile_ms(0.99));
    }
    println!(
        "the best rounds: p99 {best_alone:.1} ms alone, {best_beside:.1} ms beside; ratio {:.2}",
        best_beside / best_alone
    );
    // The machine is shared: the best round of each tells what the gateway does, the others what else went on.
    assert!(best_beside < best_alone * 1.5, "quick work was slowed down from {best_alone:.1} to {best_beside:.1} ms");
    for agent in agents {
        agent.drain(Duration::from_millis(100)).await;
    }
}
