//! What keeps an agent out of a route, and what the refusal says of it.

use crate::player::check;

#[test]
fn parameters_must_fit_the_input_schema() {
    check(
        r#"0s agent a@n needs=city                  => card 1
           0s route 1 cap=work with={"city":"Rome"} => a@n work
           0s route 2 cap=work with={"town":"Rome"} => never, params_mismatch: a@n work params
           0s message => the parameters do not fit the capability's input schema: "city" is a required property
           0s route 3 cap=work                      => never, params_mismatch: a@n work params
           0s agent b@n                             => card 1
           0s route 4 cap=work with={"town":"Rome"} => b@n work"#,
    );
}

#[test]
fn three_missed_beats_end_new_work_and_four_the_agents_presence() {
    check(
        "0s agent a@n          => card 1
         29999ms look 1 cap=work => a@n work
         30s look 1 cap=work   => in 1s: a@n work suspect
         30s state a@n         => suspect
         30s message           => no agent can take it now: a@n is suspect (no heartbeat for 30s)
         40s look 1 cap=work   => in 1s: a@n work dead
         40s state a@n         => dead
         41s beat a@n
         41s look 1 cap=work   => a@n work",
    );
}

#[test]
fn an_agent_that_is_about_to_stop_gets_nothing_new_until_it_registers_again() {
    check(
        "0s agent a@n       => card 1
         0s drain a@n       => true
         0s route 1 cap=work => in 1s: a@n work draining
         0s state a@n       => draining
         0s agent a@n       => same 1
         0s route 1 cap=work => a@n work
         0s drain z@n       => false",
    );
}

#[test]
fn an_agent_that_fails_its_probes_is_out_until_they_pass() {
    check(
        "0s agent a@n        => card 1
         1s probe a@n failed
         2s probe a@n failed
         3s look 1 cap=work  => a@n work
         3s probe a@n failed
         3s look 1 cap=work  => in 1s: a@n work ejected
         4s probe a@n ok
         4s look 1 cap=work  => in 1s: a@n work ejected
         5s probe a@n ok
         5s look 1 cap=work  => a@n work",
    );
}

#[test]
fn a_full_agent_gets_nothing_until_a_seat_comes_home() {
    check(
        "0s agent a@n max=2   => card 1
         0s route 1 cap=work  => a@n work
         0s route 2 cap=work  => a@n work
         0s route 3 cap=work  => in 1s: a@n work full
         0s message           => no agent can take it now: a@n is full (the agent has all the work it takes at once (2 of 2))
         1s end 1 well
         1s route 3 cap=work  => a@n work
         1s drop 2
         1s flight a@n        => 1",
    );
}

#[test]
fn retries_wait_when_the_agent_has_had_its_share_and_first_tries_do_not() {
    check(
        "0s agent a@n max=99            => card 1
         0s route 1 cap=work retry  => a@n work
         0s route 2 cap=work retry  => a@n work
         0s route 3 cap=work retry  => a@n work
         0s route 4 cap=work retry  => a@n work
         0s route 5 cap=work retry  => a@n work
         0s route 6 cap=work retry  => a@n work
         0s route 7 cap=work retry  => a@n work
         0s route 8 cap=work retry  => a@n work
         0s route 9 cap=work retry  => a@n work
         0s route 10 cap=work retry  => a@n work
         0s route 11 cap=work retry      => in 5s: a@n work retry_budget
         0s message                      => no agent can take it now: a@n is retry_budget (it has had its share of retries)
         0s route 12 cap=work            => a@n work
         0s agent b@n max=99             => card 1
         0s route 13 cap=work retry      => b@n work
         0s leave b@n                    => true
         9s route 14 cap=work retry      => in 1s: a@n work retry_budget
         10s route 14 cap=work retry     => a@n work",
    );
}

#[test]
fn what_a_restart_lost_goes_at_a_pace_and_spends_no_retries() {
    check(
        "0s agent a@n max=99            => card 1
         0s route 1 cap=work orphan => a@n work
         0s route 2 cap=work orphan => a@n work
         0s route 3 cap=work orphan => a@n work
         0s route 4 cap=work orphan => a@n work
         0s route 5 cap=work orphan => a@n work
         0s route 6 cap=work orphan => a@n work
         0s route 7 cap=work orphan => a@n work
         0s route 8 cap=work orphan => a@n work
         0s route 9 cap=work orphan => a@n work
         0s route 10 cap=work orphan => a@n work
         0s route 11 cap=work orphan     => later: a@n work retry_budget
         0s route 12 cap=work retry      => a@n work
         1s route 11 cap=work orphan     => a@n work",
    );
}

