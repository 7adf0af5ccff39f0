//! A task, every decision that was taken for it, and what was tried.

use agent_reach_sdk::schemas::{Candidate, Decision, Lack, Reason};
use agent_reach_sdk::{Explanation, PhaseName};

use super::grid::indented;
use super::text::when;
use super::{Look, Tone, attempts, decision, sheet, tasks};

/// How many are named of those that a task waits for; the decisions below show all of them.
const NAMED_MAX: usize = 8;
/// What the terms of a score are made of.
const LEGEND: &str = "\
total: weighted sum of fit, available and history; each part is 0 to 1
fit: 0.6 weight + 0.4 words, which are 1 if the caller named it
available: free seats (1 - load) x what it needs x overload x slow start
slow start: 0.10 at first, 0.10 more every 10 min; for who is new or just back
history: success over 24 h, and latency
latency: what was seen of late, each failure as 5 s; 1 s until one was seen";

/// The whole of it.
pub(crate) fn whole(explanation: &Explanation, look: &Look) -> String {
    let task = &explanation.task;
    let mut text = tasks::header(task, look);
    text.push_str(&sheet([("waits for", Tone::Warn, waits_for(explanation))], look));
    if explanation.decisions.iter().all(|decision| decision.suggestions.is_empty()) {
        text.push_str(&tasks::near(task, look));
    }
    for (at, decision) in explanation.decisions.iter().enumerate() {
        text.push('\n');
        let number = format!("DECISION {}", at + 1);
        let when = when(decision.at, look.now);
        text.push_str(&format!("{} for attempt {}, {when}\n", look.paint(Tone::Head, &number), decision.attempt));
        text.push_str(&indented(&decision::one(decision, &look.narrower(2)), 2));
    }
    if explanation.decisions.is_empty() {
        text.push_str("\nno decision is recorded\n");
    }
    let attempts = attempts::timeline(task, look);
    if !attempts.is_empty() {
        text.push('\n');
        text.push_str(&attempts);
    }
    if explanation.decisions.iter().any(has_scores) {
        text.push('\n');
        for line in LEGEND.lines() {
            text.push_str(&look.paint(Tone::Faint, line));
            text.push('\n');
        }
    }
    text
}

/// Whom a task waits for that nobody has, and what each lacks just now; by the last look that the router took.
fn waits_for(explanation: &Explanation) -> String {
    let task = &explanation.task;
    let last = explanation.decisions.last().filter(|_| task.phase == PhaseName::Submitted && task.human.is_none());
    let passes = |lack: &Lack| match lack.reason {
        Reason::NotOffered
        | Reason::Acl
        | Reason::Params
        | Reason::Protocol
        | Reason::Dissimilar
        | Reason::Excluded
        | Reason::Ambiguous => false,
        Reason::Dead
        | Reason::Suspect
        | Reason::Ejected
        | Reason::Draining
        | Reason::BreakerOpen
        | Reason::Full
        | Reason::Hours
        | Reason::NotConnected
        | Reason::Tried
        | Reason::RetryBudget => true,
    };
    let may_come = |candidate: &&Candidate| candidate.lacks.iter().all(passes);
    let named = last.into_iter().flat_map(|decision| decision.candidates.iter().filter(may_come)).map(|candidate| {
        let lacks: Vec<&str> = candidate.lacks.iter().map(|lack| lack.reason.as_str()).collect();
        let why = if lacks.is_empty() { "to pull it".to_owned() } else { lacks.join(", ") };
        format!("{} ({why})", candidate.agent_id)
    });
    named.take(NAMED_MAX).collect::<Vec<_>>().join("\n")
}

fn has_scores(decision: &Decision) -> bool {
    decision.candidates.iter().any(|candidate| candidate.score.is_some())
}
