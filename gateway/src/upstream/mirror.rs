//! Headers that mirror parameters of a tool, as its server asks for them in the tool's input schema
//! (2026-07-28, Tools, `x-mcp-header`).

use http::{HeaderName, HeaderValue};
use reach_schemas::RawJson;
use serde::Deserialize;
use serde_json::Value;

use crate::mcp::wire::header;

/// Where in the arguments a mirrored parameter is, and its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirrored {
    path: Vec<String>,
    name: HeaderName,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    input_schema: Value,
}

/// The parameters of a tool that are mirrored. Nothing is made of an annotation that is not valid: the server checks.
pub(super) fn of_tool(tool: &RawJson) -> Vec<Mirrored> {
    // Most tools have none, and are not read for it.
    if !tool.get().contains("x-mcp-header") {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Ok(Tool { input_schema }) = tool.read::<Tool>() {
        gather(&input_schema, &mut Vec::new(), &mut found);
    }
    found
}

fn gather(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (property, inner) in properties {
        path.push(property.clone());
        let name = inner.get("x-mcp-header").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.and_then(|name| format!("{}{name}", header::PARAM_PREFIX).parse::<HeaderName>().ok());
        if let Some(name) = name {
            found.push(Mirrored { path: path.clone(), name });
        }
        gather(inner, path, found);
        path.pop();
    }
}

/// The headers of one call.
pub(super) fn headers(mirrored: &[Mirrored], arguments: &str) -> Vec<(HeaderName, HeaderValue)> {
    if mirrored.is_empty() {
        return Vec::new();
    }
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return Vec::new() };
    let header = |mirrored: &Mirrored| {
        let value = mirrored.path.iter().try_fold(&arguments, |value, key| value.get(key))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let value = HeaderValue::from_str(&header::encode(&text)).ok()?;
        Some((mirrored.name.clone(), value))
    };
    mirrored.iter().filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_asked_for_in_a_header_stands_in_one() {
        let tool = r#"{"name":"x","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"},
            "at":{"properties":{"row":{"type":"integer","x-mcp-header":"Row"}}},"plain":{}}}}"#;
        let mirrored = of_tool(&RawJson::parse(tool).unwrap());
        let told = |arguments: &str| -> Vec<String> {
            let headers = headers(&mirrored, arguments);
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
        };
        assert_eq!(told(r#"{"region":"eu","at":{"row":7},"plain":1}"#), ["mcp-param-row: 7", "mcp-param-region: eu"]);
        assert_eq!(told(r#"{"region":"ä","at":{"row":null}}"#), ["mcp-param-region: =?base64?w6Q=?="]);
        assert!(of_tool(&RawJson::parse(r#"{"name":"x","inputSchema":{}}"#).unwrap()).is_empty());
    }
}
