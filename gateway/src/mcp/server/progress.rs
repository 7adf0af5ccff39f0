//! What agents say of how far they are, as MCP tells it: a number that only grows, of a total if that is known, and words.

use reach_schemas::RawJson;
use serde::Deserialize;
use serde_json::Value;

/// How much of an agent's words is passed on.
const MESSAGE_MAX: usize = 500;

/// How far one request is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    last: Option<f64>,
    seen: Option<RawJson>,
}

/// One word on it.
#[derive(Debug, PartialEq)]
pub(super) struct Told {
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// What most agents write; anything else is passed on in words.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Usual {
    #[serde(alias = "percent", alias = "done")]
    progress: Option<f64>,
    total: Option<f64>,
    message: Option<String>,
}

impl Progress {
    /// What to tell of an agent's word. None: nothing new, or not further than was told before.
    pub(super) fn next(&mut self, said: &RawJson) -> Option<Told> {
        if self.seen.as_ref() == Some(said) {
            return None;
        }
        self.seen = Some(said.clone());
        let usual = match said.read::<Value>().ok()? {
            Value::Number(number) => Usual { progress: number.as_f64(), ..Usual::default() },
            Value::String(text) => Usual { message: Some(text), ..Usual::default() },
            Value::Object(_) => said.read::<Usual>().unwrap_or_default(),
            Value::Null | Value::Bool(_) | Value::Array(_) => Usual::default(),
        };
        let progress = match (usual.progress, self.last) {
            (Some(progress), last) if last.is_none_or(|last| progress > last) => progress,
            (Some(_), _) => return None,
            (None, last) => last.map_or(0.0, f64::floor) + 1.0,
        };
        self.last = Some(progress);
        let is_plain = usual.progress.is_some() || usual.message.is_some();
        let message = usual.message.or_else(|| (!is_plain).then(|| said.get().to_owned()));
        let message = message.map(|text| text.chars().take(MESSAGE_MAX).collect());
        Some(Told { progress, total: usual.total, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &[&str], expected: &[(f64, Option<f64>, Option<&str>)]) {
        let mut progress = Progress::default();
        let told = words.iter().filter_map(|word| progress.next(&RawJson::parse(word).unwrap()));
        let told: Vec<_> = told.map(|told| (told.progress, told.total, told.message)).collect();
        let expected: Vec<_> = expected.iter().map(|(p, t, m)| (*p, *t, m.map(str::to_owned))).collect();
        assert_eq!(told, expected, "{words:?}");
    }

    #[test]
    fn numbers_are_passed_on_as_long_as_they_grow() {
        let words =
            [r#"{"progress":0,"total":3}"#, r#"{"progress":2,"total":3,"message":"two"}"#, r#"{"progress":1}"#, "7"];
        check(&words, &[(0.0, Some(3.0), None), (2.0, Some(3.0), Some("two")), (7.0, None, None)]);
        check(&[r#"{"percent":40}"#, r#"{"percent":40}"#], &[(40.0, None, None)]);
    }

    #[test]
    fn words_are_counted() {
        check(
            &[r#""reading""#, r#""writing""#, "[1]"],
            &[(1.0, None, Some("reading")), (2.0, None, Some("writing")), (3.0, None, Some("[1]"))],
        );
    }
}
