//! The demonstration: a gateway and three agents as processes of their own, real work on real files, an agent and the
//! gateway killed in mid-task, and one idempotency key sent twice. It uses what every user has: the SDK and `reachctl`.

mod cast;
mod stage;
mod story;

use std::path::PathBuf;

use clap::Args;

/// What the demonstration is told.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Files to work on: logs by their ending `.log`, all else as documents. None: this project's README and a log.
    files: Vec<PathBuf>,
    /// Where the database and the ledgers go, and stay. None: a new folder, which stays too.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How long an agent dwells on each sentence, so that there is time to kill it.
    #[arg(long, default_value_t = 60, value_name = "MS")]
    pace_ms: u64,
}

impl Demo {
    /// Plays it.
    ///
    /// # Errors
    /// A part of it cannot be started, or something did not go as it must: what, and where to look.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut stage = stage::Stage::set(&self)?;
        let played = story::play(&mut stage).await;
        stage.clear().await;
        played
    }
}
