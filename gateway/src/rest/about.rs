//! Routes about the gateway itself.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use reach_schemas::call::Nothing;
use reach_schemas::{ErrorCode, Failure, Method};

use super::{Answer, JSON, Problem, Request, ok, openapi, with_body};
use crate::identity::Pass;
use crate::rpc::methods::Context;

const MARKDOWN: HeaderValue = HeaderValue::from_static("text/markdown; charset=utf-8");

/// The document does not change while the gateway runs.
static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| openapi::text().into());

/// The list of all errors, whose links lead to the pages from wherever it is read.
static INDEX: LazyLock<Bytes> = LazyLock::new(|| {
    let linked = |text: String, code: &ErrorCode| {
        text.replace(&format!("]({}.md)", code.name()), &format!("](/errors/{})", code.name()))
    };
    ErrorCode::ALL.iter().fold(reach_schemas::error::INDEX.to_owned(), linked).into()
});

/// Well is a gateway that could take a task on: its store takes a write. How much it has to do is told to operators only, for it
/// is the doing of all its tenants.
pub(super) async fn health(context: &Context) -> Answer {
    let health = context.gateway.health().await?;
    match context.pass {
        Pass::Open | Pass::Operator(_) => ok(&health),
        Pass::Nobody | Pass::Agent(_) => ok(&serde_json::json!({ "status": health.status })),
    }
}

/// How well tasks reach their agents.
pub(super) fn overview(context: &Context, request: &Request) -> Answer {
    let wanted: Nothing = request.query()?;
    ok(&context.gateway.overview(context.grant(Method::MetricsOverview, None)?, &wanted))
}

pub(super) fn openapi() -> Response<Bytes> {
    with_body(StatusCode::OK, JSON, OPENAPI.clone())
}

/// The page of an error, by its name; the pages name each other with `.md` at the end.
pub(super) fn error_page(request: &Request) -> Answer {
    let name = request.part.as_deref().unwrap_or_default();
    let code = ErrorCode::by_name(name.strip_suffix(".md").unwrap_or(name));
    let page = code.map(ErrorCode::page).ok_or_else(|| {
        let message = format!("there is no error {name:?}; GET /errors lists them all");
        Problem::from(Failure::new(ErrorCode::MethodNotFound, message)).with_status(StatusCode::NOT_FOUND)
    })?;
    Ok(with_body(StatusCode::OK, MARKDOWN, Bytes::from_static(page.as_bytes())))
}

/// The list of all errors.
pub(super) fn error_index() -> Response<Bytes> {
    with_body(StatusCode::OK, MARKDOWN, INDEX.clone())
}

/// JSON-RPC is not for here; a transport that asks is wired wrongly.
pub(super) fn not_rest() -> Problem {
    Failure::new(ErrorCode::Internal, "this route speaks JSON-RPC, and was asked as REST").into()
}
