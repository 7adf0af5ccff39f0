//! Work that nobody can take now: it waits its turn, or goes down its chain where nobody is there.

use crate::player::check;

#[test]
fn where_nobody_is_there_it_waits_as_long_as_a_try_may_take_and_then_goes_down_its_chain() {
    check(
        "0s task
         0s defer 5s out timeout=4s chain=static:1  => again in 4s
         2s defer 9s out timeout=4s chain=static:1  => again in 2s
         4s defer 9s out timeout=4s chain=static:1  => completed 1
         4s view                                    => REACH_FALLBACK instead of work",
    );
}

#[test]
fn it_never_waits_for_them_more_than_half_of_its_time() {
    check(
        "0s task deadline=6s
         0s defer 5s out chain=cap:spare => again in 3s
         3s defer 5s out chain=cap:spare => again at once
         3s assign b of=spare            => routed b#1 until 6s; deliver",
    );
}

#[test]
fn while_they_are_merely_busy_it_waits_its_turn() {
    check(
        "0s task
         0s  defer 5s out timeout=4s chain=static:1   => again in 4s
         3s  defer 8s busy timeout=4s chain=static:1  => again in 5s
         8s  defer 20s out timeout=4s chain=static:1  => again in 4s
         12s defer 20s out timeout=4s chain=static:1  => completed 1",
    );
}

#[test]
fn without_a_chain_it_waits_for_them_until_its_deadline() {
    check(
        "0s task deadline=10s
         0s defer 5s out timeout=1s => again in 5s
         5s defer 9s out timeout=1s => again in 4s
         10s due                    => expired expired",
    );
}

#[test]
fn once_its_deadline_has_passed_a_fixed_answer_stands_in_and_no_agent_is_asked() {
    check(
        "0s task deadline=10s
         0s defer 12s busy chain=cap:spare,static:[] => again in 12s
         10s due                                     => completed []
         10s view                                    => REACH_FALLBACK instead of work",
    );
}

#[test]
fn an_intent_that_was_given_to_nobody_is_answered_in_the_name_of_what_it_waited_for() {
    check(
        "0s task deadline=10s intent=news
         0s defer 5s busy of=headlines chain=say:later => again in 5s
         10s due                                       => completed {\"instruction\":\"later\"}
         10s view                                      => REACH_FALLBACK instead of headlines",
    );
}
