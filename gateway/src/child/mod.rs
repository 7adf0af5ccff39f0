//! Processes that the gateway starts: each with everything that it starts in turn is one group that is never left behind,
//! sees little of the gateway's own environment, and complains into the log. What is said to them is for others to know.

mod complaints;
mod group;

use std::env;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

pub(crate) use complaints::Complaints;
pub(crate) use group::{Group, Leader};

/// What a command sees of the gateway's own environment. The rest may hold secrets.
const INHERITED: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/// Where programs are looked for if the gateway has no `PATH`.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that is not started yet: its three streams are pipes, and it sees little of the gateway's environment.
pub(crate) fn command(program: &str, arguments: &[String], directory: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", PATH);
    command.envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    command
}
