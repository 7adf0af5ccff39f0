//! How the handshake era opens an exchange: `initialize`, in which both sides agree on a revision.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{INSTRUCTIONS, server_info};
use crate::envelope::{Outcome, refusal};
use crate::mcp::wire::Revision;
use crate::mcp::wire::object::Object;
use reach_schemas::ErrorCode;

/// What a client opens with.
#[derive(Debug)]
pub(super) struct Opening(Result<Revision, String>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    protocol_version: String,
}

impl Opening {
    pub(super) fn of(params: Option<&RawValue>) -> Self {
        let text = params.map_or("{}", RawValue::get);
        let read = serde_json::from_str::<Params>(text);
        Self(read.map(|params| Revision::agreed(&params.protocol_version)).map_err(|error| error.to_string()))
    }

    /// The revision that is agreed on.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.0.as_ref().ok().copied()
    }

    /// What is said to it.
    pub(super) fn answer(&self) -> Outcome {
        let revision = self.0.as_ref().map_err(|why| refusal(ErrorCode::InvalidParams, format!("params: {why}")))?;
        let capabilities = Object::default().raw("tools", r#"{"listChanged":true}"#);
        let result = Object::default()
            .with("protocolVersion", revision.as_str())
            .raw("capabilities", &capabilities.into_text())
            .raw("serverInfo", &server_info().into_text())
            .with("instructions", INSTRUCTIONS);
        Ok(result.into_raw())
    }
}
