//! The folder of the demonstration: one that it made for itself goes when it is over, one that was named stays.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

/// Where all that the demonstration writes goes.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Whether it goes when the demonstration is over.
    is_passing: bool,
}

impl Folder {
    /// The folder of this name, or a new one under `temp`, which stays only if it is to be kept.
    pub(super) fn open(named: Option<&Path>, temp: &Path, keep: bool) -> anyhow::Result<Self> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                temp.join(format!("agent-reach-demo-{}-{}", since.as_secs(), std::process::id()))
            }
        };
        // What is taken away in the end must not have been there before.
        let made = if named.is_some() { std::fs::create_dir_all(&path) } else { std::fs::create_dir(&path) };
        made.with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Self { path, is_passing: named.is_none() && !keep })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it goes when the demonstration is over.
    pub(super) const fn is_passing(&self) -> bool {
        self.is_passing
    }

    /// The demonstration is over: takes the folder away, unless it is to stay or something in it shows what went wrong.
    /// Says what became of it.
    pub(super) fn leave(&self, went_well: bool) -> String {
        if !self.is_passing || !went_well {
            return format!("its folder stays: {}", self.path.display());
        }
        match std::fs::remove_dir_all(&self.path) {
            Ok(()) => format!("its folder {} is taken away; --keep keeps it", self.path.display()),
            Err(error) => format!("its folder stays, for it cannot be taken away ({error}): {}", self.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a folder with something in it, leaves it, and tells whether it is still there and what was said.
    fn check(is_named: bool, keep: bool, went_well: bool) -> (bool, String) {
        let temp = tempfile::tempdir().unwrap();
        let named = temp.path().join("mine");
        let folder = Folder::open(is_named.then_some(named.as_path()), temp.path(), keep).unwrap();
        std::fs::write(folder.path().join("gateway.log"), "it went so").unwrap();
        let told = folder.leave(went_well);
        assert!(told.contains(&folder.path().display().to_string()), "{told}");
        (folder.path().exists(), told)
    }

    #[test]
    fn only_a_folder_of_its_own_goes_and_only_if_all_went_well() {
        let (stays, told) = check(false, false, true);
        assert!(!stays && told.contains("--keep"), "{told}");
        for (is_named, keep, went_well) in
            [(false, true, true), (false, false, false), (true, false, true), (true, true, true)]
        {
            let (stays, told) = check(is_named, keep, went_well);
            assert!(stays && told.starts_with("its folder stays: "), "{is_named} {keep} {went_well}: {told}");
        }
    }

    #[test]
    fn a_folder_that_is_there_already_is_not_taken_for_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let first = Folder::open(None, temp.path(), false).unwrap();
        if let Ok(second) = Folder::open(None, temp.path(), false) {
            assert_ne!(first.path(), second.path(), "the clock went on meanwhile");
        }
    }
}
