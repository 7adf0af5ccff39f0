//! Agents that are MCP servers: a delivery is a call of the tool that its capability was made of, and the result is the
//! server's `CallToolResult` as it wrote it.
//!
//! - The endpoint's address is `server:NAME` for a server that the operator added, or a URL of Streamable HTTP.
//! - The parameters are the tool's arguments, byte for byte. `_meta` has the idempotency key and the trace.
//! - A result that says `isError` is the agent's own no: it goes with the failure as `data`.
//! - Notices of progress renew the attempt and are shown with the task.
//! - An attempt that is given up is called off: by `notifications/cancelled`, or by closing its stream.

use std::borrow::Cow;
use std::sync::Arc;

use reach_core::task::event::Trace;
use reach_schemas::call::HealthReport;
use reach_schemas::{
    AgentId, Delivery, Effect, Endpoint, ErrorCode, Failure, FencingToken, ProbePolicy, RawJson, SERVER_PREFIX, TaskId,
};
use serde::Deserialize;
use tokio::time::Instant;

use super::{Adapter, Answer, Delivered, excerpt, not_started, unreadable};
use crate::clock::Clock;
use crate::upstream::reply::{Fault, Rejection, Reply};
use crate::upstream::server::{Server, ToolCall};
use crate::upstream::{Progress, Upstreams};

/// The error numbers that say that a request was not carried out: it was not understood, or not allowed
/// (JSON-RPC 2.0, section 5.1; MCP 2026-07-28, Errors).
const NOT_DONE: [i64; 7] = [-32700, -32600, -32601, -32602, -32020, -32021, -32022];

/// Reaches MCP servers.
pub struct McpAdapter {
    clock: Clock,
    upstreams: Arc<Upstreams>,
}

/// A result, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallToolResult<'a> {
    #[serde(default)]
    is_error: bool,
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(default)]
    content: Option<RawJson>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

impl McpAdapter {
    /// An adapter that gives up by this clock.
    #[must_use]
    pub const fn new(clock: Clock, upstreams: Arc<Upstreams>) -> Self {
        Self { clock, upstreams }
    }

    fn server(&self, endpoint: &Endpoint) -> Result<Arc<Server>, String> {
        match endpoint.address.strip_prefix(SERVER_PREFIX) {
            Some(name) => {
                let gone = || format!("there is no server {name:?} any more; add it again with reachctl add mcp");
                self.upstreams.get(name).ok_or_else(gone)
            }
            None => self.upstreams.at(&endpoint.address).map_err(|what| format!("the endpoint's address {what}")),
        }
    }

    async fn call(&self, endpoint: &Endpoint, delivery: Delivery) -> Delivered {
        let server = match self.server(endpoint) {
            Ok(server) => server,
            Err(why) => return not_started(Failure::new(ErrorCode::Unreachable, why)),
        };
        if delivery.params.as_ref().is_some_and(|params| !params.get().trim_start().starts_with('{')) {
            let message = "the parameters of an MCP tool are an object of its arguments; send one";
            let failure = Failure::new(ErrorCode::ParamsMismatch, message);
            return Delivered::Failed { failure, trace: Trace::FailedForGood };
        }
        let until = self.clock.instant(delivery.attempt_until);
        let traceparent = delivery.traceparent.as_ref().map(ToString::to_string);
        let call = ToolCall {
            capability: &delivery.capability,
            arguments: delivery.params.as_ref(),
            idempotency_key: Some(&delivery.idempotency_key),
            traceparent: traceparent.as_deref(),
        };
        let (task_id, token) = (delivery.task_id, delivery.token);
        let mut hears = |word: crate::upstream::reply::Word<'_>| {
            if let ("notifications/progress", Some(params)) = (word.method, word.params) {
                self.upstreams.tell(Progress { task_id, token, told: RawJson::from(params.to_owned()) });
            }
        };
        match server.call(&call, until, &mut hears).await {
            Ok(Reply::Result(result)) => done(result, delivery.effect),
            Ok(Reply::Refused(rejection)) => refused(rejection, delivery.effect),
            // It was the caller, perhaps, who gave it too little time to be met.
            Err(Fault::NeverSent(why)) if self.clock.now() >= delivery.attempt_until => {
                let message = format!("{}: {why}; nothing was sent", server.spec().name);
                not_started(Failure::new(ErrorCode::Timeout, message))
            }
            Err(fault) => silent(&server.spec().name.to_string(), fault, delivery.effect),
        }
    }
}

