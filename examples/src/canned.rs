//! An MCP server that answers at once: both eras, one tool that gives back the text that it is given. It remembers nothing, so
//! that whatever is measured through it is the way and not the work.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The handshake era's last revision.
pub const HANDSHAKE: &str = "2025-11-25";
/// The stateless era's revision.
pub const STATELESS: &str = "2026-07-28";
/// What every request of the stateless era says in `_meta`.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

const SERVER: &str = r#"{"name":"canned","version":"1"}"#;
const CAPABILITIES: &str = r#"{"tools":{}}"#;
const ECHO: &str = r#"{"name":"echo","description":"Gives back the text that it is given","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"text":{"type":"string"}},"required":["text"]},"annotations":{"readOnlyHint":true}}"#;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

/// What is said to one message.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing: it was no request.
    Nothing,
    /// An answer.
    Answer {
        /// Its text.
        text: String,
        /// Whether a session begins with it.
        opens: bool,
        /// The HTTP status that it has.
        status: u16,
    },
}

/// Answers one message.
#[must_use]
pub fn answer(text: &[u8]) -> Said {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(text) else {
        return refused("null", -32700, "no message of JSON-RPC", 400);
    };
    let Some(id) = request.id.map(RawValue::get) else { return Said::Nothing };
    let meta = request.params.as_ref().and_then(|params| params.meta).map_or("", RawValue::get);
    let is_stateless = meta.contains(VERSION_KEY);
    if is_stateless && !meta.contains(STATELESS) {
        return unknown_revision(id);
    }
    let result = match request.method.as_ref() {
        "initialize" if !is_stateless => {
            format!(r#""protocolVersion":"{HANDSHAKE}","capabilities":{CAPABILITIES},"serverInfo":{SERVER}"#)
        }
        "server/discover" if is_stateless => {
            format!(
                r#""supportedVersions":["{STATELESS}"],"capabilities":{CAPABILITIES},"ttlMs":0,"cacheScope":"public""#
            )
        }
        "ping" if !is_stateless => String::new(),
        "tools/list" if is_stateless => format!(r#""tools":[{ECHO}],"ttlMs":0,"cacheScope":"public""#),
        "tools/list" => format!(r#""tools":[{ECHO}]"#),
        "tools/call" => {
            let params = request.params.filter(|params| params.name == "echo");
            let text = params.and_then(|params| params.arguments).and_then(|arguments| arguments.text);
            let Some(said) = text.map(RawValue::get).filter(|text| text.starts_with('"')) else {
                return refused(id, -32602, "echo takes a text", if is_stateless { 400 } else { 200 });
            };
            format!(r#""content":[{{"type":"text","text":{said}}}],"isError":false"#)
        }
        _ => return refused(id, -32601, "no such method", if is_stateless { 404 } else { 200 }),
    };
    let opens = request.method == "initialize";
    let own = if is_stateless {
        format!(r#","resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{SERVER}}}"#)
    } else {
        String::new()
    };
    Said::Answer { text: format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{result}{own}}}}}"#), opens, status: 200 }
}

fn unknown_revision(id: &str) -> Said {
    let error = format!(r#"{{"code":-32022,"message":"no such revision","data":{{"supported":["{STATELESS}"]}}}}"#);
    Said::Answer { text: format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#), opens: false, status: 400 }
}

fn refused(id: &str, code: i32, message: &str, status: u16) -> Said {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#);
    Said::Answer { text, opens: false, status }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(asked: &str, expected: &str) {
        match answer(asked.as_bytes()) {
            Said::Answer { text, .. } => {
                serde_json::from_str::<serde_json::Value>(&text).expect("an answer is JSON");
                assert!(text.contains(expected), "{asked}: {text}");
            }
            Said::Nothing => assert_eq!(expected, "", "{asked}"),
        }
    }

    #[test]
    fn each_era_is_answered_in_its_own_way() {
        let call = r#""method":"tools/call","params":{"name":"echo","arguments":{"n":1,"text":"a \"b\""}"#;
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":"x",{call}}}}}"#),
            r#""id":"x","result":{"content":[{"type":"text","text":"a \"b\""}],"isError":false}}"#,
        );
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        check(&format!(r#"{{"jsonrpc":"2.0","id":1,{call},{meta}}}}}"#), r#""isError":false,"resultType":"complete""#);
        check(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#, "-32601");
        check(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{meta}}}}}"#), "-32601");
        let other = meta.replace(STATELESS, "2999-01-01");
        check(&format!(r#"{{"jsonrpc":"2.0","id":1,{call},{other}}}}}"#), "-32022");
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "");
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":7}}}"#,
            "-32602",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{"text":""}}}"#,
            "-32602",
        );
        check("nonsense", "-32700");
    }
}
