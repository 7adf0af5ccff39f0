//! A file to which an agent adds a line for each thing that it did.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A ledger; each line is one thing done, written whole and at once.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger in a file, which is made when the first line comes.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Adds a line and says which number it has, counted from 1.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, line: &str) -> std::io::Result<usize> {
        let mut file: File = OpenOptions::new().create(true).append(true).open(&self.path)?;
        // One write for the whole line: other processes append to the same file.
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(self.lines()?.len())
    }

    /// All lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lines(&self) -> std::io::Result<Vec<String>> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
