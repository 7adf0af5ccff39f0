//! Commands that the runner starts: in a process group of their own, which is ended with everything in it.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// How long a group has to end after SIGTERM.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// A running command. When dropped, whatever of its group still runs is killed.
pub(crate) struct Group {
    pub(crate) leader: Child,
    id: Pid,
}

/// A command line taken apart as a shell would, without starting one: quotes group words, nothing is expanded.
pub(crate) fn command(line: &str) -> Result<Command, String> {
    let words = shlex::split(line).ok_or_else(|| format!("{line:?} has a quote that is not closed"))?;
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    Ok(command)
}

impl Group {
    /// Starts a command as the leader of a new group.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let started = command.process_group(0).kill_on_drop(true).spawn();
        let leader = started.map_err(|error| format!("the command {program:?} cannot be started: {error}"))?;
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let id = id.ok_or_else(|| format!("the command {program:?} ended before it began"))?;
        Ok(Self { leader, id })
    }

    /// Its id, to signal it by.
    pub(crate) const fn id(&self) -> Pid {
        self.id
    }

    /// Waits until the leader has ended. None: it has not within this time.
    pub(crate) async fn ended(&mut self, within: Duration) -> Option<std::process::ExitStatus> {
        tokio::time::timeout(within, self.leader.wait()).await.ok().and_then(Result::ok)
    }
}

/// Signals a group. One that is gone is no trouble.
pub(crate) fn signal(id: Pid, signal: Signal) {
    let _ = killpg(id, signal);
}

impl Drop for Group {
    fn drop(&mut self) {
        signal(self.id, Signal::SIGKILL);
    }
}
