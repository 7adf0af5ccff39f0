//! The folder, the files and the programs that the demonstration needs.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::Demo;
use super::cast::Cast;
use super::folder::Folder;

const README: &str = include_str!("../../../README.md");
const LOG: &str = include_str!("../../../examples/data/shop.log");
const SCRIPT: &str = include_str!("../../../examples/agents/log_report.py");

/// Everything that is at hand.
pub(super) struct Stage {
    /// Where all of it is.
    pub(super) folder: Folder,
    /// The gateway's program.
    pub(super) gateway: PathBuf,
    /// The document to summarize.
    pub(super) document: PathBuf,
    /// The log to report on.
    pub(super) log: PathBuf,
    /// The script of the subprocess agent.
    pub(super) script: PathBuf,
    /// How long an agent dwells on each sentence.
    pub(super) pace_ms: u64,
    /// Who is playing.
    pub(super) cast: Cast,
}

impl Stage {
    pub(super) fn set(demo: &Demo) -> anyhow::Result<Self> {
        let gateway = std::env::current_exe().context("the program's own file cannot be found")?;
        let folder = Folder::open(demo.data.as_deref(), &std::env::temp_dir(), demo.keep)?;
        let put = |name: &str, text: &str| -> anyhow::Result<PathBuf> {
            let path = folder.path().join(name);
            std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
            Ok(path)
        };
        for file in &demo.files {
            if !file.is_file() {
                bail!("{} is not a file that can be read; name a document or a .log file", file.display());
            }
        }
        let is_log = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "log");
        let absolute = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let document = demo.files.iter().find(|path| !is_log(path)).map(absolute);
        let log = demo.files.iter().find(is_log).map(absolute);
        Ok(Self {
            document: document.map_or_else(|| put("README.md", README), Ok)?,
            log: log.map_or_else(|| put("shop.log", LOG), Ok)?,
            script: put("log_report.py", SCRIPT)?,
            pace_ms: demo.pace_ms,
            cast: Cast::default(),
            gateway,
            folder,
        })
    }

    /// A program that stands beside the gateway's.
    pub(super) fn beside(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.gateway.parent().unwrap_or(Path::new(".")).join(name);
        if !path.is_file() {
            bail!(
                "{name} is not beside {}: build it with `cargo build -p reach-examples -p reach-gateway`, or run `./dev demo`",
                self.gateway.display()
            );
        }
        Ok(path)
    }

    /// A ledger's file.
    pub(super) fn ledger(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.ledger"))
    }

    /// How many lines a ledger has that hold a text.
    pub(super) fn count(&self, name: &str, text: &str) -> usize {
        let lines = std::fs::read_to_string(self.ledger(name)).unwrap_or_default();
        lines.lines().filter(|line| line.contains(text)).count()
    }

    /// Everybody goes, and the folder if it may. Says what became of it.
    pub(super) async fn clear(&mut self, went_well: bool) -> String {
        self.cast.leave().await;
        self.folder.leave(went_well)
    }
}
