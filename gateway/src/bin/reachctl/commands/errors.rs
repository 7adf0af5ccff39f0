//! `errors`: the pages of the documentation about errors, carried in the binary so that they fit its version.

use agent_reach_sdk::ErrorCode;
use agent_reach_sdk::schemas::error::{Fault, Retry};
use serde_json::json;

use crate::exit::{Exit, Stop};
use crate::output::Out;
use crate::render::{Grid, Look, Shape, Tone};

/// Prints the page of one error, or the table of all.
pub(crate) fn run(name: Option<&str>, out: &Out) -> Result<Exit, Stop> {
    let Some(name) = name else {
        let text = if out.is_json { json_table() } else { table(&out.look()) };
        out.text(&text)?;
        return Ok(Exit::Done);
    };
    let Some(code) = find(name) else {
        let message = format!("there is no error {name:?}; `reachctl errors` lists them all");
        return Err(Stop::Usage(message));
    };
    if out.is_json {
        out.line(&entry(code, Some(code.page())).to_string())?;
    } else {
        out.text(code.page())?;
    }
    Ok(Exit::Done)
}

fn find(name: &str) -> Option<ErrorCode> {
    let by_number = || ErrorCode::ALL.iter().copied().find(|code| code.number().to_string() == name);
    ErrorCode::by_name(name).or_else(by_number)
}

fn table(look: &Look) -> String {
    let mut grid = Grid::new(&[
        ("NUMBER", Shape::Number),
        ("NAME", Shape::Fixed),
        ("HTTP", Shape::Number),
        ("FAULT", Shape::Fixed),
        ("RETRY", Shape::Fixed),
        ("REACHCTL EXITS", Shape::Number),
    ]);
    for code in ErrorCode::ALL.iter().copied() {
        let fault = match code.fault() {
            Fault::Caller => "caller",
            Fault::Agent => "agent",
            Fault::Gateway => "gateway",
        };
        let retry = match code.retry() {
            Retry::Never => "never",
            Retry::Later => "later",
            Retry::Judge => "judge",
        };
        grid.row(
            Tone::Plain,
            [
                code.number().to_string(),
                code.name().to_owned(),
                code.http_status().to_string(),
                fault.to_owned(),
                retry.to_owned(),
                Exit::of_code(code).code().to_string(),
            ],
        );
    }
    grid.render(look)
}

fn entry(code: ErrorCode, page: Option<&str>) -> serde_json::Value {
    json!({
        "code": code.number(),
        "name": code.name(),
        "outcome": code.outcome(),
        "http_status": code.http_status(),
        "fault": code.fault(),
        "retry": code.retry(),
        "page": page,
    })
}

fn json_table() -> String {
    let all: Vec<_> = ErrorCode::ALL.iter().map(|code| entry(*code, None)).collect();
    format!("{}\n", serde_json::Value::from(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_shows_its_own_page() {
        for code in ErrorCode::ALL.iter().copied() {
            assert!(code.page().starts_with(&format!("# `{}`", code.name())), "{code:?}");
        }
        assert_eq!((find("2001"), find("no_candidate"), find("nope")), (find("no_candidate"), find("2001"), None));
    }
}
