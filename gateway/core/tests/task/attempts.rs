//! Tokens, phases, claims, leases and what may follow upon what.

use crate::player::check;

#[test]
fn a_task_goes_from_routed_over_accepted_to_completed() {
    check(
        "0s task
         0s assign a      => routed a#1 until 10s; deliver
         1s delivered 1   => delivered a#1 until 10s
         2s accept 1      => accepted a#1 until 12s
         5s progress 1 half => accepted a#1 until 15s
         9s complete 1 ok => completed \"ok\"; #1 ended well
         9s view          => REACH_OK",
    );
}

#[test]
fn delivered_is_not_accepted_and_a_second_word_of_the_same_is_no_harm() {
    check(
        "0s task
         0s assign a ws   => routed a#1 until 5s; deliver
         1s delivered 1   => delivered a#1 until 5s
         1s delivered 1   => no: so already
         2s accept 1      => accepted a#1 until 12s
         2s accept 1      => no: so already
         2s delivered 1   => no: so already
         3s complete 1 ok => completed \"ok\"; #1 ended well
         3s complete 1 ok => no: so already
         3s complete 1 other => no: it is completed",
    );
}

#[test]
fn a_late_answer_of_an_older_attempt_is_refused() {
    check(
        "0s task
         0s assign a          => routed a#1 until 10s; deliver
         10s due              => again within 200ms; stop a#1; #1 ended badly
         10s complete 1 late  => no: it is submitted
         11s assign b         => routed b#2 until 21s; deliver
         12s accept 1         => no: stale, the newest is 2
         12s progress 1       => no: stale, the newest is 2
         12s renew 1          => no: stale, the newest is 2
         12s complete 1 late  => no: stale, the newest is 2
         12s fail 1 retryable => no: stale, the newest is 2
         12s release 1        => no: stale, the newest is 2
         12s poison 1         => no: stale, the newest is 2
         12s complete 3 early => no: stale, the newest is 2
         13s complete 2 ok    => completed \"ok\"; #2 ended well
         13s complete 1 late  => no: stale, the newest is 2",
    );
}

#[test]
fn what_waits_has_no_attempt_to_speak_of() {
    check(
        "0s task
         0s complete 0 ok => no: it is submitted
         0s accept 0      => no: it is submitted
         0s release 0     => no: it is submitted
         0s redrive 60s   => no: it is submitted
         0s due           => no: so already",
    );
}

#[test]
fn what_is_under_way_is_not_given_out_again() {
    check(
        "0s task
         0s assign a => routed a#1 until 10s; deliver
         0s assign b => no: it is routed
         0s offer b  => no: it is routed
         0s defer 5s => no: it is routed
         0s give-up  => no: it is routed
         1s accept 1 => accepted a#1 until 11s
         1s assign b => no: it is accepted
         1s redrive 60s => no: it is accepted",
    );
}

#[test]
fn a_final_phase_is_left_by_nothing_but_a_redrive_and_a_completed_one_not_even_by_that() {
    for (ending, phase) in [
        ("fail 1 for-good", "failed"),
        ("cancel", "cancelled"),
        ("poison 1", "dead_lettered"),
        ("complete 1 ok", "completed"),
    ] {
        let lines = ["assign b", "offer b", "defer 5s", "give-up", "claim b", "accept 1", "fail 1 unknown", "due"];
        for line in lines {
            check_after(ending, line, &format!("no: it is {phase}"));
        }
        let is = format!("no: it is {phase}");
        let unless = |wish: &str, other: &str| if phase == wish { other.to_owned() } else { is.clone() };
        check_after(ending, "complete 1 ok", &unless("completed", "no: so already"));
        check_after(ending, "cancel", &unless("cancelled", "no: so already"));
        check_after(ending, "redrive 60s", if phase == "completed" { &is } else { "again at once" });
    }
}

