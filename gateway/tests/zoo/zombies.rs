//! Zombies: the heartbeat is well, work and probe hang. How soon they are out of routing, and how soon back.

use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::call::AgentState;
use serde_json::json;

use crate::animal::{Animal, Habit, Health};
use crate::world::{SLACK, World, card};

/// What is promised, for probes each 3 s, however the moment falls. To the second it is held in the core; here the
/// machine may be slow.
const OUT_WITHIN: Duration = Duration::from_secs(10);
/// And back within about so long.
const BACK_WITHIN: Duration = Duration::from_secs(3);

/// Registers an agent that is probed each 3 s.
async fn probed(world: &mut World, name: &'static str, timeout: &str) -> Animal {
    let animal = Animal::born(name, Habit::Works).await;
    let mut card = card(&animal.url(), name, 100);
    card["probe"] = json!({ "interval": "3s", "timeout": timeout });
    world.take_in(card).await;
    animal
}

#[tokio::test]
async fn a_zombie_is_out_of_routing_within_10_s_and_back_within_one_interval_after_it_is_well() {
    let mut world = World::new().await;
    let twin = Animal::born("twin", Habit::Works).await;
    world.take_in(card(&twin.url(), "twin", 10)).await;
    let zombies = [probed(&mut world, "one", "1s").await, probed(&mut world, "two", "2s").await];
    for zombie in &zombies {
        zombie.turns(Habit::Hangs);
        zombie.feels(Health::Hangs);
    }
    let world = &world;
    let lives = zombies.iter().map(|zombie| async move {
        let is_out = |agent: &agent_reach_sdk::schemas::call::AgentView| agent.state == AgentState::Ejected;
        let out = world.until(zombie.name, OUT_WITHIN + SLACK, is_out).await;
        let last = world.agent(zombie.name).await.probe.unwrap();
        assert!(last.failed_in_row >= 3 && last.why.is_some(), "{last:?}");
        zombie.turns(Habit::Works);
        zombie.feels(Health::Reports(json!({})));
        let back = world.until(zombie.name, BACK_WITHIN + SLACK, |agent| agent.state == AgentState::Alive).await;
        (zombie.name, out, back)
    });
    let began = Instant::now();
    for (name, out, back) in futures_util::future::join_all(lives).await {
        println!("{name}: out after {out:?}, back {back:?} after it was well");
    }
    println!("{:?} in all", began.elapsed());
    // Back means back: it gets work, and begins slowly.
    for zombie in &zombies {
        let to = world.client.task("look_up").to_agent(format!("{}@zoo", zombie.name));
        let decision = world.client.resolve(to.build().unwrap()).await.unwrap().decision;
        let score = decision.candidates[0].score.unwrap();
        assert!(score.slow_start <= 0.1, "{score:?}");
    }
    let ended = world.client.task("look_up").to_agent("one@zoo").reach().await.unwrap();
    assert_eq!(ended.agent().map(|agent| agent.name()), Some("one"));
}

#[tokio::test]
async fn while_a_zombie_is_out_nothing_is_sent_there() {
    let mut world = World::new().await;
    let twin = Animal::born("twin", Habit::Works).await;
    world.take_in(card(&twin.url(), "twin", 10)).await;
    let zombie = Animal::born("one", Habit::Works).await;
    let mut at_zombie = card(&zombie.url(), "one", 100);
    at_zombie["probe"] = json!({ "interval": "600ms", "timeout": "300ms" });
    zombie.turns(Habit::Hangs);
    zombie.feels(Health::Hangs);
    world.take_in(at_zombie).await;
    let out = world.until("one", SLACK, |agent| agent.state == AgentState::Ejected).await;
    let probes = zombie.probes();
    for _ in 0..10 {
        world.ask("look_up").await.is_answered_by("twin", SLACK);
    }
    println!("out after {out:?} and {probes} probes");
    assert_eq!(zombie.handed().len(), 0);
}
