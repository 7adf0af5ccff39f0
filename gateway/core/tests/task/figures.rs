//! What is counted of tasks and attempts, and what each rate means.

use reach_core::evaluation::{CAPABILITIES_MAX, Evaluation, PAIRS_MAX, REFUSALS_MAX};
use reach_core::task::ending::Ending;
use reach_core::task::{Birth, Effects, EndedAttempt, Task};
use reach_schemas::call::{AttemptFigures, Latency, TaskFigures};
use reach_schemas::{ErrorCode, FencingToken, Span, Submit, TaskId, Timestamp};

use crate::player::check_figures as check;

fn rate(rate: Option<f64>) -> String {
    rate.map_or("-".to_owned(), |rate| format!("{rate:.2}"))
}

fn half(latency: Option<Latency>) -> String {
    latency.map_or("-".to_owned(), |latency| format!("{}x{:.0}ms", latency.count, latency.p50_ms))
}

pub(crate) fn told(figures: &TaskFigures) -> String {
    let TaskFigures { asked, refused, cancelled, fallbacks, retries, .. } = figures;
    let mut told = format!(
        "asked {asked} success {} completion {} timely {} hit {} took {} target {}",
        rate(figures.success_rate),
        rate(figures.completion_rate),
        rate(figures.timely_rate),
        rate(figures.hit_rate),
        half(figures.whole),
        half(figures.target)
    );
    for (word, count) in
        [("refused", refused), ("cancelled", cancelled), ("fallbacks", fallbacks), ("retries", retries)]
    {
        if *count > 0 {
            told.push_str(&format!(" {word} {count}"));
        }
    }
    told
}

pub(crate) fn agent(evaluation: &Evaluation, name: &str, now: Timestamp) -> String {
    let all = evaluation.agent_figures(now);
    let (total, _) = all.iter().find(|(agent, _)| agent.name() == name).expect("an agent that had an attempt").1;
    let AttemptFigures { answered, failed, given_back, success_rate, target } = total;
    format!("{answered} {failed} {given_back} success {} target {}", rate(*success_rate), half(*target))
}

pub(crate) fn refusals(evaluation: &Evaluation, now: Timestamp) -> String {
    let counts = evaluation.recent_refusals(now);
    let counts: Vec<String> = counts.iter().map(|(code, count)| format!("{} {count}", code.name())).collect();
    format!("{}; {} kept", counts.join(", "), evaluation.latest_refusals().count())
}

#[test]
fn a_result_within_the_promise_is_a_success_completed_timely_and_a_hit() {
    check(
        "0s task
         0s figures           => asked 0 success - completion - timely - hit - took - target -
         0s assign a
         4s complete 1 ok
         4s figures           => asked 1 success 1.00 completion 1.00 timely 1.00 hit 1.00 took 1x3998ms target 1x3998ms
         4s agent a           => 1 0 0 success 1.00 target 1x3998ms
         4s task
         4s assign a timeout=3s
         8s complete 1 late
         8s figures           => asked 2 success 1.00 completion 1.00 timely 0.50 hit 1.00 took 2x3998ms target 2x3998ms",
    );
}

#[test]
fn an_agent_that_says_no_was_reached_and_one_that_is_lost_was_not() {
    check(
        "0s task
         0s assign a
         1s fail 1 for-good
         1s figures  => asked 1 success 1.00 completion 0.00 timely 0.00 hit 1.00 took 1x999ms target 1x999ms
         2s task tries=1
         2s assign a
         3s fail 1 unknown
         3s figures  => asked 2 success 0.50 completion 0.00 timely 0.00 hit 0.50 took 2x999ms target 2x999ms
         3s agent a  => 1 1 0 success 0.50 target 2x999ms
         4s task
         4s assign a
         5s fail 1 for-good code=invalid_result
         5s figures  => asked 3 success 0.33 completion 0.00 timely 0.00 hit 0.33 took 3x999ms target 3x999ms
         5s agent a  => 1 2 0 success 0.33 target 3x999ms",
    );
}

#[test]
fn the_second_choice_is_a_success_but_no_hit_and_its_attempt_a_retry() {
    check(
        "0s task
         0s assign a
         1s fail 1 retryable
         2s assign b
         2s figures    => asked 0 success - completion - timely - hit - took - target 1x999ms retries 1
         3s complete 2 ok
         3s figures    => asked 1 success 1.00 completion 1.00 timely 1.00 hit 0.00 took 1x2949ms target 2x999ms retries 1
         3s agent a    => 0 1 0 success 0.00 target 1x999ms
         3s agent b    => 1 0 0 success 1.00 target 1x999ms",
    );
}

#[test]
fn what_is_given_back_is_neither_a_failure_nor_a_retry() {
    check(
        "0s task
         0s assign a
         1s release 1
         1s assign b
         2s complete 2 ok
         2s figures    => asked 1 success 1.00 completion 1.00 timely 1.00 hit 0.00 took 1x1999ms target 1x999ms
         2s agent a    => 0 0 1 success - target -",
    );
}