fn done(result: RawJson, effect: Effect) -> Delivered {
    let failed = |code, message: String, data, trace| {
        let failure = Failure { data, ..Failure::new(code, message) };
        Delivered::Failed { failure, trace }
    };
    let read = match result.read::<CallToolResult<'_>>() {
        Ok(read) if result.get().trim_start().starts_with('{') => read,
        Ok(_) => {
            return failed(
                ErrorCode::InvalidResult,
                "the server's result is no object".to_owned(),
                None,
                unreadable(effect),
            );
        }
        Err(error) => {
            let message = format!("the server's result is no CallToolResult: {error}");
            return failed(ErrorCode::InvalidResult, message, None, unreadable(effect));
        }
    };
    if let Some(kind) = read.result_type.as_deref().filter(|kind| *kind != "complete") {
        let message =
            format!("the server answered with {kind:?}, for which it was given no leave: nobody can go on with it");
        return failed(ErrorCode::InvalidResult, message, Some(result.clone()), unreadable(effect));
    }
    if read.is_error {
        let content = read.content.as_ref().and_then(|content| content.read::<Vec<Content<'_>>>().ok());
        let texts = content.unwrap_or_default().into_iter().filter_map(|content| content.text);
        let said = excerpt(&texts.collect::<Vec<_>>().join("\n"));
        let said = if said.is_empty() { "the tool failed and did not say why".to_owned() } else { said };
        return failed(ErrorCode::AgentFailed, said, Some(result.clone()), Trace::FailedForGood);
    }
    Delivered::Done { result, token_count: None }
}

fn refused(rejection: Rejection, effect: Effect) -> Delivered {
    let Rejection { code, message, data, raw: _ } = rejection;
    let trace = match code {
        code if NOT_DONE.contains(&code) => Trace::FailedForGood,
        _ if effect.is_repeatable() => Trace::FailedRetryable,
        _ => Trace::Unknown,
    };
    let message = format!("the server answered with error {code}: {}", excerpt(&message));
    Delivered::Failed { failure: Failure { data, ..Failure::new(ErrorCode::AgentFailed, message) }, trace }
}

fn silent(name: &str, fault: Fault, effect: Effect) -> Delivered {
    let message = format!("{name}: {fault}");
    let failed = |code, trace| Delivered::Failed { failure: Failure::new(code, message.clone()), trace };
    match fault {
        Fault::NeverSent(_) | Fault::SessionGone => not_started(Failure::new(ErrorCode::Unreachable, message)),
        Fault::Lost(_) => failed(ErrorCode::AgentLost, Trace::Unknown),
        Fault::Late => failed(ErrorCode::Timeout, Trace::Unknown),
        Fault::Status { status: 429 | 503, retry_after, .. } => {
            not_started(Failure { retry_after, ..Failure::new(ErrorCode::Overloaded, message) })
        }
        // None of these has looked at the call: it was sent elsewhere (RFC 9110, 15.4.8 and 15.4.9), not let in, found nothing
        // there, or was not taken up as it was sent.
        Fault::Status { status: 307 | 308 | 401 | 403..=406 | 408 | 415 | 425, .. } => {
            not_started(Failure::new(ErrorCode::Unreachable, message))
        }
        // Whoever says that a call is wrong may have looked at it; what may be repeated finds out elsewhere.
        Fault::Status { status: 400..=499, .. } if effect.is_repeatable() => {
            not_started(Failure::new(ErrorCode::Unreachable, message))
        }
        Fault::Status { status: 400..=499, .. } => failed(ErrorCode::AgentFailed, Trace::FailedForGood),
        Fault::Status { .. } if effect.is_repeatable() => failed(ErrorCode::AgentFailed, Trace::FailedRetryable),
        Fault::Status { .. } => failed(ErrorCode::AgentFailed, Trace::Unknown),
    }
}

impl Adapter for McpAdapter {
    fn deliver<'a>(&'a self, endpoint: &'a Endpoint, delivery: Delivery) -> Answer<'a, Delivered> {
        Box::pin(self.call(endpoint, delivery))
    }

    /// A delivery that is given up is called off by that alone.
    fn cancel<'a>(&'a self, _: &'a Endpoint, _: &'a AgentId, _: TaskId, _: FencingToken) -> Answer<'a, ()> {
        Box::pin(async {})
    }

    fn probe<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        _: &'a AgentId,
        policy: &'a ProbePolicy,
    ) -> Answer<'a, Result<HealthReport, String>> {
        Box::pin(async move {
            let server = self.server(endpoint)?;
            server.ping(Instant::now() + policy.timeout.into()).await.map(|()| HealthReport::default())
        })
    }
}
