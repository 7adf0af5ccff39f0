//! The candidates that were scored, with each term of their scores.

use agent_reach_sdk::Span;
use agent_reach_sdk::schemas::{Candidate, Decision, Score, Verdict};

use super::text::{lasting, share};
use super::{Grid, Look, Shape, Tone};

/// Moves below this are not seen in two digits.
const VISIBLE: f64 = 0.005;
/// From this width on, each term has a column of its own.
const WIDE: u16 = 114;

/// The table of scores. Nothing, if nobody was scored.
pub(crate) fn scores(decision: &Decision, look: &Look) -> String {
    let scored: Vec<(&Candidate, &Score)> =
        decision.candidates.iter().filter_map(|candidate| Some((candidate, candidate.score.as_ref()?))).collect();
    if scored.is_empty() {
        return String::new();
    }
    if look.width >= WIDE { wide(&scored, look) } else { narrow(&scored, look) }
}

pub(super) const fn verdict(verdict: Verdict) -> (Tone, &'static str) {
    match verdict {
        Verdict::Chosen => (Tone::Good, "chosen"),
        Verdict::Drawn => (Tone::Plain, "drawn"),
        Verdict::Outscored => (Tone::Plain, "outscored"),
        Verdict::Rejected => (Tone::Faint, "rejected"),
    }
}

pub(super) fn latency(score: &Score) -> String {
    // A share of a millisecond says nothing here.
    lasting(Span::from_ms(score.latency_ms.max(0.0).round() as u64))
}

/// The weight, and what outcomes have made of it, where that is to be seen.
fn weight(score: &Score) -> String {
    let is_moved = (score.learned - 1.0).abs() >= VISIBLE;
    let learned = if is_moved { format!("x{:.2}", score.learned) } else { String::new() };
    format!("{}{learned}", share(score.weight))
}

fn wide(scored: &[(&Candidate, &Score)], look: &Look) -> String {
    let mut columns = vec![("CANDIDATE", Shape::Text), ("VERDICT", Shape::Fixed)];
    let terms = [
        "TOTAL", "FIT", "weight", "words", "AVAIL", "load", "needs", "over", "slow", "sound", "HIST", "success",
        "latency",
    ];
    columns.extend(terms.map(|term| (term, Shape::Number)));
    let mut grid = Grid::new(&columns).gap(1);
    for (candidate, score) in scored {
        let (tone, word) = verdict(candidate.verdict);
        let terms = [
            score.total,
            score.fit,
            score.similarity,
            score.availability,
            score.load,
            score.dependencies,
            score.overload,
            score.slow_start,
            score.soundness,
            score.history,
            score.success_rate,
        ];
        let mut cells = vec![format!("{}\n{}", candidate.agent_id, candidate.capability), word.to_owned()];
        cells.extend(terms.map(share));
        // Beside the total and the fit.
        cells.insert(4, weight(score));
        cells.push(latency(score));
        grid.row(tone, cells);
    }
    grid.render(look)
}

/// Each part with its terms below it, so that it fits 80 columns.
fn narrow(scored: &[(&Candidate, &Score)], look: &Look) -> String {
    let mut grid = Grid::new(&[
        ("CANDIDATE", Shape::Text),
        ("TOTAL", Shape::Fixed),
        ("FIT", Shape::Fixed),
        ("AVAILABLE", Shape::Fixed),
        ("HISTORY", Shape::Fixed),
    ]);
    for (candidate, score) in scored {
        let (tone, word) = verdict(candidate.verdict);
        let part = |part: f64, terms: &[(&str, String)]| {
            let lines = terms.iter().map(|(name, value)| format!("\n{name} {value}"));
            std::iter::once(share(part)).chain(lines).collect::<String>()
        };
        let fit = [("weight", weight(score)), ("words ", share(score.similarity))];
        let mut available = vec![
            ("load ", format!("{}, over {}", share(score.load), share(score.overload))),
            ("needs", format!("{}, slow {}", share(score.dependencies), share(score.slow_start))),
        ];
        if score.soundness < 1.0 {
            available.push(("sound", share(score.soundness)));
        }
        let history = [("success", share(score.success_rate)), ("latency", latency(score))];
        grid.row(
            tone,
            [
                format!("{}\n{}", candidate.agent_id, candidate.capability),
                format!("{}\n{word}", share(score.total)),
                part(score.fit, &fit),
                part(score.availability, &available),
                part(score.history, &history),
            ],
        );
    }
    grid.render(look)
}
