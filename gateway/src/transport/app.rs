//! What is behind the port: which path leads to which dialect.

use std::sync::Arc;

use ::http::StatusCode;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use reach_schemas::{ErrorCode, Failure};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::drain::Drain;
use super::{HttpSettings, http, rest, ws};
use crate::gateway::Gateway;
use crate::rest::{Operation, Problem, ROUTES, Route};
use crate::rpc::methods::Context;

/// What the handlers share.
pub(super) struct App {
    pub(super) gateway: Arc<Gateway>,
    pub(super) settings: HttpSettings,
    pub(super) drain: Drain,
    pub(super) connections: TaskTracker,
}

impl App {
    /// The context of calls over which the gateway cannot speak first.
    pub(super) fn context(&self) -> Context {
        Context {
            gateway: Arc::clone(&self.gateway),
            connection: None,
            traceparent: None,
            gone: CancellationToken::new(),
            transport: "http",
        }
    }
}

/// Every path of the port.
pub(super) fn router(app: &Arc<App>) -> Router {
    let routed = ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, handler(app, route)));
    routed
        .fallback(async |request: Request| problem(no_route(&request)))
        .method_not_allowed_fallback(async |request: Request| problem(no_method(&request)))
}

fn handler(app: &Arc<App>, route: &Route) -> MethodRouter {
    let verb = MethodFilter::try_from(route.verb.clone()).expect("the table holds methods of RFC 9110");
    let (app, operation) = (Arc::clone(app), route.operation);
    if operation == Operation::Rpc {
        on(verb, move |request: Request| http::post(Arc::clone(&app), request))
    } else if operation == Operation::RpcSocket {
        on(verb, move |request: Request| ws::get(Arc::clone(&app), request))
    } else {
        on(verb, move |request: Request| rest::handle(Arc::clone(&app), operation, request))
    }
}

fn no_route(request: &Request) -> Problem {
    let message = format!("there is no {}; GET /openapi.json describes every route", request.uri().path());
    Problem::from(Failure::new(ErrorCode::MethodNotFound, message)).with_status(StatusCode::NOT_FOUND)
}

/// The router adds the header that names the methods there are.
fn no_method(request: &Request) -> Problem {
    let message = format!("{} does not take {}; see the Allow header", request.uri().path(), request.method());
    Problem::from(Failure::new(ErrorCode::MethodNotFound, message)).with_status(StatusCode::METHOD_NOT_ALLOWED)
}

/// A problem as a response.
pub(super) fn problem(problem: Problem) -> Response {
    problem.into_response().map(Body::from)
}
