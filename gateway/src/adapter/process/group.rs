//! A process and everything that it starts, as one process group that is never left behind: when its [`Group`] is
//! dropped, whatever of it still runs is asked to end (SIGTERM), made to end after a grace (SIGKILL), and reaped.
//!
//! Two things escape it: a child that leaves the group on purpose (`setsid`), and a child that outlives a gateway which
//! was itself killed by SIGKILL, since nothing is left then to signal it.

use std::io;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// How long a group has to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked at meanwhile: no event tells that the last of a group is gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running group, and its first process.
pub(super) struct Group(Option<Members>);

struct Members {
    leader: Child,
    id: Pid,
}

impl Group {
    /// Starts a command as the leader of a new group.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let leader = command.process_group(0).spawn()?;
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let id = id.expect("a process that was just started and not yet waited for has an id");
        Ok(Self(Some(Members { leader, id })))
    }

    /// The group's first process.
    pub(super) fn leader(&mut self) -> &mut Child {
        &mut self.0.as_mut().expect("only dropping takes the members out").leader
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
}

/// A group that was asked to end.
struct Ending(Option<Members>);

impl Ending {
    async fn see_through(mut self) {
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if self.0.as_mut().is_none_or(Members::are_gone) {
                self.0 = None;
                return;
            }
            sleep(LOOK_EVERY).await;
        }
        let Some(mut members) = self.0.take() else { return };
        let _ = killpg(members.id, Signal::SIGKILL);
        let _ = members.leader.wait().await;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(members) = &self.0 {
            let _ = killpg(members.id, Signal::SIGKILL);
        }
    }
}
