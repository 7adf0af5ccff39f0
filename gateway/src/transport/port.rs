//! The port as its connections see it: who may call, and what answers.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto::Builder;
use reach_schemas::{ErrorCode, Failure};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::app::{App, problem, router};
use super::drain::Drain;
use super::guard::Guard;
use super::paths::template_of;
use super::servers::Servers;
use super::{HttpSettings, connection, door};
use crate::gateway::Gateway;
use crate::identity::Pass;
use crate::mcp::server::Server;

/// What all connections share.
pub(super) struct Port {
    pub(super) app: Arc<App>,
    pub(super) builder: Builder<TokioExecutor>,
    guard: Guard,
    router: Router,
}

impl Port {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        listens_on: SocketAddr,
        settings: HttpSettings,
        stop: CancellationToken,
    ) -> Self {
        let (guard, builder) = (Guard::new(listens_on.ip(), &settings), connection::builder(&settings));
        let mcp = Arc::new(Server::new(&gateway, &settings.mcp));
        let (drain, servers) = (Drain::new(stop), Servers::new(&settings));
        let app = Arc::new(App { gateway, mcp, settings, listens_on, drain, connections: TaskTracker::new(), servers });
        Self { router: router(&app), app, builder, guard }
    }

    /// Answers one request.
    pub(super) fn answer(&self, mut request: Request) -> impl Future<Output = Response> + Send + use<> {
        let admitted = match self.guard.refusal(request.uri(), request.headers()) {
            Some(why) => {
                // The reason names what the caller sent, so it is not written down.
                let told = "by a host or an origin that is not allowed";
                let (who, what) = (Pass::Nobody.to_string(), template_of(request.uri().path()));
                self.app.gateway.refused(who, what, ErrorCode::Forbidden, told);
                Err(problem(Failure::new(ErrorCode::Forbidden, why).into()))
            }
            None => door::admit(&self.app, &mut request),
        };
        let (mut router, app) = (self.router.clone(), Arc::clone(&self.app));
        async move {
            match admitted {
                Err(response) => response,
                Ok(pass) => {
                    let (asked, uri) = (door::Asked::of(&pass, &request), request.uri().clone());
                    let answer = async { router.call(request).await.unwrap_or_else(|never| match never {}) };
                    let response = door::while_known(&app, &pass, asked, answer).await;
                    door::guarded(&app, pass, uri, response)
                }
            }
        }
    }
}
