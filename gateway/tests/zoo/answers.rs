//! Agents that answer wrongly.

use agent_reach_sdk::{ErrorCode, PhaseName};

use crate::animal::Habit;
use crate::world::{SLACK, UNKNOWN, World, was_handed_out_once, went_on_to_the_twin};

fn says(status: u16, text: &'static str) -> Habit {
    Habit::Says(status, Vec::new(), text)
}

fn moved(status: u16) -> Habit {
    Habit::Says(status, vec![("location", "/elsewhere".to_owned())], "")
}

/// The read is answered by the twin; the write is over like this and was handed out once.
async fn check(habit: Habit, code: ErrorCode, end: (PhaseName, ErrorCode)) {
    let (world, sick, twin) = World::with(habit).await;
    went_on_to_the_twin(&world.ask("look_up").await, code, &sick, &twin, SLACK);
    was_handed_out_once(&world.ask("change").await, end, &sick, &twin, SLACK);
}

#[tokio::test]
async fn a_result_that_is_no_json_is_asked_of_the_twin_unless_it_was_a_write_which_is_done() {
    let end = (PhaseName::Failed, ErrorCode::InvalidResult);
    check(says(200, "all went well"), ErrorCode::InvalidResult, end).await;
}

#[tokio::test]
async fn an_error_that_is_dressed_up_as_a_result_does_not_pass_the_output_schema() {
    let end = (PhaseName::Failed, ErrorCode::InvalidResult);
    check(says(200, r#"{"error": {"message": "quota exceeded"}}"#), ErrorCode::InvalidResult, end).await;
}

#[tokio::test]
async fn one_that_breaks_down_leaves_a_write_unknown() {
    check(says(500, r#"{"error": "a bug"}"#), ErrorCode::AgentFailed, UNKNOWN).await;
}

#[tokio::test]
async fn one_that_sends_us_to_fetch_the_answer_elsewhere_leaves_a_write_unknown() {
    check(moved(303), ErrorCode::AgentFailed, UNKNOWN).await;
}

#[tokio::test]
async fn one_that_has_moved_has_not_begun_and_the_twin_does_the_write_too() {
    let (world, sick, twin) = World::with(moved(307)).await;
    for does in ["look_up", "change"] {
        let ended = world.ask(does).await;
        went_on_to_the_twin(&ended, ErrorCode::AgentFailed, &sick, &twin, SLACK);
        let why = &ended.view.attempts[0].failure.as_ref().unwrap().message;
        assert!(why.contains("/elsewhere"), "{why}");
    }
    // Nothing was followed, and nothing but the work was asked for.
    assert_eq!(sick.handed().len(), 2);
}

#[tokio::test]
async fn an_answer_that_it_cannot_be_done_is_the_callers_and_nobody_else_is_asked() {
    let (world, sick, twin) = World::with(says(422, r#"{"detail": "no such city"}"#)).await;
    for does in ["look_up", "change"] {
        let ended = world.ask(does).await;
        was_handed_out_once(&ended, (PhaseName::Failed, ErrorCode::AgentFailed), &sick, &twin, SLACK);
        assert!(ended.view.failure.as_ref().unwrap().message.contains("no such city"));
    }
}

#[tokio::test]
async fn one_that_fails_every_other_time_is_asked_again_and_its_breaker_stays_closed() {
    let (world, sick, _) = World::with(Habit::Flaps).await;
    world
        .client
        .call::<serde_json::Value>("agent/drain", &serde_json::json!({ "agent_id": "twin@zoo" }))
        .await
        .unwrap();
    for round in 1..=6 {
        let ended = world.ask("look_up").await;
        ended.is_answered_by("sick", SLACK);
        let sick_twice = [("sick".to_owned(), Some(ErrorCode::AgentFailed)), ("sick".to_owned(), None)];
        assert_eq!((ended.tried().as_slice(), sick.handed().len()), (sick_twice.as_slice(), 2 * round));
    }
    assert!(world.agent("sick").await.breakers.is_empty());
    let write = world.ask("change").await;
    write.is_over(UNKNOWN.0, UNKNOWN.1, SLACK);
    assert_eq!(sick.times(write.view.task_id), 1);
}
