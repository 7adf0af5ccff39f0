//! What the fleet remembers, and what a decision says of itself.

use reach_core::fleet::{Checked, Fleet, Settings};
use reach_core::health::HealthPolicy;
use reach_schemas::{Reason, Span, Stage, Timestamp, Verdict};

use crate::player::{Player, capability, check};
use crate::script;

#[test]
fn registering_again_changes_nothing_and_a_new_card_keeps_what_was_learned() {
    check(
        "0s agent a@n weight=50 beat=1h    => card 1
         0s route 1 cap=work               => a@n work
         0s agent a@n weight=50 beat=1h    => same 1
         0s flight a@n                     => 1
         0s end 1 badly
         0s route 2 cap=work               => a@n work
         0s agent a@n weight=60 beat=1h    => card 2
         0s flight a@n                     => 1
         0s end 2 badly                    => opened
         0s agent a@n weight=70 beat=1h    => card 3
         0s state a@n                      => alive, work open
         0s agent a@n weight=70 beat=1h caps=work,more => card 4
         0s state a@n                      => alive, work open
         0s route 3 cap=more               => a@n more",
    );
}

#[test]
fn an_agent_that_is_gone_takes_no_work_and_its_seats_come_home() {
    check(
        "0s agent a@n        => card 1
         0s route 1 cap=work => a@n work
         0s leave a@n        => true
         0s route 2 cap=work => never, no_candidate
         0s route 3 to=a@n   => never, agent_not_found
         0s state a@n        => unknown
         1s end 1 badly
         1s flight a@n       => 0
         1s leave a@n        => false
         2s agent a@n        => card 1
         2s route 4 cap=work => a@n work",
    );
}

#[test]
fn an_agent_that_died_while_it_worked_is_alive_again_by_one_word_and_keeps_its_seats_until_they_end() {
    check(
        "0s agent a@n max=1   => card 1
         0s route 1 cap=work  => a@n work
         40s state a@n        => dead
         40s end 1 badly
         50s agent a@n max=1  => same 1
         50s state a@n        => alive
         50s route 2 cap=work => a@n work",
    );
}

#[test]
fn an_agent_that_was_dead_starts_slowly_whether_it_beats_or_registers_again() {
    let at = |hours: u64| Timestamp::from_ms(0) + Span::from_hours(hours);
    let card = |version: &str| -> Checked {
        let card = serde_json::json!({
            "agent_id": "a@n", "version": version, "heartbeat_interval": "1h", "capabilities": [{ "name": "work" }],
        });
        Checked::new(serde_json::from_value(card).unwrap()).unwrap()
    };
    let share = |fleet: &Fleet, now: Timestamp| {
        fleet.node(&"a@n".parse().unwrap()).unwrap().health().slow_start_factor(&HealthPolicy::default(), now)
    };
    // It registers at the beginning, has its full share at hour 2, is heard of last then, and is dead by hour 6.
    for version in ["1", "2"] {
        let mut fleet = Fleet::new(Settings::default());
        fleet.register(card("1"), at(0));
        assert!((share(&fleet, at(0)) - 0.1).abs() < f64::EPSILON);
        fleet.register(card(version), at(2));
        assert!((share(&fleet, at(2)) - 1.0).abs() < f64::EPSILON, "version {version}: it was alive");
        fleet.register(card(version), at(6));
        assert!((share(&fleet, at(6)) - 0.1).abs() < f64::EPSILON, "version {version}: it was dead");
        fleet.seen(&"a@n".parse().unwrap(), at(10));
        assert!((share(&fleet, at(10)) - 0.1).abs() < f64::EPSILON, "version {version}: it was dead again");
    }
}

#[test]
fn a_card_that_cannot_be_used_says_which_field_and_why() {
    let mut card = reach_schemas::AgentCard {
        capabilities: vec![capability("work"), capability("work")],
        ..serde_json::from_str(r#"{"agent_id":"a@n","capabilities":[]}"#).unwrap()
    };
    let error =
        |card: &reach_schemas::AgentCard| reach_core::fleet::Checked::new(card.clone()).unwrap_err().to_string();
    assert_eq!(error(&card), "capabilities[1].name: work is declared twice");
    card.capabilities.clear();
    assert_eq!(error(&card), "capabilities: is empty: an agent is sent only what it declares, so declare at least one");
}

/// The decision that the last line of a story led to.
fn decision(story: &str) -> reach_schemas::Decision {
    let mut player = Player::new();
    script::check(story, |line| player.play(line));
    player.decision.unwrap()
}

#[test]
fn a_decision_says_who_was_looked_at_and_why_each_did_not_get_it() {
    let decision = decision(
        "0s agent best@n weight=90   => card 1
         0s agent good@n weight=20   => card 1
         0s agent full@n max=1       => card 1
         0s agent gone@n             => card 1
         0s route 1 to=full@n        => full@n work
         0s drain gone@n             => true
         0s route 2 cap=work try=2   => best@n work",
    );
    assert_eq!((decision.stage, decision.attempt, decision.considered), (Stage::Exact, 2, 4));
    let told: Vec<(&str, Verdict, Vec<Reason>)> = decision
        .candidates
        .iter()
        .map(|candidate| {
            (candidate.agent_id.name(), candidate.verdict, candidate.lacks.iter().map(|lack| lack.reason).collect())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("best", Verdict::Chosen, vec![]),
            ("good", Verdict::Outscored, vec![]),
            ("full", Verdict::Rejected, vec![Reason::Full]),
            ("gone", Verdict::Rejected, vec![Reason::Draining]),
        ]
    );
    assert!(decision.candidates.iter().all(|one| one.score.is_some() == (one.verdict != Verdict::Rejected)));
    let rejected: Vec<(&str, u32)> =
        decision.rejected.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    assert_eq!(rejected, [("draining", 1), ("full", 1)]);
    let chosen = decision.chosen.unwrap();
    assert_eq!((chosen.agent_id.as_str(), chosen.capability.as_str()), ("best@n", "work"));
}

#[test]
fn a_decision_by_words_says_how_near_they_were() {
    let decision = decision(
        "0s agent a@n caps=weather says=weather_forecast_for_a_city => card 1
         0s route 1 say=weather_forecast_for_the_city               => a@n weather",
    );
    let intent = decision.intent.unwrap();
    assert_eq!((decision.stage, intent.method.as_str()), (Stage::Intent, "lexical"));
    assert!(intent.best >= Some(intent.accept_at) && intent.matched.iter().any(|word| word == "weather"), "{intent:?}");
}

#[test]
fn a_record_is_bounded_and_what_is_left_out_is_counted() {
    let mut story = String::new();
    for number in 0..40 {
        story.push_str(&format!("0s agent a{number:02}@n max=1 => card 1\n"));
    }
    for number in 0..10 {
        story.push_str(&format!("0s route {number} to=a{number:02}@n => a{number:02}@n work\n"));
    }
    story.push_str("0s agent z@n weight=100 => card 1\n0s route 99 cap=work => z@n work");
    let decision = decision(&story);
    assert_eq!((decision.considered, decision.candidates.len()), (41, reach_schemas::decision::CANDIDATES_MAX));
    assert_eq!(decision.rejected.get("full"), Some(&10));
}
