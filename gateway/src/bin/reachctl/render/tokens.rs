//! Who may call.

use agent_reach_sdk::Timestamp;
use agent_reach_sdk::schemas::call::{KeyStage, KnownAgent, Revoked, Tokens};

use super::text::when;
use super::{Grid, Look, Shape, Tone};

const fn stage(stage: KeyStage) -> &'static str {
    match stage {
        KeyStage::Next => "next",
        KeyStage::Active => "active",
        KeyStage::Retiring => "retiring",
    }
}

/// The table of all who may call.
pub(crate) fn table(tokens: &Tokens, look: &Look) -> String {
    let columns = [("WHO", Shape::Fixed), ("WHAT", Shape::Text), ("SINCE, UNTIL", Shape::Fixed)];
    let mut grid = Grid::new(&columns);
    for agent in &tokens.agents {
        let what = if agent.thumbprint.is_empty() {
            "agent; its key is forgotten".to_owned()
        } else {
            format!("agent, generation {}, key {}", agent.generation, agent.thumbprint)
        };
        grid.row(Tone::Plain, [agent.agent_id.to_string(), what, when(agent.proven_at, look.now)]);
    }
    for operator in &tokens.operators {
        let mut times = vec![when(operator.made_at, look.now)];
        times.extend(operator.expires_at.map(|at| when(at, look.now)));
        let (tone, what) = standing(operator.expires_at, operator.role.as_str(), Tone::Plain, look);
        grid.row(tone, [operator.name.to_string(), what, times.join("\n")]);
    }
    for join in &tokens.joins {
        let (tone, what) = standing(Some(join.expires_at), "may join, once", Tone::Faint, look);
        grid.row(tone, [join.agents.to_string(), what, when(join.expires_at, look.now)]);
    }
    for key in &tokens.signing_keys {
        let what = format!("signing key, {}", stage(key.stage));
        grid.row(Tone::Faint, [key.kid.chars().take(12).collect(), what, when(key.since, look.now)]);
    }
    grid.render(look)
}

/// What a token lets do, or that its time is over.
fn standing(until: Option<Timestamp>, what: &str, tone: Tone, look: &Look) -> (Tone, String) {
    if until.is_some_and(|until| until <= look.now) {
        return (Tone::Warn, format!("{what}: expired"));
    }
    (tone, what.to_owned())
}

/// What was ended.
pub(crate) fn revoked(revoked: &Revoked) -> String {
    match revoked.generation {
        Some(generation) => format!("revoked: all tokens up to generation {generation} are refused\n"),
        None => "revoked\n".to_owned(),
    }
}

/// An agent that is known by its key.
pub(crate) fn trusted(known: &KnownAgent) -> String {
    format!("{} is known by the key {}, generation {}\n", known.agent_id, known.thumbprint, known.generation)
}
