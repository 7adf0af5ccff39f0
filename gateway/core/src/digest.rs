//! The fingerprint by which a request that comes again under its idempotency key is known: SHA-256 over what it asks
//! for. Two requests that mean the same have the same fingerprint, however their JSON is laid out.

use std::fmt;

use reach_schemas::{Mode, RawJson, Submit};
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// Named in every digest, so that a change of what goes into it is a change of the fingerprint.
const FORM: &str = "agent-reach submit 1";
/// Values nested deeper than this are compared as they are written; each level reads the text below it again.
const DEPTH_MAX: u32 = 32;

/// The SHA-256 of what a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let wrong = || D::Error::custom("a fingerprint is 64 hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// The fingerprint of a request: whom it asks, for what, with which parameters, and in which mode.
///
/// Left out is how it is to be done and not what: priority, tries, timeouts and deadline (a caller that sends again
/// has less time left), trace, wait, who is told of the end, what to do about the key, and the key and the caller, which are the scope in
/// which fingerprints are compared.
#[must_use]
pub fn fingerprint(request: &Submit) -> Fingerprint {
    let mut sink = Sink(Sha256::new());
    sink.text(FORM);
    sink.optional(request.to_agent.as_ref().map(|id| id.as_str()));
    sink.optional(request.capability.as_ref().map(|name| name.as_str()));
    sink.optional(request.intent.as_deref());
    sink.optional(request.namespace.as_ref().map(|name| name.as_str()));
    sink.text(match request.mode {
        Mode::Direct => "direct",
        Mode::Queue => "queue",
        Mode::Broadcast => "broadcast",
    });
    match &request.params {
        None => sink.tag(b'-'),
        Some(params) => sink.json(params),
    }
    Fingerprint(sink.0.finalize().into())
}

/// The digest of some texts, of a form that is named in it.
pub(crate) fn of_texts(form: &str, texts: &[&str]) -> Fingerprint {
    let mut sink = Sink(Sha256::new());
    sink.text(form);
    texts.iter().for_each(|text| sink.text(text));
    Fingerprint(sink.0.finalize().into())
}

/// Takes values into the digest, each with its kind and length, so that no two lists of values run together alike.
struct Sink(Sha256);

impl Sink {
    fn tag(&mut self, kind: u8) {
        self.0.update([kind]);
    }

    fn count(&mut self, kind: u8, count: usize) {
        self.tag(kind);
        self.0.update((count as u64).to_be_bytes());
    }

    fn bytes(&mut self, kind: u8, text: &str) {
        self.count(kind, text.len());
        self.0.update(text);
    }

    fn text(&mut self, text: &str) {
        self.bytes(b't', text);
    }

    fn optional(&mut self, text: Option<&str>) {
        match text {
            None => self.tag(b'-'),
            Some(text) => self.text(text),
        }
    }

    fn json(&mut self, value: &RawJson) {
        self.value(value.as_raw(), DEPTH_MAX);
    }

    /// White space, the order of keys, and how characters of a text are escaped do not matter. Numbers do as they
    /// are written: whether 1.0 is 1 is the agent's affair. What cannot be read counts as it is written too.
    fn value(&mut self, raw: &RawValue, depth: u32) {
        let text = raw.get().trim();
        let read = depth > 0
            && match text.as_bytes().first() {
                Some(b'{') => self.object(text, depth),
                Some(b'[') => self.array(text, depth),
                Some(b'"') => serde_json::from_str::<String>(text).is_ok_and(|inner| {
                    self.bytes(b's', &inner);
                    true
                }),
                Some(_) | None => false,
            };
        if !read {
            self.bytes(b'w', text);
        }
    }

    fn object(&mut self, text: &str, depth: u32) -> bool {
        let Ok(Members(mut members)) = serde_json::from_str(text) else { return false };
        // The sort is stable, so that members of the same name keep their order.
        members.sort_by(|a, b| a.0.cmp(&b.0));
        self.count(b'o', members.len());
        for (name, value) in members {
            self.bytes(b's', &name);
            self.value(value, depth - 1);
        }
        true
    }

    fn array(&mut self, text: &str, depth: u32) -> bool {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) else { return false };
        self.count(b'a', items.len());
        for item in items {
            self.value(item, depth - 1);
        }
        true
    }
}

