//! What probes and reports make of an agent: who is weighed down, who is left alone, and who is tried again.

use crate::player::check;

#[test]
fn a_queue_that_a_probe_reports_counts_as_one_that_a_heartbeat_does_and_the_newer_word_holds() {
    check(
        "0s agent a@n max=4 read       => card 1
         1s probe a@n ok queue=2
         1s look 1 cap=work            => a@n work
         1s busy a@n                   => 0.5
         2s beat a@n queue=1
         2s look 1 cap=work            => a@n work
         2s busy a@n                   => 0.25
         3s probe a@n ok
         3s look 1 cap=work            => a@n work
         3s busy a@n                   => 0.25",
    );
}

#[test]
fn an_agent_that_reports_failures_is_weighed_down_until_it_reports_none() {
    check(
        "0s agent a@n read             => card 1
         0s agent b@n read             => card 1
         1s probe a@n ok failing=0.6
         1s look 1 cap=work            => b@n work
         1s sound a@n                  => 0.4
         1s look 2 to=a@n              => a@n work
         2s probe a@n ok failing=1
         2s look 2 to=a@n              => a@n work
         2s sound a@n                  => 0.1
         3s probe a@n ok
         3s look 2 to=a@n              => a@n work
         3s sound a@n                  => 1",
    );
}

#[test]
fn work_in_which_nothing_succeeds_for_longer_than_an_attempt_may_take_weighs_its_agent_down() {
    check(
        "0s agent a@n max=100 read beat=1h timeout=10s => card 1
         0s agent b@n max=100 read beat=1h timeout=10s => card 1
         0s route 1 to=a@n                  => a@n work
         10s look 2 to=a@n                  => a@n work
         10s sound a@n                      => 1
         20s look 2 cap=work                => b@n work
         20s sound a@n                      => 0.5
         20s probe a@n ok
         20s look 2 to=a@n                  => a@n work
         20s sound a@n                      => 0.5
         21s probe a@n ok succeeded=19s
         21s look 2 to=a@n                  => a@n work
         21s sound a@n                      => 1
         39s look 2 to=a@n                  => a@n work
         39s sound a@n                      => 0.5
         39s end 1 badly
         39s look 2 to=a@n                  => a@n work
         39s sound a@n                      => 1",
    );
}

#[test]
fn a_success_shows_that_the_work_moves() {
    check(
        "0s agent a@n max=100 read beat=1h timeout=10s => card 1
         0s route 1 to=a@n     => a@n work
         19s route 2 to=a@n    => a@n work
         20s end 2 well
         20s look 3 to=a@n     => a@n work
         20s sound a@n         => 1
         40s look 3 to=a@n     => a@n work
         40s sound a@n         => 0.5",
    );
}

#[test]
fn an_agent_that_says_it_succeeded_after_it_said_so_is_not_believed() {
    check(
        "0s agent a@n max=100 read beat=1h timeout=10s => card 1
         0s route 1 to=a@n                => a@n work
         1s probe a@n ok succeeded=10h
         21s look 2 to=a@n                => a@n work
         21s sound a@n                    => 0.5",
    );
}

#[test]
fn an_agent_that_asks_to_be_left_alone_is_and_another_takes_its_work() {
    check(
        "0s agent a@n read              => card 1
         0s route 1 cap=work            => a@n work
         0s end 1 neutral after=3s
         0s look 2 cap=work             => in 3s: a@n work full
         0s agent b@n read weight=10    => card 1
         1s look 2 cap=work             => b@n work
         3s look 2 cap=work             => a@n work
         4s route 1 to=a@n              => a@n work
         4s end 1 badly after=9h
         299s beat a@n
         303s look 2 to=a@n             => in 1s: a@n work full
         304s look 2 to=a@n             => a@n work",
    );
}

#[test]
fn an_agent_that_probes_bring_back_has_its_trial_at_once_where_a_breaker_is_open() {
    check(
        "0s agent a@n beat=1h      => card 1
         0s route 1 cap=work       => a@n work
         0s end 1 badly
         0s route 2 cap=work       => a@n work
         0s end 2 badly            => opened
         0s probe a@n ok
         0s probe a@n ok
         0s state a@n              => alive, work open
         1s probe a@n failed
         1s probe a@n failed
         1s probe a@n failed
         1s state a@n              => ejected, work open
         1s probe a@n ok
         1s probe a@n ok
         1s state a@n              => alive, work half_open
         1s route 3 cap=work       => a@n work
         1s route 4 cap=work       => in 5s: a@n work breaker_open
         2s end 3 well             => closed",
    );
}

#[test]
fn the_last_probe_is_remembered_with_what_it_said_and_how_many_failed_in_a_row() {
    check(
        "0s agent a@n              => card 1
         0s last a@n               => none
         1s probe a@n ok queue=3
         1s last a@n               => after 1s queue 3, 0 failed, 0 slow
         2s probe a@n failed
         3s probe a@n failed
         3s last a@n               => after 3s no answer, 2 failed, 0 slow
         4s probe a@n ok took=6s
         4s agent a@n max=9        => card 2
         4s last a@n               => after 4s, 0 failed, 1 slow",
    );
}

#[test]
fn callers_who_give_the_work_less_time_than_it_usually_takes_open_no_breaker() {
    check(
        "0s agent a@n max=9 beat=1h timeout=10s => card 1
         0s route 1 to=a@n    => a@n work
         1s end 1 well took=900ms
         1s route 2 to=a@n    => a@n work
         1s end 2 late took=400ms
         1s route 3 to=a@n    => a@n work
         1s end 3 late took=1ms
         1s route 4 to=a@n    => a@n work
         1s end 4 late took=400ms
         1s state a@n         => alive
         2s route 5 to=a@n    => a@n work
         6s end 5 late took=4s
         6s route 6 to=a@n    => a@n work
         10s end 6 late took=4s => opened",
    );
}
