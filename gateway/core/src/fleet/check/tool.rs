//! Whether a text is a tool as MCP has it: no more is looked at than what makes it one.

use std::borrow::Cow;

use reach_schemas::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

/// Whether it is an object with a name, and with an input schema that is an object (MCP 2026-07-28, Tools, Tool).
pub(super) fn is_one(raw: &RawJson) -> bool {
    let is_object = |text: &str| text.trim_start().starts_with('{');
    is_object(raw.get())
        && raw.read::<Tool<'_>>().is_ok_and(|tool| !tool.name.is_empty() && is_object(tool.input_schema.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: bool) {
        assert_eq!(is_one(&RawJson::parse(text).unwrap()), expected, "{text}");
    }

    #[test]
    fn a_tool_has_a_name_and_a_schema_of_its_input() {
        check(r#"{"name":"Get Weather","inputSchema":{"type":"object"},"vendor":1}"#, true);
        check(r#"{"name":"x"}"#, false);
        check(r#"{"name":"","inputSchema":{}}"#, false);
        check(r#"{"name":"x","inputSchema":true}"#, false);
        check(r#"["x",{}]"#, false);
        check("7", false);
    }
}
