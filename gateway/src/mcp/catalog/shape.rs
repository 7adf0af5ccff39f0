//! A capability as the text of a tool, all but its name: schemas stand in it byte for byte as the card has them. Of one
//! that is a tool of an MCP server the whole of its own text is kept, with another name in its place.

use std::borrow::Cow;

use reach_schemas::{Capability, Effect, RawJson};
use serde_json::value::RawValue;

use super::mirrored::{Mirrored, of_schema};
use crate::mcp::wire::object::{Members, Object, quoted};

/// The member that arguments are put into where a capability takes something else than an object.
pub(crate) const WRAPPED: &str = "value";

/// The text of a tool around its name, and what a call must know of it.
#[derive(Debug)]
pub(crate) struct Shape {
    before: Box<str>,
    after: Box<str>,
    /// Whether the annotations are still to be written, by what the work does to the world.
    is_open: bool,
    /// Whether arguments come as the one member [`WRAPPED`].
    pub(crate) is_wrapped: bool,
    /// Whether results have the form of a `CallToolResult` already.
    pub(crate) is_tool: bool,
    pub(crate) output: Output,
    /// Which arguments are mirrored in headers.
    pub(crate) mirrored: Vec<Mirrored>,
}

/// What is promised of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// Nothing.
    Any,
    /// They are objects that fit a schema; all revisions can say so.
    Object,
    /// They fit a schema that is not of an object; only the stateless era can say so.
    Other(usize),
}

impl Shape {
    pub(super) fn of(capability: &Capability) -> Self {
        match capability.tool.as_ref().and_then(around_name) {
            Some((before, after)) => Self {
                before: before.into(),
                after: after.into(),
                is_open: false,
                is_wrapped: false,
                is_tool: true,
                output: Output::Any,
                mirrored: input_of_tool(capability).map(of_schema).unwrap_or_default(),
            },
            None => Self::made(capability),
        }
    }

    fn made(capability: &Capability) -> Self {
        let (input, is_wrapped) = input(capability.input_schema.as_ref());
        let mut text = Object::default().with("description", &description(capability)).raw("inputSchema", &input);
        let mut output = Output::Any;
        if let Some(schema) = &capability.output_schema {
            let before = text.len();
            text = text.raw("outputSchema", schema.get());
            output = if is_of_object(schema) { Output::Object } else { Output::Other(before) };
        }
        let text = text.into_text();
        // The brace that opens it goes before the name, the one that closes it after the annotations.
        let after = format!(",{}", &text[1..text.len() - 1]);
        Self {
            before: r#"{"name":"#.into(),
            after: after.into(),
            is_open: true,
            is_wrapped,
            is_tool: false,
            output,
            mirrored: of_schema(&input),
        }
    }

    /// Writes the tool under a name. Before the stateless era an output schema is of an object, or is left out.
    pub(super) fn write(&self, name: &str, effect: Effect, is_stateless: bool, out: &mut String) {
        out.push_str(&self.before);
        out.push_str(&quoted(name));
        match self.output {
            Output::Other(end) if !is_stateless => out.push_str(&self.after[..end]),
            Output::Any | Output::Object | Output::Other(_) => out.push_str(&self.after),
        }
        if self.is_open {
            out.push_str(annotations(effect));
        }
    }

    /// About how long it is.
    pub(super) fn len(&self) -> usize {
        self.before.len() + self.after.len() + super::name::NAME_MAX
    }
}

/// What a host may tell its user before it calls (2025-03-26, Tools, Tool Annotations).
const fn annotations(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => r#","annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true}}"#,
        Effect::IdempotentWrite => {
            r#","annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":true}}"#
        }
        Effect::Write => r#","annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}}"#,
    }
}

/// A model chooses by this, so it also says what is not done.
fn description(capability: &Capability) -> String {
    let own = capability.description.trim();
    let mut text = if own.is_empty() { format!("The capability {}.", capability.name) } else { own.to_owned() };
    if !capability.exclusions.is_empty() {
        text.push_str(" It does not do this: ");
        text.push_str(&capability.exclusions.join("; "));
    }
    text
}

