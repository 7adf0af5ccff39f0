//! How much a schema costs: against how many rules one value is held once all references are followed. Nothing is
//! expanded, so a schema whose references multiply is found out cheaply.

use std::collections::BTreeMap;

use serde_json::Value;

/// The number of rules, saturating.
pub(super) fn rules(schema: &Value) -> u64 {
    Walk { root: schema, known: BTreeMap::new() }.cost(schema)
}

struct Walk<'a> {
    root: &'a Value,
    /// What each referenced place costs; nothing while it is being counted, since a schema that speaks of itself is
    /// bounded by the value.
    known: BTreeMap<&'a str, u64>,
}

impl<'a> Walk<'a> {
    fn cost(&mut self, schema: &'a Value) -> u64 {
        match schema {
            Value::Object(members) => members.iter().fold(1, |sum: u64, (name, member)| {
                sum.saturating_add(match (name.as_str(), member) {
                    ("$ref" | "$dynamicRef", Value::String(to)) => self.referenced(to),
                    // Definitions cost where they are used.
                    ("$defs" | "definitions", _) => 0,
                    _ => self.cost(member),
                })
            }),
            Value::Array(items) => items.iter().fold(1, |sum: u64, item| sum.saturating_add(self.cost(item))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }

    fn referenced(&mut self, to: &'a str) -> u64 {
        if let Some(cost) = self.known.get(to) {
            return *cost;
        }
        self.known.insert(to, 1);
        let Some(place) = to.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else { return 1 };
        let cost = self.cost(place);
        self.known.insert(to, cost);
        cost
    }
}
