//! Agents that do not answer, or too late.

use std::time::Duration;

use agent_reach_sdk::{Error, ErrorCode, PhaseName};
use serde_json::{Value, json};

use crate::animal::Habit;
use crate::world::{ATTEMPT, Ended, PATIENCE, SLACK, UNKNOWN, World, was_handed_out_once, went_on_to_the_twin};

#[tokio::test]
async fn one_that_hangs_before_it_answers_is_left_when_its_attempt_is_over() {
    let (world, sick, twin) = World::with(Habit::Hangs).await;
    let (read, write) = tokio::join!(world.ask("look_up"), world.ask("change"));
    went_on_to_the_twin(&read, ErrorCode::Timeout, &sick, &twin, ATTEMPT + SLACK);
    was_handed_out_once(&write, UNKNOWN, &sick, &twin, ATTEMPT + SLACK);
}

#[tokio::test]
async fn one_that_accepts_and_forgets_is_left_when_its_attempt_is_over() {
    let (world, sick, twin) = World::with(Habit::Forgets).await;
    let (read, write) = tokio::join!(world.ask("look_up"), world.ask("change"));
    went_on_to_the_twin(&read, ErrorCode::Timeout, &sick, &twin, ATTEMPT + SLACK);
    was_handed_out_once(&write, UNKNOWN, &sick, &twin, ATTEMPT + SLACK);
    assert!(read.view.attempts[0].accepted_at.is_some(), "{:?}", read.view);
}

#[tokio::test]
async fn a_caller_that_waits_on_its_connection_is_answered_by_the_twin_as_well() {
    let (world, sick, twin) = World::with(Habit::Hangs).await;
    let began = std::time::Instant::now();
    let asked = world.client.task("look_up").without_key().timeout(Duration::from_secs(20));
    let answered = asked.reach().await.unwrap();
    let ended = Ended { view: answered.view().clone(), took: began.elapsed() };
    went_on_to_the_twin(&ended, ErrorCode::Timeout, &sick, &twin, ATTEMPT + SLACK);
}

#[tokio::test]
async fn one_that_is_slow_but_in_time_is_waited_for_and_nobody_else_is_asked() {
    let (world, sick, twin) = World::with(Habit::Dawdles(ATTEMPT / 4)).await;
    for does in ["look_up", "change"] {
        let ended = world.ask(does).await;
        ended.is_answered_by("sick", ATTEMPT + SLACK);
        assert_eq!((sick.times(ended.view.task_id), twin.handed().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_result_that_comes_after_its_time_changes_nothing() {
    let (world, sick, twin) = World::with(Habit::Forgets).await;
    let (read, write) = tokio::join!(world.ask("look_up"), world.ask("change"));
    went_on_to_the_twin(&read, ErrorCode::Timeout, &sick, &twin, ATTEMPT + SLACK);
    was_handed_out_once(&write, UNKNOWN, &sick, &twin, ATTEMPT + SLACK);
    for (ended, refused_as) in [(&read, ErrorCode::StaleToken), (&write, ErrorCode::WrongPhase)] {
        let id = ended.view.task_id;
        let late = sick.handed().iter().find(|delivery| delivery.task_id == id).unwrap().token;
        let refused = world.client.call::<Value>("task/complete", &done(id, late.0, "sick, late")).await.unwrap_err();
        assert_eq!(refused.code(), Some(refused_as), "{refused}");
        let after = world.client.get(id).await.unwrap();
        assert_eq!((after.phase, &after.result), (ended.view.phase, &ended.view.result));
    }
}

fn done(id: agent_reach_sdk::TaskId, token: u64, by: &str) -> Value {
    json!({ "task_id": id, "token": token, "result": { "by": by } })
}

#[tokio::test]
async fn a_result_after_the_deadline_of_the_task_is_refused() {
    let (world, sick, twin) = World::with(Habit::Forgets).await;
    twin.turns(Habit::Forgets);
    let ended = world.ask_within("look_up", Duration::from_millis(1_500)).await;
    ended.is_over(PhaseName::Expired, ErrorCode::Expired, Duration::from_millis(1_500) + SLACK);
    let last = ended.view.token.0;
    let refused =
        world.client.call::<Value>("task/complete", &done(ended.view.task_id, last, "late")).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::WrongPhase), "{refused}");
    assert!(sick.times(ended.view.task_id) == 1 && twin.times(ended.view.task_id) <= 1);
}

#[tokio::test]
async fn of_two_results_the_first_stands() {
    let (world, sick, _) = World::with(Habit::Forgets).await;
    for does in ["look_up", "change"] {
        let task = world.client.task(does).timeout(Duration::from_secs(20)).submit().await.unwrap();
        let id = task.id();
        while sick.times(id) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let said = async |by: &str| world.client.call::<Value>("task/complete", &done(id, 1, by)).await;
        said("first").await.unwrap();
        // Saying it again is no mistake, since the answer to the first may have been lost. Saying something else is
        // taken for the same.
        let again = said("second").await;
        assert!(matches!(again, Ok(_) | Err(Error::WrongPhase(_))), "{again:?}");
        let ended = Ended { view: world.client.wait_for_end(id, PATIENCE).await.unwrap(), took: Duration::ZERO };
        ended.is_answered_by("first", Duration::ZERO);
        assert_eq!((ended.tried(), sick.times(id)), (vec![("sick".to_owned(), None)], 1));
    }
}
