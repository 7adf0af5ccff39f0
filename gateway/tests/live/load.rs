//! Many reloads while much is asked: nothing is lost, nothing is refused, nothing is done twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use agent_reach_sdk::{Agent, Capability, Client, Context, Effect, HandlerError, Task, capability};
use serde_json::{Value, json};

use crate::victim::{Ledger, from_env, lively, patient};
use crate::world::World;

/// How many callers ask without a pause.
const CALLERS: usize = 8;

/// One of two configurations, which differ in limits, thresholds, what cards inherit, and agents.
fn configuration(turn: u64) -> String {
    let (limit, rows) = (5_000 + turn % 2, 3 + turn % 2);
    let agent = |name: &str, what: &str| {
        format!(
            "[[agents]]\nagent_id = \"{name}@yard\"\nendpoints = [{{ protocol = \"process\", address = \"cat\" }}]\n\
             capabilities = [{{ name = \"echo\", effect = \"read\", description = \"{what} {turn}\" }}]\n"
        )
    };
    let guest = if turn.is_multiple_of(2) { agent("guest", "Comes and goes") } else { String::new() };
    format!(
        "open_max = {limit}\n[tiers]\nnormal = {limit}\n[waiting]\nnormal = {limit}\n\
         [defaults.breaker.write]\nfailures_in_row = {rows}\n[health]\nfailed_in_row = {rows}\n{}{guest}",
        agent("echo", "Says it again")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_reloads_under_load_lose_and_refuse_nothing() {
    let reloads = from_env("REACH_RELOADS", 200);
    let world = World::start(&configuration(0)).await;
    let ledger = Ledger::at(world.folder.path().join("ledger"));
    let own = ledger.clone();
    let note = move |task: Task, _: Context| {
        own.add(task.id());
        async { Ok::<_, HandlerError>("noted") }
    };
    let offer = Capability { effect: Effect::Write, ..capability("note").unwrap() };
    let connection = Client::builder().url(world.victim.url()).retry(patient());
    let agent = Agent::builder(lively("noter@yard")).connection(connection).capability(offer, note);
    let _noter = agent.start().await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (client, over) = (world.client.clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let mut done = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    // One in eight goes to the agents of the file, whose work is a process each.
                    let capability = if caller == 0 { "echo" } else { "note" };
                    let params = json!({ "capability": capability, "params": { "n": done }, "deadline": "60s" });
                    let view = client.call::<Value>("reach", &params).await.unwrap();
                    assert_eq!(view["phase"], "completed", "{view}");
                    assert_eq!(view["attempts"].as_array().unwrap().len(), 1, "{view}");
                    done += 1;
                }
                done
            })
        })
        .collect();
    let began = Instant::now();
    for turn in 1..=reloads {
        let done = world.reload(&configuration(turn)).await.unwrap();
        assert!(done.changes.len() == 5 && done.agents.changed.contains(&"echo@yard".to_owned()), "{done:?}");
    }
    let took = began.elapsed();
    over.store(true, Ordering::Relaxed);
    let mut counts = Vec::new();
    for caller in callers {
        counts.push(caller.await.unwrap());
    }
    let noted: u64 = counts[1..].iter().sum();
    let ledger = ledger.counts();
    assert_eq!((ledger.len() as u64, ledger.values().copied().max()), (noted, Some(1)));
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    println!(
        "{reloads} reloads in {took:?}, beside {} tasks of {CALLERS} callers, none refused, none twice",
        counts.iter().sum::<u64>()
    );
}
