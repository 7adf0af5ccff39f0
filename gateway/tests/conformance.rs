//! The gateway of this project meets every requirement over all three transports; and a gateway that breaks one rule is
//! found out by the requirement of that rule. What breaks it is a proxy before the real one.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "conformance/flaky.rs"]
mod flaky;

use std::path::Path;
use std::process::Stdio;

use std::time::{Duration, Instant};

use flaky::Fault;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A gateway process on a port of its own.
struct Gateway {
    url: String,
    _process: Child,
}

impl Gateway {
    async fn start(folder: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_reach-gateway"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .env("RUST_LOG", "info")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines.next_line().await.unwrap().expect("the gateway says where it listens");
            if let Some((_, rest)) = line.split_once("listening on ") {
                break rest.split_whitespace().next().unwrap().to_owned();
            }
        };
        // It is read on, so that the gateway never waits for it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url, _process: process }
    }
}

/// What came of a run of the runner.
struct Done {
    report: Value,
    code: u8,
    took: Duration,
}

impl Done {
    fn with(&self, status: &str) -> Vec<&Value> {
        self.report["results"].as_array().unwrap().iter().filter(|row| row["status"] == status).collect()
    }

    fn failed(&self) -> Vec<&str> {
        self.with("failed").into_iter().map(|row| row["id"].as_str().unwrap()).collect()
    }
}

async fn check(url: &str, stdio: &str) -> Done {
    let mut arguments = vec!["gateway".to_owned(), "--url".to_owned(), url.to_owned()];
    if !stdio.is_empty() {
        arguments.extend(["--stdio".to_owned(), stdio.to_owned()]);
    }
    let began = Instant::now();
    let ran = tokio::task::spawn_blocking(move || reach_conformance::check(arguments.iter().map(String::as_str)));
    let (code, report) = ran.await.unwrap().unwrap();
    Done { report: serde_json::from_str(&report).unwrap(), code, took: began.elapsed() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_meets_every_requirement_over_three_transports() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path()).await;
    let data = folder.path().join("stdio");
    let stdio = format!("{} stdio --data {}", env!("CARGO_BIN_EXE_reach-gateway"), data.display());
    let done = check(&gateway.url, &stdio).await;
    assert_eq!((done.with("failed"), done.with("skipped")), (Vec::new(), Vec::new()));
    assert_eq!(done.code, 0, "{}", done.report);
    println!("{} in {:?}", done.report["badge"], done.took);
}

/// What the proxy breaks, and which requirement must say so.
const TABLE: &[(Fault, &str)] = &[
    (Fault::AnswersNotifications, "gw-silent-to-notifications"),
    (Fault::RoundsIds, "gw-ids-exact"),
    (Fault::RoundsIdsOfResults, "gw-ids-exact"),
    (Fault::AnswersBatchesWithoutIds, "gw-batches"),
    (Fault::DropsResultsOfABatch, "gw-batches"),
    (Fault::AnswersResultsWith500, "gw-http-status"),
    (Fault::OverwritesResults, "gw-final-stays"),
    (Fault::TakesStaleFailures, "gw-stale-refused"),
    (Fault::BlamesParseErrorOnItself, "gw-parse-error"),
    (Fault::DropsOneOfABatch, "gw-batches"),
    (Fault::HidesReplays, "gw-key-replays"),
    (Fault::ForgetsConflicts, "gw-key-conflicts"),
    (Fault::SharesKeys, "gw-key-scoped"),
    (Fault::HandsOutBareKeys, "gw-key-handed-out"),
    (Fault::DropsErrorData, "gw-error-data"),
    (Fault::AnswersMoreOverWebSocket, "gw-alike"),
    (Fault::TakesStaleReports, "gw-stale-refused"),
    (Fault::RewritesNumbers, "gw-carries-exactly"),
    (Fault::NamesWhatIsBehindTheWall, "gw-wall-is-blank"),
    (Fault::AnswersProblemsWith500, "gw-rest-problems"),
    (Fault::LosesCancels, "gw-tells-cancel"),
    (Fault::ForgetsTraces, "gw-carries-trace"),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_rule_that_a_gateway_breaks_is_found_by_its_own_requirement() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path()).await;
    for right in [Fault::Nothing, Fault::Respells] {
        let clean = check(&flaky::before(&gateway.url, right).await, "").await;
        assert_eq!(clean.with("failed"), Vec::<&Value>::new(), "through the proxy, with no fault: {right:?}");
    }
    let mut wrong = Vec::new();
    for (fault, expected) in TABLE {
        let done = check(&flaky::before(&gateway.url, *fault).await, "").await;
        let failed = done.failed();
        println!("{fault:?}: {failed:?} in {:?}", done.took);
        if failed != [*expected] {
            wrong.push(format!("{fault:?}: expected {expected}, found {failed:?}\n{:?}", done.with("failed")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), TABLE.len(), wrong.join("\n\n"));
}
