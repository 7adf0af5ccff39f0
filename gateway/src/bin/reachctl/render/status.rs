//! How the gateway is.

use serde_json::Value;

use super::text::clean;
use super::{Grid, Look, Shape, Tone};
use crate::commands::Status;

/// What is known of the gateway.
pub(crate) fn sheet(status: &Status, look: &Look) -> String {
    let mut grid = Grid::new(&[("", Shape::Fixed), ("", Shape::Text)]);
    grid.row(Tone::Head, ["gateway".to_owned(), status.url.clone()]);
    let (tone, word) = if status.is_well { (Tone::Good, "well") } else { (Tone::Bad, "not well") };
    grid.row(tone, ["health".to_owned(), word.to_owned()]);
    if let Some(Ok(health)) = status.health.as_ref().map(|health| health.read::<Value>()) {
        flat("", &health, &mut grid);
    }
    let counts: Vec<String> = status.agents.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let agents = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    grid.row(Tone::Plain, ["agents".to_owned(), agents]);
    grid.render(look)
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
