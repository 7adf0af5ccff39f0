//! MCP over standard input and output, with the gateway in the same process: one message a line, and nothing else.

use std::io;
use std::sync::Arc;

use reach_schemas::AgentId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::identity::Speaker;
use crate::mcp::server::{Server, Settings};
use crate::transport::conversation::Conversation;
use crate::transport::drain::Drain;
use crate::transport::stdio::converse;

/// Serves the MCP client at the other end of two streams, in the name of an agent or of the operator, until the input ends
/// and everything it asked for is answered, or until `stop` is cancelled.
///
/// # Errors
/// A stream fails: the client is gone.
pub async fn serve_mcp_stdio<R, W>(
    gateway: Arc<Gateway>,
    settings: &Settings,
    agent: Option<AgentId>,
    (reader, writer): (R, W),
    stop: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let server = Arc::new(Server::new(&gateway, settings));
    let drain = Drain::new(stop);
    let opened = Conversation::with_mcp(&gateway, &server, Speaker::of_own_process(agent), &drain);
    let telling = async {
        server.run().await;
        std::future::pending::<io::Result<()>>().await
    };
    tokio::select! {
        served = converse(&gateway, &drain, opened, reader, writer) => served,
        never = telling => never,
    }
}
