//! Many agents that offer the same thing: they hide neither each other nor what else is near.

use reach_core::access::Caller;
use reach_core::bulkhead::Seat;
use reach_core::fleet::{Ask, Checked, Fleet, Settings, Unroutable};
use reach_core::task::Target;
use reach_schemas::{AgentCard, FencingToken, TaskId, Timestamp};

/// What else there is: words are only as telling as others are without them.
const THINGS: [&str; 24] = [
    "bread", "milk", "coal", "paint", "nails", "flowers", "carpets", "lamps", "books", "shoes", "tyres", "cheese",
    "bricks", "ropes", "soap", "candles", "honey", "wine", "tiles", "paper", "ink", "buttons", "chairs", "drums",
];

fn register(fleet: &mut Fleet, agent: &str, capability: &str, description: &str) {
    register_as(fleet, agent, "", capability, description);
}

/// Registers an agent that also says something of itself.
fn register_as(fleet: &mut Fleet, agent: &str, itself: &str, capability: &str, description: &str) {
    let text = format!(
        r#"{{"agent_id":"{agent}","description":"{itself}","tags":["{itself}"],"endpoints":[{{"protocol":"http","address":"http://127.0.0.1:1/"}}],"max_concurrency":1000,
            "capabilities":[{{"name":"{capability}","description":"{description}","effect":"read"}}]}}"#
    );
    let card: AgentCard = serde_json::from_str(&text).expect("a well-formed card");
    fleet.register(Checked::new(card).expect("a good card"), Timestamp::from_ms(0));
}

fn ask(fleet: &mut Fleet, words: &str, round: u64, rng: &mut fastrand::Rng) -> Result<String, Unroutable> {
    let target = Target { to_agent: None, capability: None, intent: Some(words.to_owned()), namespace: None };
    let ask = Ask {
        caller: &Caller::OPERATOR,
        target: &target,
        params: None,
        tried: Vec::new(),
        attempt: 1,
        turn: reach_core::retry::Turn::First,
        yields: None,
        attempt_timeout: None,
        seat: Seat { task_id: TaskId::from_parts(round, 1), token: FencingToken(1) },
    };
    fleet.route(&ask, Timestamp::from_ms(1), rng).map(|route| route.assignment.agent_id.to_string())
}

#[test]
fn twenty_agents_of_one_capability_all_get_their_share() {
    let (mut fleet, mut rng) = (Fleet::new(Settings::default()), fastrand::Rng::with_seed(1));
    for number in 0..20 {
        register(&mut fleet, &format!("sky{number}@news"), "weather_report", "Tells the weather of a city");
    }
    for (number, thing) in THINGS.iter().enumerate() {
        register(
            &mut fleet,
            &format!("shop{number}@news"),
            &format!("order_{thing}"),
            &format!("Orders {thing} for a household"),
        );
    }
    let first = ask(&mut fleet, "give me the weather report that tells the weather of a city", 1000, &mut rng);
    assert!(first.is_ok(), "{first:?}");
    let chosen: std::collections::BTreeSet<String> = (0..400)
        .filter_map(|round| {
            ask(&mut fleet, "give me the weather report that tells the weather of a city", round, &mut rng).ok()
        })
        .collect();
    assert_eq!(chosen.len(), 20, "{chosen:?}");
}

#[test]
fn fifty_agents_of_one_capability_are_as_clear_as_one() {
    let words = "give me the weather report that tells the weather of a city";
    for agents in [1, 50] {
        let (mut fleet, mut rng) = (Fleet::new(Settings::default()), fastrand::Rng::with_seed(1));
        for number in 0..agents {
            let itself = format!("Weather office {number} of the city");
            register_as(
                &mut fleet,
                &format!("sky{number}@news"),
                &itself,
                "weather_report",
                "Tells the weather of a city",
            );
        }
        for thing in &THINGS[..3] {
            register(&mut fleet, &format!("{thing}@news"), &format!("order_{thing}"), &format!("Orders {thing}"));
        }
        let chosen = ask(&mut fleet, words, 0, &mut rng);
        assert!(chosen.is_ok(), "{agents}: {chosen:?}");
    }
}

#[test]
fn a_rival_that_is_as_near_is_seen_behind_a_crowd_of_twins() {
    let (mut fleet, mut rng) = (Fleet::new(Settings::default()), fastrand::Rng::with_seed(1));
    for number in 0..20 {
        register(&mut fleet, &format!("a{number}@news"), "weather_report", "Tells the weather of a city");
    }
    register(&mut fleet, "z@news", "report_weather", "Tells the weather of a city");
    let Err(Unroutable::Never { failure, .. }) = ask(&mut fleet, "tell me the weather of the city", 0, &mut rng) else {
        panic!("two capabilities are as near, and one was taken")
    };
    assert!(failure.suggestions.iter().any(|near| near.capability.as_str() == "report_weather"), "{failure:?}");
}
