//! JSON-RPC over HTTP: one `POST /rpc` a call, over connections that are kept open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reach_schemas::{ErrorCode, RawJson};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url};

use super::{Call, Target, endpoint, install_crypto, is_loopback, rpc, tls};
use crate::error::{Error, Refusal, Result};
use crate::identity::{named_in, unknown};

/// A connection that has been idle for longer is not used again: the other side may be closing it.
const IDLE_MAX: Duration = Duration::from_secs(25);

pub(crate) struct Http {
    client: reqwest::Client,
    url: Url,
    target: Option<Target>,
    next_id: AtomicU64,
}

impl Http {
    /// Calls that show who we are.
    pub(crate) fn new(target: Target) -> Result<Self> {
        Ok(Self { target: Some(target.clone()), ..Self::anonymous(&target)? })
    }

    /// Calls that do not.
    pub(crate) fn anonymous(target: &Target) -> Result<Self> {
        install_crypto();
        let mut url = endpoint(&target.url, "/rpc");
        let over_http = if url.scheme() == "wss" { "https" } else { "http" };
        if matches!(url.scheme(), "ws" | "wss") && url.set_scheme(over_http).is_err() {
            return Err(Error::Config(format!("{} is no URL of a gateway", target.url)));
        }
        let mut builder = reqwest::Client::builder()
            .default_headers(HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]))
            .connect_timeout(target.connect_timeout)
            .pool_idle_timeout(IDLE_MAX)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(30))
            // Retries are ours: the library's own would not know what is safe.
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&target.url) {
            builder = builder.no_proxy();
        }
        if let Some(config) = &target.tls {
            builder = builder.tls_backend_preconfigured(tls::speaking(config, &[b"h2", b"http/1.1"]));
        }
        let client = builder.build().map_err(|error| Error::Config(format!("no HTTP client: {}", chain(&error))))?;
        Ok(Self { client, url, target: None, next_id: AtomicU64::new(1) })
    }

    /// Where calls go.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Makes a call. If the gateway does not take our token any more, another one is got and it is made once more: it was
    /// refused, and so has done nothing yet.
    pub(crate) async fn call(&self, call: &Call) -> Result<RawJson> {
        let Some(target) = &self.target else { return self.call_once(call).await };
        let shown = target.credentials.header()?;
        let (token, header) = shown.unzip();
        match self.send(call, header).await {
            Err(Error::Unauthenticated(refusal)) => {
                match target.credentials.renew(target, token.as_ref(), refusal.code).await? {
                    true => self.send(call, target.credentials.header()?.map(|(_, header)| header)).await,
                    false => Err(Error::Unauthenticated(refusal)),
                }
            }
            answer => answer,
        }
    }

    /// Makes a call without showing who we are.
    pub(crate) async fn call_once(&self, call: &Call) -> Result<RawJson> {
        self.send(call, None).await
    }

    async fn send(&self, call: &Call, authorization: Option<HeaderValue>) -> Result<RawJson> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = rpc::request(id, &call.method, call.params.as_ref());
        let mut request = self.client.post(self.url.clone()).timeout(call.timeout).body(body);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let lost = |error| self.lost(error, call.timeout);
        let response = request.send().await.map_err(lost)?;
        let (status, retry_after) = (response.status(), retry_after(response.headers()));
        let challenge =
            response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok().map(str::to_owned));
        let text = response.text().await.map_err(lost)?;
        match rpc::Frame::read(&text) {
            Ok(frame) if status.is_success() || frame.is_answer() => {
                frame.answer().map_err(|error| hinted(error, retry_after))
            }
            Err(error) if status.is_success() => Err(error),
            Ok(_) | Err(_) if status == StatusCode::UNAUTHORIZED => {
                Err(unknown(named_in(challenge.as_deref()), format!("HTTP status {status}")))
            }
            Ok(_) | Err(_) => Err(of_status(status, retry_after, &text)),
        }
    }

    fn lost(&self, error: reqwest::Error, timeout: Duration) -> Error {
        if let Some(distrust) = tls::distrust(&error) {
            return distrust;
        }
        let sent = !error.is_connect() && !error.is_builder();
        if sent && error.is_timeout() {
            return Error::late(&self.url, timeout);
        }
        let what = if error.is_timeout() { "no connection in time to" } else { "no answer from" };
        let message = format!("{what} {}: {}", self.url, chain(&error));
        Error::Transport { message, sent, source: Some(Arc::new(error)) }
    }
}

/// The innermost reason: the library's outer messages only repeat the URL.
fn chain(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// The header speaks where the error object does not.
fn hinted(error: Error, retry_after: Option<Duration>) -> Error {
    match (error.refusal(), retry_after) {
        (Some(refusal), Some(_)) if refusal.retry_after.is_none() => Refusal { retry_after, ..refusal.clone() }.into(),
        _ => error,
    }
}

/// What a status means that came without a JSON-RPC answer: from a proxy, or from a gateway that did not get as
/// far as reading the request.
fn of_status(status: StatusCode, retry_after: Option<Duration>, text: &str) -> Error {
    let code = match status.as_u16() {
        403 => ErrorCode::Forbidden,
        413 => ErrorCode::TooLarge,
        429 => ErrorCode::Overloaded,
        503 => ErrorCode::ShuttingDown,
        502 | 504 => return Error::maybe_sent(format!("a proxy answered {status}")),
        _ => {
            let start: String = text.chars().take(200).collect();
            return Error::protocol(format!("the answer is {status} and not JSON-RPC: {start}"));
        }
    };
    Refusal { retry_after, ..Refusal::new(code, format!("HTTP status {status}")) }.into()
}
