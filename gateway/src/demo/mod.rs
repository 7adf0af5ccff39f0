//! The demonstration: a gateway and three agents as processes of their own, real work on real files, an agent and the
//! gateway killed in mid-task, and one idempotency key sent twice. It uses what every user has: the SDK and `reachctl`.

mod cast;
mod folder;
mod stage;
mod story;

use std::path::PathBuf;

use clap::Args;

/// What the demonstration is told.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Files to work on: logs by their ending `.log`, all else as documents. None: this project's README and a log.
    files: Vec<PathBuf>,
    /// Where the database and the ledgers go, and stay. None: a new folder, which goes when all went well.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keep the new folder too, to look at what was played.
    #[arg(long)]
    keep: bool,
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
        let played = tokio::select! {
            played = story::play(&mut stage) => played,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        };
        let told = stage.clear(played.is_ok()).await;
        println!("   {told}");
        played
    }
}
