//! One routing decision: which stage had the say, who was chosen, how the words were seen, and what became of each
//! candidate.

use agent_reach_sdk::schemas::{Decision, IntentTrace, Stage};

use super::text::{count, share};
use super::{Look, Tone, candidates, sheet, suggestions, why};

/// The decision, whole.
pub(crate) fn one(decision: &Decision, look: &Look) -> String {
    let kept = decision.candidates.len();
    let looked_at = count(decision.considered as usize, "capability", "capabilities");
    let kept = match kept {
        0 if decision.considered > 0 => "; none kept".to_owned(),
        some if some < decision.considered as usize => format!("; {some} kept below"),
        _all => String::new(),
    };
    let fell: Vec<String> = decision.rejected.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let (chosen_tone, chosen) = chosen(decision);
    let rows = [
        ("chosen", chosen_tone, chosen),
        ("by", Tone::Plain, stage(decision)),
        ("words", Tone::Plain, decision.intent.as_ref().map(words).unwrap_or_default()),
        ("looked at", Tone::Plain, if decision.queue.is_some() { String::new() } else { format!("{looked_at}{kept}") }),
        ("fell out", Tone::Plain, fell.join(", ")),
    ];
    let mut text = sheet(rows, look);
    for part in [
        candidates::scores(decision, look),
        why::not_the_others(decision, look),
        suggestions::near(&decision.suggestions, look),
    ] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}

fn chosen(decision: &Decision) -> (Tone, String) {
    match (&decision.chosen, &decision.queue) {
        (None, Some(queue)) => (Tone::Warn, format!("whoever takes it from the queue {queue}")),
        (Some(chosen), _) => (Tone::Good, format!("{} for {}", chosen.agent_id, chosen.capability)),
        (None, None) => (Tone::Bad, "nobody".to_owned()),
    }
}

fn stage(decision: &Decision) -> String {
    match (decision.stage, &decision.rule) {
        (Stage::Exact, _) => "exact: the caller named the agent or the capability".to_owned(),
        (Stage::Rule, Some(rule)) => format!("rule: {rule}"),
        (Stage::Rule, None) => "rule: an operator's".to_owned(),
        (Stage::Human, _) => "human: no agent is asked any more, a person is".to_owned(),
        (Stage::Intent, _) => "intent: the words".to_owned(),
    }
}

/// How the words were seen: how near the best was and how far ahead, against what was needed, and which words did it.
fn words(trace: &IntentTrace) -> String {
    let Some(best) = trace.best else {
        return format!("{}: nothing matched", trace.method);
    };
    let near = format!("{} near, {} needed", share(best), share(trace.accept_at));
    let near = if best < trace.accept_at { format!("{near}: too far") } else { near };
    let mut text = format!("{}: {near}", trace.method);
    if let Some(margin) = trace.margin {
        let ahead = format!("{} ahead of the next, {} needed", share(margin), share(trace.margin_min));
        let ahead = if margin < trace.margin_min { format!("{ahead}: too close to call") } else { ahead };
        text.push_str(&format!("\n{ahead}"));
    }
    if !trace.matched.is_empty() {
        text.push_str(&format!("\nmatched: {}", trace.matched.join(", ")));
    }
    if let Some(adjudicator) = &trace.adjudicator {
        text.push_str(&format!("\nadjudicator: {adjudicator}"));
    }
    text
}
