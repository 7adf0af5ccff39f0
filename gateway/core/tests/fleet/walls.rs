//! What a caller may not reach, it neither gets nor hears of.

use crate::player::check;

#[test]
fn across_namespaces_nobody_is_reached_nor_named() {
    check(
        "0s agent c@x                 => card 1
         0s agent a@y caps=work says=pay_the_invoice => card 1
         0s route 1 by=c@x cap=work   => c@x work
         0s route 2 by=c@x to=a@y     => never, agent_not_found
         0s message                   => there is no agent a@y that this caller may reach; agent/list shows those there are
         0s route 3 by=c@x to=q@y     => never, agent_not_found
         0s message                   => there is no agent q@y that this caller may reach; agent/list shows those there are
         0s route 4 by=c@x say=pay_the_invoice => never, no_candidate
         0s route 5 by=c@x cap=work in=y => never, no_candidate
         0s route 6 cap=work in=y     => a@y work",
    );
}

#[test]
fn across_namespaces_both_sides_must_say_yes() {
    check(
        "0s agent c@x may=*@y                     => card 1
         0s agent d@x                             => card 1
         0s agent a@y callable=c@x                => card 1
         0s agent b@y weight=100                  => card 1
         0s route 1 by=c@x cap=work               => a@y work
         0s route 2 by=d@x cap=work in=y          => never, no_candidate
         0s route 3 by=c@x to=b@y                 => never, agent_not_found",
    );
}

#[test]
fn within_a_namespace_a_list_that_leaves_the_caller_out_hides_the_agent() {
    check(
        "0s agent a@n callable=boss@n caps=secret => card 1
         0s agent boss@n caps=other               => card 1
         0s route 1 by=boss@n cap=secret          => a@n secret
         0s route 2 by=spy@n cap=secret           => never, no_candidate
         0s route 3 by=spy@n to=a@n cap=secret    => never, agent_not_found
         0s drain a@n                             => true
         0s route 4 by=spy@n cap=secret           => never, no_candidate
         0s route 5 by=boss@n cap=secret          => in 1s: a@n secret draining
         0s offer 6 by=spy@n cap=secret           => never, no_candidate",
    );
}

#[test]
fn a_caller_that_may_call_nobody_reaches_nobody() {
    check(
        "0s agent c@n may=nobody@n    => card 1
         0s agent a@n                 => card 1
         0s route 1 by=c@n cap=work   => never, no_candidate
         0s route 2 by=a@n to=c@n     => c@n work",
    );
}

#[test]
fn no_weight_climbs_over_a_wall() {
    check(
        "0s agent a@x weight=1           => card 1
         0s agent b@y weight=100         => card 1
         0s route 1 by=c@x cap=work      => a@x work
         0s drain a@x                    => true
         0s route 2 by=c@x cap=work      => in 1s: a@x work draining",
    );
}
