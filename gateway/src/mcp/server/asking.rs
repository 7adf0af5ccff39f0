//! One message of a client, and what is known of it: from the name of its method to what is said to it.

use std::sync::Arc;

use jsonrpsee_types::ErrorObjectOwned;
use reach_core::access::Grant;
use reach_schemas::{ErrorCode, Failure, Method, Traceparent};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::in_flight::Working;
use super::{Line, Server, Session, handshake, reach, stateless};
use crate::envelope::{Call, Outcome, error_of, refusal};
use crate::identity::Speaker;
use crate::mcp::catalog::{Cursor, Page, View};
use crate::mcp::wire::Era;
use crate::mcp::wire::meta::Meta;
use crate::mcp::wire::object::Object;
use crate::rpc::{Said, decode_params};

/// For how long a client need not ask again for a list (2026-07-28, Caching), in ms.
const LIST_TTL_MS: u64 = 5_000;
/// How much of a caller's word is told back to it.
const SHOWN_MAX: usize = 128;

/// Every method of MCP that asks for something. What is not here is answered as one that is not known.
pub const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// What is not in the table has no name of the caller's in the audit log.
const ANOTHER: &str = "(another method)";

/// What the audit log calls a method.
pub(super) fn named(method: &str) -> &'static str {
    METHODS.iter().find(|known| **known == method).copied().unwrap_or(ANOTHER)
}

/// Who asks, in which way, and how it is answered.
pub(super) struct Asking<'a> {
    pub(super) server: &'a Server,
    pub(super) speaker: &'a Speaker,
    pub(super) era: Era,
    pub(super) line: &'a Line,
    /// What lasts beyond the message, where something does: a later one can call this one off.
    pub(super) session: Option<&'a Session>,
    /// Whether the client may come back for the answer when its connection is lost.
    pub(super) outlives_connection: bool,
    /// Whether the message was counted with the request that it came by.
    pub(super) is_counted: bool,
    /// The trace, by the transport's own account.
    pub(super) traceparent: Option<Traceparent>,
}

/// The params of a list.
#[derive(Debug, Default, Deserialize)]
struct ListParams {
    #[serde(default)]
    cursor: Option<String>,
}

/// The params of `notifications/cancelled`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    #[serde(borrow)]
    request_id: &'a RawValue,
}

impl Asking<'_> {
    pub(super) fn is_stateless(&self) -> bool {
        self.era == Era::Stateless
    }

    /// Answers a message, unless it was called off.
    pub(super) async fn say(&self, call: Call<'_>) -> Said {
        let method = METHODS.iter().find(|method| **method == call.method).copied();
        let outcome = self.answer(method, call).await;
        if let Err(error) = &outcome
            && let Some(code) = ErrorCode::by_number(error.code())
            && !self.line.is_silenced()
        {
            self.note_refused(method.unwrap_or(ANOTHER), code, error.message());
        }
        if self.line.is_silenced() { Said::Nothing } else { Said::Outcome(outcome) }
    }

    /// `method`: its name in the table.
    async fn answer(&self, method: Option<&'static str>, call: Call<'_>) -> Outcome {
        let Some(id) = call.id else { return self.hear(&call) };
        if id.is_null() {
            return Err(refusal(ErrorCode::InvalidRequest, "`id` must be a string or a number"));
        }
        if !self.is_counted {
            // It is written down with whatever else is refused.
            self.server.gateway.count_speaker(self.speaker).map_err(|failure| error_of(failure, None))?;
        }
        let id = id.get();
        let Some(method) = method else { return Err(no_method(&call.method)) };
        match (method, self.era) {
            ("tools/list", _) => self.list(call.params),
            ("tools/call", _) => self.call_tool(id, call.params).await,
            ("tasks/get" | "tasks/update" | "tasks/cancel", Era::Stateless) => {
                self.task_method(method, call.params).await
            }
            ("ping", Era::Handshake) => Ok(Object::default().into_raw()),
            ("initialize", Era::Handshake) => {
                Err(refusal(ErrorCode::InvalidRequest, "this session was initialized already; open another"))
            }
            ("server/discover", Era::Stateless) => Ok(stateless::discover(self.server)),
            ("subscriptions/listen", Era::Stateless) => self.listen(id, call.params).await,
            (method, _) => Err(no_method(method)),
        }
    }

    /// Hears a notification; nobody is told what came of it.
    fn hear(&self, call: &Call<'_>) -> Outcome {
        if let ("notifications/cancelled", Some(params), Some(session)) =
            (call.method.as_ref(), call.params, self.session)
            && let Ok(cancelled) = serde_json::from_str::<Cancelled<'_>>(params.get())
        {
            session.in_flight.cancel(cancelled.request_id.get());
        }
        Ok(Object::default().into_raw())
    }

    fn list(&self, params: Option<&RawValue>) -> Outcome {
        let ListParams { cursor } = decode_params(params)?;
        let cursor = cursor.map(|text| {
            let none = "this cursor is none of ours; leave it out to begin with the first page";
            Cursor::of(&text).ok_or_else(|| refusal(ErrorCode::InvalidParams, none))
        });
        let view = self.view();
        let cursor = cursor.transpose()?;
        let shown = self.server.shown;
        let mut tools = "[".to_owned();
        if shown.has_reach() && cursor.is_none() {
            reach::write(&mut tools);
        }
        let page = shown.has_capabilities().then(|| Page::of(&view, cursor.as_ref()));
        if let Some(page) = &page {
            page.write(self.is_stateless(), &mut tools);
        }
        let next = page.and_then(|page| page.next);
        if tools.len() > 1 {
            tools.pop();
        }
        tools.push(']');
        let list = Object::default().raw("tools", &tools).maybe("nextCursor", next.map(|next| next.to_text()));
        Ok(if self.is_stateless() {
            // The list depends on who asks.
            stateless::complete(stateless::cacheable(list, LIST_TTL_MS, "private")).into_raw()
        } else {
            list.into_raw()
        })
    }

    /// Lets a later message call this request off.
    pub(super) fn begin(&self, id: &str) -> Option<Working<'_>> {
        self.session.map(|session| session.in_flight.begin(id))
    }

    pub(super) fn grant(&self, method: Method) -> Result<Grant, Failure> {
        self.server.grant(self.speaker, method)
    }

    pub(super) fn note_refused(&self, what: &str, code: ErrorCode, message: &str) {
        self.server.note_refused(self.speaker, what, code, message);
    }

    /// Writes down that a tool was not used.
    pub(super) fn note_unused(&self, failure: &Failure) {
        self.note_refused("tools/call", failure.code, &failure.message);
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.server.view(self.speaker)
    }
}

/// What a request says in `_meta`.
pub(super) fn meta(params: Option<&RawValue>) -> Result<Meta<'_>, ErrorObjectOwned> {
    Meta::of(params).map_err(|error| refusal(ErrorCode::InvalidParams, format!("`_meta`: {error}")))
}

pub(super) fn no_method(method: &str) -> ErrorObjectOwned {
    let shown: String = method.chars().take(SHOWN_MAX).collect();
    let message = format!("this server has no method {shown:?}; it declares tools and nothing else");
    refusal(ErrorCode::MethodNotFound, message)
}

/// What a message opens, if it is the one that opens a session.
pub(super) fn opening(call: &Call<'_>) -> Option<handshake::Opening> {
    (call.method == "initialize" && call.id.is_some_and(|id| !id.is_null()))
        .then(|| handshake::Opening::of(call.params))
}