/// What `line` comes to on a task that ended by `ending`.
#[track_caller]
fn check_after(ending: &str, line: &str, expected: &str) {
    let ends = match ending {
        "cancel" => "cancelled; stop a#1; #1 ended neutral",
        "fail 1 for-good" => "failed agent_failed; #1 ended answered",
        "poison 1" => "dead agent_failed; #1 ended answered",
        _ => "completed \"ok\"; #1 ended well",
    };
    check(&format!(
        "0s task
         0s assign a => routed a#1 until 10s; deliver
         1s {ending} => {ends}
         2s {line} => {expected}"
    ));
}

#[test]
fn one_claim_of_a_broadcast_wins_and_the_others_hear_of_it() {
    check(
        "0s task
         0s offer a,b,c   => offered to 3; offer a,b,c
         1s claim d       => no: not offered
         1s claim b       => delivered b#1 until 11s; withdraw a,c
         1s claim a       => no: claimed by another
         1s claim b       => no: claimed by another
         2s accept 1      => accepted b#1 until 12s
         2s claim c       => no: claimed by another
         3s complete 1 ok => completed \"ok\"; #1 ended well
         3s claim c       => no: it is completed",
    );
}

#[test]
fn a_task_that_was_claimed_and_lost_is_offered_anew() {
    check(
        "0s task
         0s offer a,b                => offered to 2; offer a,b
         1s claim a lease=4s         => delivered a#1 until 5s; withdraw b
         5s due                      => again within 200ms; stop a#1; #1 ended badly
         5s claim b                  => no: not offered
         6s offer a,b                => offered to 2; offer a,b
         7s claim b                  => delivered b#2 until 17s; withdraw a
         8s complete 1 late          => no: stale, the newest is 2",
    );
}

#[test]
fn what_is_routed_to_a_pulling_agent_lies_there_for_it_alone() {
    check(
        "0s task deadline=60s
         0s assign a queue   => routed a#1 until 1m; offer a
         9s claim b          => no: claimed by another
         9s claim a lease=3s => delivered a#1 until 12s
         9s claim a          => no: claimed by another
         10s complete 1 ok   => completed \"ok\"; #1 ended well",
    );
    check(
        "0s task
         0s assign a => routed a#1 until 10s; deliver
         1s claim a  => no: claimed by another",
    );
}

#[test]
fn nobody_claims_what_is_past_its_deadline() {
    check(
        "0s task deadline=10s
         0s offer a,b => offered to 2; offer a,b
         10s claim a  => no: not offered
         10s due      => expired expired; withdraw a,b
         11s claim a  => no: it is expired",
    );
    check(
        "0s task deadline=10s
         0s assign a queue write => routed a#1 until 10s; offer a
         10s claim a             => no: not offered
         10s due                 => expired expired; stop a#1; #1 ended badly",
    );
}

#[test]
fn a_heartbeat_renews_the_lease_and_only_progress_renews_the_attempt() {
    check(
        "0s task
         0s offer a           => offered to 1; offer a
         0s claim a lease=4s  => delivered a#1 until 4s
         1s renew 1           => no: so already
         2s renew 1           => delivered a#1 until 6s
         5s renew 1           => delivered a#1 until 9s
         8s renew 1           => delivered a#1 until 10s
         9s progress 1        => delivered a#1 until 13s
         13s due              => again within 200ms; stop a#1; #1 ended badly",
    );
}

#[test]
fn what_was_pushed_has_no_lease_to_renew() {
    check(
        "0s task
         0s assign a ws => routed a#1 until 5s; deliver
         1s accept 1    => accepted a#1 until 11s
         9s renew 1     => no: so already
         11s due        => again within 200ms; stop a#1; #1 ended badly",
    );
}

#[test]
fn no_attempt_and_no_lease_goes_beyond_the_deadline() {
    check(
        "0s task deadline=12s
         0s assign a timeout=20s => routed a#1 until 12s; deliver
         5s accept 1             => accepted a#1 until 12s
         11s progress 1          => accepted a#1 until 12s",
    );
    check(
        "0s task deadline=12s
         0s offer a            => offered to 1; offer a
         5s claim a lease=30s  => delivered a#1 until 12s
         11s progress 1        => delivered a#1 until 12s",
    );
}

