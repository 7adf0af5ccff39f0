//! How the gateway is.

use std::collections::BTreeMap;

use agent_reach_sdk::PhaseName;
use agent_reach_sdk::schemas::call::GatewayHealth;
use serde_json::Value;

use super::text::{clean, lasting, when};
use super::{Grid, Look, Shape, Tone};
use crate::commands::Status;

/// What is known of the gateway.
pub(crate) fn sheet(status: &Status, look: &Look) -> String {
    let mut grid = Grid::new(&[("", Shape::Fixed), ("", Shape::Text)]);
    grid.row(Tone::Head, ["gateway".to_owned(), status.url.clone()]);
    let (tone, word) = if status.is_well { (Tone::Good, "well") } else { (Tone::Bad, "not well") };
    grid.row(tone, ["health".to_owned(), word.to_owned()]);
    if let Some(health) = &status.health {
        match health.read::<GatewayHealth>() {
            // Who shows no operator's token is told no more than that it is well.
            Ok(health) if health.version.is_empty() => {
                grid.row(Tone::Plain, ["".to_owned(), "the rest is told to operators only".to_owned()]);
            }
            Ok(health) => told(&health, look, &mut grid),
            // Another version, or something in between, says it in words of its own.
            Err(_) => health.read::<Value>().into_iter().for_each(|health| flat("", &health, &mut grid)),
        }
    }
    grid.row(Tone::Plain, ["agents".to_owned(), counts(&status.agents, "none")]);
    grid.render(look)
}

fn told(health: &GatewayHealth, look: &Look, grid: &mut Grid) {
    let mut row = |name: &str, text: String| grid.row(Tone::Plain, [name.to_owned(), text]);
    row("version", format!("{}, cluster {}", clean(&health.version), clean(&health.cluster)));
    row("up for", lasting(health.up_for));
    row("tasks", counts(&by_word(&health.open), "none open"));
    if let Some(since) = health.waiting_since {
        row("", format!("the one that waits longest for an agent was taken on {}", when(since, look.now)));
    }
    row("ended", counts(&by_word(&health.ended), "none since the start"));
}

fn by_word(phases: &BTreeMap<PhaseName, u64>) -> BTreeMap<&'static str, u64> {
    phases.iter().map(|(phase, count)| (phase.as_str(), *count)).collect()
}

fn counts(counted: &BTreeMap<&'static str, u64>, none: &str) -> String {
    let counts: Vec<String> = counted.iter().map(|(word, count)| format!("{count} {word}")).collect();
    if counts.is_empty() { none.to_owned() } else { counts.join(", ") }
}

/// Whatever the gateway says of itself, a row for each value, named by its way.
fn flat(way: &str, value: &Value, grid: &mut Grid) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let way = if way.is_empty() { name.clone() } else { format!("{way}.{name}") };
                flat(&way, value, grid);
            }
        }
        Value::Null => {}
        Value::String(text) => grid.row(Tone::Plain, [way.to_owned(), clean(text)]),
        value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            grid.row(Tone::Plain, [way.to_owned(), value.to_string()]);
        }
    }
}
