//! Dead letters sent again by filter, at a rate, over a real gateway process and an agent that counts what reaches it.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "redrive/desk.rs"]
mod desk;
mod victim;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::call::Redriven;
use agent_reach_sdk::{PhaseName, TaskId};
use desk::Desk;
use serde_json::{Value, json};

/// What the operator asks for in these tests, beside the filter.
fn at_rate(rate: u32) -> Value {
    json!({ "all": true, "rate": rate })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_never_gets_more_in_a_second_than_the_rate_says_over_one_call_and_the_next() {
    const RATE: u32 = 20;
    let desk = Desk::open().await;
    let letters = desk.give_up_on(50, json!({})).await;
    desk.agent.heals();
    // The operator calls twice: the second part goes behind the first.
    let first: Redriven = desk.redrive(json!({ "all": true, "rate": RATE, "limit": 30 })).await;
    let second: Redriven = desk.redrive(at_rate(RATE)).await;
    assert_eq!((first.redriven.len(), first.matched, first.remaining), (30, 50, 20));
    assert_eq!((second.redriven.len(), second.matched, second.remaining), (20, 20, 0));
    let (middle, last) = (first.spread_until.unwrap(), second.spread_until.unwrap());
    assert_eq!(last.since(middle).as_ms(), 20 * 1000 / u64::from(RATE), "{middle} {last}");
    desk.all_complete(&letters).await;
    let arrivals = desk.agent.arrivals();
    assert_eq!(arrivals.len(), 50);
    let took = *arrivals.last().unwrap() - arrivals[0];
    assert!(took >= Duration::from_millis(2_300), "50 at 20 a second take 2.45 s, and took {took:?}");
    let most = most_within_a_second(&arrivals);
    println!("50 at {RATE} a second arrived within {took:?}, at most {most} within a second");
    // Each is begun by the clock; on its way it may be overtaken by a few, on a machine that is busy.
    assert!(most <= RATE as usize + 4, "{most} within a second");
}

fn most_within_a_second(arrivals: &[Instant]) -> usize {
    let within = |from: &Instant| {
        let since = arrivals.iter().filter(|at| **at >= *from);
        since.take_while(|at| **at - *from < Duration::from_secs(1)).count()
    };
    arrivals.iter().map(within).max().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_says_how_many_and_changes_nothing() {
    let desk = Desk::open().await;
    let letters = desk.give_up_on(120, json!({})).await;
    desk.agent.heals();
    let before = desk.dead_letters().await;
    let told = desk.redrive(json!({ "all": true, "dry_run": true })).await;
    assert_eq!((told.matched, told.remaining, told.redriven.len(), told.sample.len()), (120, 120, 0, 10));
    assert_eq!(
        (told.rate, told.stopped),
        (Some(10), None),
        "more than a hundred are spread unless it is said otherwise"
    );
    let spread = told.spread_until.unwrap().since(told.as_of).as_ms();
    assert!((11_800..=12_000).contains(&spread), "{spread} ms");
    assert_eq!(desk.dead_letters().await, before);
    assert_eq!((before.len(), desk.agent.arrivals().len()), (letters.len(), 0));
    let few = desk.redrive(json!({ "task_ids": [letters[0]], "dry_run": true })).await;
    assert_eq!((few.matched, few.rate, few.spread_until, few.sample.len()), (1, None, None, 1));
    assert_eq!(desk.dead_letters().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_killed_in_the_midst_of_it_sends_each_again_once_and_keeps_to_the_rate() {
    const ALL: usize = 400;
    let mut desk = Desk::open().await;
    let letters = desk.give_up_on(ALL, json!({})).await;
    desk.agent.heals();
    let client = desk.client.clone();
    let rate = json!({ "all": true, "rate": 100 });
    let call = tokio::spawn(async move { client.call::<Redriven>("dead_letter/redrive", &rate).await });
    desk.until_some_are_open().await;
    desk.victim.kill_and_restart().await;
    let cut_off = call.await.unwrap();
    let left = desk.dead_letters().await.len();
    println!(
        "killed with {left} of {ALL} not sent yet; the call: {:?}",
        cut_off.as_ref().map(|told| told.redriven.len())
    );
    assert!(
        cut_off.is_err() && (1..ALL).contains(&left),
        "it was to be killed in the midst: {left} of {ALL} were left"
    );
    // The operator asks for the same once more.
    let rest = desk.redrive(at_rate(100)).await;
    assert_eq!((rest.redriven.len(), rest.matched, rest.remaining), (left, left as u64, 0));
    let spread = rest.spread_until.unwrap().since(rest.as_of);
    assert!(spread.as_ms() >= (left as u64 - 1) * 10, "{left} are spread over {spread}");
    // What was with the agent when the gateway died had one try, and nobody heard how it went.
    let cut_short = desk.given_up_again(&letters).await;
    assert!(cut_short.len() <= 10, "{cut_short:?}");
    if !cut_short.is_empty() {
        let again = desk.redrive(json!({ "code": "timeout" })).await;
        assert_eq!(again.matched, cut_short.len() as u64);
    }
    desk.all_complete(&letters).await;
    let handed = desk.agent.handed();
    let distinct: BTreeSet<TaskId> = handed.iter().copied().collect();
    assert_eq!(distinct.len(), ALL, "each reached the agent");
    // Nothing was handed to it twice but what was with it when the gateway died.
    assert!(handed.len() <= ALL + cut_short.len(), "{} deliveries of {ALL} tasks", handed.len());
    let most = most_within_a_second(&desk.agent.arrivals());
    println!("{ALL} at 100 a second, at most {most} within a second");
    assert!(most <= 130, "{most} within a second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_who_send_the_same_at_once_send_each_once_and_neither_is_told_of_an_error() {
    let desk = Desk::open().await;
    let letters = desk.give_up_on(60, json!({})).await;
    desk.agent.heals();
    let named = desk.redrive(json!({ "task_ids": letters }));
    let (one, two, three) = tokio::join!(named, desk.redrive(json!({ "all": true })), desk.redrive(at_rate(1000)));
    let sent: usize = [&one, &two, &three].iter().map(|told| told.redriven.len()).sum();
    assert_eq!(sent, 60, "{one:?} {two:?} {three:?}");
    assert!(two.refused.is_empty() && three.refused.is_empty(), "{two:?} {three:?}");
    desk.all_complete(&letters).await;
    assert_eq!(desk.agent.handed().len(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_field_of_the_filter_fits_its_own() {
    let desk = Desk::open().await;
    let plain = desk.give_up_on(1, json!({})).await[0];
    let asked = desk.give_up_on(1, json!({ "from_agent": "editor@other" })).await[0];
    let neighbour = desk.give_up_on(1, json!({ "from_agent": "clerk@other" })).await[0];
    let between = desk.ended_at(neighbour).await;
    let late = desk.give_up_on(1, json!({ "capability": "crawl" })).await[0];
    let end = desk.ended_at(late).await;
    let reason = |code: &str| json!({ "code": code });
    for (filter, fits) in [
        (json!({ "agent_id": "clerk@desk" }), vec![late, neighbour, asked, plain]),
        (json!({ "agent_id": "nobody@desk" }), vec![]),
        (json!({ "capability": "crawl" }), vec![late]),
        (json!({ "capability": "work" }), vec![neighbour, asked, plain]),
        (reason("agent_failed"), vec![neighbour, asked, plain]),
        (reason("timeout"), vec![late]),
        (reason("overloaded"), vec![]),
        (json!({ "from_agent": "editor@other" }), vec![asked]),
        (json!({ "from_namespace": "other" }), vec![neighbour, asked]),
        (json!({ "from_namespace": "desk" }), vec![]),
        (json!({ "ended_before": between }), vec![asked, plain]),
        (json!({ "ended_after": between }), vec![late, neighbour]),
        (json!({ "ended_after": between, "ended_before": end }), vec![neighbour]),
        (json!({ "from_namespace": "other", "ended_before": between }), vec![asked]),
        (json!({ "all": true }), vec![late, neighbour, asked, plain]),
    ] {
        let mut dry = filter.clone();
        dry["dry_run"] = json!(true);
        let told = desk.redrive(dry).await;
        let found: Vec<TaskId> = told.sample.iter().map(|task| task.task_id).collect();
        assert_eq!((found, told.matched), (fits.clone(), fits.len() as u64), "{filter}");
    }
    // What a dry run names is what is sent.
    let told = desk.redrive(json!({ "from_namespace": "other", "ended_before": between })).await;
    assert_eq!(told.redriven, [asked]);
    assert_ne!(desk.get(asked).await.phase, PhaseName::DeadLettered);
    assert_eq!(desk.get(neighbour).await.phase, PhaseName::DeadLettered);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sends_all_again_from_the_command_line_and_sees_how_far_it_is() {
    let desk = Desk::open().await;
    let letters = desk.give_up_on(620, json!({})).await;
    desk.agent.heals();
    let dry = desk.reachctl(&["dead-letters", "redrive", "--agent", "clerk@desk", "--dry-run"]).await;
    assert!(dry.0.contains("620 dead letters would be on the way again, 10 a second"), "{dry:?}");
    let redrive = ["dead-letters", "redrive", "--agent", "clerk@desk", "--code", "agent_failed", "--rate", "1000"];
    let (said, progress) = desk.reachctl(&redrive).await;
    assert!(said.starts_with("620 dead letters on the way again, 1000 a second"), "{said}");
    assert!(progress.starts_with("500 of 620 sent again, the last of them goes at "), "{progress}");
    assert_eq!(progress.lines().count(), 1, "{progress}");
    desk.all_complete(&letters).await;
    assert_eq!(desk.reachctl(&redrive).await.0, "no dead letters to send\n");
}
