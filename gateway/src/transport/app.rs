//! What is behind the port: which path leads to which dialect.

use std::sync::Arc;

use ::http::{Extensions, HeaderMap, Method, StatusCode};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use reach_schemas::{ErrorCode, Failure};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::drain::Drain;
use super::mcp::Published;
use super::servers::{self, Servers};
use super::{HttpSettings, door, http, mcp, oauth, rest, ws};
use crate::gateway::Gateway;
use crate::mcp::server::Server;
use crate::rest::{Operation, Problem, ROUTES, Route};
use crate::rpc::methods::Context;

/// What the handlers share.
pub(super) struct App {
    pub(super) gateway: Arc<Gateway>,
    /// The gateway's own MCP server.
    pub(super) mcp: Arc<Server>,
    pub(super) settings: HttpSettings,
    pub(super) drain: Drain,
    pub(super) connections: TaskTracker,
    /// Sessions that clients have with MCP servers through the gateway.
    pub(super) servers: Servers,
}

impl App {
    /// The context of calls over which the gateway cannot speak first: of a request that was let in.
    pub(super) fn context(&self, headers: &HeaderMap, extensions: &Extensions) -> Context {
        Context {
            gateway: Arc::clone(&self.gateway),
            pass: door::pass_of(extensions),
            host: door::host_of(headers).map(Arc::from),
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
        .merge(mcp_router(app))
        .merge(servers::router(app))
        .merge(oauth::router(app))
        .fallback(async |request: Request| problem(no_route(&request)))
        .method_not_allowed_fallback(async |request: Request| problem(no_method(&request)))
}

/// The paths of MCP, which is no REST and so not in the table.
fn mcp_router(app: &Arc<App>) -> Router {
    let with = |verb: MethodFilter| {
        let app = Arc::clone(app);
        on(verb, move |request: Request| {
            let app = Arc::clone(&app);
            async move {
                match *request.method() {
                    Method::GET => mcp::get(app, request).await,
                    Method::DELETE => mcp::delete(app, request).await,
                    _ => mcp::post(app, request).await,
                }
            }
        })
    };
    let all = MethodFilter::POST.or(MethodFilter::GET).or(MethodFilter::DELETE);
    let socket = Arc::clone(app);
    Router::new()
        .route(mcp::PATH, with(all))
        .route(mcp::CARD_PATH, published(app, Published::ServerCard))
        .route(mcp::CATALOG_PATH, published(app, Published::Catalog))
        .route(mcp::AGENT_CARD_PATH, published(app, Published::AgentCard))
        .route(mcp::SOCKET_PATH, on(MethodFilter::GET, move |request| mcp::upgrade(Arc::clone(&socket), request)))
}

fn published(app: &Arc<App>, what: Published) -> MethodRouter {
    let app = Arc::clone(app);
    on(MethodFilter::GET, move |request: Request| mcp::published(Arc::clone(&app), what, request))
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
