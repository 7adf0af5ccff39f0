//! What was tried, as a timeline: each time is told from the attempt's own start.

use agent_reach_sdk::schemas::AttemptView;
use agent_reach_sdk::{PhaseName, TaskView, Timestamp};

use super::text::{lasting, shorten, when};
use super::{Grid, Look, Shape, Tone};

/// How much of a failure's message is shown.
const MESSAGE_MAX: usize = 200;
/// From this width on, each time has a column of its own.
const WIDE: u16 = 96;

/// The timeline. Nothing, if nothing was tried.
pub(crate) fn timeline(task: &TaskView, look: &Look) -> String {
    if task.attempts.is_empty() {
        return String::new();
    }
    let is_wide = look.width >= WIDE;
    let mut columns = vec![("ATTEMPT", Shape::Number), ("AGENT", Shape::Fixed), ("STARTED", Shape::Fixed)];
    if is_wide {
        columns.extend(["DELIVERED", "ACCEPTED", "ENDED"].map(|name| (name, Shape::Number)));
    } else {
        columns.push(("THEN", Shape::Fixed));
    }
    columns.push(("HOW", Shape::Text));
    let mut grid = Grid::new(&columns);
    for (at, attempt) in task.attempts.iter().enumerate() {
        let (tone, how) = how(attempt, task.phase, at + 1 == task.attempts.len());
        let mut cells = vec![
            attempt.token.0.to_string(),
            format!("{}\n{}", attempt.agent_id, attempt.capability),
            when(attempt.started_at, look.now),
        ];
        let times = times(attempt);
        if is_wide {
            cells.extend(times.map(|(_, after)| after.unwrap_or_else(|| "-".to_owned())));
        } else {
            let known = times.into_iter().filter_map(|(name, after)| Some(format!("{name:<9} {}", after?)));
            cells.push(known.collect::<Vec<_>>().join("\n"));
        }
        cells.push(how);
        grid.row(tone, cells);
    }
    grid.render(look)
}

/// What came after the start, and how long after.
fn times(attempt: &AttemptView) -> [(&'static str, Option<String>); 3] {
    let after = |then: Option<Timestamp>| then.map(|then| format!("+{}", lasting(then.since(attempt.started_at))));
    [
        ("delivered", after(attempt.delivered_at)),
        ("accepted", after(attempt.accepted_at)),
        ("ended", after(attempt.ended_at)),
    ]
}

fn how(attempt: &AttemptView, phase: PhaseName, is_last: bool) -> (Tone, String) {
    match (&attempt.failure, attempt.ended_at) {
        (Some(failure), _) => {
            (Tone::Bad, format!("{}: {}", failure.code.name(), shorten(&failure.message, MESSAGE_MAX)))
        }
        (None, Some(_)) if is_last && phase == PhaseName::Completed => (Tone::Good, "completed".to_owned()),
        (None, Some(_)) => (Tone::Plain, "ended".to_owned()),
        (None, None) if attempt.accepted_at.is_some() => (Tone::Plain, "at work".to_owned()),
        (None, None) if attempt.delivered_at.is_some() => (Tone::Plain, "delivered".to_owned()),
        (None, None) => (Tone::Plain, "on its way".to_owned()),
    }
}
