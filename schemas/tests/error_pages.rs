//! Holds the pages in `schemas/errors/` true to the table of error codes: figures, sections and example bodies.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test, in its parts as well")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use reach_schemas::call::ErrorData;
use reach_schemas::{ErrorCode, RawJson};
use serde::{Deserialize, Serialize};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("errors")
}

fn read(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The word that serde writes for a value without fields.
fn word(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap().trim_matches('"').to_owned()
}

/// The table at the head of a page.
fn table(code: ErrorCode) -> String {
    format!(
        "| | |\n| --- | --- |\n| number | {} |\n| name | `{}` |\n| outcome | `{}` |\n| HTTP status | {} |\n| fault | {} |\n\
         | retry | {} |\n",
        code.number(),
        code.name(),
        code.outcome(),
        code.http_status(),
        word(code.fault()),
        word(code.retry())
    )
}

/// The code's line in the table of all.
fn row(code: ErrorCode) -> String {
    let (number, name, outcome, status) = (code.number(), code.name(), code.outcome(), code.http_status());
    let (fault, retry) = (word(code.fault()), word(code.retry()));
    format!("| {number} | [`{name}`]({name}.md) | `{outcome}` | {status} | {fault} | {retry} |\n")
}

/// The texts of the fenced JSON blocks.
fn json_blocks(page: &str) -> Vec<&str> {
    page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    jsonrpc: String,
    id: RawJson,
    error: ErrorObject,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorObject {
    code: i32,
    message: String,
    data: ErrorData,
}

#[derive(Deserialize)]
struct Problem {
    r#type: String,
    title: String,
    status: u16,
    detail: String,
}

#[track_caller]
fn check_data(code: ErrorCode, data: &ErrorData) {
    assert_eq!(
        (data.code.as_str(), data.fault, data.retry),
        (code.name(), code.fault(), code.retry()),
        "the example of {} says otherwise than the code",
        code.name()
    );
}

#[test]
fn every_page_opens_with_the_figures_of_the_code() {
    for code in ErrorCode::ALL {
        let page = read(&format!("{}.md", code.name()));
        let (title, rest) = page.split_once("\n\n").unwrap();
        assert!(title.starts_with(&format!("# `{}`: ", code.name())), "title of {}: {title}", code.name());
        let expected = table(*code);
        assert!(rest.starts_with(&expected), "{}.md must open with\n{expected}", code.name());
    }
}

#[test]
fn every_page_tells_what_happened_and_what_to_do() {
    for code in ErrorCode::ALL {
        let page = read(&format!("{}.md", code.name()));
        let sections: Vec<_> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(sections, ["## What happened", "## What to do", "## Example"], "{}.md", code.name());
        let advice = page.split("## What to do").nth(1).unwrap().split("## Example").next().unwrap();
        assert!(advice.contains("- **"), "{}.md tells nobody what to do", code.name());
    }
}

#[test]
fn the_examples_are_bodies_that_the_types_read() {
    for code in ErrorCode::ALL {
        let page = read(&format!("{}.md", code.name()));
        let [answer, problem] = json_blocks(&page)[..] else { panic!("{}.md needs two examples", code.name()) };
        let answer: Answer = serde_json::from_str(answer).unwrap_or_else(|e| panic!("{}.md: {e}", code.name()));
        assert_eq!((answer.jsonrpc.as_str(), answer.error.code), ("2.0", code.number()), "{}.md", code.name());
        assert_eq!(answer.id.get() == "null", *code == ErrorCode::ParseError, "the id in {}.md", code.name());
        check_data(*code, &answer.error.data);

        let members: ErrorData = serde_json::from_str(problem).unwrap_or_else(|e| panic!("{}.md: {e}", code.name()));
        let value = |data: &ErrorData| serde_json::to_value(data).unwrap();
        assert_eq!(value(&members), value(&answer.error.data), "the two examples of {}.md differ", code.name());
        let problem: Problem = serde_json::from_str(problem).unwrap();
        assert_eq!(problem.r#type, format!("/errors/{}", code.name()));
        assert_eq!((problem.status, &problem.detail), (code.http_status(), &answer.error.message));
        assert!(!problem.title.is_empty());
    }
}

#[test]
fn the_table_of_all_lists_every_code_in_order() {
    let expected: String = ErrorCode::ALL.iter().copied().map(row).collect();
    assert!(read("README.md").contains(&expected), "schemas/errors/README.md must hold\n{expected}");
}

#[test]
fn there_is_no_page_without_its_code() {
    let mut expected: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| format!("{}.md", code.name())).collect();
    expected.insert("README.md".to_owned());
    let entries = std::fs::read_dir(folder()).unwrap();
    let found: BTreeSet<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, expected);
}
