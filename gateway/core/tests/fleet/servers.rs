//! Whatever comes, changes and goes, the agents of a server are those that a walk over all agents finds.

use proptest::prelude::*;
use reach_core::fleet::{Checked, Fleet, Settings, server_name};
use reach_schemas::Timestamp;
use serde_json::json;

const SERVERS: [&str; 4] = ["alpha", "beta", "gamma", "nobody"];

/// What happens to the fleet.
#[derive(Debug, Clone)]
enum Event {
    Registered(u8, Vec<String>, u8),
    Restored(u8, Vec<String>),
    Removed(u8),
}

/// Where an agent is: a server, or an MCP server or something else by its own address. There may be several.
fn addresses() -> impl Strategy<Value = Vec<String>> {
    let of_server = (0..3_usize).prop_map(|at| format!("server:{}", SERVERS[at]));
    let address = prop_oneof![4 => of_server, 1 => Just("http://127.0.0.1:1/".to_owned())];
    prop::collection::vec(address, 0..3)
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => (0..8_u8, addresses(), 0..2_u8).prop_map(|(agent, at, version)| Event::Registered(agent, at, version)),
        1 => (0..8_u8, addresses()).prop_map(|(agent, at)| Event::Restored(agent, at)),
        2 => (0..8_u8).prop_map(Event::Removed),
    ]
}

fn card(agent: u8, addresses: &[String], version: u8) -> Checked {
    let endpoint = |address: &String| json!({ "protocol": "mcp", "address": address });
    let card = json!({
        "agent_id": format!("a{agent}@n"), "version": version.to_string(), "capabilities": [{ "name": "work" }],
        "endpoints": addresses.iter().map(endpoint).collect::<Vec<_>>(),
    });
    Checked::new(serde_json::from_value(card).unwrap()).unwrap()
}

fn agree(fleet: &Fleet) -> Result<(), TestCaseError> {
    for server in SERVERS {
        let walked: Vec<_> = fleet.nodes().filter(|node| server_name(&node.card) == Some(server)).collect();
        let found: Vec<_> = fleet.made_of(server).collect();
        let ids = |nodes: &[&reach_core::fleet::Node]| {
            nodes.iter().map(|node| (node.card.agent_id.clone(), node.generation)).collect::<Vec<_>>()
        };
        prop_assert_eq!(ids(&found), ids(&walked), "of {}", server);
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_agents_of_a_server_are_those_that_a_walk_finds(events in prop::collection::vec(event(), 1..60)) {
        let (mut fleet, now) = (Fleet::new(Settings::default()), Timestamp::from_ms(1_000_000));
        for event in events {
            match event {
                Event::Registered(agent, addresses, version) => {
                    fleet.register(card(agent, &addresses, version), now);
                }
                Event::Restored(agent, addresses) => fleet.restore(card(agent, &addresses, 0), 7, now, false, now),
                Event::Removed(agent) => drop(fleet.remove(&format!("a{agent}@n").parse().unwrap())),
            }
            agree(&fleet)?;
        }
    }
}
