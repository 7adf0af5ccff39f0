//! Which commands a word may have been meant for, where it is none: `tasks` is `get tasks`.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// How alike a word must be, 0 to 1: a slip or two in a word.
const ALIKE_MIN: f64 = 0.7;
/// How many are named.
const NEAR_MAX: usize = 3;

/// Adds to what clap says of a word that is no command those that were meant, most likely.
pub(crate) fn with_near(command: &Command, mut error: Error) -> Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let near = near(command, given);
    if !near.is_empty() {
        // The last one, since each of a kind takes the place of the one before.
        let named = near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let tip = format!("did you mean {named}?");
        let _ = error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Best first, each as it is written after the program's name. A word may be the last of a command's, or all of them.
fn near(command: &Command, given: &str) -> Vec<String> {
    let given = given.to_lowercase().replace('_', "-");
    let mut near: Vec<(f64, String)> = Vec::new();
    for first in command.get_subcommands().filter(|first| first.get_name() != "help") {
        let name = first.get_name();
        near.push((alike(&given, name), format!("{} {name}", command.get_name())));
        for second in first.get_subcommands().filter(|second| second.get_name() != "help") {
            // Of two that fit as well, the one without another word before it.
            let alike = alike(&given, second.get_name()) - 0.01;
            near.push((alike, format!("{} {name} {}", command.get_name(), second.get_name())));
        }
    }
    near.retain(|(alike, _)| *alike >= ALIKE_MIN);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect()
}

fn alike(given: &str, name: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(given, name)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[track_caller]
    fn check(given: &str, expected: &str) {
        let near = near(&Cli::command(), given);
        assert_eq!(near.first().map(String::as_str).unwrap_or_default(), expected, "{given}: {near:?}");
    }

    #[test]
    fn a_slip_and_a_missing_word_are_seen_through() {
        check("tasks", "reachctl get tasks");
        check("agents", "reachctl get agents");
        check("redrive", "reachctl dead-letters redrive");
        check("dead_letters", "reachctl dead-letters");
        check("sumbit", "reachctl submit");
        check("webhook", "reachctl webhooks");
        check("coffee", "");
    }
}
