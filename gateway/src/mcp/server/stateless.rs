//! What the stateless era (2026-07-28) asks of every request and every result: the revision and the client's capabilities
//! in `_meta`, over HTTP mirrored in headers; a result says what it is and who answered.

use http::HeaderMap;
use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::ErrorCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::{INSTRUCTIONS, Server, server_info};
use crate::envelope::{Call, refusal};
use crate::mcp::catalog::Tool;
use crate::mcp::wire::meta::{CLIENT_CAPABILITIES, Meta, PROTOCOL_VERSION, SERVER_INFO};
use crate::mcp::wire::object::Object;
use crate::mcp::wire::{Era, Revision, TASKS_EXTENSION, code, header};

/// For how long a client need not ask again who this is, in ms.
const DISCOVER_TTL_MS: u64 = 60_000;

/// The answer to `server/discover`.
pub(super) fn discover(_server: &Server) -> Box<RawValue> {
    let extensions = Object::default().raw(TASKS_EXTENSION, "{}").into_text();
    let capabilities = Object::default().raw("tools", r#"{"listChanged":true}"#).raw("extensions", &extensions);
    let result = Object::default()
        .with("supportedVersions", &supported())
        .raw("capabilities", &capabilities.into_text())
        .with("instructions", INSTRUCTIONS);
    complete(cacheable(result, DISCOVER_TTL_MS, "public")).into_raw()
}

/// Revisions that are spoken, newest first; those before the stateless one by handshake.
fn supported() -> Vec<&'static str> {
    Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect()
}

/// A result that may be kept for a while.
pub(super) fn cacheable(result: Object, ttl_ms: u64, scope: &str) -> Object {
    result.with("ttlMs", &ttl_ms).with("cacheScope", scope)
}

/// `_meta`, with who answered.
pub(super) fn answered_by(meta: Object) -> Object {
    meta.raw(SERVER_INFO, &server_info().into_text())
}

/// A result that is whole, with its own `_meta` beside who answered.
pub(super) fn complete_with(result: Object, meta: Object) -> Object {
    result.with("resultType", "complete").raw("_meta", &answered_by(meta).into_text())
}

/// A result that is whole.
pub(super) fn complete(result: Object) -> Object {
    complete_with(result, Object::default())
}

/// Checks what a request says of itself.
///
/// # Errors
/// A required member is missing (-32602), or the revision is none that is spoken without a handshake (-32022).
pub(super) fn check_meta(meta: &Meta<'_>) -> Result<(), ErrorObjectOwned> {
    let missing = |key: &str| Err(refusal(ErrorCode::InvalidParams, format!("`_meta` must have {key:?}")));
    let Some(version) = meta.protocol_version.as_deref() else { return missing(PROTOCOL_VERSION) };
    if !meta.client_capabilities.is_some_and(|raw| raw.get().starts_with('{')) {
        return missing(CLIENT_CAPABILITIES);
    }
    check_version(version)
}

/// Whether a revision is spoken without a handshake.
pub(super) fn check_version(version: &str) -> Result<(), ErrorObjectOwned> {
    if Revision::by_name(version).is_some_and(|revision| revision.era() == Era::Stateless) {
        return Ok(());
    }
    let data = Object::default().with("supported", &supported()).with("requested", version);
    let message = "unsupported protocol version; revisions before 2026-07-28 begin with `initialize`";
    Err(ErrorObjectOwned::owned(code::UNSUPPORTED_REVISION, message, Some(data.into_raw())))
}

/// Checks that the headers say what the body says, so that nobody in between decides by something else.
///
/// # Errors
/// One is missing, comes twice, or says otherwise (-32020).
pub(super) fn check_headers(headers: &HeaderMap, call: &Call<'_>, meta: &Meta<'_>) -> Result<(), ErrorObjectOwned> {
    let version = one(headers, header::PROTOCOL_VERSION)?;
    match (version, meta.protocol_version.as_deref()) {
        (None, _) => return Err(mismatch(format!("the header {} is missing", header::PROTOCOL_VERSION))),
        (Some(said), Some(meant)) if said != meant => {
            return Err(mismatch(format!(
                "the header {} says {said:?}, and the body {meant:?}",
                header::PROTOCOL_VERSION
            )));
        }
        (Some(_), _) => {}
    }
    if call.is_notification() {
        return Ok(());
    }
    expect(headers, header::METHOD, &call.method)?;
    match name_of(call) {
        Some(name) => expect(headers, header::NAME, &name),
        None => Ok(()),
    }
}

/// Checks that the headers say of the arguments of a call what its tool wants said of them.
///
/// # Errors
/// One is missing, or says otherwise (-32020).
pub(super) fn check_mirrored(
    headers: &HeaderMap,
    tool: &Tool,
    params: Option<&RawValue>,
) -> Result<(), ErrorObjectOwned> {
    if tool.shape.mirrored.is_empty() {
        return Ok(());
    }
    let params = params.and_then(|params| serde_json::from_str::<Value>(params.get()).ok()).unwrap_or_default();
    for mirrored in &tool.shape.mirrored {
        let said = one(headers, &mirrored.header)?;
        if let Some(why) = mirrored.mismatch(said, &params["arguments"]) {
            return Err(mismatch(why));
        }
    }
    Ok(())
}

/// What a body names, for the methods that name something.
pub(super) fn name_of<'a>(call: &Call<'a>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named<'a> {
        #[serde(borrow, default)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        uri: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        task_id: Option<Cow<'a, str>>,
    }
    let read = || call.params.and_then(|params| serde_json::from_str::<Named<'a>>(params.get()).ok());
    match call.method.as_ref() {
        "tools/call" | "prompts/get" => read()?.name,
        "resources/read" => read()?.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => read()?.task_id,
        _ => None,
    }
}

fn expect(headers: &HeaderMap, name: &str, meant: &str) -> Result<(), ErrorObjectOwned> {
    let said = one(headers, name)?.ok_or_else(|| mismatch(format!("the header {name} is missing")))?;
    match header::decode(said) {
        Some(said) if said == meant => Ok(()),
        Some(said) => Err(mismatch(format!("the header {name} says {said:?}, and the body {meant:?}"))),
        None => Err(mismatch(format!("the header {name} is not in the base64 that it claims to be in"))),
    }
}

/// The one value of a header.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ErrorObjectOwned> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(mismatch(format!("the header {name} holds more than visible ASCII characters"))),
        },
        (Some(_), Some(_)) => Err(mismatch(format!("the header {name} comes twice"))),
    }
}

pub(super) fn mismatch(message: String) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(code::HEADER_MISMATCH, message, None::<()>)
}
