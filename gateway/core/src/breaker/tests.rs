//! Stories of one breaker, played second by second.

use proptest::prelude::*;
use reach_schemas::Effect;

use super::*;

/// Plays a story and compares what is said with what was expected. Words, each with its second:
/// `+`, `-`, `0`: a request is sent and at once passes, fails, or tells nothing. `take` sends one and leaves it out,
/// `late+` and `late-` answer the oldest that is out. `back` says that the agent is back. `?` says only the state.
struct Story {
    breaker: Breaker,
    policy: BreakerPolicy,
    rng: fastrand::Rng,
    out: VecDeque<Permit>,
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_ms(1_000_000) + Span::from_secs(secs)
}

impl Story {
    fn new(policy: BreakerPolicy) -> Self {
        Self { breaker: Breaker::default(), policy, rng: fastrand::Rng::with_seed(7), out: VecDeque::new() }
    }

    fn take(&mut self, now: Timestamp) -> Option<Permit> {
        self.breaker.take_permit(now + Span::from_secs(10), &self.policy, now, &mut self.rng).ok()
    }

    fn answer(&mut self, permit: Permit, outcome: Outcome, now: Timestamp) {
        self.breaker.record(permit, outcome, &self.policy, now, &mut self.rng);
    }

    fn act(&mut self, word: &str, now: Timestamp) -> bool {
        let outcome = if word.ends_with('+') {
            Outcome::Success
        } else if word.ends_with('-') {
            Outcome::Failure
        } else {
            Outcome::Neutral
        };
        if word == "?" {
            return true;
        }
        if word == "back" {
            return self.breaker.cut_short(&self.policy, now);
        }
        let permit = if word.starts_with("late") { self.out.pop_front() } else { self.take(now) };
        match permit {
            None => return false,
            Some(permit) if word == "take" => self.out.push_back(permit),
            Some(permit) => self.answer(permit, outcome, now),
        }
        true
    }
}

#[track_caller]
fn check(policy: BreakerPolicy, script: &[(u64, &str, &str)]) {
    let mut story = Story::new(policy);
    for (secs, words, expected) in script {
        for word in words.split_whitespace() {
            if !story.act(word, at(*secs)) {
                assert_eq!(*expected, "refused", "{word} at {secs}: {:?}", story.breaker);
            }
        }
        if *expected != "refused" {
            assert_eq!(story.breaker.state(at(*secs)).as_str(), *expected, "at {secs}: {:?}", story.breaker);
        }
    }
}

#[test]
fn three_failures_in_a_row_within_30_s_open_it_and_two_do_for_a_write() {
    check(BreakerPolicy::default(), &[(0, "- -", "closed"), (30, "-", "open"), (31, "+", "refused")]);
    check(BreakerPolicy::default(), &[(0, "- -", "closed"), (31, "-", "closed"), (32, "+", "closed")]);
    check(BreakerPolicy::for_effect(Effect::Write), &[(0, "-", "closed"), (1, "-", "open")]);
}

#[test]
fn a_success_between_ends_the_row_but_not_the_rate() {
    let no_row = BreakerPolicy { failures_in_row: 100, ..BreakerPolicy::default() };
    check(no_row, &[(0, "- - - -", "closed"), (1, "-", "open")]);
    check(no_row, &[(0, "+ + - - -", "closed"), (1, "-", "open")]);
    check(BreakerPolicy::default(), &[(0, "- - + - -", "open")]);
    check(BreakerPolicy::default(), &[(0, "+ - + - - + - + - + - +", "closed")]);
}

#[test]
fn old_failures_leave_the_window_of_the_last_ten() {
    let no_row = BreakerPolicy { failures_in_row: 100, ..BreakerPolicy::default() };
    check(no_row, &[(0, "- - - - + + + + + + + + + + - - - - - -", "closed"), (1, "-", "open")]);
}

#[test]
fn half_open_lets_one_trial_through_and_closes_when_it_passes() {
    check(
        BreakerPolicy::default(),
        &[
            (0, "- - -", "open"),
            (5, "?", "half_open"),
            (5, "take", "half_open"),
            (6, "+", "refused"),
            (7, "late+", "closed"),
            (7, "- -", "closed"),
        ],
    );
}

#[test]
fn a_failed_trial_opens_it_for_longer_and_then_several_must_pass() {
    check(
        BreakerPolicy::default(),
        &[(0, "- - -", "open"), (5, "-", "open"), (9, "?", "open"), (15, "+ + + +", "half_open"), (15, "+", "closed")],
    );
}

