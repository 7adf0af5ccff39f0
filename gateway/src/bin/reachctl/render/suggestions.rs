//! What was near when nobody fitted, and what a candidate lacked.

use agent_reach_sdk::Timestamp;
use agent_reach_sdk::schemas::{Lack, Suggestion};

use super::grid::indented;
use super::text::{share, when};
use super::{Grid, Look, Shape, Tone};

/// The table of what was near. Nothing, if there was nothing.
pub(crate) fn near(suggestions: &[Suggestion], look: &Look) -> String {
    if suggestions.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(&[
        ("NEAR", Shape::Number),
        ("CAPABILITY", Shape::Text),
        ("AGENT", Shape::Text),
        ("WHAT IT LACKS", Shape::Text),
        ("WHAT IT DOES", Shape::Text),
    ]);
    for suggestion in suggestions {
        grid.row(
            Tone::Plain,
            [
                suggestion.similarity.map(share).unwrap_or_default(),
                suggestion.capability.to_string(),
                suggestion.agent_id.to_string(),
                lacks(&suggestion.lacks, look.now),
                suggestion.description.clone(),
            ],
        );
    }
    indented(&grid.render(&look.narrower(2)), 2)
}

/// What it lacks, a line each.
pub(crate) fn lacks(lacks: &[Lack], now: Timestamp) -> String {
    let line = |lack: &Lack| {
        let mut line = lack.reason.as_str().to_owned();
        if !lack.detail.is_empty() {
            line.push_str(": ");
            line.push_str(&lack.detail);
        }
        if let Some(until) = lack.until {
            let passed = if until > now { "may pass" } else { "was to pass" };
            line.push_str(&format!(" ({passed} {})", when(until, now)));
        }
        line
    };
    lacks.iter().map(line).collect::<Vec<_>>().join("\n")
}
