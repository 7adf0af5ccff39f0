//! The last step of a chain: a person.

use crate::player::check;

#[test]
fn once_every_agent_has_failed_a_person_takes_it_and_answers_it() {
    check(
        "0s task tries=1
         0s assign a chain=human:desk people=2h => routed a#1 until 10s; deliver
         1s fail 1 retryable                    => waits for a person; #1 ended badly
         1s people                              => desk until 2h 1s
         1s take alice                          => with a person #2 until 30m 1s
         1s people                              => desk until 2h 1s; alice has it
         5m answer 2 yes                        => completed \"yes\"
         5m view                                => REACH_FALLBACK instead of work
         5m people                              => desk until 2h 1s; alice answered
         5m answer 2 yes                        => no: so already
         5m answer 2 no                         => no: it is completed",
    );
}

#[test]
fn of_two_who_take_it_one_has_it_and_may_take_it_again_for_longer() {
    check(
        "0s task tries=1
         0s assign a chain=human:desk     => routed a#1 until 10s; deliver
         1s fail 1 retryable              => waits for a person; #1 ended badly
         2s take alice lease=10s          => with a person #2 until 12s
         2s take bob                      => no: claimed by another
         9s take alice lease=10s          => with a person #2 until 19s
         19s due                          => waits for a person
         19s answer 2 late                => no: nobody has it
         20s take bob                     => with a person #3 until 30m 20s
         20s answer 2 late                => no: stale, the newest is 3
         21s people                       => desk until 1h 1s; alice forgotten; bob has it
         21s return 3                     => waits for a person
         22s take alice                   => with a person #4 until 30m 22s
         23s cancel                       => cancelled
         23s people                       => desk until 1h 1s; alice forgotten; bob returned; alice task_ended",
    );
}

#[test]
fn a_lease_that_ran_out_keeps_nobody_from_taking_it() {
    check(
        "0s task tries=1
         0s assign a chain=human:desk => routed a#1 until 10s; deliver
         1s fail 1 retryable          => waits for a person; #1 ended badly
         2s take alice lease=10s      => with a person #2 until 12s
         12s take bob lease=10s       => with a person #3 until 22s
         12s people                   => desk until 1h 1s; alice forgotten; bob has it",
    );
}

#[test]
fn a_refusal_ends_it_and_says_who_and_why() {
    check(
        "0s task tries=1
         0s assign a chain=human:desk => routed a#1 until 10s; deliver
         1s fail 1 retryable          => waits for a person; #1 ended badly
         2s take alice                => with a person #2 until 30m 2s
         3s decline 2                 => dead human_refused
         3s view                      => REACH_REFUSED instead of work: a person refused it
         4s redrive 60s               => again at once
         4s people                    => nobody",
    );
}

#[test]
fn a_person_is_asked_though_the_deadline_has_passed_and_has_their_own_time() {
    check(
        "0s task deadline=10s
         0s assign a chain=cap:spare,human:desk people=1m => routed a#1 until 10s; deliver
         10s due                                          => waits for a person; stop a#1; #1 ended badly
         10s people                                       => desk until 1m 10s
         50s take alice                                   => with a person #2 until 1m 10s
         1m10s due                                        => expired expired
         1m10s view                                       => REACH_TIMEOUT instead of work: no person answered it within 1m in the queue desk
         1m10s people                                     => desk until 1m 10s; alice task_ended",
    );
    check(
        "0s task pulled deadline=10s
         0s offer a,b chain=human:desk => offered to 2; offer a,b
         10s due                       => waits for a person; withdraw a,b",
    );
}

#[test]
fn a_long_deadline_is_not_cut() {
    check(
        "0s task tries=1 deadline=5h
         0s assign a chain=human:desk => routed a#1 until 10s; deliver
         1s fail 1 retryable          => waits for a person; #1 ended badly
         1s people                    => desk until 5h",
    );
}

#[test]
fn whoever_takes_an_unsure_write_is_told_and_can_settle_it() {
    check(
        "0s task
         0s assign a write chain=agent:b,human:desk => routed a#1 until 10s; deliver
         10s due                                    => waits for a person; stop a#1; #1 ended badly
         10s take alice                             => with a person #2 until 30m 10s
         10s people                                 => desk until 1h 10s; alice has it; unsure of work
         20s answer 2 it_was_sent                   => completed \"it_was_sent\"",
    );
    let unsure = "0s task
         0s assign a write chain=human:desk => routed a#1 until 10s; deliver
         10s due                            => waits for a person; stop a#1; #1 ended badly
         10s take alice                     => with a person #2 until 30m 10s\n";
    check(&format!("{unsure}20s decline 2 => dead outcome_unknown"));
    check(&format!("{unsure}20s decline 2 nothing-happened => dead human_refused"));
}

#[test]
fn no_agent_is_asked_and_no_agent_is_heard_while_a_person_is_to_answer() {
    check(
        "0s task tries=1
         0s assign a chain=human:desk => routed a#1 until 10s; deliver
         1s fail 1 retryable          => waits for a person; #1 ended badly
         2s complete 1 late           => no: it is submitted
         2s claim b                   => no: it is submitted
         2s assign b                  => no: it is submitted
         2s due                       => no: not due
         2s take alice                => with a person #2 until 30m 2s
         3s complete 2 mine           => no: it is accepted
         3s answer 1 old              => no: stale, the newest is 2",
    );
}

#[test]
fn nobody_takes_what_no_person_was_asked_for() {
    check(
        "0s task
         0s take alice => no: it is submitted
         0s answer 0 x => no: it is submitted
         0s assign a   => routed a#1 until 10s; deliver
         0s take alice => no: it is routed",
    );
}
