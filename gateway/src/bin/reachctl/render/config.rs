//! The configuration: what is in force, what a reload did, and why a file was not taken on.

use agent_reach_sdk::schemas::call::{
    ConfigChange, ConfigMoves, ConfigOrigin, ConfigRefused, ConfigReloaded, ConfigView,
};

use super::text::{clean, count, when};
use super::{Grid, Look, Shape, Tone};

/// What is in force.
pub(crate) fn table(view: &ConfigView, look: &Look) -> String {
    let columns = [("KEY", Shape::Fixed), ("FROM", Shape::Fixed), ("CHANGES", Shape::Fixed), ("VALUE", Shape::Text)];
    let mut grid = Grid::new(&columns);
    for key in &view.keys {
        let tone = match key.from {
            ConfigOrigin::Default => Tone::Plain,
            ConfigOrigin::File | ConfigOrigin::CommandLine => Tone::Good,
        };
        let from = key.from.as_str().replace('_', " ");
        grid.row(tone, [key.key.clone(), from, key.applies.as_str().to_owned(), key.value.get().to_owned()]);
    }
    let file = view.file.as_deref().unwrap_or("no file");
    format!("{}{}", grid.render(look), clean(&format!("in force since {} by {file}\n", when(view.since, look.now))))
}

/// What a reload did.
pub(crate) fn reloaded(done: &ConfigReloaded, _: &Look) -> String {
    let what = if done.dry_run { "is right; nothing was changed" } else { "was taken on" };
    let mut text = clean(&format!("{} {what}\n", done.file));
    let mut lines: Vec<String> = done.changes.iter().map(change).collect();
    lines.extend(moves("agent", &done.agents));
    lines.extend(moves("MCP server", &done.mcp_servers));
    if lines.is_empty() {
        lines.push("nothing is otherwise than before".to_owned());
    }
    lines.iter().for_each(|line| text.push_str(&format!("  {}\n", clean(line))));
    text
}

fn change(change: &ConfigChange) -> String {
    format!("{}: {} -> {}", change.key, change.was.get(), change.is.get())
}

fn moves(kind: &str, moves: &ConfigMoves) -> Vec<String> {
    let told = |names: &[String], what: &str| names.iter().map(|name| format!("{kind} {name} {what}")).collect();
    let [added, changed, removed]: [Vec<String>; 3] = [
        told(&moves.added, "is added"),
        told(&moves.changed, "is changed"),
        told(&moves.removed, "is taken out: it ends what it has"),
    ];
    [added, changed, removed].concat()
}

/// The message with how many mistakes there are in place of what it tells of them. None: it tells of none.
pub(crate) fn counted(message: &str, refused: &ConfigRefused) -> Option<String> {
    let told = reach_gateway::config::told(&refused.mistakes);
    let place = message.strip_suffix(&told).filter(|_| !refused.mistakes.is_empty())?;
    Some(format!("{place}{}", count(refused.mistakes.len(), "mistake", "mistakes")))
}

/// Why a file was not taken on, a line each.
pub(crate) fn refused(refused: &ConfigRefused) -> String {
    let restart = refused.needs_restart.iter().map(|it| {
        format!("{}: {} is in force, the file has {}; only a restart changes it", it.key, it.was.get(), it.is.get())
    });
    refused.mistakes.iter().cloned().chain(restart).map(|line| format!("  - {}\n", clean(&line))).collect()
}
