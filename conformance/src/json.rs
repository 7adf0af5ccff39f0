//! JSON as a value, however it is written: one spelling for what two writers spell differently.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// How deep it is spelled anew; what lies deeper stays as it came.
const DEPTH_MAX: usize = 100;

/// The same JSON in one spelling: without blanks, with members by their names, texts with the same escapes, numbers digit
/// by digit. What is no JSON stays as it is.
pub(crate) fn spelled(text: &str) -> String {
    let mut out = String::new();
    match write(text, &mut out, 0) {
        Some(()) => out,
        None => text.to_owned(),
    }
}

fn write(text: &str, out: &mut String, depth: usize) -> Option<()> {
    let text = text.trim();
    match text.as_bytes().first()? {
        _ if depth > DEPTH_MAX => out.push_str(text),
        b'{' => {
            let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(value.get(), out, depth + 1)?;
            }
            out.push('}');
        }
        b'[' => {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text).ok()?;
            out.push('[');
            for (at, value) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(value.get(), out, depth + 1)?;
            }
            out.push(']');
        }
        b'"' => out.push_str(&Value::from(serde_json::from_str::<String>(text).ok()?).to_string()),
        _ => out.push_str(text),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_escapes_and_order_make_no_difference_and_digits_do() {
        let check = |one: &str, other: &str, is_same: bool| {
            assert_eq!(spelled(one) == spelled(other), is_same, "{one} and {other}");
        };
        check("\"check-é-1\"", "\"check-\\u00e9-1\"", true);
        check(r#"{"a":[1, {"b" : null}],"c":"x"}"#, r#" { "c" : "\u0078", "a":[1,{"b":null}] }"#, true);
        check("9007199254740993", "9007199254740992", false);
        check("1.10", "1.1", false);
        check("\"1\"", "1", false);
        check("no json", "no json", true);
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        check(&deep, &deep, true);
    }
}
