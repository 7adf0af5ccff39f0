//! A process and everything that it starts, as one process group that is never left behind: when its [`Group`] is
//! dropped, whatever of it still runs is asked to end (SIGTERM), made to end after a grace (SIGKILL), and reaped.
//!
//! Two things escape it: a child that leaves the group on purpose (`setsid`), and a child that outlives a gateway which
//! was itself killed by SIGKILL, since nothing is left then to signal it.

use std::future::pending;
use std::io;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// How long a group has to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked at meanwhile: no event tells that the last of a group is gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How much of the last output of a group that was asked to end is read away.
const LAST_OUTPUT_MAX: u64 = 1 << 20;

/// A running group.
pub(crate) struct Group(Option<Members>);

struct Members {
    leader: Child,
    id: Pid,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

/// A group's first process and its streams. The outputs stay the group's: a process that writes while it tidies up
/// must not be killed for it because nobody reads any more.
pub(crate) struct Leader<'a> {
    pub(crate) process: &'a mut Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<&'a mut ChildStdout>,
    pub(crate) stderr: Option<&'a mut ChildStderr>,
}

impl Group {
    /// Starts a command as the leader of a new group.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut leader = command.process_group(0).spawn()?;
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let id = id.expect("a process that was just started and not yet waited for has an id");
        let (stdout, stderr) = (leader.stdout.take(), leader.stderr.take());
        Ok(Self(Some(Members { leader, id, stdout, stderr })))
    }

    /// The group's first process.
    pub(crate) fn leader(&mut self) -> Leader<'_> {
        let members = self.0.as_mut().expect("only dropping takes the members out");
        let Members { leader: process, stdout, stderr, .. } = members;
        Leader { stdin: process.stdin.take(), process, stdout: stdout.as_mut(), stderr: stderr.as_mut() }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut members) = self.0.take() else { return };
        if members.are_gone() {
            return;
        }
        let _ = killpg(members.id, Signal::SIGTERM);
        let ending = Ending(Some(members));
        // Outside a runtime, or in one that shuts down, `ending` is dropped at once, which kills.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(ending.see_through());
        }
    }
}

impl Members {
    /// Whether nothing of the group runs any more. Reaps the leader if it has ended.
    ///
    /// The group's number cannot be given to another while a member lives, even when the leader is reaped.
    fn are_gone(&mut self) -> bool {
        let is_reaped = !matches!(self.leader.try_wait(), Ok(None));
        is_reaped && killpg(self.id, None).is_err()
    }

    async fn go_within(&mut self, grace: Duration) -> bool {
        let until = Instant::now() + grace;
        while !self.are_gone() {
            if Instant::now() >= until {
                return false;
            }
            sleep(LOOK_EVERY).await;
        }
        true
    }
}

/// A group that was asked to end.
struct Ending(Option<Members>);

impl Ending {
    async fn see_through(mut self) {
        let Some(members) = &mut self.0 else { return };
        let (mut stdout, mut stderr) = (members.stdout.take(), members.stderr.take());
        let is_gone = tokio::select! {
            is_gone = members.go_within(GRACE) => is_gone,
            () = async { tokio::join!(read_away(&mut stdout), read_away(&mut stderr)); pending().await } => false,
        };
        let Some(mut members) = self.0.take() else { return };
        if !is_gone {
            let _ = killpg(members.id, Signal::SIGKILL);
            let _ = members.leader.wait().await;
        }
    }
}

async fn read_away(output: &mut Option<impl AsyncRead + Unpin>) {
    if let Some(output) = output {
        let _ = tokio::io::copy(&mut output.take(LAST_OUTPUT_MAX), &mut tokio::io::sink()).await;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(members) = &self.0 {
            let _ = killpg(members.id, Signal::SIGKILL);
        }
    }
}