#[test]
fn an_agent_that_is_back_gets_its_trial_at_once_and_no_more_than_that() {
    check(BreakerPolicy::default(), &[(0, "back", "refused"), (0, "- - -", "open"), (1, "back", "half_open")]);
    check(
        BreakerPolicy::default(),
        &[(0, "- - -", "open"), (1, "back take", "half_open"), (1, "back", "refused"), (2, "late+", "closed")],
    );
    // It has tripped twice: the third time is not the first again.
    check(BreakerPolicy::default(), &[(0, "- - -", "open"), (1, "back -", "open"), (6, "?", "open")]);
}

#[test]
fn ten_passed_trials_close_it_after_any_outage() {
    let mut story = Story::new(BreakerPolicy::default());
    let mut now = at(0);
    for _ in 0..50 {
        now = now + Span::from_mins(6);
        story.act("-", now);
    }
    now = now + Span::from_mins(6);
    for _ in 0..10 {
        story.act("+", now);
    }
    assert_eq!(story.breaker.state(now), State::Closed);
}

#[test]
fn a_trial_of_which_nothing_is_heard_has_failed_and_its_late_answer_counts_for_nothing() {
    check(
        BreakerPolicy::default(),
        &[
            (0, "- - -", "open"),
            (5, "take", "half_open"),
            (14, "?", "half_open"),
            (15, "?", "open"),
            (15, "+", "refused"),
            (15, "late+", "open"),
            (25, "?", "half_open"),
            (25, "+", "half_open"),
        ],
    );
}

#[test]
fn a_neutral_outcome_gives_the_trial_back_and_does_not_count() {
    check(BreakerPolicy::default(), &[(0, "- - -", "open"), (5, "take", "half_open"), (6, "late0 +", "closed")]);
    check(BreakerPolicy::default(), &[(0, "- 0 - 0 0 -", "open")]);
    check(BreakerPolicy::default(), &[(0, "0 0 0 0 0 0 0 0", "closed")]);
}

#[test]
fn results_from_before_the_trip_do_not_confuse_the_trial() {
    check(
        BreakerPolicy::default(),
        &[(0, "take take take - - -", "open"), (5, "late+", "half_open"), (5, "take late- late-", "half_open")],
    );
    check(BreakerPolicy::default(), &[(0, "take take take - - -", "open"), (5, "+ late- late- late-", "closed")]);
}

#[test]
fn it_stays_open_from_half_of_5_s_doubled_up_to_5_min() {
    let policy = BreakerPolicy::default();
    let mut rng = fastrand::Rng::with_seed(1);
    for (trips, full) in [(1, 5_000), (2, 10_000), (4, 40_000), (7, 300_000), (u32::MAX, 300_000)] {
        for _ in 0..50 {
            let ms = open_for(&policy, trips, &mut rng).as_ms();
            assert!((full / 2..=full).contains(&ms), "{trips} trips: {ms} ms");
        }
    }
}

proptest! {
    #[test]
    fn never_are_two_trials_out_and_nothing_passes_while_it_is_open(
        seed: u64, steps in prop::collection::vec((0_u8..4, 0_u64..8), 1..200),
    ) {
        let mut story = Story::new(BreakerPolicy::default());
        story.rng = fastrand::Rng::with_seed(seed);
        let (mut now, mut trial_out) = (at(0), None);
        for (action, secs) in steps {
            now = now + Span::from_secs(secs);
            if trial_out.is_some_and(|until| now >= until) {
                trial_out = None;
            }
            let seen = story.breaker.admission(now);
            if action == 0 {
                let taken = story.take(now);
                prop_assert_eq!(taken.is_none(), matches!(seen, Admission::Refused { .. }));
                if taken.is_some_and(Permit::is_trial) {
                    prop_assert!(trial_out.is_none());
                    trial_out = Some(now + Span::from_secs(10));
                }
                story.out.extend(taken);
            } else if let Some(permit) = story.out.pop_front() {
                let outcome = [Outcome::Success, Outcome::Failure, Outcome::Neutral][usize::from(action) - 1];
                story.answer(permit, outcome, now);
                if permit.is_trial() {
                    trial_out = None;
                }
            }
        }
    }

    #[test]
    fn after_the_storm_a_healthy_agent_flows_again(seed: u64, storm in prop::collection::vec(0_u8..3, 0..100)) {
        let mut story = Story::new(BreakerPolicy::default());
        story.rng = fastrand::Rng::with_seed(seed);
        let mut now = at(0);
        for word in storm {
            now = now + Span::from_mins(1);
            story.act(["+", "-", "take"][usize::from(word)], now);
        }
        for _ in 0..20 {
            now = now + Span::from_mins(6);
            story.act("+", now);
        }
        prop_assert_eq!(story.breaker.state(now), State::Closed);
    }
}