#[test]
fn a_newcomer_leaves_a_free_seat_to_those_who_have_waited_for_it() {
    check(
        "0s agent a@n max=2           => card 1
         0s route 1 cap=work yields   => in 1s: a@n work full
         0s message                   => no agent can take it now: a@n is full (others have waited longer for its seats)
         0s route 1 cap=work          => a@n work",
    );
}

#[test]
fn what_waits_for_a_pulling_agent_takes_its_seat_when_it_is_pulled() {
    check(
        "0s agent a@n queue max=1 => card 1
         0s route 1 cap=work      => a@n work
         0s route 2 cap=work      => a@n work
         0s flight a@n            => 0
         1s claim 1 a@n
         1s flight a@n            => 1
         2s end 1 well
         2s flight a@n            => 0",
    );
}

#[test]
fn outside_its_hours_an_agent_takes_no_work_and_the_refusal_knows_when_it_will() {
    check(
        "0s agent a@n hours=08:00-09:00 beat=24h => card 1
         0s look 1 cap=work                      => a@n work
         59m look 1 cap=work                     => a@n work
         1h look 1 cap=work                      => in 5s: a@n work hours
         86399s look 1 cap=work                  => in 1s: a@n work hours
         24h look 1 cap=work                     => a@n work",
    );
}

#[test]
fn a_refusal_invites_to_come_again_only_where_waiting_can_help() {
    check(
        "0s agent a@n hours=08:00-09:00 beat=24h            => card 1
         0s agent b@n ws caps=talk says=talk_about_things   => card 1
         0s route 1 cap=play           => never, no_candidate
         0s hint                       => never none
         0s route 1 say=bake_me_a_cake => never, no_candidate
         0s hint                       => never none
         0s route 1 to=a@n cap=talk    => never, no_candidate: a@n work not_offered
         0s hint                       => never none
         0s route 1 to=z@n             => never, agent_not_found
         0s hint                       => never none
         0s route 1 cap=talk           => in 1s: b@n talk not_connected
         0s hint                       => later, after 1s
         1h look 1 cap=work            => in 5s: a@n work hours
         1h hint                       => later, after 23h",
    );
}

#[test]
fn a_connected_agent_without_its_connection_is_not_reached() {
    check(
        "0s agent a@n ws     => card 1
         0s look 1 cap=work  => in 1s: a@n work not_connected
         0s open a@n
         0s open a@n
         0s look 1 cap=work  => a@n work
         1s close a@n        => 1 left
         1s look 1 cap=work  => a@n work
         2s close a@n        => 0 left
         2s close a@n        => 0 left
         2s look 1 cap=work  => in 1s: a@n work not_connected",
    );
}

#[test]
fn a_breaker_opens_lets_one_trial_through_and_closes_when_it_passes() {
    check(
        "0s agent a@n beat=1h      => card 1
         0s route 1 cap=work       => a@n work
         0s end 1 badly
         0s route 2 cap=work       => a@n work
         0s end 2 badly            => opened
         0s state a@n              => alive, work open
         1s route 3 to=a@n         => later: a@n work breaker_open
         20s state a@n             => alive, work half_open
         20s route 3 cap=work      => a@n work
         20s route 4 cap=work      => in 5s: a@n work breaker_open
         21s end 3 well            => closed
         21s route 4 cap=work      => a@n work
         21s state a@n             => alive",
    );
}

#[test]
fn a_trial_that_came_to_nothing_is_given_back() {
    check(
        "0s agent a@n beat=1h      => card 1
         0s route 1 cap=work       => a@n work
         0s end 1 badly
         0s route 2 cap=work       => a@n work
         0s end 2 badly            => opened
         20s route 3 cap=work      => a@n work
         20s drop 3
         20s route 4 cap=work      => a@n work
         20s route 5 cap=work      => in 5s: a@n work breaker_open
         21s end 4 neutral
         21s route 5 cap=work      => a@n work",
    );
}

#[test]
fn one_breaker_is_one_capabilitys_and_the_others_flow() {
    check(
        "0s agent a@n caps=one,two => card 1
         0s route 1 cap=one        => a@n one
         0s end 1 badly
         0s route 2 cap=one        => a@n one
         0s end 2 badly            => opened
         0s route 3 cap=two        => a@n two
         0s look 4 cap=one         => later: a@n one breaker_open",
    );
}

#[test]
fn all_that_each_candidate_lacks_is_told() {
    check(
        r#"0s agent a@n max=1 needs=city                      => card 1
           0s agent b@n beat=100s hours=07:00-08:00           => card 1
           0s route 1 to=a@n with={"city":1}                  => a@n work
           0s drain a@n                                       => true
           0s route 2 cap=work with={"town":1}                => in 5s: a@n work params+draining+full, b@n work hours"#,
    );
}
