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
fn the_chain_that_holds_does_not_depend_on_who_was_tried_last() {
    check(
        "0s task tries=2
         0s assign a chain=static:1 => routed a#1 until 10s; deliver
         1s fail 1 retryable        => again within 200ms; #1 ended badly
         2s assign b                => routed b#2 until 12s; deliver
         3s fail 2 retryable        => completed 1; #2 ended badly",
    );
    check(
        "0s task tries=3
         0s assign a                => routed a#1 until 10s; deliver
         1s fail 1 retryable        => again within 200ms; #1 ended badly
         2s assign b chain=static:1 => routed b#2 until 12s; deliver
         3s fail 2 retryable        => again within 400ms; #2 ended badly
         4s assign c chain=static:2 => routed c#3 until 14s; deliver
         5s fail 3 retryable        => completed 1; #3 ended badly",
    );
}

#[test]
fn who_is_only_waited_for_lays_no_chain_down_and_pulled_work_keeps_its_first() {
    check(
        "0s task tries=2
         0s defer 1s out chain=static:0 => again in 1s
         1s assign a chain=static:1 => routed a#1 until 11s; deliver
         2s fail 1 retryable        => again within 200ms; #1 ended badly
         3s defer 4s out chain=static:2 => again in 1s
         4s assign b chain=static:3 => routed b#2 until 14s; deliver
         5s fail 2 retryable        => completed 1; #2 ended badly",
    );
    check(
        "0s task tries=2
         0s offer a chain=static:1  => offered to 1; offer a
         0s claim a                 => delivered a#1 until 10s
         1s fail 1 retryable        => again within 200ms; #1 ended badly
         2s offer b                 => offered to 1; offer b
         2s claim b                 => delivered b#2 until 12s
         3s fail 2 retryable        => completed 1; #2 ended badly",
    );
}

#[test]
fn a_task_that_is_sent_again_begins_at_the_chain_of_whoever_has_it_first_then() {
    check(
        "0s task tries=1
         0s assign a chain=agent:z,static:1 => routed a#1 until 10s; deliver
         1s fail 1 retryable => again at once; #1 ended badly
         1s assign z         => routed z#2 until 11s; deliver
         2s fail 2 for-good  => failed agent_failed; #2 ended answered
         3s redrive 1m       => again at once
         3s assign b chain=static:2 => routed b#3 until 13s; deliver
         4s fail 3 retryable => completed 2; #3 ended badly",
    );
}

#[test]
fn a_named_agent_is_asked_for_what_was_asked_first_and_not_for_the_step_before() {
    check(
        "0s task tries=1
         0s assign a chain=cap:spare,agent:z => routed a#1 until 10s; deliver
         1s fail 1 retryable  => again at once; #1 ended badly
         1s assign c of=spare => routed c#2 until 11s; deliver
         2s fail 2 retryable  => again at once; #2 ended badly
         2s asked             => z@n for work
         2s assign z          => routed z#3 until 12s; deliver
         3s record            => none
         3s fail 3 for-good   => failed agent_failed; #3 ended answered
         3s record            => REACH_FAILED z/work 3000ms tokens None error Some(\"it failed\") instead of Some(\"work\")",
    );
    check(
        "0s task tries=2 intent=latest_news
         0s assign a of=news chain=cap:spare,agent:z => routed a#1 until 10s; deliver
         1s fail 1 retryable      => again within 200ms; #1 ended badly
         2s assign b of=headlines => routed b#2 until 12s; deliver
         3s fail 2 retryable      => again at once; #2 ended badly
         3s asked                 => anyone for spare
         3s give-up               => again at once
         3s asked                 => z@n for news",
    );
}

#[test]
fn a_write_that_may_have_happened_is_not_sent_to_the_agent_that_stands_in_for_it() {
    check(
        "0s task tries=1
         0s assign a write chain=cap:spare,agent:z => routed a#1 until 10s; deliver
         1s fail 1 unknown    => again at once; #1 ended badly
         1s assign c of=spare => routed c#2 until 11s; deliver
         2s fail 2 retryable  => dead outcome_unknown; #2 ended badly",
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
