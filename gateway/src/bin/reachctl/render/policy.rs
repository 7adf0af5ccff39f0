//! The policy: its rules as a table, what became of one that was put, and an answer of one question.

use agent_reach_sdk::schemas::call::{PolicyStands, PolicyTested};
use agent_reach_sdk::schemas::{Across, Policy, Ruling};

use super::text::{clean, count};
use super::{Grid, Look, Shape, Tone};

/// The policy that stands.
pub(crate) fn whole(policy: &Policy, look: &Look) -> String {
    let across = match policy.across {
        Across::Cards => "between namespaces: what both cards let pass",
        Across::Rules => "between namespaces: what both cards let pass and a rule allows",
    };
    let rules = count(policy.rules.len(), "rule", "rules");
    let mut text = format!("version {}, {rules}; {across}\n", policy.version);
    if policy.rules.is_empty() {
        return text;
    }
    let columns = [
        ("", Shape::Fixed),
        ("RULING", Shape::Fixed),
        ("WHO", Shape::Fixed),
        ("MAY", Shape::Fixed),
        ("WHOM, WHAT", Shape::Fixed),
        ("NOTE", Shape::Text),
    ];
    let mut grid = Grid::new(&columns);
    for (at, rule) in policy.rules.iter().enumerate() {
        let (word, tone) = match rule.ruling {
            Ruling::Allow => ("allow", Tone::Good),
            Ruling::Deny => ("deny", Tone::Bad),
        };
        let capability = rule.capability.as_deref().map(|pattern| format!("\n{pattern}")).unwrap_or_default();
        let cells = [
            at.to_string(),
            word.to_owned(),
            rule.subject.clone(),
            rule.actions.join(" "),
            format!("{}{capability}", rule.object),
            rule.note.clone().unwrap_or_default(),
        ];
        grid.row(tone, cells);
    }
    text.push_str(&grid.render(look));
    text
}

/// A policy that was put.
pub(crate) fn put(answer: &PolicyStands, look: &Look) -> String {
    let rules = count(answer.policy.rules.len(), "rule", "rules");
    let mut text = format!("version {} of the policy stands, with {rules}\n", answer.policy.version);
    for warning in &answer.warnings {
        text.push_str(&look.paint(Tone::Warn, &clean(warning)));
        text.push('\n');
    }
    text
}

/// Whether it may, and who says no.
pub(crate) fn tested(answer: &PolicyTested, _: &Look) -> String {
    let mut text = if answer.allowed { "yes\n".to_owned() } else { "no\n".to_owned() };
    if let Some(why) = &answer.why {
        text = format!("no: {}\n", clean(why));
    }
    if !answer.registered {
        text.push_str("the agent that is asked for is not registered: its card says nothing yet\n");
    }
    text
}
