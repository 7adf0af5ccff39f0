//! MCP servers: the table, and what became of one that was added or removed.

use agent_reach_sdk::schemas::{ServerState, ServerView};

use super::text::{clean, count, when};
use super::{Grid, Look, Shape, Tone};

fn tone(server: &ServerView) -> Tone {
    match server.state {
        ServerState::Up if server.warnings.is_empty() => Tone::Good,
        ServerState::Up | ServerState::Starting => Tone::Warn,
        ServerState::Down => Tone::Bad,
    }
}

/// Where it is: its URL, or the command that it is started by.
fn place(server: &ServerView) -> String {
    match (&server.server.url, &server.server.command) {
        (Some(url), _) => url.clone(),
        (None, Some(command)) => [std::slice::from_ref(command), &server.server.args].concat().join(" "),
        (None, None) => String::new(),
    }
}

/// The table of servers.
pub(crate) fn table(servers: &[ServerView], look: &Look) -> String {
    if servers.is_empty() {
        return "no servers; add one with reachctl add mcp NAME -- COMMAND, or NAME URL\n".to_owned();
    }
    let columns =
        [("SERVER, TOOLS", Shape::Fixed), ("STATE, SINCE", Shape::Fixed), ("WHERE, WHAT IS ODD", Shape::Text)];
    let mut grid = Grid::new(&columns);
    for server in servers {
        let mut state = vec![server.state.as_str().to_owned(), when(server.since, look.now)];
        state.extend(server.revision.clone());
        let mut told = vec![place(server)];
        told.extend(server.why.clone());
        told.extend(server.warnings.iter().cloned());
        let tools = count(server.tools as usize, "tool", "tools");
        grid.row(tone(server), [format!("{}\n{tools}", server.server.name), state.join("\n"), told.join("\n")]);
    }
    grid.render(look)
}

/// What is compared from look to look.
pub(crate) fn line(server: &ServerView) -> (String, String) {
    let mut parts = vec![server.state.as_str().to_owned(), count(server.tools as usize, "tool", "tools")];
    parts.extend(server.why.clone());
    (server.server.name.to_string(), parts.join(" "))
}

/// A server that was added.
pub(crate) fn added(server: &ServerView, look: &Look) -> String {
    let agents: Vec<&str> = server.agents.iter().map(|agent| agent.as_str()).collect();
    let tools = count(server.tools as usize, "tool", "tools");
    let name = &server.server.name;
    let mut text = clean(&format!("{name} is added: {tools}, offered by {}\n", agents.join(", ")));
    text.push_str(&format!("an MCP client reaches it at /servers/{name}/mcp\n"));
    for warning in &server.warnings {
        text.push_str(&look.paint(Tone::Warn, &clean(warning)));
        text.push('\n');
    }
    text
}

/// A server that was removed.
pub(crate) fn removed(server: &ServerView, _: &Look) -> String {
    format!("{} is removed, and its agents with it\n", server.server.name)
}
