//! Requests of clients on a process that they share, in the stateless era: each goes under an id of ours, and what is said
//! about it comes back under the id and the names that its client gave.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{Open, StdioLink, Way};
use crate::envelope::Call;
use crate::mcp::wire::meta::{self, Meta};
use crate::mcp::wire::object::{Members, Object, quoted, replaced};
use crate::upstream::reply::{Fault, Reply, Word};

/// What a server says about a client's request.
#[derive(Debug)]
pub(crate) enum Passed {
    /// A notice; more follows.
    Notice(Bytes),
    /// The answer, and the number of its error if it is one.
    Answer(Bytes, Option<i64>),
}

/// A request that is passed on. It is called off when this is dropped before its answer.
pub(crate) struct Shares {
    _open: OwnedOpen,
}

struct OwnedOpen {
    way: Arc<Way>,
    id: u64,
}

impl Drop for OwnedOpen {
    fn drop(&mut self) {
        drop(Open { way: &self.way, id: self.id });
    }
}

/// A client's request: what it is called there.
pub(super) struct Shared {
    id: String,
    token: Option<String>,
    /// Whether it asks for the server's log.
    pub(super) wants_log: bool,
    passed: mpsc::Sender<Passed>,
}

impl StdioLink {
    /// Passes a client's request on.
    pub(in crate::upstream) async fn share(
        &self,
        call: &Call<'_>,
        passed: mpsc::Sender<Passed>,
    ) -> Result<Shares, Fault> {
        let own = self.way.ids.fetch_add(1, Ordering::Relaxed);
        let id = call.id.map_or("null", |id| id.get()).to_owned();
        let (params, token) = renamed(call.params, own);
        let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{own},"method":{}{params}}}"#, quoted(&call.method));
        let wants_log = Meta::of(call.params).is_ok_and(|meta| meta.log_level.is_some());
        self.way.pending.enter_shared(own, Shared { id, token, wants_log, passed })?;
        let shares = Shares { _open: OwnedOpen { way: Arc::clone(&self.way), id: own } };
        self.say(on_one_line(text)).await;
        Ok(shares)
    }
}

fn on_one_line(text: String) -> String {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text }
}

/// Params with our progress token in the place of the client's, and the client's.
fn renamed(params: Option<&RawValue>, own: u64) -> (Option<String>, Option<String>) {
    let Some(params) = params else { return (None, None) };
    let mut token = None;
    let text = in_meta(params, "progressToken", |found| {
        token = Some(found.get().to_owned());
        own.to_string()
    });
    (Some(text), token)
}

/// An object with one member of its `_meta` given another value, if it is there; all else as it is.
fn in_meta(object: &RawValue, name: &str, mut value: impl FnMut(&RawValue) -> String) -> String {
    replaced(object.get(), &["_meta", name], &mut |found: &RawValue| Some(value(found)))
        .unwrap_or_else(|| object.get().to_owned())
}

impl Shared {
    fn say(&self, passed: Passed) {
        // A client that does not read loses notices first; its answer finds room, or it is gone.
        let _ = self.passed.try_send(passed);
    }

    pub(super) fn answer(&self, reply: &Reply) {
        let (member, text, code) = match reply {
            Reply::Result(result) => {
                let own_stream = in_meta(result.as_raw(), meta::SUBSCRIPTION_ID, |_| self.id.clone());
                ("result", own_stream, None)
            }
            Reply::Refused(rejection) => ("error", rejection.raw.get().to_owned(), Some(rejection.code)),
        };
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{text}}}"#, self.id);
        self.say(Passed::Answer(text.into(), code));
    }

    pub(super) fn progress(&self, params: &RawValue) {
        let Ok(members) = Members::of(params.get()) else { return };
        let token = self.token.as_deref().unwrap_or("null");
        let put = |object: Object, (key, raw): &(std::borrow::Cow<'_, str>, &RawValue)| {
            if key == "progressToken" { object.raw(key, token) } else { object.raw(key, raw.get()) }
        };
        let params = members.0.iter().fold(Object::default(), put).into_text();
        self.say(Passed::Notice(notice("notifications/progress", &params)));
    }

    pub(super) fn notice(&self, word: &Word<'_>, is_of_stream: bool) {
        let params = word.params.map_or_else(
            || "{}".to_owned(),
            |params| {
                if is_of_stream {
                    in_meta(params, meta::SUBSCRIPTION_ID, |_| self.id.clone())
                } else {
                    params.get().to_owned()
                }
            },
        );
        self.say(Passed::Notice(notice(word.method, &params)));
    }

    pub(super) fn lost(&self, why: &str) {
        let message = quoted(&format!("{why}; what it was asked may have been done"));
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32603,"message":{message}}}}}"#, self.id);
        self.say(Passed::Answer(text.into(), Some(-32603)));
    }
}

fn notice(method: &str, params: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, quoted(method)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_that_is_ours_to_change_is_changed() {
        let params = RawValue::from_string(
            r#"{"z":1.10,"_meta":{"b":[1],"progressToken":"theirs","a":{"progressToken":2}},"name":"x"}"#.to_owned(),
        );
        let (text, token) = renamed(Some(&params.unwrap()), 7);
        assert_eq!(token.as_deref(), Some(r#""theirs""#));
        let expected = r#"{"z":1.10,"_meta":{"b":[1],"progressToken":7,"a":{"progressToken":2}},"name":"x"}"#;
        assert_eq!(text.as_deref(), Some(expected));
        let bare = RawValue::from_string(r#"{ "n" : 1 }"#.to_owned()).unwrap();
        assert_eq!(renamed(Some(&bare), 7), (Some(r#"{ "n" : 1 }"#.to_owned()), None));
    }
}