#[test]
fn a_static_fallback_completes_and_is_no_success() {
    check(
        "0s task tries=1
         0s assign a chain=static:1
         1s fail 1 retryable
         1s figures    => asked 1 success 0.00 completion 1.00 timely 1.00 hit 0.00 took 1x999ms target 1x999ms fallbacks 1
         2s task tries=1
         2s assign a chain=cap:other
         3s fail 1 retryable
         3s assign b of=other
         4s complete 2 ok
         4s figures    => asked 2 success 0.50 completion 1.00 timely 1.00 hit 0.00 took 2x999ms target 3x999ms fallbacks 2",
    );
}

#[test]
fn a_task_that_was_called_off_counts_in_no_rate() {
    check(
        "0s task
         0s assign a
         1s cancel
         1s figures    => asked 0 success - completion - timely - hit - took - target - cancelled 1
         1s agent a    => 0 0 1 success - target -",
    );
}

#[test]
fn what_lay_there_to_be_pulled_is_no_time_of_the_agents_and_no_choice_of_the_router() {
    check(
        "0s task
         0s assign a queue
         8s claim a
         10s complete 1 ok
         10s figures   => asked 1 success 1.00 completion 1.00 timely 1.00 hit 1.00 took 1x10224ms target 1x1999ms
         10s task pulled
         10s offer a,b
         14s claim b
         15s complete 1 ok
         15s figures   => asked 2 success 1.00 completion 1.00 timely 1.00 hit 1.00 took 2x5112ms target 2x999ms",
    );
}

#[test]
fn a_task_that_is_sent_again_is_counted_again_and_timed_from_then() {
    check(
        "0s task tries=1
         0s assign a
         1s fail 1 retryable
         100s redrive 60s
         100s assign a
         102s complete 2 ok
         102s figures  => asked 2 success 0.50 completion 0.50 timely 0.50 hit 0.50 took 2x999ms target 2x999ms",
    );
}

#[test]
fn refusals_count_unless_they_are_the_callers_own_fault() {
    check(
        "0s task
         0s assign a
         1s complete 1 ok
         1s refuse invalid_params
         1s refuse no_candidate
         1s refuse overloaded
         1s refuse overloaded
         1s figures    => asked 4 success 0.25 completion 0.25 timely 0.25 hit 1.00 took 1x999ms target 1x999ms refused 3
         1s refusals   => invalid_params 1, no_candidate 1, overloaded 2; 4 kept
         899s refusals => invalid_params 1, no_candidate 1, overloaded 2; 4 kept
         910s refusals => ; 4 kept
         910s figures  => asked 0 success - completion - timely - hit - took - target -",
    );
}

/// A task of one capability that one agent has ended, whatever it was.
fn ended(agent: usize, capability: usize, at: Timestamp) -> (Task, Effects) {
    let submit = Submit { capability: Some(format!("c{capability}").parse().unwrap()), ..Submit::default() };
    let id = TaskId::from_parts(1, 1);
    let birth = Birth { id, scope: String::new(), has_scoped_key: true, submit, created_at: at };
    let ended = EndedAttempt {
        agent_id: format!("a{agent}@n").parse().unwrap(),
        capability: format!("c{capability}").parse().unwrap(),
        token: FencingToken(1),
        ending: Ending::Succeeded,
        is_timeout: false,
        retry_after: None,
        took: Span::from_ms(7),
    };
    (Task::new(birth, Span::from_secs(1)), Effects { ended: Some(ended), ..Effects::default() })
}

#[test]
fn however_many_agents_and_capabilities_there_are_the_labels_are_bounded_and_nothing_is_lost() {
    let (mut evaluation, now) = (Evaluation::default(), Timestamp::from_ms(1_000_000));
    for number in 0..10_000 {
        let (task, effects) = ended(number % 5000, number % 700, now);
        evaluation.stepped(&task, &effects, now);
        evaluation.refused(&Submit::default(), ErrorCode::Overloaded, now);
    }
    let pairs: Vec<_> = evaluation.pairs(None).collect();
    assert_eq!(pairs.len(), PAIRS_MAX + 1);
    assert_eq!(pairs.iter().map(|(_, attempts)| attempts.total.answered).sum::<u64>(), 10_000);
    let capabilities: Vec<_> = evaluation.capabilities(None).collect();
    assert_eq!(capabilities.len(), CAPABILITIES_MAX + 1);
    assert_eq!(capabilities.iter().map(|(_, tasks)| tasks.target.total().count()).sum::<u64>(), 10_000);
    // Piece by piece it is the same, wherever the pieces part.
    for most in [1, 7, PAIRS_MAX, PAIRS_MAX + 1] {
        let (mut pieces, mut after) = (Vec::new(), None);
        loop {
            pieces.extend(evaluation.pairs(after).take(most));
            assert!(pieces.len() <= pairs.len(), "in pieces of {most} some are there twice");
            after = pieces.last().and_then(|(pair, _)| *pair);
            if after.is_none() {
                break;
            }
        }
        let whole = pairs.iter().map(|(pair, _)| *pair);
        assert!(pieces.iter().map(|(pair, _)| *pair).eq(whole), "in pieces of {most}");
    }
    assert_eq!(evaluation.latest_refusals().count(), REFUSALS_MAX);
    assert_eq!(evaluation.whole().total.refused, 10_000);
}
