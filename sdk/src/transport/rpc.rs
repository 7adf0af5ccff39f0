//! JSON-RPC 2.0 as text: requests and answers written, what comes in read. No socket.

use std::borrow::Cow;

use reach_schemas::call::ErrorData;
use reach_schemas::{ErrorCode, RawJson};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{Error, Refusal, Result};

/// Anything that can come in: a request, a notification, or an answer.
#[derive(Deserialize)]
pub(crate) struct Frame<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Option<RawJson>,
}

/// Tells a `null` from what is missing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Frame<'a> {
    pub(crate) fn read(text: &'a str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::unreadable("the gateway's message", error))
    }

    /// Whether it answers anything at all.
    pub(crate) fn is_answer(&self) -> bool {
        self.error.is_some() || self.result.is_some()
    }

    /// What it answers.
    pub(crate) fn answer(self) -> Result<RawJson> {
        match (self.error, self.result) {
            (Some(error), _) => Err(error.into()),
            (None, Some(result)) => Ok(result.to_owned().into()),
            (None, None) => Err(Error::protocol("the answer has neither a result nor an error")),
        }
    }
}

impl From<ErrorObject> for Error {
    fn from(object: ErrorObject) -> Self {
        let data = object.data.as_ref().and_then(|data| data.read::<ErrorData>().ok());
        let named = data.as_ref().and_then(|data| ErrorCode::by_name(&data.code));
        let numbered = || ErrorCode::ALL.iter().copied().find(|code| i64::from(code.number()) == object.code);
        let Some(code) = named.or_else(numbered) else {
            return Error::protocol(format!("the gateway answered error {}: {}", object.code, object.message));
        };
        let mut refusal = Refusal::new(code, object.message);
        match data {
            Some(data) => {
                refusal.task_id = data.task_id;
                refusal.retry_after = data.retry_after.map(Into::into);
                refusal.suggestions = data.suggestions;
                refusal.data = data.details;
            }
            None => refusal.data = object.data,
        }
        refusal.into()
    }
}

/// The text of a request.
pub(crate) fn request(id: u64, method: &str, params: Option<&RawJson>) -> String {
    let method = serde_json::Value::from(method);
    match params {
        Some(params) => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{}}}"#, params.get()),
        None => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#),
    }
}

/// The text of an answer to a request of the other side.
pub(crate) fn respond(id: &RawJson, result: &RawJson) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#, id.get(), result.get())
}

/// The text of a refusal of a request of the other side.
pub(crate) fn refuse(id: &RawJson, refusal: &Refusal) -> String {
    let data = ErrorData {
        code: refusal.code.name().to_owned(),
        fault: refusal.code.fault(),
        retry: refusal.retry(),
        retry_after: refusal.retry_after.map(Into::into),
        task_id: refusal.task_id,
        suggestions: Vec::new(),
        details: refusal.data.clone(),
    };
    let error = serde_json::json!({ "code": refusal.code.number(), "message": refusal.message, "data": data });
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_comes_out_as_it_was_written() {
        let frame = Frame::read(r#"{"jsonrpc":"2.0","id":7,"result":{"b":1.10,"a":12345678901234567890123}}"#).unwrap();
        assert_eq!(frame.answer().unwrap().get(), r#"{"b":1.10,"a":12345678901234567890123}"#);
    }

    #[test]
    fn an_error_is_known_by_its_name_and_else_by_its_number() {
        let text = r#"{"id":1,"error":{"code":3001,"message":"full",
            "data":{"code":"overloaded","fault":"gateway","retry":"later","retry_after":"250ms"}}}"#;
        let error = Frame::read(text).unwrap().answer().unwrap_err();
        assert!(matches!(&error, Error::Overloaded(refusal) if refusal.message == "full"), "{error:?}");
        assert_eq!(error.retry_after(), Some(std::time::Duration::from_millis(250)));

        let error = Frame::read(r#"{"id":1,"error":{"code":1005,"message":"?"}}"#).unwrap().answer().unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::TaskNotFound));

        let error = Frame::read(r#"{"id":1,"error":{"code":7,"message":"?"}}"#).unwrap().answer().unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }));
    }

    #[test]
    fn null_is_a_result_and_nothing_is_none() {
        assert_eq!(Frame::read(r#"{"id":1,"result":null}"#).unwrap().answer().unwrap().get(), "null");
        assert!(!Frame::read(r#"{"status":503,"detail":"a problem"}"#).unwrap().is_answer());
    }

    #[test]
    fn a_request_carries_its_parameters_untouched() {
        let params = RawJson::parse(r#"{"n": 1.0}"#).unwrap();
        assert_eq!(
            request(3, "task/get", Some(&params)),
            r#"{"jsonrpc":"2.0","id":3,"method":"task/get","params":{"n": 1.0}}"#
        );
    }
}
