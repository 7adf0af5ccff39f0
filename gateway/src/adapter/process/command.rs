//! A command line and what it is started with. No shell is involved: quotes group words, and nothing is expanded.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reach_schemas::{AgentId, Delivery};
use tokio::process::Command;

use crate::child::{self, PATH};

/// A program and its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) program: String,
    arguments: Vec<String>,
}

impl Line {
    /// Takes a command line apart as a shell would: at white space, but for quotes and backslashes. `whose` is for the
    /// complaint.
    pub(super) fn parse(whose: &str, line: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("the {whose}'s command line {what}; correct it in the configuration");
        let mut words = shlex::split(line).ok_or_else(|| wrong("has a quote that is not closed"))?.into_iter();
        let program = words.next().filter(|word| !word.is_empty()).ok_or_else(|| wrong("is empty"))?;
        Ok(Self { program, arguments: words.collect() })
    }

    /// The command for one delivery, not started.
    pub(super) fn for_delivery(&self, directory: Option<&Path>, delivery: &Delivery) -> Command {
        let mut command = self.command(directory);
        command.env("AGENT_REACH_TASK_ID", delivery.task_id.to_string());
        command.env("AGENT_REACH_TOKEN", delivery.token.0.to_string());
        command.env("AGENT_REACH_IDEMPOTENCY_KEY", &delivery.idempotency_key);
        command.env("AGENT_REACH_CAPABILITY", delivery.capability.as_str());
        command.env("AGENT_REACH_DEADLINE", delivery.attempt_until.to_string());
        command.envs(delivery.traceparent.map(|context| ("TRACEPARENT", context.to_string())));
        command
    }

    /// The command for one probe, not started.
    pub(super) fn for_probe(&self, directory: Option<&Path>, agent: &AgentId) -> Command {
        let mut command = self.command(directory);
        command.env("AGENT_REACH_AGENT_ID", agent.as_str());
        command
    }

    fn command(&self, directory: Option<&Path>) -> Command {
        child::command(&self.program, &self.arguments, directory)
    }

    /// Whether the program is there and may be run.
    ///
    /// # Errors
    /// What is in the way, and what to do.
    pub(super) fn find(&self, directory: Option<&Path>) -> Result<(), String> {
        if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
            return Err(format!("there is no folder {} to start commands in; make it", directory.display()));
        }
        let path = env::var_os("PATH").unwrap_or_else(|| OsStr::new(PATH).to_owned());
        let places: Vec<PathBuf> = if self.program.contains('/') {
            vec![directory.unwrap_or_else(|| Path::new("")).join(&self.program)]
        } else {
            env::split_paths(&path).map(|place| place.join(&self.program)).collect()
        };
        let files = || places.iter().filter(|place| place.is_file());
        if files().any(|file| may_be_run(file)) {
            return Ok(());
        }
        Err(match files().next() {
            Some(file) => format!("{} is not executable; give it the permission (chmod +x)", file.display()),
            None => {
                format!("there is no program {:?}; install it, or correct the endpoint's command line", self.program)
            }
        })
    }
}

fn may_be_run(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_group_words_and_nothing_is_expanded() {
        let line = Line::parse("endpoint", r#"python3 'my script.py' --name "a b" $HOME *.txt; rm"#).unwrap();
        assert_eq!(line.program, "python3");
        assert_eq!(line.arguments, ["my script.py", "--name", "a b", "$HOME", "*.txt;", "rm"]);
        assert!(Line::parse("endpoint", "say 'hello").unwrap_err().contains("not closed"));
        assert!(Line::parse("probe", " ").unwrap_err().contains("is empty"));
    }
}
