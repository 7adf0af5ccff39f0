//! Capabilities that were found, and where one would be done.

use agent_reach_sdk::schemas::call::{Found, Resolved};

use super::text::share;
use super::{Grid, Look, Shape, Tone, decision, sheet};

/// The table of what was found.
pub(crate) fn table(found: &[Found], look: &Look) -> String {
    if found.is_empty() {
        return "no capabilities\n".to_owned();
    }
    let mut grid = Grid::new(&[
        ("CAPABILITY", Shape::Fixed),
        ("AGENT", Shape::Fixed),
        ("NEAR", Shape::Number),
        ("NOW", Shape::Fixed),
        ("WHAT IT DOES", Shape::Text),
    ]);
    for entry in found {
        grid.row(
            if entry.available { Tone::Plain } else { Tone::Faint },
            [
                entry.capability.name.to_string(),
                entry.agent_id.to_string(),
                entry.similarity.map(share).unwrap_or_default(),
                if entry.available { "yes" } else { "no" }.to_owned(),
                entry.capability.description.clone(),
            ],
        );
    }
    grid.render(look)
}

/// What is compared from look to look.
pub(crate) fn line(found: &Found) -> (String, String) {
    let name = format!("{} of {}", found.capability.name, found.agent_id);
    (name, if found.available { "available" } else { "not available" }.to_owned())
}

/// Who would get a task, where that is, and why.
pub(crate) fn resolved(answer: &Resolved, look: &Look) -> String {
    let ways = answer.endpoints.iter();
    let ways =
        ways.map(|endpoint| format!("{} {}", endpoint.protocol.as_str(), endpoint.address).trim_end().to_owned());
    let ways: Vec<String> = ways.collect();
    let place = if ways.is_empty() { "it pulls its work".to_owned() } else { ways.join("\n") };
    let rows = [
        ("agent", Tone::Good, answer.agent_id.to_string()),
        ("capability", Tone::Plain, answer.capability.to_string()),
        ("reached by", Tone::Plain, place),
    ];
    format!("{}\n{}", sheet(rows, look), decision::one(&answer.decision, look))
}
