//! What a client is told before it connects.

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::AgentId;

use super::{Client, Inner, RetryPolicy};
use crate::error::{Error, Result};
use crate::transport::ws::{Ears, Link};
use crate::transport::{Target, Transport, no_wss};

/// Where the gateway is unless said otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7340";

/// What a [`Client`] is told before it connects; from [`Client::builder`].
#[derive(Clone, Default)]
pub struct ClientBuilder {
    url: Option<String>,
    token: Option<String>,
    from_agent: Option<String>,
    retry: RetryPolicy,
    call_timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
}

impl ClientBuilder {
    /// Where the gateway is: `http(s)://` for a request a call, `ws://` for one connection that all calls share.
    /// Unless given, `AGENT_REACH_URL`, else [`DEFAULT_URL`].
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// The bearer token that shows who calls. Unless given, `AGENT_REACH_TOKEN`, else none.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The agent on whose behalf all calls are made, unless one says otherwise.
    #[must_use]
    pub fn from_agent(mut self, agent_id: impl Into<String>) -> Self {
        self.from_agent = Some(agent_id.into());
        self
    }

    /// The agent on whose behalf calls are made, where none was given.
    pub(crate) fn or_from_agent(mut self, agent_id: &AgentId) -> Self {
        self.from_agent.get_or_insert_with(|| agent_id.to_string());
        self
    }

    /// How calls are tried again.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How long one try of a call may take, beside what it is asked to wait for. 30 s unless given.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = Some(timeout);
        self
    }

    /// How long making a connection may take. 5 s unless given.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Makes the client. Over HTTP nothing is sent yet; over WebSocket the connection is opened.
    ///
    /// # Errors
    /// [`Error::Config`] if a setting cannot be used; [`Error::Transport`] if a WebSocket cannot be opened.
    pub async fn connect(self) -> Result<Client> {
        let client = self.open()?;
        client.inner.transport.ready().await?;
        Ok(client)
    }

    /// Makes the client and waits for nothing.
    pub(crate) fn open(self) -> Result<Client> {
        let transport = Transport::open(self.target()?)?;
        self.over(transport)
    }

    /// Makes a client over a WebSocket that also hears what the gateway has to say.
    pub(crate) fn open_socket(self, ears: Ears) -> Result<(Client, Arc<Link>)> {
        let mut target = self.target()?;
        if matches!(target.url.scheme(), "https" | "wss") {
            return Err(no_wss());
        }
        target.url.set_scheme("ws").map_err(|()| Error::Config(format!("{} is no URL of a gateway", target.url)))?;
        let link = Arc::new(Link::open(target, ears));
        let client = self.over(Transport::Ws(link.clone()))?;
        Ok((client, link))
    }

    fn over(self, transport: Transport) -> Result<Client> {
        let from_agent: Option<AgentId> =
            self.from_agent.as_deref().map(str::parse).transpose().map_err(Error::config)?;
        let call_timeout = self.call_timeout.unwrap_or(Duration::from_secs(30));
        Ok(Client { inner: Arc::new(Inner { transport, from_agent, retry: self.retry, call_timeout }) })
    }

    fn target(&self) -> Result<Target> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = self.url.clone().or_else(|| set("AGENT_REACH_URL")).unwrap_or_else(|| DEFAULT_URL.to_owned());
        let url = url.parse().map_err(|error| Error::Config(format!("{url:?} is not a URL: {error}")))?;
        let token = self.token.clone().or_else(|| set("AGENT_REACH_TOKEN"));
        Ok(Target { url, token, connect_timeout: self.connect_timeout.unwrap_or(Duration::from_secs(5)) })
    }
}
