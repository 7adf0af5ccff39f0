//! Deadlines, deferring, fallback chains and dead letters.

use crate::player::check;

#[test]
fn what_waits_past_its_deadline_expires_and_says_why_it_waited() {
    check(
        "0s task deadline=10s
         0s defer 5s  => again in 5s
         4s due       => no: not due
         5s due       => no: so already
         5s defer 12s => again in 7s
         10s due      => expired expired
         10s view     => REACH_TIMEOUT: the deadline passed after 10s with no agent free",
    );
    check(
        "0s task deadline=10s
         0s assign a         => routed a#1 until 10s; deliver
         1s fail 1 retryable => again within 200ms; #1 ended badly
         2s defer 11s        => again in 9s
         10s due             => expired expired
         10s view            => REACH_TIMEOUT: the deadline passed after 10s; the last attempt failed: it failed",
    );
}

#[test]
fn an_attempt_that_runs_into_the_deadline_expires_with_it() {
    check(
        "0s task deadline=3s
         0s assign a chain=cap:spare => routed a#1 until 3s; deliver
         3s due                      => expired expired; stop a#1; #1 ended badly",
    );
    check(
        "0s task deadline=3s
         0s assign a chain=cap:spare,static:1 => routed a#1 until 3s; deliver
         3s due                               => completed 1; stop a#1; #1 ended badly",
    );
}

#[test]
fn a_chain_is_gone_down_step_by_step_to_a_fixed_answer() {
    check(
        "0s task tries=1
         0s assign a chain=cap:spare,agent:z,static:[] => routed a#1 until 10s; deliver
         1s fail 1 retryable   => again at once; #1 ended badly
         1s assign b of=spare chain=say:never => routed b#2 until 11s; deliver
         2s fail 2 not-started => again at once; #2 ended badly
         2s assign z of=spare  => routed z#3 until 12s; deliver
         3s fail 3 retryable   => completed []; #3 ended badly
         3s view               => REACH_FALLBACK instead of work",
    );
}

#[test]
fn the_chain_of_what_was_asked_first_holds_for_pulled_work_too() {
    check(
        "0s task tries=1
         0s offer a chain=cap:spare,static:2 => offered to 1; offer a
         0s claim a                          => delivered a#1 until 10s
         1s fail 1 retryable                 => again at once; #1 ended badly
         1s offer b of=spare chain=say:no,say:no => offered to 1; offer b
         1s claim b                          => delivered b#2 until 11s
         2s fail 2 retryable                 => completed 2; #2 ended badly",
    );
}

#[test]
fn words_for_the_callers_model_are_an_answer_as_well() {
    check(
        "0s task tries=1
         0s assign a chain=say:ask_again_tomorrow => routed a#1 until 10s; deliver
         1s fail 1 retryable => completed {\"instruction\":\"ask_again_tomorrow\"}; #1 ended badly
         1s view             => REACH_FALLBACK instead of work",
    );
}

#[test]
fn where_an_intent_was_asked_the_capability_that_was_tried_is_what_the_fallback_stands_in_for() {
    check(
        "0s task tries=1 intent=latest_news
         0s assign a of=news chain=static:1 => routed a#1 until 10s; deliver
         1s fail 1 retryable                => completed 1; #1 ended badly
         1s view                            => REACH_FALLBACK instead of news",
    );
}

#[test]
fn each_step_of_the_chain_has_all_its_tries() {
    check(
        "0s task tries=2
         0s assign a chain=cap:spare => routed a#1 until 10s; deliver
         1s fail 1 retryable         => again within 200ms; #1 ended badly
         2s assign b chain=cap:spare => routed b#2 until 12s; deliver
         3s fail 2 retryable         => again at once; #2 ended badly
         3s tried                    => nobody
         3s assign c of=spare        => routed c#3 until 13s; deliver
         4s fail 3 retryable         => again within 200ms; #3 ended badly
         4s tried                    => c",
    );
}

#[test]
fn where_nobody_will_ever_fit_the_chain_is_gone_down_or_the_task_given_up() {
    check(
        "0s task
         0s give-up => dead no_candidate
         0s view    => ROUTING_NO_CANDIDATE: nobody fits",
    );
    check(
        "0s task tries=1
         0s assign a chain=cap:spare,static:1 => routed a#1 until 10s; deliver
         1s fail 1 retryable                  => again at once; #1 ended badly
         1s give-up                           => completed 1
         1s view                              => REACH_FALLBACK instead of work",
    );
}

#[test]
fn a_parked_task_that_nobody_pulled_has_certainly_not_begun() {
    check(
        "0s task
         0s assign a queue write => routed a#1 until 1m; offer a
         5s fail 1 unknown       => again at once; #1 ended badly
         5s assign b queue write => routed b#2 until 1m; offer b
         6s claim b              => delivered b#2 until 16s
         7s fail 2 unknown       => dead outcome_unknown; #2 ended badly",
    );
}

#[test]
fn a_record_tells_how_it_ended_and_only_the_tokens_of_the_attempt_that_answered() {
    check(
        "0s task tries=2
         0s record            => none
         0s assign a chain=cap:other => routed a#1 until 10s; deliver
         1s fail 1 retryable  => again within 200ms; #1 ended badly
         2s assign b          => routed b#2 until 12s; deliver
         3s complete 2 ok tokens=42 => completed \"ok\"; #2 ended well
         3s record            => REACH_OK b/work 3000ms tokens Some(42) error None instead of None
         10s task tries=1
         10s assign a chain=cap:other => routed a#1 until 20s; deliver
         11s fail 1 retryable => again at once; #1 ended badly
         11s assign b of=other => routed b#2 until 21s; deliver
         12s fail 2 for-good  => failed agent_failed; #2 ended answered
         12s record           => REACH_FAILED b/other 2000ms tokens None error Some(\"it failed\") instead of Some(\"work\")",
    );
}
