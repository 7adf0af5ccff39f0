//! Runs the runner as its users do, and reads its report.

#![allow(dead_code, reason = "each of the tests that share this module uses a part of it")]

pub(crate) mod built;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

/// The longest that a run may take, on a machine with much else to do.
const RUN_MAX: Duration = Duration::from_secs(150);

/// A run that has begun.
pub(crate) struct Run {
    child: Child,
    address: Option<oneshot::Receiver<String>>,
    began: Instant,
}

/// What came of a run.
pub(crate) struct Done {
    pub(crate) report: Value,
    pub(crate) code: i32,
    pub(crate) took: Duration,
}

/// Begins a run with these arguments, and `--json`.
pub(crate) fn run(arguments: &[&str]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_reach-conformance"))
        .args(arguments)
        .arg("--json")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (told, address) = oneshot::channel();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    tokio::spawn(async move {
        let mut told = Some(told);
        while let Ok(Some(line)) = lines.next_line().await {
            match (line.split_once("gateway on "), told.take()) {
                (Some((_, address)), Some(told)) => drop(told.send(address.to_owned())),
                (_, rest) => {
                    told = rest;
                    eprintln!("{line}");
                }
            }
        }
    });
    Run { child, address: Some(address), began: Instant::now() }
}

impl Run {
    /// Where the runner listens.
    pub(crate) async fn address(&mut self) -> String {
        self.address.take().unwrap().await.expect("the runner says where it listens")
    }

    /// Waits for the report.
    pub(crate) async fn done(mut self) -> Done {
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        let read = tokio::time::timeout(RUN_MAX, stdout.read_to_string(&mut text)).await;
        read.expect("the runner does not hang").unwrap();
        let status = tokio::time::timeout(RUN_MAX, self.child.wait()).await.expect("the runner ends").unwrap();
        let report = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        Done { report, code: status.code().unwrap_or(-1), took: self.began.elapsed() }
    }
}

impl Done {
    /// The ids of those requirements with this status.
    pub(crate) fn with(&self, status: &str) -> Vec<String> {
        let rows = self.report["results"].as_array().unwrap().iter();
        rows.filter(|row| row["status"] == status).map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    /// All that failed, in words.
    pub(crate) fn failures(&self) -> String {
        let rows = self.report["results"].as_array().unwrap().iter().filter(|row| row["status"] == "failed");
        rows.map(|row| serde_json::to_string_pretty(row).unwrap()).collect::<Vec<_>>().join("\n")
    }
}

/// Writes a file that a run names.
pub(crate) fn file(folder: &Path, name: &str, content: &Value) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content.to_string()).unwrap();
    path
}
