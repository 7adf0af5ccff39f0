//! An agent whose probe is well and whose work hangs: what finds it, and how it comes back.

use std::time::Duration;

use agent_reach_sdk::{ErrorCode, PhaseName, TaskView};
use serde_json::json;

use crate::animal::{Animal, Habit, Health};
use crate::world::{ATTEMPT, PATIENCE, SLACK, World, card};

/// The soundness of an agent in the decision that a task like this would meet with now. None: it is not scored.
async fn soundness(world: &World, name: &str) -> Option<f64> {
    let decision = world.client.resolve(world.client.task("look_up").build().unwrap()).await.unwrap().decision;
    let candidate = decision.candidates.iter().find(|candidate| candidate.agent_id.name() == name)?;
    candidate.score.map(|score| score.soundness)
}

#[tokio::test]
async fn the_breaker_finds_it_when_attempts_run_out_of_time_and_lets_it_back_by_a_trial() {
    let mut world = World::new().await;
    let (sick, twin) = (Animal::born("sick", Habit::Hangs).await, Animal::born("twin", Habit::Works).await);
    world.take_in(card(&twin.url(), "twin", 10)).await;
    let mut at_sick = card(&sick.url(), "sick", 100);
    at_sick["probe"] = json!({ "interval": "300ms", "timeout": "1s" });
    at_sick["capabilities"][0]["breaker"] = json!({ "open_for": "2s", "open_for_max": "2s" });
    world.take_in(at_sick).await;
    // Three at once: three failures in a row.
    let asked = futures_util::future::join_all((0..3).map(|_| world.ask("look_up"))).await;
    for ended in &asked {
        ended.is_answered_by("twin", ATTEMPT + SLACK);
        assert_eq!(ended.tried()[0], ("sick".to_owned(), Some(ErrorCode::Timeout)));
    }
    let agent = world.agent("sick").await;
    let probe = agent.probe.clone().expect("it was probed meanwhile");
    assert_eq!((agent.breakers.len(), probe.why, probe.failed_in_row), (1, None, 0), "its probes are well");
    // Nothing more is sent there while the breaker is open, but for a trial.
    let before = sick.handed().len();
    assert_eq!(before, 3);
    sick.turns(Habit::Works);
    let probes = sick.probes();
    let back = world.until("sick", SLACK * 2, |agent| agent.breakers.values().any(|state| state == "half_open")).await;
    world.ask("look_up").await.is_answered_by("sick", SLACK);
    assert_eq!(sick.handed().len(), before + 1);
    assert!(world.agent("sick").await.breakers.is_empty(), "a healthy agent's breaker is closed");
    println!("half open after {back:?}, {} probes meanwhile, closed by the first trial", sick.probes() - probes);
}

#[tokio::test]
async fn work_that_stands_still_weighs_it_down_long_before_its_attempt_is_over() {
    let mut world = World::new().await;
    let (sick, twin) = (Animal::born("sick", Habit::Works).await, Animal::born("twin", Habit::Works).await);
    for animal in [&sick, &twin] {
        let mut card = card(&animal.url(), animal.name, 50);
        card["capabilities"][0]["timeout"] = json!("1m");
        world.take_in(card).await;
    }
    // It works until its P99 is known.
    let first = world.client.agent(&"sick@zoo".parse().unwrap()).await.unwrap();
    for _ in 0..40 {
        let task = world.client.task("look_up").to_agent("sick@zoo").submit().await.unwrap();
        assert_eq!(world.client.wait_for_end(task.id(), PATIENCE).await.unwrap().phase, PhaseName::Completed);
    }
    assert_eq!(soundness(&world, "sick").await, Some(1.0), "{first:?}");
    sick.turns(Habit::Hangs);
    let hanging = world.client.task("look_up").to_agent("sick@zoo").timeout(PATIENCE).submit().await.unwrap();
    let began = std::time::Instant::now();
    while soundness(&world, "sick").await.is_none_or(|left| left > 0.6) {
        assert!(began.elapsed() < SLACK * 2, "it is not weighed down after {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    println!("weighed down to 0.6 after {:?}; its attempt may take a minute", began.elapsed());
    let handed = sick.handed().len();
    for _ in 0..10 {
        world.ask("look_up").await.is_answered_by("twin", SLACK);
    }
    assert_eq!(sick.handed().len(), handed);
    let view: TaskView = hanging.cancel().await.unwrap();
    assert_eq!(view.phase, PhaseName::Cancelled);
}

#[tokio::test]
async fn failures_that_it_reports_of_itself_weigh_it_down_and_its_queue_counts() {
    let mut world = World::new().await;
    let (sick, twin) = (Animal::born("sick", Habit::Works).await, Animal::born("twin", Habit::Works).await);
    sick.feels(Health::Reports(json!({ "failure_rate_10m": 0.5, "queue_depth": 3, "last_task_ms": 12 })));
    for animal in [&sick, &twin] {
        let mut card = card(&animal.url(), animal.name, 50);
        card["probe"] = json!({ "interval": "300ms", "timeout": "2s" });
        world.take_in(card).await;
    }
    world.until("sick", SLACK, |agent| agent.probe.is_some()).await;
    let said = world.agent("sick").await.probe.unwrap().said.unwrap();
    assert_eq!((said.queue_depth, said.last_task_ms), (Some(3), Some(12)));
    assert_eq!(soundness(&world, "sick").await, Some(0.5));
    for _ in 0..10 {
        world.ask("look_up").await.is_answered_by("twin", SLACK);
    }
    assert_eq!(sick.handed().len(), 0);
    // It says that it is well again.
    sick.feels(Health::Reports(json!({})));
    world
        .until("sick", SLACK, |agent| agent.probe.as_ref().is_some_and(|it| it.said.unwrap().queue_depth.is_none()))
        .await;
    assert_eq!(soundness(&world, "sick").await, Some(1.0));
}