#[test]
fn it_can_be_called_off_in_every_phase_and_the_agent_hears_of_it() {
    check("0s task\n0s cancel => cancelled\n1s view => REACH_CANCELLED: the task was cancelled");
    check("0s task\n0s defer 5s => again in 5s\n1s cancel => cancelled");
    check("0s task\n0s offer a,b => offered to 2; offer a,b\n1s cancel => cancelled; withdraw a,b");
    for (reached, phase) in [("", "routed"), ("delivered 1", "delivered"), ("accept 1", "accepted")] {
        let until = if phase == "accepted" { "11s" } else { "5s" };
        let step =
            if reached.is_empty() { String::new() } else { format!("1s {reached} => {phase} a#1 until {until}") };
        check(&format!(
            "0s task
             0s assign a ws => routed a#1 until 5s; deliver
             {step}
             2s cancel        => cancelled; stop a#1; #1 ended neutral
             3s complete 1 ok => no: it is cancelled
             3s cancel        => no: so already"
        ));
    }
}

#[test]
fn a_redriven_task_may_have_to_wait_for_its_turn_and_is_not_due_before() {
    check(
        "0s task tries=1 deadline=10s
         0s assign a          => routed a#1 until 10s; deliver
         1s fail 1 retryable  => dead agent_failed; #1 ended badly
         2s redrive 30s at=9s => again in 7s
         8s due               => no: not due
         9s assign a          => routed a#2 until 19s; deliver
         9s fail 2 retryable  => dead agent_failed; #2 ended badly
         20s redrive 30s at=9s => again at once",
    );
}

#[test]
fn a_redriven_task_keeps_its_id_and_tokens_and_begins_anew() {
    check(
        "0s task tries=1 deadline=10s
         0s assign a chain=cap:spare  => routed a#1 until 10s; deliver
         1s fail 1 retryable          => again at once; #1 ended badly
         1s assign b of=spare         => routed b#2 until 10s; deliver
         2s fail 2 retryable          => dead agent_failed; #2 ended badly
         2s view                      => REACH_FAILED instead of work: it failed
         60s redrive 30s              => again at once
         60s view                     => submitted
         60s tried                    => nobody
         60s assign c chain=cap:spare => routed c#3 until 1m 10s; deliver
         61s complete 2 late          => no: stale, the newest is 3
         61s fail 3 retryable         => again at once; #3 ended badly
         61s assign b of=spare        => routed b#4 until 1m 11s; deliver
         62s complete 4 ok            => completed \"ok\"; #4 ended well
         62s view                     => REACH_FALLBACK instead of work",
    );
}

#[test]
fn only_work_that_can_be_stopped_and_repeated_makes_way_for_what_is_clearly_more_urgent() {
    check(
        "0s task
         0s assign a stoppable  => routed a#1 until 10s; deliver
         1s preempt 1 7         => no: it is routed
         1s preempt 1 8         => again in 1s; stop a#1; #1 ended neutral
         1s tried               => a
         2s complete 1 late     => no: it is submitted
         2s preempt 1 9         => no: it is submitted",
    );
    for unfit in ["", "stoppable write"] {
        check(&format!(
            "0s task
             0s assign a {unfit}  => routed a#1 until 10s; deliver
             1s preempt 1 9       => no: it is routed"
        ));
    }
}

#[test]
fn a_task_makes_way_three_times_and_then_keeps_its_seat_and_has_lost_no_try() {
    check(
        "0s task tries=1
         0s assign a stoppable  => routed a#1 until 10s; deliver
         1s preempt 1 9         => again in 1s; stop a#1; #1 ended neutral
         1s assign a stoppable  => routed a#2 until 11s; deliver
         2s preempt 2 9         => again in 1s; stop a#2; #2 ended neutral
         3s assign a stoppable  => routed a#3 until 13s; deliver
         4s preempt 3 9         => again in 1s; stop a#3; #3 ended neutral
         5s assign a stoppable  => routed a#4 until 15s; deliver
         6s preempt 4 9         => no: it is routed
         6s complete 4 ok       => completed \"ok\"; #4 ended well",
    );
}
