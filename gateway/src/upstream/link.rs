//! The way to a server that was met: over HTTP, or to a process.

use std::sync::Arc;

use http::{HeaderMap, Uri};
use reach_schemas::ServerSpec;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::ask::Ask;
use super::greeting::Greeting;
use super::http::{Ended, HttpLink};
use super::reply::{Fault, Hears, Reply};
use super::stdio::{Passed, Shares, StdioLink};
use crate::envelope::Call;
use crate::mcp::wire::Era;
use crate::outbound::Client;

/// A server that was met.
pub(super) struct Link {
    way: Way,
    pub(super) greeting: Greeting,
}

enum Way {
    Http(HttpLink),
    Stdio(StdioLink),
}

impl Link {
    pub(super) async fn to_address(
        client: &Arc<Client>,
        uri: &Uri,
        headers: &HeaderMap,
        until: Instant,
    ) -> Result<Self, Fault> {
        let (link, greeting) = HttpLink::open(client, uri, headers, until).await?;
        Ok(Self { way: Way::Http(link), greeting })
    }

    pub(super) async fn to_process(
        spec: &ServerSpec,
        known: Option<Era>,
        changed: &Arc<Notify>,
        until: Instant,
    ) -> Result<Self, Fault> {
        let (link, greeting) = StdioLink::open(spec, known, changed, until).await?;
        Ok(Self { way: Way::Stdio(link), greeting })
    }

    pub(super) async fn request(&self, ask: &Ask<'_>, until: Instant, hears: Hears<'_>) -> Result<Reply, Fault> {
        match &self.way {
            Way::Http(link) => link.request(ask, until, hears).await,
            Way::Stdio(link) => link.request(ask, until, hears).await,
        }
    }

    /// Passes another's request on to a process.
    pub(super) async fn share(&self, call: &Call<'_>, passed: mpsc::Sender<Passed>) -> Result<Shares, Fault> {
        match &self.way {
            Way::Http(_) => Err(Fault::NeverSent("it is reached over HTTP".to_owned())),
            Way::Stdio(link) => link.share(call, passed).await,
        }
    }

    /// Whether it certainly leads nowhere any more.
    pub(super) fn is_gone(&self) -> bool {
        match &self.way {
            Way::Http(_) => false,
            Way::Stdio(link) => link.is_gone(),
        }
    }

    /// Listens until the server cannot tell of changes any more. A process tells of them as long as it lives.
    pub(super) async fn listen(&self, hears: Hears<'_>) -> Ended {
        match &self.way {
            Way::Http(link) => link.listen(hears).await,
            Way::Stdio(link) => {
                link.listen(hears).await;
                Ended::Cut
            }
        }
    }

    /// Ends the session. A process ends when the last link to it is dropped.
    pub(super) async fn close(&self) {
        match &self.way {
            Way::Http(link) => link.close().await,
            Way::Stdio(_) => {}
        }
    }

    pub(super) fn era(&self) -> Era {
        match &self.way {
            Way::Http(link) => link.era(),
            Way::Stdio(link) => link.era(),
        }
    }
}
