//! A gateway on the stage: its connections, which acts there are, and which profiles apply.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reach_schemas::{Span, Timestamp};

use super::acts;
use super::peer::Peer;
use crate::engine::{self, Act, Findings, Outcome, Selection, Stage, Stop};
use crate::exchange::Exchange;

const ACTS: &[&str] =
    &["connect", "frames", "alike", "errors", "keys", "fencing", "walls", "deliveries", "tools", "statuses"];

/// What a gateway is checked with.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) url: String,
    /// The command that serves the same over standard input and output.
    pub(crate) stdio: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) seed: u64,
}

/// The gateway, and the connections to it.
pub(crate) struct Gateway {
    pub(crate) options: Options,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) client: reqwest::Client,
    /// HTTP, WebSocket, and standard input and output if there is a command.
    pub(crate) peers: Vec<Peer>,
    /// Ends the names of this run, so that they are nobody else's.
    pub(crate) run: String,
    pub(crate) has_no_mcp: bool,
}

/// Checks a gateway. `Err`: the check could not begin.
pub(crate) async fn check(options: Options, selection: &Selection, exchange: Arc<Exchange>) -> Result<Outcome, String> {
    let client = crate::agent::client()?;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp::from_ms(Span::from(since).as_ms()).as_ms();
    let run = format!("{now:x}{:x}", Rng::with_seed(options.seed ^ now).u16(..));
    let bound = options.timeout * 4;
    let mut gateway =
        Gateway { options, exchange: exchange.clone(), client, peers: Vec::new(), run, has_no_mcp: false };
    Ok(engine::run(&mut gateway, selection, &exchange, bound).await)
}

impl Gateway {
    /// The connection over HTTP.
    pub(crate) fn http(&mut self) -> Result<&mut Peer, Stop> {
        self.peers.first_mut().ok_or_else(|| Stop("there is no connection".to_owned()))
    }

    /// Another WebSocket.
    pub(crate) async fn socket(&self) -> Result<Peer, Stop> {
        Peer::socket(&self.options.url, self.exchange.clone(), self.options.timeout).await.map_err(Stop)
    }

    /// A namespace of this run's own.
    pub(crate) fn namespace(&self, name: &str) -> String {
        format!("{name}-{}", self.run)
    }
}

impl Stage for Gateway {
    fn acts(&self) -> &'static [&'static str] {
        ACTS
    }

    fn perform<'a>(&'a mut self, act: &'static str, findings: &'a mut Findings<'_>) -> BoxFuture<'a, Act> {
        match act {
            "connect" => acts::frames::connect(self, findings).boxed(),
            "frames" => acts::frames::frames(self, findings).boxed(),
            "alike" => acts::alike::alike(self, findings).boxed(),
            "errors" => acts::alike::errors(self, findings).boxed(),
            "keys" => acts::keys::keys(self, findings).boxed(),
            "fencing" => acts::keys::fencing(self, findings).boxed(),
            "walls" => acts::walls::walls(self, findings).boxed(),
            "deliveries" => acts::deliveries::deliveries(self, findings).boxed(),
            "tools" => acts::tools::tools(self, findings).boxed(),
            "statuses" => acts::frames::statuses(self, findings).boxed(),
            other => futures_util::future::ready(Err(Stop(format!("there is no act {other}")))).boxed(),
        }
    }

    fn why_not(&self, profile: &str) -> Option<String> {
        match profile {
            "gateway-mcp" if self.has_no_mcp => Some("there is no MCP server at /mcp".to_owned()),
            _ => None,
        }
    }
}
