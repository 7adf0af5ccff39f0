//! From the raw `params` of a call to the type that its method takes, with a refusal that points at the place.

use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::{ErrorCode, Failure, RawJson};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::envelope::{error_of, refusal};

/// How long the parser's own words may be: they can quote the caller's text.
const REASON_MAX: usize = 300;
/// How long the path to the flaw may be: it is made of the caller's keys.
const PATH_MAX: usize = 200;

/// Reads the params of a call. Params that were left out, or are an empty array, are an empty object.
///
/// # Errors
/// Invalid params (-32602) if they are given by position, or do not have the form of `T`. The message says
/// what is wrong and where; `data.details` holds the place as `{"at", "line", "column"}`, where `at` is the
/// path of the value (`endpoints[2].url`, or an empty text for the params as a whole), and line and column
/// count from the first character of `params`.
pub fn decode_params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, ErrorObjectOwned> {
    decode(text_of(params)?, "params").map_err(|failure| error_of(failure, None))
}

/// The params as the text of an object.
pub(super) fn text_of(params: Option<&RawValue>) -> Result<&str, ErrorObjectOwned> {
    let text = params.map_or("{}", RawValue::get);
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(positional) if positional.trim().is_empty() => Ok("{}"),
        Some(_) => Err(by_position()),
        None => Ok(text),
    }
}

/// Reads a JSON text that the caller sent, and that goes by the name of `whole`.
///
/// # Errors
/// It does not have the form of `T`, as for [`decode_params`].
pub fn decode<'a, T: Deserialize<'a>>(text: &'a str, whole: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| does_not_fit(text, whole, &error))
}

fn by_position() -> ErrorObjectOwned {
    refusal(ErrorCode::InvalidParams, "params are given by name; send an object instead of an array")
}

fn does_not_fit(text: &str, whole: &str, error: &serde_json::Error) -> Failure {
    let (line, column) = (error.line(), error.column());
    let said = error.to_string();
    let reason = said.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&said);
    let reason = cut(reason, REASON_MAX);
    let at = cut(&path_at(text, offset_of(text, line, column)), PATH_MAX);
    let place = if at.is_empty() { whole.to_owned() } else { format!("`{at}`") };
    let message = format!("{place}: {reason} (line {line}, column {column} of {whole})");
    let details = RawJson::of(&json!({ "at": at, "line": line, "column": column })).ok();
    Failure { data: details, ..Failure::new(ErrorCode::InvalidParams, message) }
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The number of bytes before and including the place that the parser names; its columns count bytes.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    (before + column).min(text.len())
}

/// Where the reader of a JSON text stands inside one array or object.
enum Step<'a> {
    /// In an object, at this key; none before a key.
    Key(Option<&'a str>),
    /// In an array, at this index.
    Index(usize),
}

/// The path of the value that the reader was at when it had read `offset` bytes of a well-formed text.
fn path_at(text: &str, offset: usize) -> String {
    let bytes = &text.as_bytes()[..offset];
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], steps.last_mut()) {
            // A reader that misses something in an object says so after its end, when the object is the value.
            (b'}' | b']', _) => drop(steps.pop()),
            (b'{', _) => steps.push(Step::Key(None)),
            (b'[', _) => steps.push(Step::Index(0)),
            (b',', Some(Step::Index(index))) => *index += 1,
            (b',', Some(Step::Key(key))) => *key = None,
            (b'"', last) => {
                let end = end_of_string(bytes, at + 1);
                if let Some(Step::Key(key @ None)) = last {
                    *key = text.get(at + 1..end);
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    written(&steps)
}

/// The place of the quote that ends the string whose inside starts at `at`, or the end of the text.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

fn written(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Key(None) => {}
            Step::Key(Some(key)) if path.is_empty() => path.push_str(key),
            Step::Key(Some(key)) => path.extend([".", key]),
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Errand<'a> {
        #[serde(default)]
        count: Option<u8>,
        #[serde(default, borrow)]
        notes: Vec<Note<'a>>,
        #[serde(default, borrow)]
        any: Option<&'a RawValue>,
    }

    #[derive(Debug, Deserialize)]
    struct Note<'a> {
        text: &'a str,
    }

    /// Decodes and gives the message of the refusal, or an empty text.
    fn check(params: &str, expected: &str) {
        let raw: &RawValue = serde_json::from_str(params).unwrap();
        let message = match decode_params::<Errand<'_>>(Some(raw)) {
            Ok(_) => String::new(),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::InvalidParams.number());
                error.message().to_owned()
            }
        };
        assert_eq!(message, expected, "{params}");
    }

    #[test]
    fn params_left_out_or_empty_are_an_empty_object() {
        assert!(decode_params::<Errand<'_>>(None).is_ok_and(|errand| errand.count.is_none()));
        check("{}", "");
        check("[ ]", "");
    }

    #[test]
    fn raw_values_borrow_the_text_of_the_frame() {
        let raw: &RawValue = serde_json::from_str(r#"{"any":{"z":1.10,"a":1e2},"notes":[{"text":"t"}]}"#).unwrap();
        let errand: Errand<'_> = decode_params(Some(raw)).unwrap();
        assert_eq!(errand.any.map(RawValue::get), Some(r#"{"z":1.10,"a":1e2}"#));
        assert_eq!(errand.notes[0].text, "t");
    }

    #[test]
    fn params_by_position_are_refused_with_the_way_out() {
        check("[1]", "params are given by name; send an object instead of an array");
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_where() {
        check(r#"{"count":"x"}"#, "`count`: invalid type: string \"x\", expected u8 (line 1, column 12 of params)");
        check(
            "{\"any\":[1,{\"a,b\":2}],\n\"notes\":[{\"text\":\"a\"},{\"txt\":\"}\\\"]\"}]}",
            "`notes[1]`: missing field `text` (line 2, column 36 of params)",
        );
        check(r#"{"notes":{}}"#, "`notes`: invalid type: map, expected a sequence (line 1, column 9 of params)");
        check(r#"{"count":1,"count":2}"#, "`count`: duplicate field `count` (line 1, column 18 of params)");
        check(
            r#"{"cuont":1}"#,
            "`cuont`: unknown field `cuont`, expected one of `count`, `notes`, `any` (line 1, column 8 of params)",
        );
    }

    #[test]
    fn a_refusal_of_the_whole_names_params() {
        let raw: &RawValue = serde_json::from_str(r#"{"text ":"t"}"#).unwrap();
        let error = decode_params::<Note<'_>>(Some(raw)).unwrap_err();
        assert_eq!(error.message(), "params: missing field `text` (line 1, column 13 of params)");
    }

    #[test]
    fn a_refusal_points_at_the_place_in_its_data() {
        let raw: &RawValue = serde_json::from_str(r#"{"notes":[{}]}"#).unwrap();
        let error = decode_params::<Errand<'_>>(Some(raw)).unwrap_err();
        assert_eq!(
            error.data().map(RawValue::get),
            Some(
                r#"{"code":"invalid_params","fault":"caller","retry":"never","details":{"at":"notes[0]","column":12,"line":1}}"#
            )
        );
    }

    #[test]
    fn a_refusal_quotes_only_the_beginning_of_a_long_text() {
        let params = format!(r#"{{"count":"{}"}}"#, "é".repeat(100_000));
        let error = decode_params::<Errand<'_>>(serde_json::from_str(&params).ok()).unwrap_err();
        assert!(error.message().len() < 1000, "{} bytes", error.message().len());
        assert!(error.message().contains("`count`: "));
    }
}
