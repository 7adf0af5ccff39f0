//! Code that is not ours, from PyPI, to judge what is ours.

#![allow(dead_code, reason = "each of the tests that share this module uses a part of it")]

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prometheus's own parser, a parser of its queries, and one of YAML.
pub(crate) const PROMETHEUS: [&str; 3] = ["prometheus-client==0.26.0", "promql-parser==0.12.0", "pyyaml==6.0.4"];

/// A Python with these packages in it, made once for each target folder. Nothing is skipped where it cannot be made: then
/// the test fails and says why.
pub(crate) fn with(name: &str, packages: &[&str]) -> PathBuf {
    std::fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (python, ready) = (folder.join("bin/python"), folder.join("ready"));
    // Tests run side by side, each in its own process.
    let one_at_a_time = File::create(folder.with_extension("lock")).unwrap();
    one_at_a_time.lock().unwrap();
    if std::fs::read_to_string(&ready).unwrap_or_default() != packages.join("\n") {
        let needed = |why| panic!("a Python with {packages:?} is needed: {why}");
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), "").unwrap_or_else(needed);
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages), "").unwrap_or_else(needed);
        std::fs::write(ready, packages.join("\n")).unwrap();
    }
    python
}

/// Runs a command on an input. What it printed, or what it complained of.
pub(crate) fn run(command: &mut Command, input: &str) -> Result<String, String> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{command:?} cannot be run: {error}"))?;
    child.stdin.take().unwrap().write_all(input.as_bytes()).map_err(|error| format!("{command:?}: {error}"))?;
    let output = child.wait_with_output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(format!("{command:?}: {}", said(&output.stderr)))
    }
}
