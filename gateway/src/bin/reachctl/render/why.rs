//! Why the others were not chosen: what they lacked, or in which terms of the score they were behind.

use agent_reach_sdk::schemas::{Candidate, Decision, Score, Verdict};

use super::candidates::{latency, verdict};
use super::text::share;
use super::{Grid, Look, Shape, suggestions};

/// Differences below this are not seen in two digits.
const VISIBLE: f64 = 0.005;

/// The table of those that were not chosen. Nothing, if there are none.
pub(crate) fn not_the_others(decision: &Decision, look: &Look) -> String {
    let is_chosen = |candidate: &&Candidate| candidate.verdict == Verdict::Chosen;
    let winner = decision.candidates.iter().find(is_chosen).and_then(|candidate| candidate.score.as_ref());
    let mut grid = Grid::new(&[("WHY NOT", Shape::Text), ("", Shape::Fixed), ("", Shape::Text)]);
    for candidate in decision.candidates.iter().filter(|candidate| !is_chosen(candidate)) {
        let (tone, word) = verdict(candidate.verdict);
        let name = format!("{}\n{}", candidate.agent_id, candidate.capability);
        grid.row(tone, [name, word.to_owned(), why(candidate, winner, look)]);
    }
    if grid.is_empty() { String::new() } else { grid.render(look) }
}

fn why(candidate: &Candidate, winner: Option<&Score>, look: &Look) -> String {
    let lacks = suggestions::lacks(&candidate.lacks, look.now);
    let compared = match (candidate.verdict, &candidate.score, winner) {
        (Verdict::Drawn, Some(own), Some(winner)) => {
            format!("about as good, {} against {}: load and chance decided", share(own.total), share(winner.total))
        }
        (Verdict::Outscored, Some(own), Some(winner)) => behind(own, winner),
        (Verdict::Chosen | Verdict::Drawn | Verdict::Outscored | Verdict::Rejected, _, _) => String::new(),
    };
    match (lacks.is_empty(), compared.is_empty()) {
        (true, true) => "not recorded".to_owned(),
        (false, false) => format!("{lacks}\n{compared}"),
        (false, true) => lacks,
        (true, false) => compared,
    }
}

/// By how much it is behind, and in which parts, each with the term that explains most of it.
fn behind(own: &Score, winner: &Score) -> String {
    let mut parts = [
        (winner.fit - own.fit, part("fit", own.fit, winner.fit, fit(own, winner))),
        (
            winner.availability - own.availability,
            part("available", own.availability, winner.availability, availability(own, winner)),
        ),
        (winner.history - own.history, part("history", own.history, winner.history, history(own, winner))),
    ];
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let told = parts.iter().filter(|(gap, _)| *gap >= VISIBLE).map(|(_, told)| told.as_str());
    let told: Vec<&str> = told.collect();
    let gap = share((winner.total - own.total).max(0.0));
    if told.is_empty() { format!("{gap} behind") } else { format!("{gap} behind\n{}", told.join("\n")) }
}

fn part(name: &str, own: f64, winner: f64, because: Option<String>) -> String {
    let because = because.map(|because| format!(" ({because})")).unwrap_or_default();
    format!("{name} {} against {}{because}", share(own), share(winner))
}

/// The term that fell furthest short. Each is a name, how far short, and both values.
fn worst<const N: usize>(terms: [(&str, f64, String, String); N]) -> Option<String> {
    let worst = terms.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, short, ..)| *short >= VISIBLE);
    worst.map(|(name, _, own, winner)| format!("{name} {own} against {winner}"))
}

fn fit(own: &Score, winner: &Score) -> Option<String> {
    worst([
        (
            "weight",
            0.6 * (winner.learned_weight() - own.learned_weight()),
            share(own.learned_weight()),
            share(winner.learned_weight()),
        ),
        ("words", 0.4 * (winner.similarity - own.similarity), share(own.similarity), share(winner.similarity)),
    ])
}

fn availability(own: &Score, winner: &Score) -> Option<String> {
    worst([
        ("load", own.load - winner.load, share(own.load), share(winner.load)),
        ("needs", winner.dependencies - own.dependencies, share(own.dependencies), share(winner.dependencies)),
        ("overload", winner.overload - own.overload, share(own.overload), share(winner.overload)),
        ("slow start", winner.slow_start - own.slow_start, share(own.slow_start), share(winner.slow_start)),
        ("soundness", winner.soundness - own.soundness, share(own.soundness), share(winner.soundness)),
    ])
}

/// Latency tells only where success does not: the two have no common measure here.
fn history(own: &Score, winner: &Score) -> Option<String> {
    let success =
        [("success", winner.success_rate - own.success_rate, share(own.success_rate), share(winner.success_rate))];
    let slower = || {
        (own.latency_ms > winner.latency_ms).then(|| format!("latency {} against {}", latency(own), latency(winner)))
    };
    worst(success).or_else(slower)
}
