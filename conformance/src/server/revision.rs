//! The revisions of MCP, and what the stateless one puts into every request.

use serde_json::{Value, json};

/// The revisions that begin with a handshake, oldest first.
pub(crate) const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The last of them.
pub(crate) const LAST_HANDSHAKE: &str = HANDSHAKE[3];
/// The revision without one.
pub(crate) const STATELESS: &str = "2026-07-28";
/// Revisions that there are not.
pub(crate) const UNKNOWN: [&str; 2] = ["1999-01-01", "2999-01-01"];
/// From this one on, requests over HTTP name the revision in a header.
const HEADER_SINCE: &str = "2025-06-18";

/// Whether requests of a revision name it in a header.
pub(crate) fn has_header(revision: &str) -> bool {
    revision >= HEADER_SINCE
}

/// Whether it is any that there is.
pub(crate) fn is_known(revision: &str) -> bool {
    HANDSHAKE.contains(&revision) || revision == STATELESS
}

/// Who the runner says that it is.
pub(crate) fn client() -> Value {
    json!({ "name": "reach-conformance", "version": env!("CARGO_PKG_VERSION") })
}

/// Puts into `_meta` what every request of the stateless revision says.
pub(crate) fn say_stateless(params: &mut Value, revision: &str) {
    if !params["_meta"].is_object() {
        params["_meta"] = json!({});
    }
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(revision);
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = client();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
}
