//! JSON objects read and written member by member, so that what is not looked at keeps its text, its order and its
//! doubled names.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The members of an object in the order in which they stand.
#[derive(Debug)]
pub struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads the members of an object.
    ///
    /// # Errors
    /// The text is no object.
    pub fn of(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The first member of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(members)
            }
        }
        d.deserialize_map(Reader).map(Members)
    }
}

/// A name that borrows from the text where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object that is being written.
#[derive(Debug)]
pub struct Object(String);

impl Default for Object {
    fn default() -> Self {
        Self("{".to_owned())
    }
}

impl Object {
    fn key(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
    }

    /// A member whose value is JSON text already.
    #[must_use]
    pub fn raw(mut self, name: &str, value: &str) -> Self {
        self.key(name);
        self.0.push_str(value);
        self
    }

    /// A member.
    #[must_use]
    pub fn with<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Self {
        let text = serde_json::to_string(value).expect("words of the protocol can be written as JSON");
        self.raw(name, &text)
    }

    /// A member, if there is a value for it.
    #[must_use]
    pub fn maybe<T: Serialize>(self, name: &str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.with(name, &value),
            None => self,
        }
    }

    /// How long it is so far, without the brace that will close it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no member yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    /// The text.
    #[must_use]
    pub fn into_text(mut self) -> String {
        self.0.push('}');
        self.0
    }

    /// The object as raw JSON.
    #[must_use]
    pub fn into_raw(self) -> Box<RawValue> {
        RawValue::from_string(self.into_text()).expect("it was written member by member from JSON")
    }
}

/// The object with what stands at a path given another value, if there is one for it, wherever a name of the path comes twice
/// as well; all else as it is. None: nothing is changed.
#[must_use]
pub fn replaced(object: &str, path: &[&str], value: &mut impl FnMut(&RawValue) -> Option<String>) -> Option<String> {
    let (name, rest) = path.split_first()?;
    let members = Members::of(object).ok()?;
    let (mut written, mut is_changed) = (Object::default(), false);
    for (key, raw) in members.0 {
        let new = match (key == *name, rest.is_empty()) {
            (false, _) => None,
            (true, true) => value(raw),
            (true, false) => replaced(raw.get(), rest, value),
        };
        is_changed |= new.is_some();
        written = written.raw(&key, new.as_deref().unwrap_or_else(|| raw.get()));
    }
    is_changed.then(|| written.into_text())
}

/// A text as JSON has it.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text can always be written as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_their_text() {
        let members = Members::of(r#"{"z":1.10,"\u0061":{"x":[1]},"z":2}"#).unwrap();
        let told: Vec<_> = members.0.iter().map(|(name, value)| (name.as_ref(), value.get())).collect();
        assert_eq!(told, [("z", "1.10"), ("a", r#"{"x":[1]}"#), ("z", "2")]);
        assert_eq!(members.get("z").map(RawValue::get), Some("1.10"));
        assert!(Members::of("[]").is_err());
    }

    #[test]
    fn what_stands_at_a_path_is_replaced_wherever_it_stands_and_nothing_else_is() {
        let check = |text: &str, expected: Option<&str>| {
            let new = replaced(text, &["p", "k"], &mut |found: &RawValue| {
                (found.get() != "0").then(|| format!("[{}]", found.get()))
            });
            assert_eq!(new.as_deref(), expected, "{text}");
        };
        check(r#"{"k":1,"p":{"z":1.10,"k": 2 ,"q":{"k":3}}}"#, Some(r#"{"k":1,"p":{"z":1.10,"k":[2],"q":{"k":3}}}"#));
        check(
            r#"{"p":{},"\u0070":{"k":1,"\u006b":"a"},"p":{"k":2}}"#,
            Some(r#"{"p":{},"p":{"k":[1],"k":["a"]},"p":{"k":[2]}}"#),
        );
        for nothing in [r#"{"p":{"z":1, "k":0}}"#, r#"{"p":[{"k":1}]}"#, "[]", "7", "{"] {
            check(nothing, None);
        }
    }

    #[test]
    fn an_object_is_written_in_the_order_in_which_it_is_told() {
        let text = Object::default().raw("b", "1.10").with("a\"", "x").maybe("c", None::<u8>).into_text();
        assert_eq!(text, r#"{"b":1.10,"a\"":"x"}"#);
        assert_eq!(Object::default().into_text(), "{}");
    }
}
