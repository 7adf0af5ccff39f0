//! The gateway for those who speak plain HTTP: routes, queries, headers and bodies, over the same use cases as
//! JSON-RPC. It never opens a socket: a transport gives it a request that was read whole, and takes the answer.

mod about;
mod agents;
mod metrics;
pub mod openapi;
mod people;
mod problem;
mod request;
mod routes;
mod tasks;
mod webhooks;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

pub use problem::Problem;
pub use request::{Request, refuse_unless_json, traceparent_of};
pub use routes::{Operation, ROUTES, Route};

use crate::rpc::methods::Context;
use crate::spans::Asked;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers one request. Whatever is wrong is a problem body.
pub async fn answer(context: &Context, operation: Operation, request: &Request) -> Response<Bytes> {
    let name = || {
        let route = ROUTES.iter().find(|route| route.operation == operation);
        route.map_or_else(String::new, |route| format!("{} {}", route.verb, route.path)).into()
    };
    let asked = Asked { transport: context.transport, parent: traceparent_of(&request.headers) };
    let flaw = |response: &Response<Bytes>| {
        let status = response.status();
        status.is_server_error().then(|| status.to_string())
    };
    asked.answer(context.gateway.spans(), name, carry_out(context, operation, request), flaw).await
}

async fn carry_out(context: &Context, operation: Operation, request: &Request) -> Response<Bytes> {
    let answer = match operation {
        Operation::AgentRegister => agents::register(context, request).await,
        Operation::AgentHeartbeat => agents::heartbeat(context, request).await,
        Operation::AgentInvoke => tasks::invoke(context, request).await,
        Operation::AgentList => agents::list(context, request),
        Operation::AgentGet => agents::get(context, request),
        Operation::CapabilityFind => agents::find(context, request),
        Operation::Reach => tasks::reach(context, request).await,
        Operation::TaskSubmit => tasks::submit(context, request).await,
        Operation::TaskList => tasks::list(context, request).await,
        Operation::TaskGet => tasks::get(context, request).await,
        Operation::TaskResult => tasks::result(context, request).await,
        Operation::TaskCancel => tasks::cancel(context, request).await,
        Operation::TaskExplain => tasks::explain(context, request).await,
        Operation::DeadLetterList => tasks::dead_letters(context, request).await,
        Operation::DeadLetterRedrive => tasks::redrive(context, request).await,
        Operation::HumanList => people::list(context, request).await,
        Operation::HumanTake => people::take(context, request).await,
        Operation::HumanAnswer => people::answer(context, request).await,
        Operation::HumanRefuse => people::refuse(context, request).await,
        Operation::HumanReturn => people::put_back(context, request).await,
        Operation::WebhookList => webhooks::list(context, request).await,
        Operation::WebhookGet => webhooks::get(context, request).await,
        Operation::WebhookRetry => webhooks::retry(context, request).await,
        Operation::Health => about::health(context).await,
        Operation::Metrics => metrics::metrics(context, request).await,
        Operation::Overview => about::overview(context, request),
        Operation::OpenApi => Ok(about::openapi()),
        Operation::ErrorIndex => Ok(about::error_index()),
        Operation::ErrorPage => about::error_page(request),
        Operation::Rpc | Operation::RpcSocket => Err(about::not_rest()),
    };
    answer.unwrap_or_else(|problem| {
        // What is taken on as a task is written down where it is refused.
        if !matches!(operation, Operation::Reach | Operation::TaskSubmit | Operation::AgentInvoke) {
            context.refused(path_of(operation), problem.code(), problem.detail());
        }
        problem.into_response()
    })
}

fn path_of(operation: Operation) -> &'static str {
    ROUTES.iter().find(|route| route.operation == operation).map_or("", |route| route.path)
}

/// An answer, or the problem that stands for it.
type Answer = Result<Response<Bytes>, Problem>;

fn json<T: Serialize>(status: StatusCode, value: &T) -> Response<Bytes> {
    let body = serde_json::to_vec(value).expect("answers are made of types that can be written as JSON");
    with_body(status, JSON, body.into())
}

fn ok<T: Serialize>(value: &T) -> Answer {
    Ok(json(StatusCode::OK, value))
}

fn with_body(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
