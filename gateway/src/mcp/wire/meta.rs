//! The keys of `_meta`, and what a request says of itself there. Everything is read from the raw text and nothing
//! else of it is looked at, so that keys that are not known here pass as they came.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The revision that the request is written in (2026-07-28).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can do (2026-07-28).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who the client is (2026-07-28).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Who answered (2026-07-28).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// How much of the server's log the request asks for (2026-07-28).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The stream that a notice belongs to (2026-07-28).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What a request says of itself in `params._meta`.
#[derive(Debug, Default, Deserialize)]
pub struct Meta<'a> {
    /// [`PROTOCOL_VERSION`].
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion", default)]
    pub protocol_version: Option<Cow<'a, str>>,
    /// [`CLIENT_CAPABILITIES`], as it came.
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities", default)]
    pub client_capabilities: Option<&'a RawValue>,
    /// [`CLIENT_INFO`], as it came.
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo", default)]
    pub client_info: Option<&'a RawValue>,
    /// [`LOG_LEVEL`].
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel", default)]
    pub log_level: Option<Cow<'a, str>>,
    /// The caller's name for notices of progress: a text or a number, as it came.
    #[serde(borrow, rename = "progressToken", default)]
    pub progress_token: Option<&'a RawValue>,
    /// W3C trace context (2026-07-28, reserved keys).
    #[serde(borrow, default)]
    pub traceparent: Option<Cow<'a, str>>,
    /// The caller's name for one intention: the same key, the same call, once.
    #[serde(borrow, rename = "idempotencyKey", default)]
    pub idempotency_key: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "_meta", default)]
    meta: Option<Meta<'a>>,
}

impl<'a> Meta<'a> {
    /// What the params of a request say. Nothing is said by a request without params or without `_meta`.
    ///
    /// # Errors
    /// A member that is known here is not of its type.
    pub fn of(params: Option<&'a RawValue>) -> serde_json::Result<Self> {
        let Some(params) = params else { return Ok(Self::default()) };
        Ok(serde_json::from_str::<Params<'_>>(params.get())?.meta.unwrap_or_default())
    }

    /// Whether the request stands alone, as those of the stateless era do.
    #[must_use]
    pub const fn is_stateless(&self) -> bool {
        self.protocol_version.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_request_says_its_revision_and_its_capabilities_as_they_came() {
        let params = raw(r#"{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
               "io.modelcontextprotocol/clientCapabilities":{"z":1.10},"vendor/k":[1],"progressToken":7}}"#);
        let meta = Meta::of(Some(&params)).unwrap();
        assert!(meta.is_stateless());
        assert_eq!(meta.protocol_version.as_deref(), Some("2026-07-28"));
        assert_eq!(meta.client_capabilities.unwrap().get(), r#"{"z":1.10}"#);
        assert_eq!(meta.progress_token.unwrap().get(), "7");
    }

    #[test]
    fn nothing_is_said_without_meta_and_a_wrong_type_is_refused() {
        assert!(!Meta::of(None).unwrap().is_stateless());
        assert!(!Meta::of(Some(&raw(r#"{"_meta":null}"#))).unwrap().is_stateless());
        assert!(Meta::of(Some(&raw(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#))).is_err());
    }
}
