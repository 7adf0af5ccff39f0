//! JSON that the user hands over: on the command line, in a file, or on standard input. It is checked to be JSON and
//! otherwise kept as it was written.

use std::io::Read as _;

use agent_reach_sdk::RawJson;

use crate::exit::Stop;

/// The largest text that is read; the gateway takes less.
const INPUT_MAX: u64 = 64 * 1024 * 1024;
/// How long a text may be that is shown as it should have been written.
const SHOWN_MAX: usize = 60;

/// Reads `JSON`, `@FILE`, or `-` for standard input.
pub(crate) fn json_argument(what: &str, given: &str) -> Result<RawJson, Stop> {
    match (given, given.strip_prefix('@')) {
        ("-", _) => parse(what, "standard input", &stdin(what)?),
        (_, Some(path)) => parse(what, path, &file(what, path)?),
        (text, None) => parse(what, "the command line", text),
    }
}

/// Reads `FILE`, or `-` for standard input.
pub(crate) fn json_file(what: &str, path: &str) -> Result<RawJson, Stop> {
    if path == "-" { parse(what, "standard input", &stdin(what)?) } else { parse(what, path, &file(what, path)?) }
}

fn parse(what: &str, place: &str, text: &str) -> Result<RawJson, Stop> {
    RawJson::parse(text).map_err(|error| {
        let said = format!("{what} from {place}: not JSON: {error}");
        if place == "the command line" {
            Stop::Usage(format!("{said}{}", meant(what, text)))
        } else {
            Stop::Input(said)
        }
    })
}

/// What was meant by a text that is no JSON, most likely: a shell has taken its quotes, or it never had any.
fn meant(what: &str, text: &str) -> String {
    let is_broken = text.trim_start().starts_with(['{', '[', '"']);
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let can_be_shown = !text.contains('\'') && text.len() <= SHOWN_MAX;
    let hint = if is_broken || text.trim().is_empty() {
        "names and texts stand in double quotes, and all of it in single ones: '{\"text\": \"one two\"}'".to_owned()
    } else if can_be_shown {
        format!("did you mean the text {what} '{quoted}'?")
    } else {
        "a text is JSON in double quotes".to_owned()
    };
    format!("; {hint}; or write @FILE to read a file, - for standard input")
}

fn file(what: &str, path: &str) -> Result<String, Stop> {
    let cannot = |error| Stop::Input(format!("{what}: {path} cannot be read: {error}"));
    read(what, path, std::fs::File::open(path).map_err(cannot)?)
}

fn stdin(what: &str) -> Result<String, Stop> {
    read(what, "standard input", std::io::stdin().lock())
}

fn read(what: &str, place: &str, from: impl std::io::Read) -> Result<String, Stop> {
    let mut text = String::new();
    let cannot = |error| Stop::Input(format!("{what}: {place} cannot be read: {error}"));
    from.take(INPUT_MAX + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > INPUT_MAX {
        return Err(Stop::Input(format!("{what}: {place} is larger than {INPUT_MAX} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_kept_as_it_was_written_and_anything_else_is_told_where_it_is_wrong() {
        let kept = json_argument("params", r#" {"n": 1.10, "a": 12345678901234567890} "#).unwrap();
        assert_eq!(kept.get(), r#"{"n": 1.10, "a": 12345678901234567890}"#);
        let Err(Stop::Usage(message)) = json_argument("params", "{x}") else { panic!("it was taken") };
        assert!(message.contains("column 2") && message.contains("@FILE"), "{message}");
        assert!(message.contains(r#"'{"text": "one two"}'"#), "{message}");
        let Err(Stop::Usage(message)) = json_argument("--params", "one \"two\"") else { panic!("it was taken") };
        assert!(message.contains(r#"did you mean the text --params '"one \"two\""'?"#), "{message}");
        let Err(Stop::Input(message)) = json_argument("params", "@no/such/file") else { panic!("it was taken") };
        assert!(message.contains("no/such/file"), "{message}");
    }
}
