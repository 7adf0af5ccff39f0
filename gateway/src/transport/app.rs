//! What is behind the port: which path leads to which dialect.

use std::net::SocketAddr;
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
use super::paths::{Behind, PATHS, Path};
use super::servers::{self, Servers};
use super::{HttpSettings, connection, door, http, mcp, oauth, rest, ws};
use crate::gateway::Gateway;
use crate::mcp::server::Server;
use crate::oauth::Asked;
use crate::rest::{Operation, Problem, ROUTES, Route};
use crate::rpc::methods::Context;

/// What the handlers share.
pub(super) struct App {
    pub(super) gateway: Arc<Gateway>,
    /// The gateway's own MCP server.
    pub(super) mcp: Arc<Server>,
    pub(super) settings: HttpSettings,
    /// Where it listens.
    pub(super) listens_on: SocketAddr,
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
            host: door::called_by(self, headers).map(Arc::from),
            connection: None,
            traceparent: None,
            gone: CancellationToken::new(),
            transport: "http",
            from: connection::from(extensions),
        }
    }
}

/// Every path of the port.
pub(super) fn router(app: &Arc<App>) -> Router {
    let routed = ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, handler(app, route)));
    let all = PATHS.iter().fold(routed, |router, path| router.route(path.path, beside(app, path)));
    all.fallback(async |request: Request| problem(no_route(&request)))
        .method_not_allowed_fallback(async |request: Request| problem(no_method(&request)))
}

fn filter(verb: &Method) -> MethodFilter {
    MethodFilter::try_from(verb.clone()).expect("the tables hold methods of RFC 9110")
}

/// What answers on a path that is no REST.
fn beside(app: &Arc<App>, path: &Path) -> MethodRouter {
    let verbs = path.verbs.iter().map(filter).reduce(MethodFilter::or).expect("a path is asked by some method");
    let (app, behind) = (Arc::clone(app), path.behind);
    on(verbs, move |request: Request| answer_beside(Arc::clone(&app), behind, request))
}

async fn answer_beside(app: Arc<App>, behind: Behind, request: Request) -> Response {
    match behind {
        Behind::Mcp => match *request.method() {
            Method::GET => mcp::get(app, request).await,
            Method::DELETE => mcp::delete(app, request).await,
            _ => mcp::post(app, request).await,
        },
        Behind::McpSocket => mcp::upgrade(app, request).await,
        Behind::ServerCard => mcp::published(app, Published::ServerCard, request).await,
        Behind::Catalog => mcp::published(app, Published::Catalog, request).await,
        Behind::AgentCard => mcp::published(app, Published::AgentCard, request).await,
        Behind::Server => servers::handle(app, request).await,
        Behind::AuthorizationServer => oauth::authorization_server(&app, &request),
        Behind::ProtectedResource => oauth::protected_resource(&app, &request),
        Behind::Keys => oauth::jwks(&app, &request),
        Behind::Token => oauth::form(app, Asked::Token, request).await,
        Behind::Revoke => oauth::form(app, Asked::Revoke, request).await,
        Behind::Introspect => oauth::form(app, Asked::Introspect, request).await,
    }
}

fn handler(app: &Arc<App>, route: &Route) -> MethodRouter {
    let verb = filter(&route.verb);
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
