//! What the walls cost a call: the same route decisions by an operator, who stands before none, by an agent with no policy, and by
//! agents under policies of 1000 rules of which more and more are about them; turn by turn, in one run. Each decision includes
//! finding out what the caller may.
//! `cargo run --release -p reach-core --example access_cost`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::time::Instant;

use reach_core::access::Caller;
use reach_core::access::policy::Policy;
use reach_core::bulkhead::Seat;
use reach_core::fleet::{Ask, Checked, Fleet, Settings};
use reach_core::task::Target;
use reach_schemas::{Across, AgentId, FencingToken, PolicyRule, RawJson, Ruling, TaskId, Timestamp};

const ROUNDS: usize = 4_000;
const RULES: usize = 1000;

/// Who asks, and how many rules of the policy are about them.
const CALLERS: [(&str, Option<usize>); 5] = [
    ("operator, no walls", None),
    ("agent, no policy", Some(0)),
    ("agent, 1 rule of 1000 is about it", Some(1)),
    ("agent, 10 rules of 1000 are about it", Some(10)),
    ("agent, 100 rules of 1000 are about it", Some(100)),
];

fn card(at: usize) -> Checked {
    let text = format!(
        r#"{{"agent_id":"agent{at}@office","endpoints":[{{"protocol":"http","address":"http://127.0.0.1:1/"}}],
            "max_concurrency":1000000,"access":{{"callable_by":["*@desk","*@office"]}},
            "capabilities":[{{"name":"file_papers","effect":"read"}}]}}"#
    );
    Checked::new(serde_json::from_str(&text).expect("a well-formed card")).expect("a good card")
}

fn fleet(offering: usize, about_caller: Option<usize>, now: Timestamp) -> Fleet {
    let mut fleet = Fleet::new(Settings::default());
    (0..offering).for_each(|at| drop(fleet.register(card(at), now)));
    let caller =
        r#"{"agent_id":"clerk@desk","access":{"may_call":["*@desk","*@office"]},"capabilities":[{"name":"ask"}]}"#;
    let caller = serde_json::from_str(caller).expect("a well-formed card");
    fleet.register(Checked::new(caller).expect("a good card"), now);
    if let Some(about @ 1..) = about_caller {
        let rule = |at: usize| PolicyRule {
            ruling: if at == 0 { Ruling::Allow } else { Ruling::Deny },
            subject: if at < about { "*@desk".to_owned() } else { format!("*@tenant{at}") },
            actions: vec!["list".to_owned(), "call".to_owned()],
            object: if at == 0 { "*@office".to_owned() } else { format!("agent*@tenant{at}") },
            capability: (at > 0).then(|| "pay_*".to_owned()),
            note: None,
        };
        let rules: Vec<PolicyRule> = (0..RULES).map(rule).collect();
        fleet.set_policy(Policy::check(1, Across::Rules, &rules).expect("a good policy").0);
    }
    fleet
}

fn main() {
    let now = Timestamp::from_ms(1_700_000_000_000);
    let params = RawJson::parse("{}").expect("good JSON");
    let clerk: AgentId = "clerk@desk".parse().expect("an id");
    let target = Target {
        to_agent: None,
        capability: Some("file_papers".parse().expect("a name")),
        intent: None,
        namespace: None,
    };
    for offering in [1, 10, 100] {
        let mut fleets: Vec<Fleet> = CALLERS.iter().map(|(_, about)| fleet(offering, *about, now)).collect();
        let mut took: Vec<Vec<f64>> = vec![Vec::with_capacity(ROUNDS); CALLERS.len()];
        let mut rng = fastrand::Rng::with_seed(7);
        for round in 0..ROUNDS {
            for (at, (_, about)) in CALLERS.iter().enumerate() {
                let fleet = &mut fleets[at];
                let seat = Seat { task_id: TaskId::from_parts(round as u64, 1), token: FencingToken(1) };
                let began = Instant::now();
                let caller = if about.is_some() { fleet.caller(&clerk) } else { Caller::OPERATOR };
                let ask = Ask {
                    caller: &caller,
                    target: &target,
                    params: Some(&params),
                    tried: Vec::new(),
                    attempt: 1,
                    turn: reach_core::retry::Turn::First,
                    yields: None,
                    attempt_timeout: None,
                    seat,
                };
                let route = fleet.route(&ask, now, &mut rng).expect("somebody takes it");
                took[at].push(began.elapsed().as_secs_f64() * 1e6);
                fleet.abandon(seat, &route.assignment.agent_id, &route.assignment.capability, now, &mut rng);
            }
        }
        println!("{offering} agents offer it");
        let median = |took: &mut Vec<f64>| {
            took.sort_by(f64::total_cmp);
            (took[ROUNDS / 2], took[ROUNDS * 99 / 100])
        };
        let without = median(&mut took[0]);
        for (at, (what, _)) in CALLERS.iter().enumerate() {
            let (p50, p99) = median(&mut took[at]);
            let more = p50 - without.0;
            println!("  {what:<40} p50 {p50:>7.2} us  p99 {p99:>7.2} us  {more:>+7.2} us");
        }
    }
}
