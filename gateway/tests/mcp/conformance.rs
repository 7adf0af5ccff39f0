//! The official conformance suite against `/mcp`, with one agent behind it that does what its scenarios ask of tools. What
//! passes and what does not is written down, and the test fails when either changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::world::conforming;
use crate::common::node::Node;

const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// What the suite says of each scenario: whether it passed.
fn outcomes(printed: &str) -> BTreeMap<String, bool> {
    let summary = printed.split_once("=== SUMMARY ===").map_or("", |(_, summary)| summary);
    let counts = |line: &str| {
        let mut words = line.split_whitespace();
        let (_mark, name) = (words.next()?, words.next()?.trim_end_matches(':').to_owned());
        let numbers: Vec<u32> = words.filter_map(|word| word.trim_matches(',').parse().ok()).collect();
        let [passed, failed, ..] = numbers[..] else { return None };
        Some((name, passed > 0 && failed == 0))
    };
    summary.lines().filter(|line| line.starts_with(['✓', '✗'])).filter_map(counts).collect()
}

/// A line of the baseline is `pass NAME`, or `differs NAME: WHY`.
fn baseline(text: &str) -> BTreeMap<String, bool> {
    let entry = |line: &str| match line.split_once(' ')? {
        ("pass", name) => Some((name.to_owned(), true)),
        ("differs", rest) => {
            let (name, why) = rest.split_once(": ").unwrap_or_else(|| panic!("{line}: say why"));
            assert!(!why.trim().is_empty(), "{line}: say why");
            Some((name.to_owned(), false))
        }
        _ => panic!("{line}: neither `pass` nor `differs`"),
    };
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(entry).collect()
}

async fn check(revision: &str) {
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/conformance").join(format!("{revision}.txt"));
    let written = std::fs::read_to_string(written).unwrap();
    let running = crate::common::start().await;
    let agent = conforming(&running.url("")).await;
    let node = Node::with("mcp-conformance", &[SUITE]);
    let folder = tempfile::tempdir().unwrap();
    let mut suite = node.run("@modelcontextprotocol/conformance/dist/index.js");
    suite.args(["server", "--url", &running.url("/mcp"), "--requirements", revision, "--timeout", "30000", "-o"]);
    suite.arg(folder.path()).current_dir(folder.path());
    // It ends with an error when a scenario does not pass, and prints all the same.
    let printed = tokio::task::spawn_blocking(move || {
        let output = suite.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    });
    let printed = printed.await.unwrap();
    let (seen, expected) = (outcomes(&printed), baseline(&written));
    assert!(!seen.is_empty(), "the suite printed no summary: {printed}");
    let passed = seen.values().filter(|passed| **passed).count();
    println!("{revision}: {passed} of {} scenarios", seen.len());
    let names = seen.keys().chain(expected.keys()).collect::<BTreeSet<_>>();
    let changed: Vec<_> = names
        .into_iter()
        .filter(|name| seen.get(*name) != expected.get(*name))
        .map(|name| format!("{name}: written {:?}, seen {:?}", expected.get(name), seen.get(name)))
        .collect();
    let whole = if changed.is_empty() { "" } else { printed.as_str() };
    assert!(changed.is_empty(), "{}\n{whole}", changed.join("\n"));
    drop(agent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_of_the_last_revision_with_a_handshake() {
    check("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_of_the_stateless_revision() {
    check("2026-07-28").await;
}