/// The members of a JSON object as they stand there, doubled names too.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        d.deserialize_map(Reader).map(Members)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use reach_schemas::Span;

    use super::*;

    fn with_params(params: &str) -> Submit {
        Submit { params: Some(RawJson::parse(params).unwrap()), ..Submit::default() }
    }

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let same = fingerprint(&with_params(one)) == fingerprint(&with_params(other));
        assert_eq!(same, expected, "{one} and {other}");
    }

    #[test]
    fn white_space_key_order_and_escapes_do_not_matter() {
        check(r#"{"a":1,"b":[true,null]}"#, "{ \"b\" : [ true ,\n null ], \"a\" : 1 }", true);
        check(r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#, true);
        check(r#""\u00e9\/""#, r#""é/""#, true);
        check(r#"{"\u0061":1}"#, r#"{"a":1}"#, true);
    }

    #[test]
    fn values_matter_and_numbers_do_as_they_are_written() {
        check("1", "1.0", false);
        check("12345678901234567890123", "12345678901234567890124", false);
        check("[1,2]", "[2,1]", false);
        check("[[1],2]", "[[1,2]]", false);
        check(r#"{"a":"1"}"#, r#"{"a":1}"#, false);
        check(r#"{"a":1,"a":2}"#, r#"{"a":2}"#, false);
        check(r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false);
        check(r#"["a","b"]"#, r#"["a\",\"b"]"#, false);
        check("null", r#""null""#, false);
        check("{}", "[]", false);
    }

    #[test]
    fn what_cannot_be_read_or_is_nested_very_deep_counts_as_it_is_written() {
        check(r#""\ud800""#, r#""\ud800""#, true);
        check(r#""\ud800""#, r#""\ud801""#, false);
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        check(&deep("1"), &deep("1"), true);
        check(&deep("1"), &deep("2"), false);
    }

    #[test]
    fn each_field_that_says_what_is_asked_for_changes_it() {
        let base = Submit { capability: Some("a".parse().unwrap()), ..Submit::default() };
        let others = [
            base.clone(),
            Submit { capability: Some("b".parse().unwrap()), ..base.clone() },
            Submit { to_agent: Some("x@n".parse().unwrap()), ..base.clone() },
            Submit { intent: Some("a".to_owned()), ..base.clone() },
            Submit { intent: Some("a".to_owned()), capability: None, ..base.clone() },
            Submit { namespace: Some("a".parse().unwrap()), ..base.clone() },
            Submit { mode: Mode::Queue, ..base.clone() },
            Submit { params: Some(RawJson::parse("null").unwrap()), ..base.clone() },
        ];
        let distinct: BTreeSet<_> = others.iter().map(fingerprint).collect();
        assert_eq!(distinct.len(), others.len());
    }

    #[test]
    fn how_it_is_to_be_done_does_not_change_it() {
        let base = with_params("{}");
        let resent = Submit {
            wait: Some(Span::from_secs(1)),
            deadline: Some(Span::from_secs(9)),
            tries: Some(1),
            priority: Some(9),
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().ok(),
            callbacks: vec![reach_schemas::Callback { url: "https://receiver.example".to_owned() }],
            idempotency_key: Some("k".parse().unwrap()),
            ..base.clone()
        };
        assert_eq!(fingerprint(&base), fingerprint(&resent));
    }

    #[test]
    fn it_is_written_in_64_hexadecimal_digits_and_read_back() {
        let print = fingerprint(&Submit::default());
        let text = serde_json::to_string(&print).unwrap();
        assert_eq!(text.len(), 66);
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).unwrap(), print);
        assert!(serde_json::from_str::<Fingerprint>("\"zz\"").is_err());
    }

    proptest! {
        #[test]
        fn any_layout_of_the_same_members_is_the_same(members in prop::collection::btree_map("\\PC{0,4}", "\\PC{0,4}", 0..6)) {
            let forward = serde_json::to_string(&members).unwrap();
            let written = |(name, value): (&String, &String)| {
                format!("\n {} :\t{}", serde_json::to_string(name).unwrap(), serde_json::to_string(value).unwrap())
            };
            let backward = format!("{{{}}}", members.iter().rev().map(written).collect::<Vec<_>>().join(" , "));
            prop_assert_eq!(fingerprint(&with_params(&forward)), fingerprint(&with_params(&backward)));
        }
    }
}
