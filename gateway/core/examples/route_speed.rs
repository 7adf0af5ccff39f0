//! How long a route decision takes at 10, 1,000 and 100,000 capabilities: by name, and by the words of an intent.
//! `cargo run --release -p reach-core --example route_speed [SIZE...]`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::time::Instant;

use reach_core::access::Caller;
use reach_core::bulkhead::Seat;
use reach_core::fleet::{Ask, Checked, Fleet, Settings};
use reach_core::task::Target;
use reach_schemas::{AgentCard, FencingToken, RawJson, TaskId, Timestamp};

const SIZES: [usize; 3] = [10, 1_000, 100_000];
const ROUNDS: usize = 2_000;
const VERBS: [&str; 12] =
    ["find", "list", "book", "cancel", "send", "count", "merge", "translate", "archive", "print", "check", "plan"];

/// A made-up word, the same for the same number; low numbers are common words and high ones rare.
fn word(number: usize) -> String {
    let syllables = ["ka", "lo", "mi", "ru", "te", "no", "shi", "pa", "ve", "zu", "bra", "dor"];
    let mut left = number + 7;
    let mut word = String::new();
    while left > 0 {
        word.push_str(syllables[left % syllables.len()]);
        left /= syllables.len();
    }
    word
}

/// Zipf-like: half of the draws come from the first few hundred words.
fn draw(rng: &mut fastrand::Rng, words: usize) -> String {
    let share = rng.f64();
    word((words as f64).powf(share) as usize)
}

fn card(at: usize, words: usize, rng: &mut fastrand::Rng) -> AgentCard {
    let verb = VERBS[at % VERBS.len()];
    let description: Vec<String> = (0..12).map(|_| draw(rng, words)).collect();
    let text = format!(
        r#"{{"agent_id":"agent{at}@n{}","endpoints":[{{"protocol":"http","address":"http://127.0.0.1:1/"}}],"max_concurrency":1000000,
            "capabilities":[{{"name":"{verb}_{}_{at}","description":"{verb} {}","tags":["{}","{}"],"effect":"read",
            "input_schema":{{"type":"object","properties":{{"id":{{"type":"string"}}}}}}}}]}}"#,
        at % 50,
        word(at),
        description.join(" "),
        word(at),
        draw(rng, words),
    );
    serde_json::from_str(&text).expect("a well-formed card")
}

fn main() {
    println!("{:>9}  {:>14} {:>14}  {:>14} {:>14}", "size", "by name p50", "p99", "by words p50", "p99");
    let mut sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes.extend(SIZES);
    }
    for size in sizes {
        let mut rng = fastrand::Rng::with_seed(7);
        let now = Timestamp::from_ms(1_700_000_000_000);
        let mut fleet = Fleet::new(Settings::default());
        let mut cards = Vec::with_capacity(size);
        for at in 0..size {
            let card = card(at, size * 4, &mut rng);
            cards.push((card.capabilities[0].name.clone(), card.capabilities[0].description.clone()));
            fleet.register(Checked::new(card).expect("a good card"), now);
        }
        let name = measure(&mut fleet, &cards, &mut rng, now, |at, cards| Target {
            to_agent: None,
            capability: Some(cards[at].0.clone()),
            intent: None,
            namespace: None,
        });
        let words = measure(&mut fleet, &cards, &mut rng, now, |at, cards| {
            let intent: Vec<&str> = cards[at].1.split(' ').take(7).collect();
            Target { to_agent: None, capability: None, intent: Some(intent.join(" ")), namespace: None }
        });
        println!("{size:>9}  {:>11.1} us {:>11.1} us  {:>11.1} us {:>11.1} us", name.0, name.1, words.0, words.1);
    }
}

fn measure(
    fleet: &mut Fleet,
    cards: &[(reach_schemas::CapabilityName, String)],
    rng: &mut fastrand::Rng,
    now: Timestamp,
    target: impl Fn(usize, &[(reach_schemas::CapabilityName, String)]) -> Target,
) -> (f64, f64) {
    let params = RawJson::parse(r#"{"id":"a-17"}"#).expect("good JSON");
    let mut took: Vec<f64> = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let target = target(rng.usize(0..cards.len()), cards);
        let seat = Seat { task_id: TaskId::from_parts(round as u64, 1), token: FencingToken(1) };
        let ask = Ask {
            caller: &Caller::OPERATOR,
            target: &target,
            params: Some(&params),
            tried: Vec::new(),
            attempt: 1,
            turn: reach_core::retry::Turn::First,
            yields: None,
            attempt_timeout: None,
            seat,
        };
        let began = Instant::now();
        let route = fleet.route(&ask, now, rng);
        took.push(began.elapsed().as_secs_f64() * 1e6);
        if let Ok(route) = route {
            fleet.abandon(seat, &route.assignment.agent_id, &route.assignment.capability, now, rng);
        }
    }
    took.sort_by(f64::total_cmp);
    (took[ROUNDS / 2], took[ROUNDS * 99 / 100])
}
