//! The flags of the configuration.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Check a configuration file, here and without a gateway; tell all that is wrong with it
    Check { file: PathBuf },
    /// Have the gateway read its file again and go by it, if all of it is right
    Reload {
        /// Only tell what would change, or what is wrong
        #[arg(long)]
        dry_run: bool,
    },
    /// Show what is in force, where each value came from, and what a reload can change
    Show {
        /// Only keys that begin so
        prefix: Option<String>,
    },
}
