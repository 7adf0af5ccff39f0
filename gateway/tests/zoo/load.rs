//! Agents that are full, or say so.

use std::time::Duration;

use agent_reach_sdk::{ErrorCode, PhaseName};
use serde_json::json;

use crate::animal::{Animal, Habit};
use crate::world::{SLACK, World, card, went_on_to_the_twin};

fn full(retry_after: Option<&str>) -> Habit {
    let headers = retry_after.map(|secs| ("retry-after", secs.to_owned()));
    Habit::Says(503, headers.into_iter().collect(), "")
}

#[tokio::test]
async fn one_that_says_it_is_idle_and_is_full_costs_no_try_and_no_wait() {
    let (world, sick, twin) = World::with(full(None)).await;
    for does in ["look_up", "change"] {
        went_on_to_the_twin(&world.ask(does).await, ErrorCode::Overloaded, &sick, &twin, SLACK);
    }
    // Being full is no failure.
    assert!(world.agent("sick").await.breakers.is_empty());
}

#[tokio::test]
async fn one_that_says_it_is_full_and_works_is_asked_last_and_still_asked() {
    let mut world = World::new().await;
    let (liar, twin) = (Animal::born("liar", Habit::Works).await, Animal::born("twin", Habit::Works).await);
    let cards = [card(&liar.url(), "liar", 50), card(&twin.url(), "twin", 50)];
    world.register(&cards[0]).await;
    world.register(&cards[1]).await;
    world.beat(&cards[0], 8).await;
    world.beat(&cards[1], 0).await;
    for _ in 0..10 {
        world.ask("look_up").await.is_answered_by("twin", SLACK);
    }
    assert_eq!(liar.handed().len(), 0);
    world.client.call::<serde_json::Value>("agent/drain", &json!({ "agent_id": "twin@zoo" })).await.unwrap();
    world.ask("look_up").await.is_answered_by("liar", SLACK);
    world.ask("change").await.is_answered_by("liar", SLACK);
}

#[tokio::test]
async fn one_that_asks_to_be_left_alone_for_an_hour_keeps_nobody_waiting_and_is_left_alone() {
    let (world, sick, twin) = World::with(full(Some("3600"))).await;
    for does in ["look_up", "change"] {
        went_on_to_the_twin(&world.ask(does).await, ErrorCode::Overloaded, &sick, &twin, SLACK);
        for _ in 0..3 {
            world.ask(does).await.is_answered_by("twin", SLACK);
        }
    }
    // Once for each of what it offers.
    assert_eq!(sick.handed().len(), 2);
}

#[tokio::test]
async fn where_nobody_else_is_there_its_work_waits_until_the_deadline_or_the_fallback_stands_in() {
    let mut world = World::new().await;
    let sick = Animal::born("sick", full(Some("3600"))).await;
    let mut card = card(&sick.url(), "sick", 50);
    card["capabilities"][1]["fallback"] = json!([{ "static": { "by": "fallback" } }]);
    world.take_in(card).await;
    let deadline = Duration::from_secs(2);
    let (read, write) = tokio::join!(world.ask_within("look_up", deadline), world.ask_within("change", deadline));
    read.is_over(PhaseName::Expired, ErrorCode::Expired, deadline + SLACK);
    assert!(read.took >= deadline, "{:?}", read.took);
    write.is_answered_by("fallback", SLACK);
    assert_eq!(write.view.outcome.as_deref(), Some("REACH_FALLBACK"));
    assert_eq!((sick.times(read.view.task_id), sick.times(write.view.task_id)), (1, 1));
}

#[tokio::test]
async fn one_that_is_full_only_for_a_second_gets_its_work_after_it() {
    let mut world = World::new().await;
    let sick = Animal::born("sick", full(Some("1"))).await;
    world.take_in(card(&sick.url(), "sick", 50)).await;
    let task = world.client.task("change").timeout(Duration::from_secs(20)).submit().await.unwrap();
    while sick.times(task.id()) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    sick.turns(Habit::Works);
    let ended = world.client.wait_for_end(task.id(), SLACK * 2).await.unwrap();
    assert_eq!((ended.phase, sick.times(task.id())), (PhaseName::Completed, 2), "{ended:?}");
    let waited = ended.attempts[1].started_at.since(ended.attempts[0].ended_at.unwrap());
    assert!(waited >= agent_reach_sdk::Span::from_secs(1), "{waited}");
}

#[tokio::test]
async fn one_that_says_come_again_at_once_for_ever_is_not_asked_in_a_tight_circle() {
    let mut world = World::new().await;
    let sick = Animal::born("sick", full(Some("0"))).await;
    world.take_in(card(&sick.url(), "sick", 50)).await;
    let ended = world.ask_within("look_up", Duration::from_secs(3)).await;
    assert!(matches!(ended.view.phase, PhaseName::Expired | PhaseName::DeadLettered), "{:?}", ended.view);
    assert!(ended.took <= Duration::from_secs(3) + SLACK, "{:?}", ended.took);
    // At once, then after 100 ms or more, doubled each time; near the deadline its tries are used up.
    assert!((2..=10).contains(&sick.times(ended.view.task_id)), "{}", sick.times(ended.view.task_id));
}
