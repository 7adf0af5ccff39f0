//! JSON-RPC over HTTP: one `POST /rpc` a call, over connections that are kept open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reach_schemas::{ErrorCode, RawJson};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{StatusCode, Url};

use super::{Call, Target, endpoint, install_crypto, is_loopback, rpc};
use crate::error::{Error, Refusal, Result};

/// A connection that has been idle for longer is not used again: the other side may be closing it.
const IDLE_MAX: Duration = Duration::from_secs(25);

pub(crate) struct Http {
    client: reqwest::Client,
    url: Url,
    next_id: AtomicU64,
}

impl Http {
    pub(crate) fn new(target: Target) -> Result<Self> {
        install_crypto();
        let mut builder = reqwest::Client::builder()
            .default_headers(headers(target.token.as_deref())?)
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
        let client = builder.build().map_err(|error| Error::Config(format!("no HTTP client: {}", chain(&error))))?;
        Ok(Self { client, url: endpoint(&target.url, "/rpc"), next_id: AtomicU64::new(1) })
    }

    pub(crate) async fn call(&self, call: &Call) -> Result<RawJson> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = rpc::request(id, &call.method, call.params.as_ref());
        let sent = self.client.post(self.url.clone()).timeout(call.timeout).body(body).send().await;
        let response = sent.map_err(|error| self.lost(error))?;
        let (status, retry_after) = (response.status(), retry_after(response.headers()));
        let text = response.text().await.map_err(|error| self.lost(error))?;
        match rpc::Frame::read(&text) {
            Ok(frame) if status.is_success() || frame.is_answer() => {
                frame.answer().map_err(|error| hinted(error, retry_after))
            }
            Err(error) if status.is_success() => Err(error),
            Ok(_) | Err(_) => Err(of_status(status, retry_after, &text)),
        }
    }

    fn lost(&self, error: reqwest::Error) -> Error {
        let sent = !error.is_connect() && !error.is_builder();
        let what = if error.is_timeout() { "no answer in time from" } else { "no answer from" };
        let message = format!("{what} {}: {}", self.url, chain(&error));
        Error::Transport { message, sent, source: Some(Arc::new(error)) }
    }
}

fn headers(token: Option<&str>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Error::Config("the token holds characters that no HTTP header can carry".to_owned()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
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
        401 | 403 => ErrorCode::Forbidden,
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
