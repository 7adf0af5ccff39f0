//! How calls get to the gateway: one request each over HTTP, or all over one WebSocket. Transports try once;
//! whether to try again is decided above them.

pub(crate) mod http;
pub(crate) mod rpc;
pub(crate) mod tls;
pub(crate) mod ws;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use reach_schemas::RawJson;

use crate::error::{Error, Result};
use crate::identity::Credentials;

/// One call as it goes out.
pub(crate) struct Call {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Option<RawJson>,
    /// How long this try may take.
    pub(crate) timeout: Duration,
    /// Whether it may be sent again when it is not known whether it arrived.
    pub(crate) is_safe: bool,
}

/// Where the gateway is, and how we show who we are.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) url: reqwest::Url,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) connect_timeout: Duration,
    /// None: the URL says that it is spoken in plain text.
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
}

impl Target {
    /// The same gateway, where it takes WebSockets.
    pub(crate) fn over_websocket(mut self) -> Result<Self> {
        let scheme = if self.tls.is_some() { "wss" } else { "ws" };
        self.url.set_scheme(scheme).map_err(|()| Error::Config(format!("{} is no URL of a gateway", self.url)))?;
        Ok(self)
    }
}

#[expect(clippy::large_enum_variant, reason = "there is one of it a client")]
pub(crate) enum Transport {
    Http(http::Http),
    Ws(Arc<ws::Link>),
}

impl Transport {
    pub(crate) fn open(target: Target) -> Result<Self> {
        Self::takes(&target.url)?;
        match target.url.scheme() {
            "ws" | "wss" => Ok(Self::Ws(Arc::new(ws::Link::open(target, ws::Ears::default())))),
            _ => Ok(Self::Http(http::Http::new(target)?)),
        }
    }

    /// Whether there is a way to such a URL.
    pub(crate) fn takes(url: &reqwest::Url) -> Result<()> {
        match url.scheme() {
            "http" | "https" | "ws" | "wss" => Ok(()),
            other => Err(Error::Config(format!(
                "the gateway's URL begins with \"{other}:\"; write http(s):// or ws(s)://, for example http://127.0.0.1:7340"
            ))),
        }
    }

    /// Waits until calls can be sent, if there is anything to wait for.
    pub(crate) async fn ready(&self) -> Result<()> {
        match self {
            Self::Http(_) => Ok(()),
            Self::Ws(link) => link.ready().await,
        }
    }

    pub(crate) async fn call(&self, call: &Call) -> Result<RawJson> {
        match self {
            Self::Http(http) => http.call(call).await,
            Self::Ws(link) => link.call(call).await,
        }
    }

    /// Ends what there is of a connection; later calls fail.
    pub(crate) fn close(&self) {
        match self {
            Self::Http(_) => {}
            Self::Ws(link) => link.close(),
        }
    }
}

/// The URL of the JSON-RPC endpoint under the gateway's URL.
fn endpoint(base: &reqwest::Url, path: &str) -> reqwest::Url {
    let mut url = base.clone();
    let kept = url.path().trim_end_matches('/').trim_end_matches("/rpc/ws").trim_end_matches("/rpc").to_owned();
    url.set_path(&format!("{kept}{path}"));
    url
}

/// Whether the host is this machine, so that a proxy from the environment has no business there.
fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Gives TLS its cryptography. The process's own choice, if it has made one, stands.
fn install_crypto() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another thread may have been faster; then its choice stands.
            let _already_chosen = rustls::crypto::ring::default_provider().install_default();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, expected: &str) {
        assert_eq!(endpoint(&base.parse().unwrap(), "/rpc").as_str(), expected);
    }

    #[test]
    fn the_endpoint_stands_under_whatever_url_was_given() {
        check("http://127.0.0.1:7340", "http://127.0.0.1:7340/rpc");
        check("http://127.0.0.1:7340/", "http://127.0.0.1:7340/rpc");
        check("http://127.0.0.1:7340/rpc", "http://127.0.0.1:7340/rpc");
        check("https://a.example/reach/", "https://a.example/reach/rpc");
    }

    #[test]
    fn loopback_is_known_in_all_its_forms() {
        for url in ["http://127.0.0.1:1", "http://localhost", "http://[::1]:80"] {
            assert!(is_loopback(&url.parse().unwrap()), "{url}");
        }
        assert!(!is_loopback(&"http://10.0.0.1".parse().unwrap()));
    }
}