/// The schema of the arguments, which are an object to MCP, and whether they are wrapped in one to that end. A schema of an
/// object that says so is kept byte for byte; one that does not name its type gets it said.
fn input(schema: Option<&RawJson>) -> (Cow<'_, str>, bool) {
    let object = r#"{"type":"object"}"#;
    let Some(schema) = schema else { return (object.into(), false) };
    match kind(schema) {
        Kind::Object => (schema.get().into(), false),
        Kind::Untyped("") => (object.into(), false),
        Kind::Untyped(rest) => (format!(r#"{{"type":"object",{rest}"#).into(), false),
        Kind::Other => {
            let name = quoted(WRAPPED);
            let inner = schema.get();
            (format!(r#"{{"type":"object","properties":{{{name}:{inner}}},"required":[{name}]}}"#).into(), true)
        }
    }
}

fn is_of_object(schema: &RawJson) -> bool {
    matches!(kind(schema), Kind::Object)
}

enum Kind<'a> {
    /// `"type": "object"`.
    Object,
    /// An object without a type; the text after its opening brace, or nothing if it is empty.
    Untyped(&'a str),
    /// Of another type, of several, or no object at all.
    Other,
}

fn kind(schema: &RawJson) -> Kind<'_> {
    let Ok(members) = Members::of(schema.get()) else { return Kind::Other };
    match members.get("type").map(RawValue::get) {
        Some(r#""object""#) => Kind::Object,
        Some(_) => Kind::Other,
        None if members.0.is_empty() => Kind::Untyped(""),
        None => schema.get().trim_start().strip_prefix('{').map_or(Kind::Other, Kind::Untyped),
    }
}

fn input_of_tool(capability: &Capability) -> Option<&str> {
    let tool = capability.tool.as_ref()?;
    Members::of(tool.get()).ok()?.get("inputSchema").map(RawValue::get)
}

/// The text before and after the value of `name`.
fn around_name(tool: &RawJson) -> Option<(&str, &str)> {
    let text = tool.get();
    let name = Members::of(text).ok()?.get("name")?.get();
    let at = name.as_ptr() as usize - text.as_ptr() as usize;
    Some((text.get(..at)?, text.get(at + name.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(json: &str) -> Capability {
        serde_json::from_str(json).unwrap()
    }

    #[track_caller]
    fn check(card: &str, is_stateless: bool, expected: &str) {
        let capability = capability(card);
        let mut text = String::new();
        Shape::of(&capability).write("N", capability.effect, is_stateless, &mut text);
        assert_eq!(text, expected);
    }

    const WRITE: &str = r#""annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}"#;

    #[test]
    fn schemas_stand_byte_for_byte_and_exclusions_are_told() {
        check(
            r#"{"name":"c","description":"Does.","exclusions":["x","y"],"input_schema":{ "type":"object","$defs":{"z":1.10} },
               "output_schema":{"type":"object","a":[ ]},"effect":"read"}"#,
            false,
            r#"{"name":"N","description":"Does. It does not do this: x; y","inputSchema":{ "type":"object","$defs":{"z":1.10} },"outputSchema":{"type":"object","a":[ ]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true}}"#,
        );
    }

    #[test]
    fn arguments_are_always_an_object() {
        let made = |schema: &str| {
            format!(r#"{{"name":"N","description":"The capability c.","inputSchema":{schema},{WRITE}}}"#)
        };
        check(r#"{"name":"c"}"#, true, &made(r#"{"type":"object"}"#));
        check(r#"{"name":"c","input_schema":{}}"#, true, &made(r#"{"type":"object"}"#));
        check(
            r#"{"name":"c","input_schema":{ "required":["a"]}}"#,
            true,
            &made(r#"{"type":"object", "required":["a"]}"#),
        );
        let wrapped = r#"{"type":"object","properties":{"value":{"type":"array"}},"required":["value"]}"#;
        check(r#"{"name":"c","input_schema":{"type":"array"}}"#, true, &made(wrapped));
        assert!(Shape::of(&capability(r#"{"name":"c","input_schema":{"type":"array"}}"#)).is_wrapped);
    }

    #[test]
    fn results_that_are_no_objects_are_told_of_in_the_stateless_era_only() {
        let card = r#"{"name":"c","output_schema":{"type":"array"}}"#;
        let head = r#"{"name":"N","description":"The capability c.","inputSchema":{"type":"object"}"#;
        check(card, false, &format!("{head},{WRITE}}}"));
        check(card, true, &format!(r#"{head},"outputSchema":{{"type":"array"}},{WRITE}}}"#));
    }

    #[test]
    fn of_a_servers_own_tool_nothing_but_the_name_is_changed() {
        let card = r#"{"name":"c","tool":{ "vendor":{"name":1},"name" : "get\u0020it","inputSchema":{"type":"object","x":1.10}, "x":2 }}"#;
        check(card, true, r#"{ "vendor":{"name":1},"name" : "N","inputSchema":{"type":"object","x":1.10}, "x":2 }"#);
    }
}
