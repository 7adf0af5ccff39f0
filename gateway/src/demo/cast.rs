//! The processes of the demonstration. All of them end with it, however it ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use tokio::process::{Child, Command};

/// Who is playing, by name.
#[derive(Default)]
pub(super) struct Cast {
    playing: BTreeMap<String, Child>,
}

impl Cast {
    /// Starts a program; what it says goes to a file.
    pub(super) fn enter(&mut self, name: &str, program: &Path, args: &[String], said: &PathBuf) -> anyhow::Result<u32> {
        let file = File::options().create(true).append(true).open(said);
        let file = file.with_context(|| format!("{} cannot be written", said.display()))?;
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::from(file.try_clone()?))
            .stderr(Stdio::from(file))
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let id = child.id().unwrap_or_default();
        self.playing.insert(name.to_owned(), child);
        Ok(id)
    }

    /// Kills one with SIGKILL: no farewell, no clean-up.
    pub(super) async fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        let mut child = self.playing.remove(name).with_context(|| format!("{name} is not playing"))?;
        child.kill().await.with_context(|| format!("{name} cannot be killed"))
    }

    /// Everybody goes, the gateway last: it is told to stop and given time to.
    pub(super) async fn leave(&mut self) {
        for (_, child) in std::mem::take(&mut self.playing) {
            if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGTERM);
            }
            let mut child = child;
            if tokio::time::timeout(Duration::from_secs(3), child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
        }
    }
}
