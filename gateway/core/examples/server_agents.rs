//! What it costs to find the agents of an MCP server among 10,000 agents: by a walk over all of them, and by the index.
//! `cargo run --release -p reach-core --example server_agents`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::time::Instant;

use reach_core::fleet::{Checked, Fleet, Settings, server_name};
use reach_schemas::Timestamp;

const AGENTS: usize = 10_000;
/// One agent in so many is made of a server, each of one of its own.
const SERVED: usize = 100;
const LOOKS: u32 = 1_000;

fn card(at: usize) -> Checked {
    let endpoint = if at.is_multiple_of(SERVED) {
        format!(r#"{{"protocol":"mcp","address":"server:server_{at}"}}"#)
    } else {
        r#"{"protocol":"http","address":"http://127.0.0.1:1/"}"#.to_owned()
    };
    let text = format!(
        r#"{{"agent_id":"agent_{at}@n","endpoints":[{endpoint}],"capabilities":[{{"name":"work_{}"}}]}}"#,
        at % 100
    );
    Checked::new(serde_json::from_str(&text).expect("a well-formed card")).expect("a good card")
}

fn main() {
    let mut fleet = Fleet::new(Settings::default());
    (0..AGENTS).for_each(|at| drop(fleet.register(card(at), Timestamp::from_ms(1_700_000_000_000))));
    let took = |what: &str, find: &dyn Fn(&str) -> usize| {
        let began = Instant::now();
        let found: usize = (0..LOOKS as usize).map(|look| find(&format!("server_{}", look * SERVED % AGENTS))).sum();
        println!("{what}: {:?} a look, {found} agents found in {LOOKS} looks", began.elapsed() / LOOKS);
    };
    println!("{AGENTS} agents, {} of them of a server", AGENTS / SERVED);
    took("walk ", &|name| fleet.nodes().filter(|node| server_name(&node.card) == Some(name)).count());
    took("index", &|name| fleet.made_of(name).count());
}
