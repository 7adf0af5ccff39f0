//! A write whose outcome is unknown is never sent again, whichever way its task goes on.

use crate::player::check;

#[test]
fn it_goes_to_the_dead_letters_and_says_so() {
    check(
        "0s task
         0s assign a write => routed a#1 until 10s; deliver
         10s due           => dead outcome_unknown; stop a#1; #1 ended badly
         10s view          => REACH_UNKNOWN: a@n did not answer in time; the write work may or may not have happened, and was not sent again",
    );
    check(
        "0s task deadline=5s
         0s assign a write => routed a#1 until 5s; deliver
         5s due            => dead outcome_unknown; stop a#1; #1 ended badly",
    );
}

#[test]
fn it_is_not_sent_elsewhere_even_where_others_are_to_be_tried() {
    check(
        "0s task
         0s assign a write lateral=yes => routed a#1 until 10s; deliver
         1s fail 1 unknown             => dead outcome_unknown; #1 ended badly",
    );
}

#[test]
fn a_write_that_did_not_begin_is_sent_again_and_one_that_failed_after_it_had_is_not() {
    check(
        "0s task
         0s assign a write       => routed a#1 until 10s; deliver
         0s fail 1 not-started   => again at once; #1 ended badly
         0s assign b write       => routed b#2 until 10s; deliver
         1s fail 2 retryable     => dead agent_failed; #2 ended badly",
    );
    check(
        "0s task
         0s assign a write chain=say:ask => routed a#1 until 10s; deliver
         1s fail 1 retryable     => completed {\"instruction\":\"ask\"}; #1 ended badly",
    );
    check(
        "0s task
         0s assign a idem        => routed a#1 until 10s; deliver
         1s fail 1 retryable     => again within 200ms; #1 ended badly",
    );
}

#[test]
fn a_write_that_never_left_the_gateway_is_no_outcome_that_is_unknown_and_nothing_against_its_agent() {
    check(
        "0s task deadline=5s
         0s assign a write    => routed a#1 until 5s; deliver
         5s fail 1 never-sent => expired expired; #1 ended neutral",
    );
    check(
        "0s task
         0s assign a write    => routed a#1 until 10s; deliver
         1s fail 1 never-sent => again at once; #1 ended neutral
         1s assign b write    => routed b#2 until 11s; deliver
         2s fail 2 unknown code=timeout => dead outcome_unknown; stop b#2; #2 ended badly",
    );
}

#[test]
fn an_idempotent_write_may_be_sent_again() {
    check(
        "0s task
         0s assign a idem => routed a#1 until 10s; deliver
         10s due          => again within 200ms; stop a#1; #1 ended badly",
    );
}

#[test]
fn it_goes_down_its_chain_but_not_to_another_agent_for_the_same_write() {
    check(
        "0s task
         0s assign a write chain=agent:b,cap:work,cap:ask_a_person => routed a#1 until 10s; deliver
         10s due                       => again at once; stop a#1; #1 ended badly
         10s assign p of=ask_a_person  => routed p#2 until 20s; deliver
         11s complete 2 asked          => completed \"asked\"; #2 ended well
         11s view                      => REACH_FALLBACK instead of work",
    );
    check(
        "0s task
         0s assign a write chain=agent:b => routed a#1 until 10s; deliver
         10s due                         => dead outcome_unknown; stop a#1; #1 ended badly",
    );
}

#[test]
fn a_chain_that_leads_nowhere_does_not_hide_that_it_may_have_happened() {
    check(
        "0s task tries=1
         0s assign a write chain=cap:spare => routed a#1 until 10s; deliver
         1s fail 1 unknown                 => again at once; #1 ended badly
         1s give-up                        => dead outcome_unknown
         1s view                           => REACH_UNKNOWN instead of work: nobody fits; the write work may or may not have happened, and was not sent again",
    );
    check(
        "0s task tries=1
         0s assign a write chain=cap:spare => routed a#1 until 10s; deliver
         1s fail 1 unknown                 => again at once; #1 ended badly
         1s assign b of=spare              => routed b#2 until 11s; deliver
         2s fail 2 retryable               => dead outcome_unknown; #2 ended badly",
    );
    check(
        "0s task tries=1 deadline=20s
         0s assign a write chain=cap:spare => routed a#1 until 10s; deliver
         1s fail 1 unknown                 => again at once; #1 ended badly
         1s defer 30s                      => again in 29s
         20s due                           => dead outcome_unknown",
    );
}

#[test]
fn a_redrive_is_a_persons_word_that_it_may_be_sent_again() {
    check(
        "0s task tries=1
         0s assign a write  => routed a#1 until 10s; deliver
         1s fail 1 unknown  => dead outcome_unknown; #1 ended badly
         2s redrive 60s     => again at once
         2s assign b write  => routed b#2 until 12s; deliver
         3s fail 2 retryable => dead agent_failed; #2 ended badly
         3s view             => REACH_FAILED: it failed",
    );
}
