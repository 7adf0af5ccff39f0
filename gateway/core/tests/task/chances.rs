//! Tries, waits between them, and whom they go to.

use crate::player::check;

#[test]
fn a_first_retry_of_what_did_not_begin_is_sent_at_once_and_later_ones_wait_longer() {
    check(
        "0s task tries=4
         0s assign a             => routed a#1 until 10s; deliver
         0s fail 1 not-started   => again at once; #1 ended badly
         0s assign b             => routed b#2 until 10s; deliver
         0s fail 2 not-started   => again within 400ms; #2 ended badly
         1s assign c             => routed c#3 until 11s; deliver
         1s fail 3 not-started   => again within 800ms; #3 ended badly
         2s assign a             => routed a#4 until 12s; deliver
         2s fail 4 not-started   => dead unreachable; #4 ended badly",
    );
}

#[test]
fn what_began_is_tried_again_only_after_a_wait() {
    check(
        "0s task
         0s assign a         => routed a#1 until 10s; deliver
         1s fail 1 retryable => again within 200ms; #1 ended badly
         2s assign b         => routed b#2 until 12s; deliver
         3s fail 2 unknown   => again within 400ms; #2 ended badly
         4s assign c         => routed c#3 until 14s; deliver
         5s fail 3 retryable => dead agent_failed; #3 ended badly
         5s view             => REACH_FAILED: it failed",
    );
}

#[test]
fn for_how_long_one_agent_wants_to_be_left_alone_is_no_wait_of_the_task() {
    check(
        "0s task deadline=60s
         0s assign a                        => routed a#1 until 10s; deliver
         1s fail 1 not-started after=7s     => again at once; #1 ended badly
         1s assign b                        => routed b#2 until 11s; deliver
         2s fail 2 retryable after=2m       => again within 400ms; #2 ended badly",
    );
}

#[test]
fn a_full_agent_is_not_held_to_have_failed() {
    check(
        "0s task
         0s assign a                               => routed a#1 until 10s; deliver
         0s fail 1 not-started code=overloaded     => again at once; #1 ended neutral",
    );
}

#[test]
fn full_agents_use_up_no_try_and_send_nothing_down_the_chain_while_there_is_time() {
    check(
        "0s task tries=1 deadline=30s
         0s assign a lateral=no chain=static:1               => routed a#1 until 10s; deliver
         0s fail 1 not-started code=overloaded               => again at once; #1 ended neutral
         0s tried                                            => a
         0s assign b lateral=no chain=static:1               => routed b#2 until 10s; deliver
         0s fail 2 not-started code=overloaded               => again within 200ms; #2 ended neutral
         1s assign b lateral=no chain=static:1               => routed b#3 until 11s; deliver
         1s fail 3 not-started code=overloaded after=1m      => again within 400ms; #3 ended neutral
         29900ms assign a lateral=no chain=static:1          => routed a#4 until 30s; deliver
         29900ms fail 4 not-started code=overloaded          => completed 1; #4 ended neutral",
    );
}

#[test]
fn an_answer_that_it_cannot_be_done_is_the_end_and_no_fault_of_the_agent() {
    check(
        "0s task
         0s assign a chain=static:1 => routed a#1 until 10s; deliver
         1s fail 1 for-good         => failed agent_failed; #1 ended answered",
    );
    check(
        "0s task
         0s assign a                              => routed a#1 until 10s; deliver
         1s fail 1 for-good code=invalid_result   => failed invalid_result; #1 ended badly",
    );
}

#[test]
fn where_others_are_not_tried_the_chain_comes_first() {
    check(
        "0s task
         0s assign a lateral=no chain=cap:spare => routed a#1 until 10s; deliver
         1s fail 1 retryable                    => again at once; #1 ended badly
         1s assign b of=spare                   => routed b#2 until 11s; deliver
         2s fail 2 retryable                    => again within 200ms; #2 ended badly",
    );
    check(
        "0s task
         0s assign a lateral=no => routed a#1 until 10s; deliver
         1s fail 1 retryable    => dead agent_failed; #1 ended badly",
    );
}

#[test]
fn all_that_had_it_count_as_tried() {
    check(
        "0s task
         0s assign a         => routed a#1 until 10s; deliver
         0s tried            => nobody
         1s fail 1 retryable => again within 200ms; #1 ended badly
         1s tried            => a
         2s assign b         => routed b#2 until 12s; deliver
         3s release 2        => again at once; #2 ended neutral
         3s tried            => a b
         3s assign c         => routed c#3 until 13s; deliver
         4s fail 3 retryable => again within 400ms; #3 ended badly
         4s tried            => a b c",
    );
}

#[test]
fn giving_back_uses_up_no_try_and_going_round_in_circles_slows_down() {
    check(
        "0s task tries=1
         0s assign a  => routed a#1 until 10s; deliver
         0s release 1 => again at once; #1 ended neutral
         0s assign b  => routed b#2 until 10s; deliver
         0s release 2 => again within 200ms; #2 ended neutral
         1s assign a  => routed a#3 until 11s; deliver
         1s release 3 => again within 400ms; #3 ended neutral
         2s assign b  => routed b#4 until 12s; deliver
         2s fail 4 retryable => dead agent_failed; #4 ended badly",
    );
}

#[test]
fn poison_goes_to_the_dead_letters_at_once_and_is_no_fault_of_the_agent() {
    check(
        "0s task tries=3
         0s assign a chain=static:1 => routed a#1 until 10s; deliver
         1s poison 1                => dead agent_failed; #1 ended answered",
    );
}

#[test]
fn a_connected_agent_has_five_seconds_to_say_that_it_has_it_and_any_other_the_whole_attempt() {
    check("0s task\n0s assign a ws      => routed a#1 until 5s; deliver");
    check("0s task\n0s assign a ws timeout=2s => routed a#1 until 2s; deliver");
    check("0s task\n0s assign a process => routed a#1 until 10s; deliver");
}

#[test]
fn nothing_is_due_before_its_time_nor_before_it_is_the_dispatchers() {
    check(
        "0s task
         0s assign a => routed a#1 until 10s; deliver
         9999ms due  => no: not due
         10s due     => again within 200ms; stop a#1; #1 ended badly
         10s due     => no: not due
         11s due     => no: so already",
    );
}

#[test]
fn each_way_of_giving_no_sign_is_told_apart() {
    check(
        "0s task tries=1
         0s assign a ws => routed a#1 until 5s; deliver
         5s due         => dead timeout; stop a#1; #1 ended badly
         5s view        => REACH_TIMEOUT: a@n did not answer in time",
    );
    check(
        "0s task tries=1
         0s offer a          => offered to 1; offer a
         0s claim a lease=2s => delivered a#1 until 2s
         2s due              => dead agent_lost; stop a#1; #1 ended badly
         2s view             => REACH_LOST: a@n did not renew its lease on the task",
    );
}
