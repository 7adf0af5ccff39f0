//! Who comes into question, and who of them gets it.

use std::collections::BTreeMap;

use crate::player::{Player, check};
use crate::script;

#[test]
fn a_named_agent_gets_what_is_named() {
    check(
        "0s agent a@n caps=news,weather => card 1
         0s agent b@n caps=news         => card 1
         0s route 1 to=a@n cap=weather  => a@n weather
         0s route 2 to=b@n              => b@n news
         0s route 3 to=a@n              => never, no_candidate: a@n news not_offered, a@n weather not_offered
         0s message                     => a@n offers several things; say which with `capability` or `intent`
         0s route 4 to=b@n cap=weather  => never, no_candidate: b@n news not_offered
         0s message                     => b@n does not offer weather
         0s route 5 to=z@n              => never, agent_not_found
         0s message                     => there is no agent z@n that this caller may reach; agent/list shows those there are",
    );
}

#[test]
fn a_named_capability_goes_to_the_agent_that_offers_it_more_strongly() {
    check(
        "0s agent a@n weight=20 => card 1
         0s agent b@n weight=90 => card 1
         0s route 1 cap=work    => b@n work
         0s route 2 cap=work    => b@n work
         0s route 3 cap=play    => never, no_candidate
         0s message             => no agent that this caller may reach offers play; capability/find shows what there is",
    );
}

#[test]
fn words_find_the_capability_and_doubt_is_told_rather_than_guessed() {
    check(
        "0s agent a@n caps=news says=latest_news_headlines_by_topic        => card 1
         0s agent b@n caps=weather says=weather_forecast_for_a_city        => card 1
         0s route 1 say=what_is_the_weather_forecast_for_the_city          => b@n weather
         0s route 2 say=latest_news_headlines                              => a@n news
         0s route 3 say=bake_me_a_cake                                     => never, no_candidate
         0s message => nothing that this caller may reach is near to these words; capability/find shows what there is",
    );
}

#[test]
fn words_choose_among_what_a_named_agent_offers() {
    check(
        "0s agent a@n caps=stock_prices,weather_forecast         => card 1
         0s agent b@n caps=weather_forecast weight=100           => card 1
         0s route 1 to=a@n say=weather_forecast                  => a@n weather_forecast",
    );
}

#[test]
fn those_that_were_tried_come_last_but_they_come() {
    check(
        "0s agent a@n weight=90                         => card 1
         0s agent b@n weight=10                         => card 1
         0s route 1 cap=work try=1                      => a@n work
         0s route 1 cap=work try=2 tried=a@n            => b@n work
         0s route 1 cap=work try=3 tried=a@n,b@n        => a@n work
         0s drain b@n                                   => true
         0s route 1 cap=work try=4 tried=a@n            => a@n work",
    );
}

#[test]
fn all_that_can_pull_are_offered_it_best_first_and_the_most_careful_effect_holds() {
    check(
        "0s agent a@n queue read weight=90 => card 1
         0s agent b@n ws idem weight=20    => card 1
         0s agent c@n                      => card 1
         0s offer 1 cap=work               => a@n, b@n (idempotentwrite)
         0s drain b@n                      => true
         0s offer 1 cap=work               => a@n (read)
         0s drain a@n                      => true
         0s offer 1 cap=work               => in 1s: a@n work draining, b@n work draining, c@n work protocol",
    );
}

/// How often each agent gets one of a thousand tasks that are looked up after `story`.
fn shares(story: &str) -> BTreeMap<String, u32> {
    let mut player = Player::new();
    script::check(story, |line| player.play(line));
    let mut shares = BTreeMap::new();
    for _ in 0..1000 {
        script::check("0s look 1 cap=work => ?", |line| {
            *shares.entry(player.play(line)).or_default() += 1;
            "?".to_owned()
        });
    }
    shares
}

#[test]
fn agents_that_are_about_as_good_share_the_work() {
    let shares = shares("0s agent a@n => card 1\n0s agent b@n => card 1\n0s agent c@n => card 1");
    assert_eq!(shares.len(), 3, "{shares:?}");
    assert!(shares.values().all(|share| (250..420).contains(share)), "{shares:?}");
}

#[test]
fn of_two_that_are_about_as_good_the_one_with_less_in_hand_gets_more() {
    let shares = shares(
        "0s agent a@n max=100 => card 1
         0s agent b@n max=100 => card 1
         0s beat a@n load=9",
    );
    assert!(shares["b@n work"] > 700, "{shares:?}");
}

#[test]
fn an_agent_that_keeps_failing_sinks_below_its_equal() {
    let shares = shares(
        "0s agent a@n read => card 1
         0s agent b@n read => card 1
         0s route 1 to=a@n => a@n work
         0s end 1 badly
         0s route 2 to=a@n => a@n work
         0s end 2 badly",
    );
    assert_eq!(shares.get("a@n work"), None, "{shares:?}");
}
