//! The members of one message and the entries of a batch, found in one pass and kept as raw text. It tells
//! a member that came twice from one that came once, which a derived or a map-shaped decoder would hide.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::flaw::Flaw;

/// The names of [`Member`], in its order.
const NAMES: [&str; 6] = ["jsonrpc", "method", "params", "id", "result", "error"];

/// A member that the specification names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Member {
    Jsonrpc,
    Method,
    Params,
    Id,
    Result,
    Error,
}

impl Member {
    /// Its name on the wire.
    pub(super) fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "jsonrpc" => Some(Self::Jsonrpc),
            "method" => Some(Self::Method),
            "params" => Some(Self::Params),
            "id" => Some(Self::Id),
            "result" => Some(Self::Result),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

/// What one object holds, as far as the specification names it.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    named: [Option<&'a RawValue>; NAMES.len()],
    id_came_twice: bool,
    came_twice: Option<Flaw>,
}

impl<'a> Members<'a> {
    /// Reads a text whose first character opens an object.
    pub(super) fn read(text: &'a str) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = deserializer.deserialize_map(MembersVisitor)?;
        deserializer.end()?;
        Ok(members)
    }

    /// The raw text of a member; of one that came twice, the first.
    pub(super) fn get(&self, member: Member) -> Option<&'a RawValue> {
        self.named[member as usize]
    }

    /// Whether the id came once: of two ids, none is the id to answer.
    pub(super) fn has_one_id(&self) -> bool {
        self.get(Member::Id).is_some() && !self.id_came_twice
    }

    /// The flaw of a member that came twice, if one did.
    pub(super) fn came_twice(&mut self) -> Option<Flaw> {
        self.came_twice.take()
    }

    fn put(&mut self, member: Member, value: &'a RawValue) {
        if self.get(member).is_none() {
            self.named[member as usize] = Some(value);
            return;
        }
        self.id_came_twice |= matches!(member, Member::Id);
        self.came_twice = Some(Flaw::Twice { name: member.name() });
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members::default();
        let mut strangers = BTreeSet::new();
        while let Some(key) = map.next_key_seed(KeyVisitor)? {
            match key {
                Key::Named(member) => members.put(member, map.next_value()?),
                Key::Stranger(name) => {
                    map.next_value::<IgnoredAny>()?;
                    if !strangers.insert(name) {
                        members.came_twice.get_or_insert(Flaw::StrangerTwice);
                    }
                }
            }
        }
        Ok(members)
    }
}

enum Key<'de> {
    Named(Member),
    Stranger(Cow<'de, str>),
}

/// Reads a key with its escapes resolved, so that `"\u0069d"` is the `id` that it is to other readers.
struct KeyVisitor;

impl<'de> DeserializeSeed<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Member::named(name).map_or(Key::Stranger(Cow::Borrowed(name)), Key::Named))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Member::named(name).map_or_else(|| Key::Stranger(Cow::Owned(name.to_owned())), Key::Named))
    }
}

/// The entries of a batch.
pub(super) enum Entries<'a> {
    All(Vec<&'a RawValue>),
    TooMany,
}

impl<'a> Entries<'a> {
    /// Reads a text whose first character opens an array, to its end, and keeps at most `count_max` entries.
    pub(super) fn read(text: &'a str, count_max: usize) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let entries = deserializer.deserialize_seq(EntriesVisitor { count_max })?;
        deserializer.end()?;
        Ok(entries)
    }
}

struct EntriesVisitor {
    count_max: usize,
}

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = sequence.next_element()? {
            if entries.len() == self.count_max {
                while sequence.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Entries::TooMany);
            }
            entries.push(entry);
        }
        Ok(Entries::All(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_the_members() {
        for name in NAMES {
            assert_eq!(Member::named(name).map(Member::name), Some(name));
        }
    }
}
