//! A client of the MCP server at the other end of a connection that stays open.

use std::sync::Arc;

use bytes::Bytes;
use reach_schemas::Failure;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::identity::{Pass, Speaker};
use crate::mcp::server::{Line, Server, Session};
use crate::ops::identity::Ended;

/// The client, as far as its connection goes.
pub(in crate::transport) struct Peer {
    server: Arc<Server>,
    session: Arc<Session>,
    line: Line,
}

impl Peer {
    /// A client that is told things by `notice`, until it is `gone`.
    pub(in crate::transport) fn new(
        server: &Arc<Server>,
        speaker: Speaker,
        notice: impl Fn(Bytes) -> bool + Send + Sync + 'static,
        gone: CancellationToken,
    ) -> Self {
        let peer = Self {
            server: Arc::clone(server),
            session: Session::of_connection(speaker),
            line: Line::new(notice, gone),
        };
        let (server, session, line) = (Arc::clone(server), Arc::clone(&peer.session), peer.line.clone());
        tokio::spawn(async move { server.tell_connection(&session, &line).await });
        peer
    }

    /// What one frame is answered with; a frame that nobody may send, or for which there is no room, is refused.
    pub(in crate::transport) fn answer(
        &self,
        frame: Bytes,
        refusal: Option<Failure>,
    ) -> impl Future<Output = Option<Bytes>> + Send + use<> {
        let (server, session, line) = (Arc::clone(&self.server), Arc::clone(&self.session), self.line.for_another());
        async move {
            match refusal {
                Some(failure) => server.refuse(&session, &frame, &failure).await,
                None => server.converse(&session, &frame, &line).await,
            }
        }
    }

    /// What one frame is answered with instead once its client is not known any more.
    pub(in crate::transport) fn turned_away(
        &self,
        gateway: Arc<Gateway>,
        pass: Pass,
        frame: Bytes,
    ) -> impl Future<Output = Option<Bytes>> + Send + use<> {
        let (server, session) = (Arc::clone(&self.server), Arc::clone(&self.session));
        async move {
            let Ended { failure, .. } = gateway.ended(&pass).await;
            server.refuse(&session, &frame, &failure).await
        }
    }

    /// Ends what goes on for as long as the client listens.
    pub(in crate::transport) fn close(&self) {
        self.session.close();
    }
}
