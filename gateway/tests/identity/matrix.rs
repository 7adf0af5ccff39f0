//! The matrix of access, made from `matrix.txt`: every method, route, path and method of MCP, by every kind of caller, on what
//! is its own, its neighbour's, and another namespace's that is open to it or closed; and what the audit log has of it. What
//! has no row fails the test.

use std::collections::BTreeSet;

use reach_gateway::mcp::server::METHODS;
use reach_gateway::rest::ROUTES;
use reach_gateway::transport::PATHS;
use reach_schemas::Method;
use serde_json::Value;

use super::cell::{Cell, Upstream};
use super::world::World;

const MATRIX: &str = include_str!("matrix.txt");

/// One line: what is asked, what is written down if it is done, what each column is answered, and what is sent.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) written: Vec<String>,
    answers: Vec<String>,
    pub(crate) sent: String,
}

fn table() -> (Vec<String>, Vec<Row>) {
    let mut lines = MATRIX.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let columns = words(lines.next().unwrap().split('|').nth(2).unwrap());
    let rows = lines.map(|line| {
        let mut parts = line.splitn(4, '|').map(str::trim);
        let what = parts.next().unwrap().to_owned();
        let written = parts.next().unwrap().split(',').filter(|kind| *kind != "-").map(str::to_owned).collect();
        let answers = words(parts.next().unwrap());
        assert_eq!(answers.len(), columns.len(), "{what} has another number of answers than there are columns");
        Row { what, written, answers, sent: parts.next().unwrap_or_default().to_owned() }
    });
    let rows = rows.collect();
    (columns, rows)
}

/// The name of an error, as the table has it.
fn short(code: &str) -> &str {
    match code {
        "" => "+",
        "unauthenticated" => "401",
        "forbidden" => "403",
        "agent_not_found" | "task_not_found" | "webhook_not_found" => "404",
        other => other,
    }
}

/// What is wrong with one cell.
async fn look(world: &World, upstream: &Upstream, row: &Row, cell: (&str, usize), expected: &str) -> Vec<String> {
    let column = cell.0;
    let cell = Cell::new(world, upstream, row, cell).await;
    let before = cell.head().await;
    let (code, all) = cell.ask(row).await;
    let written = cell.written_since(before).await;
    let mut wrong = Vec::new();
    let mut complain = |what: String| wrong.push(format!("{} by {column}: {what}: {all:.300}", row.what));
    if short(&code) != expected {
        complain(format!("{}, and the matrix says {expected}", short(&code)));
    }
    let due =
        if code.is_empty() { cell.due(row) } else { BTreeSet::from([format!("call.refused:{code}@{}", cell.actor)]) };
    if written != due.iter().cloned().collect::<Vec<_>>() {
        complain(format!("the audit log has {written:?}, and {due:?} is due"));
    }
    if ["closed", "barred"].contains(&column) && all.contains(super::cell::MARK) {
        complain("it is shown what it may not know of".to_owned());
    }
    wrong
}

#[tokio::test]
async fn every_method_and_route_answers_every_caller_as_the_matrix_says_and_the_audit_log_has_it() {
    let (columns, rows) = table();
    let upstream = Upstream::start().await;
    let mut wrong = Vec::new();
    for row in &rows {
        // A world for each row: what nobody was refused, or one actor twice, is a row of its own only once a minute.
        let world = World::new().await;
        super::cell::bar(&world).await;
        for (number, (column, expected)) in columns.iter().zip(&row.answers).enumerate() {
            wrong.extend(look(&world, &upstream, row, (column, number), expected).await);
        }
    }
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_method_route_path_and_method_of_mcp_has_a_row() {
    let (_, rows) = table();
    let asked: Vec<(&str, Vec<&str>)> = rows
        .iter()
        .filter_map(|row| row.what.split_once(' '))
        .map(|(verb, path)| {
            (if verb == "WS" { "GET" } else { verb }, path.split('?').next().unwrap().split('/').collect())
        })
        .collect();
    let has_row = |verb: &str, template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        let is_of = |path: &Vec<&str>| {
            path.len() == parts.len() && path.iter().zip(&parts).all(|(one, part)| one == part || part.starts_with('{'))
        };
        asked.iter().any(|(asked, path)| *asked == verb && is_of(path))
    };
    let named = |name: &str| rows.iter().any(|row| row.what == name);
    let methods = Method::ALL.iter().map(|method| method.name().to_owned()).filter(|name| !named(name));
    let mcp = METHODS.iter().map(|method| format!("mcp {method}")).filter(|name| !named(name));
    let routes = ROUTES.iter().map(|route| (route.verb.as_str(), route.path));
    let paths = PATHS.iter().flat_map(|path| path.verbs.iter().map(|verb| (verb.as_str(), path.path)));
    let routes = routes.chain(paths).filter(|(verb, path)| !has_row(verb, path));
    let missing: Vec<String> = methods.chain(mcp).chain(routes.map(|(verb, path)| format!("{verb} {path}"))).collect();
    assert!(missing.is_empty(), "without a row in matrix.txt: {missing:?}");
}

/// What is said in a text of JSON, or the last event of a stream of it.
pub(crate) fn json_of(text: &str) -> Value {
    let event = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    serde_json::from_str(event.unwrap_or(text)).unwrap_or(Value::Null)
}
