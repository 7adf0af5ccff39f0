//! What became, or would become, of dead letters that are sent again.

use agent_reach_sdk::schemas::call::Redriven;

use super::text::{clean, count, when};
use super::{Look, Tone, tasks};

/// How many refusals are told one by one.
const REFUSED_MAX: usize = 20;

/// What became of them: by name if they were named, else in a sentence.
pub(crate) fn redriven(answer: &Redriven, is_named: bool, look: &Look) -> String {
    let mut text = String::new();
    if !answer.sample.is_empty() {
        return would_be(answer, look);
    }
    if is_named {
        for task in &answer.redriven {
            text.push_str(&format!("{task} on its way again{}\n", pace(answer, look)));
        }
    } else if !answer.redriven.is_empty() {
        let sent = count(answer.redriven.len(), "dead letter", "dead letters");
        text.push_str(&format!("{sent} on the way again{}\n", pace(answer, look)));
    }
    for refused in answer.refused.iter().take(REFUSED_MAX) {
        let (code, message) = (refused.failure.code.name(), &refused.failure.message);
        let line = format!("{} not sent: {code}: {message}", refused.task_id);
        text.push_str(&look.paint(Tone::Bad, &clean(&line)));
        text.push('\n');
    }
    if let Some(more) = answer.refused.len().checked_sub(REFUSED_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("and {more} more not sent; --json tells all of them\n"));
    }
    if answer.gone > 0 {
        text.push_str(&format!("{} somebody else had sent, or were forgotten, meanwhile\n", answer.gone));
    }
    if let Some(stopped) = &answer.stopped {
        let line = format!("stopped: {}: {}", stopped.code.name(), stopped.message);
        text.push_str(&look.paint(Tone::Bad, &clean(&line)));
        text.push('\n');
    }
    if answer.remaining > 0 {
        text.push_str(&format!("{} left as they are\n", answer.remaining));
    }
    if text.is_empty() {
        text.push_str("no dead letters to send\n");
    }
    text
}

/// How far it is, for people who wait.
pub(crate) fn so_far(answer: &Redriven) -> String {
    let until = answer.spread_until.map(|at| format!(", the last of them goes at {at}")).unwrap_or_default();
    format!("{} of {} sent again{until}", answer.redriven.len(), answer.matched)
}

fn would_be(answer: &Redriven, look: &Look) -> String {
    let fitting = usize::try_from(answer.matched).unwrap_or(usize::MAX);
    let mut text = format!(
        "{} would be on the way again{}; nothing was changed\n\n",
        count(fitting, "dead letter", "dead letters"),
        pace(answer, look)
    );
    text.push_str(&tasks::table(&answer.sample, u32::MAX, look));
    if fitting > answer.sample.len() {
        text.push_str(&format!("and {} more\n", fitting - answer.sample.len()));
    }
    text
}

fn pace(answer: &Redriven, look: &Look) -> String {
    match (answer.rate, answer.spread_until) {
        (Some(rate), Some(until)) => format!(", {rate} a second, the last {}", when(until, look.now)),
        (_, _) => String::new(),
    }
}
