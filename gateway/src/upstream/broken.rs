//! Whose answer a text of a server is that cannot be read as one: whoever waits for it need not wait any longer.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What is said of an answer that cannot be read.
pub(crate) const NO_ANSWER: &str = "it answered with something that is no answer";

/// The id, as it is written, under which a text that is no message answers. None: it asks, or it does not get as far as
/// an id and a result or an error, or it names two.
pub(crate) fn whose(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Found::default();
    // What stands before the flaw counts.
    let _ = serde_json::Deserializer::from_str(&text).deserialize_map(Reader(&mut found));
    let Found { mut ids, answers, asks } = found;
    if answers && !asks && ids.len() == 1 { ids.pop() } else { None }
}

#[derive(Default)]
struct Found {
    ids: Vec<String>,
    answers: bool,
    asks: bool,
}

struct Reader<'f>(&'f mut Found);

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "id" => self.0.ids.push(map.next_value::<Box<RawValue>>()?.get().to_owned()),
                name => {
                    self.0.asks |= name == "method";
                    self.0.answers |= matches!(name, "result" | "error");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_cannot_be_read_is_known_by_its_id() {
        let deep = format!(r#"{{"id":7,"result":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        let table: [(&[u8], Option<&str>); 11] = [
            (br#"{"jsonrpc":"2.0","id":7,"error":"text"}"#, Some("7")),
            (br#"{"jsonrpc":"2.0","id":"a\u0062","result":1,"error":{}}"#, Some(r#""a\u0062""#)),
            (b"{\"id\":7,\"result\":{\"text\":\"\xff\xfe\"}}", Some("7")),
            (br#"{"id":7,"result":{"cut":"#, Some("7")),
            (deep.as_bytes(), Some("7")),
            (br#"{"result":{"cut":,"id":7}"#, None),
            (br#"{"id":7,"meth"#, None),
            (br#"{"id":7,"method":"ping","params":{"cut":"#, None),
            (br#"{"id":7,"id":8,"error":"text"}"#, None),
            (b"[1]", None),
            (b"hello", None),
        ];
        for (text, id) in table {
            assert_eq!(whose(text).as_deref(), id, "{}", String::from_utf8_lossy(&text[..text.len().min(60)]));
        }
    }
}
