//! The fields of a log line: looked through, or taken as JSON.

use std::fmt::Debug;

use serde::{Serialize, Serializer};
use serde_json::Value;
use tracing::field::{Field, Visit};

/// The field of a name, if it is there.
pub(super) struct Named {
    name: &'static str,
    pub(super) value: Option<String>,
}

impl Named {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, value: None }
    }
}

impl Visit for Named {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == self.name {
            self.value = Some(format!("{value:?}"));
        }
    }
}

/// All fields, as the members of an object, in their order.
pub(super) struct Taken(pub(super) Vec<(&'static str, Value)>);

impl Taken {
    fn take(&mut self, field: &Field, value: impl Into<Value>) {
        self.put(field.name().trim_start_matches("r#"), value);
    }

    /// Adds a member; one of the same name gives way to it.
    pub(super) fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, value.into()));
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).and_then(|(_, value)| value.as_str())
    }
}

impl Serialize for Taken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Visit for Taken {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.take(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.take(field, format!("{value:?}"));
    }
}
