//! What a client is told before it connects.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reach_schemas::AgentId;
use tokio::time::Instant;

use super::{Client, Inner, RetryPolicy};
use crate::error::{Error, Result};
use crate::identity::{Credentials, Papers};
use crate::transport::tls::TlsFiles;
use crate::transport::ws::{Ears, Link};
use crate::transport::{Target, Transport};

/// Where the gateway is unless said otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7340";

/// What a [`Client`] is told before it connects; from [`Client::builder`].
#[derive(Clone, Default)]
pub struct ClientBuilder {
    url: Option<String>,
    papers: Papers,
    tls: TlsFiles,
    from_agent: Option<String>,
    retry: RetryPolicy,
    call_timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
}

impl ClientBuilder {
    /// Where the gateway is: `http(s)://` for a request a call, `ws(s)://` for one connection that all calls share.
    /// Unless given, `AGENT_REACH_URL`, else [`DEFAULT_URL`].
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// The bearer token that shows who calls. Unless given, `AGENT_REACH_TOKEN`, else none.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.papers.token = Some(token.into().into());
        self
    }

    /// What lets the agent on whose behalf calls are made in for the first time: a join token, or the secret of its
    /// namespace. The agent is given a key then, which is kept in a file, and later shows that. Unless given,
    /// `AGENT_REACH_JOIN`, else none.
    #[must_use]
    pub fn join(mut self, join: impl Into<String>) -> Self {
        self.papers.join = Some(join.into().into());
        self
    }

    /// The file with the key of the agent on whose behalf calls are made; it is made if it is needed. Unless given,
    /// `AGENT_REACH_KEY_FILE`, else `.agent-reach/NAME@NAMESPACE.key` in the user's folder.
    #[must_use]
    pub fn key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.papers.key_file = Some(path.into());
        self
    }

    /// A file of authorities in PEM, one of which must have signed the gateway's certificate. Unless given,
    /// `AGENT_REACH_CA_FILE`, else those that this machine trusts.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.ca = Some(path.into());
        self
    }

    /// The certificate and the key, files in PEM, that are shown to a gateway which asks for one. Unless given,
    /// `AGENT_REACH_CLIENT_CERT` and `AGENT_REACH_CLIENT_KEY`, else none.
    #[must_use]
    pub fn client_cert(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.client = Some((cert.into(), key.into()));
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

    /// Whether the gateway's URL and the agent's id can be used, without connecting and without reading anything else: for
    /// those who connect later, and want to know at once.
    ///
    /// # Errors
    /// [`Error::Config`] if not.
    pub fn check(&self) -> Result<()> {
        self.agent()?;
        Transport::takes(&self.address()?)
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

    /// As [`ClientBuilder::connect`], but where nobody listens yet, it is tried again as the retry policy has it.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`]; the error of the last try.
    pub async fn connect_patiently(self) -> Result<Client> {
        let begun = Instant::now();
        let mut retry = 0;
        loop {
            let error = match self.clone().connect().await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            let next = self.retry.next(&error, true, retry, begun.elapsed(), fastrand::f64());
            let Some(pause) = next else { return Err(error) };
            tracing::debug!(retry, ?pause, %error, "will connect again");
            tokio::time::sleep(pause).await;
            retry += 1;
        }
    }

    /// Makes the client and waits for nothing.
    pub(crate) fn open(self) -> Result<Client> {
        let target = self.target()?;
        self.over(Transport::open(target.clone())?, target)
    }

    /// Makes a client over a WebSocket that also hears what the gateway has to say.
    pub(crate) fn open_socket(self, ears: Ears) -> Result<(Client, Arc<Link>)> {
        let target = self.target()?.over_websocket()?;
        let link = Arc::new(Link::open(target.clone(), ears));
        let client = self.over(Transport::Ws(link.clone()), target)?;
        Ok((client, link))
    }

    fn agent(&self) -> Result<Option<AgentId>> {
        self.from_agent.as_deref().map(str::parse).transpose().map_err(Error::config)
    }

    fn over(self, transport: Transport, target: Target) -> Result<Client> {
        let from_agent = self.agent()?;
        let call_timeout = self.call_timeout.unwrap_or(Duration::from_secs(30));
        let inner = Inner { transport, target, from_agent, retry: self.retry, call_timeout };
        Ok(Client { inner: Arc::new(inner) })
    }

    /// Where the gateway is, as it was told.
    fn address(&self) -> Result<reqwest::Url> {
        let url = self.url.clone().or_else(|| set("AGENT_REACH_URL")).unwrap_or_else(|| DEFAULT_URL.to_owned());
        if !url.contains("://") {
            return Err(Error::Config(format!("{url:?} is not a URL: it has no scheme; did you mean http://{url}?")));
        }
        url.parse().map_err(|error| Error::Config(format!("{url:?} is not a URL: {error}")))
    }

    fn target(&self) -> Result<Target> {
        let agent = self.agent()?;
        if agent.is_none() && (self.papers.join.is_some() || self.papers.key_file.is_some()) {
            return Err(Error::Config("a join token or a key is an agent's: say whose with `from_agent`".to_owned()));
        }
        let url = self.address()?;
        let papers = Papers {
            token: self.papers.token.clone().or_else(|| set("AGENT_REACH_TOKEN").map(Into::into)),
            join: self.papers.join.clone().or_else(|| set("AGENT_REACH_JOIN").map(Into::into)),
            key_file: self.papers.key_file.clone().or_else(|| set("AGENT_REACH_KEY_FILE").map(Into::into)),
        };
        let credentials = Arc::new(Credentials::new(papers, agent)?);
        let tls = if matches!(url.scheme(), "https" | "wss") { Some(self.tls_files()?.read()?) } else { None };
        let connect_timeout = self.connect_timeout.unwrap_or(Duration::from_secs(5));
        Ok(Target { url, credentials, connect_timeout, tls })
    }

    fn tls_files(&self) -> Result<TlsFiles> {
        let (cert, key) = ("AGENT_REACH_CLIENT_CERT", "AGENT_REACH_CLIENT_KEY");
        let client = match (&self.tls.client, set(cert), set(key)) {
            (Some(given), ..) => Some(given.clone()),
            (None, Some(cert), Some(key)) => Some((cert.into(), key.into())),
            (None, None, None) => None,
            (None, ..) => return Err(Error::Config(format!("{cert} and {key} go together: set both or neither"))),
        };
        Ok(TlsFiles { ca: self.tls.ca.clone().or_else(|| set("AGENT_REACH_CA_FILE").map(Into::into)), client })
    }
}

/// What the environment says; nothing, if it is empty.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_address_or_id_is_told_before_anyone_connects() {
        let check = |url: &str, agent: &str| Client::builder().url(url).from_agent(agent).check();
        for url in ["http://127.0.0.1:7340", "https://a.example/reach", "wss://a.example"] {
            check(url, "editor@news").unwrap();
        }
        for (url, agent, says) in [
            ("127.0.0.1:7340", "editor@news", "did you mean http://127.0.0.1:7340?"),
            ("localhost:7340", "editor@news", "did you mean http://localhost:7340?"),
            ("ftp://127.0.0.1", "editor@news", "write http(s):// or ws(s)://"),
            ("http://", "editor@news", "is not a URL"),
            ("http://127.0.0.1:7340", "bad id", "an agent id is name@namespace"),
        ] {
            let error = check(url, agent).unwrap_err();
            assert!(matches!(&error, Error::Config(told) if told.contains(says)), "{url} {agent}: {error}");
        }
    }
}
