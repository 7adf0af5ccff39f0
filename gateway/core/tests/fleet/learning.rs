//! Routing weights that outcomes move: an agent that fails sinks and climbs back by itself, within bounds that are told, and
//! never over a wall.

use std::collections::BTreeMap;

use reach_core::fleet::{Fleet, Settings};
use reach_core::health::HealthPolicy;
use reach_core::score::Learning;
use reach_schemas::Span;

use crate::player::Player;
use crate::script;

const TWINS: &str = "0s agent a@n read max=90 beat=24h => card 1\n0s agent b@n read max=90 beat=24h => card 1";

fn player(learning: Learning) -> Player {
    let mut player = Player::new();
    let health = HealthPolicy { slow_start_step: Span::ZERO, ..HealthPolicy::default() };
    player.fleet = Fleet::new(Settings { health, learning, ..Settings::default() });
    player
}

fn play(player: &mut Player, story: &str) {
    script::check(story, |line| player.play(line));
}

/// Each of the two does so many calls in an hour, and every other one of `a@n` fails or does not.
fn work(player: &mut Player, hour: u64, calls: u64, fails: bool) {
    for call in 0..calls {
        let at = hour * 3600 + call * 3;
        for agent in ["a@n", "b@n"] {
            let end = if fails && agent == "a@n" && call % 2 == 0 { "badly" } else { "well" };
            play(player, &format!("{at}s route 1 to={agent} => {agent} work\n{at}s end 1 {end}"));
        }
    }
}

/// What outcomes make of the weights of `a@n` and `b@n` at a time, and how many of 400 tasks `a@n` would get.
fn seen(player: &mut Player, secs: u64) -> (f64, f64, u32) {
    let mut shares: BTreeMap<String, u32> = BTreeMap::new();
    let story = |line: &str| format!("{secs}s {line} => ?");
    let mut tell = |line: &str| {
        let mut told = String::new();
        script::check(&story(line), |line| {
            told = player.play(line);
            "?".to_owned()
        });
        told
    };
    for _ in 0..400 {
        *shares.entry(tell("look 1 cap=work")).or_default() += 1;
    }
    let mut learned = |agent: &str| tell(&format!("learned {agent}")).parse::<f64>().unwrap();
    (learned("a@n"), learned("b@n"), shares.get("a@n work").copied().unwrap_or_default())
}

#[test]
fn an_agent_that_fails_sinks_below_its_equal_and_climbs_back_by_itself() {
    let mut player = player(Learning::default());
    play(&mut player, TWINS);
    assert_eq!(seen(&mut player, 0).0, 1.0, "nothing is known");
    work(&mut player, 0, 60, true);
    let (failing, well, share) = seen(&mut player, 200);
    assert!((0.7..0.8).contains(&failing) && (1.2..=1.3).contains(&well), "{failing} {well}");
    assert_eq!(share, 0, "it sinks");
    // It gets nothing, so nothing but time can speak for it.
    let later: Vec<f64> = [6, 12, 18, 23].map(|hours| seen(&mut player, hours * 3600).0).into();
    assert!(later.windows(2).all(|pair| pair[0] < pair[1]) && later[0] > failing, "{later:?}");
    let (back, equal, share) = seen(&mut player, 25 * 3600);
    assert_eq!((back, equal), (1.0, 1.0));
    assert!((150..250).contains(&share), "it is back among its equals: {share}");
}

#[test]
fn an_agent_that_recovers_climbs_back_by_what_it_does() {
    let mut player = player(Learning::default());
    play(&mut player, TWINS);
    work(&mut player, 0, 60, true);
    let failing = seen(&mut player, 200).0;
    let mut last = failing;
    for hour in 1..6 {
        work(&mut player, hour, 120, false);
        let now = seen(&mut player, hour * 3600 + 400).0;
        assert!(now >= last && now > failing, "hour {hour}: {now} after {last}");
        last = now;
    }
    assert!(last > 0.95, "{last}");
}

#[test]
fn it_can_be_switched_off_for_all_and_for_a_capability() {
    let mut off = player(Learning { enabled: false, ..Learning::default() });
    play(&mut off, TWINS);
    work(&mut off, 0, 60, true);
    let (failing, well, _) = seen(&mut off, 200);
    assert_eq!((failing, well), (1.0, 1.0));

    let mut narrow = player(Learning { most: 0.1, ..Learning::default() });
    play(&mut narrow, "0s agent a@n read max=90 beat=24h fixed => card 1\n0s agent b@n read max=90 beat=24h => card 1");
    work(&mut narrow, 0, 60, true);
    let (failing, well, _) = seen(&mut narrow, 200);
    assert_eq!(failing, 1.0, "its owner does not want it");
    assert!((1.05..=1.1).contains(&well), "{well}");
}

#[test]
fn the_best_record_climbs_over_no_wall_and_past_no_filter() {
    let mut player = player(Learning::default());
    play(
        &mut player,
        "0s agent a@n read max=90 beat=24h => card 1\n0s agent b@n read max=90 beat=24h => card 1\n0s agent c@m read beat=24h => card 1",
    );
    // This time the one that does well is the one that may not be had.
    for call in 0..60 {
        let end = if call % 2 == 0 { "badly" } else { "well" };
        play(&mut player, &format!("{call}s route 1 to=a@n => a@n work\n{call}s end 1 {end}"));
        play(&mut player, &format!("{call}s route 1 to=b@n => b@n work\n{call}s end 1 well"));
        play(&mut player, &format!("{call}s route 1 to=c@m => c@m work\n{call}s end 1 well"));
    }
    play(&mut player, "70s drain b@n => true\n70s agent d@n caps=other => card 1");
    for _ in 0..50 {
        play(&mut player, "70s look 1 cap=work by=d@n => a@n work");
    }
}
