//! Messages that nobody asked for by name: they have no id and get no answer.

use bytes::Bytes;

use crate::mcp::wire::meta::SUBSCRIPTION_ID;
use crate::mcp::wire::object::Object;

fn notice(method: &str, params: Option<Object>) -> Bytes {
    let notice = Object::default().with("jsonrpc", "2.0").with("method", method);
    match params {
        Some(params) => notice.raw("params", &params.into_text()),
        None => notice,
    }
    .into_text()
    .into()
}

/// The tools have changed. `subscription` is the id of the request that asked to be told (stateless era).
pub(super) fn tools_changed(subscription: Option<&str>) -> Bytes {
    let tagged = |id: &str| Object::default().raw("_meta", &Object::default().raw(SUBSCRIPTION_ID, id).into_text());
    notice("notifications/tools/list_changed", subscription.map(tagged))
}

/// What of the notices that were asked for will be sent.
pub(super) fn acknowledged(subscription: &str, accepted: &str) -> Bytes {
    let meta = Object::default().raw(SUBSCRIPTION_ID, subscription);
    let params = Object::default().raw("notifications", accepted).raw("_meta", &meta.into_text());
    notice("notifications/subscriptions/acknowledged", Some(params))
}

/// A task has changed: how it is now.
pub(super) fn task(params: Object) -> Bytes {
    notice("notifications/tasks", Some(params))
}

/// How far a request is.
pub(super) fn progress(token: &str, progress: f64, total: Option<f64>, message: Option<&str>) -> Bytes {
    let params = Object::default().raw("progressToken", token).with("progress", &Number(progress));
    let params = params.maybe("total", total.map(Number)).maybe("message", message);
    notice("notifications/progress", Some(params))
}

/// A number that is written without a fraction if it has none.
struct Number(f64);

impl serde::Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() < WHOLE_MAX {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
            s.serialize_i64(self.0 as i64)
        } else {
            s.serialize_f64(self.0)
        }
    }
}
