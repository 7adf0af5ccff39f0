//! One request to a receiver. Redirects are not followed, proxies of the environment are not used, and every address that
//! a name resolves to is judged before it is connected to.

use std::error::Error;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use http::header::{CONTENT_TYPE, USER_AGENT};
use reach_core::webhook::Answer;
use reach_schemas::{RawJson, Span, Timestamp, WebhookId};
use reqwest::Response;
use reqwest::redirect::Policy;

use tokio::time::{Instant, timeout_at};

use super::{Secrets, Settings};
use crate::adapter::retry_after::retry_after;
use crate::outbound::address::Refused;
use crate::outbound::{Guard, Resolver};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of an answer's body is read, so that its connection can be used again; it is not looked at.
const BODY_MAX: usize = 16 * 1024;

/// What came of a try, with what was wrong in words. None: nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// What came of it.
    pub answer: Answer,
    /// What was wrong.
    pub error: Option<String>,
}

/// Sends messages.
pub struct Client {
    secrets: Secrets,
    guard: Guard,
    timeout: Duration,
    /// Made when the first message is sent: loading certificates takes a while.
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl Client {
    /// A client with these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            secrets: settings.secrets.clone(),
            guard: settings.guard.clone(),
            timeout: settings.timeout.into(),
            client: OnceLock::new(),
        }
    }

    /// Sends a message once, and tells what came of it.
    pub async fn send(&self, id: WebhookId, url: &str, body: &RawJson) -> Tried {
        let silent = |why: String| Tried { answer: Answer::Silence, error: Some(why) };
        // What was allowed when the address was named may be allowed no more.
        let url = match self.guard.check(url) {
            Ok(url) => url,
            Err(refused) => return silent(format!("the address {refused}")),
        };
        let client = match self.client.get_or_init(|| client(self.guard.clone())) {
            Ok(client) => client,
            Err(why) => return silent(why.clone()),
        };
        // Receivers compare the signed time with their own, so it is the wall's, and not that of a clock which, once
        // started, only carries on.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("agent-reach/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", id.to_string())
            .header("webhook-timestamp", now.as_secs().to_string())
            .header("webhook-signature", self.secrets.signature(id, now.as_secs(), body.get()))
            .body(body.get().to_owned());
        let until = Instant::now() + self.timeout;
        match timeout_at(until, request.send()).await {
            Ok(Ok(response)) => {
                let tried = judge(&response, Timestamp::from_ms(Span::from(now).as_ms()));
                // The status has said it: what else comes, or does not, changes nothing.
                let _ = timeout_at(until, drain(response)).await;
                tried
            }
            Ok(Err(error)) => silent(told(&error)),
            Err(_) => silent(format!("no answer within {}", Span::from(self.timeout))),
        }
    }
}

fn client(guard: Guard) -> Result<reqwest::Client, String> {
    // Another part of the process may have chosen a provider before: then that one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .dns_resolver(Resolver::new(guard))
        .http1_only()
        .retry(reqwest::retry::never())
        .redirect(Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build()
        .map_err(|error| format!("TLS cannot be set up: {}", told(&error)))
}

fn judge(response: &Response, now: Timestamp) -> Tried {
    let status = response.status();
    let answer = Answer::Status { status: status.as_u16(), retry_after: retry_after(response.headers(), now) };
    let error = (!status.is_success()).then(|| {
        let hint = if status.is_redirection() { "; redirects are not followed, name the address itself" } else { "" };
        format!("the receiver answered {status}{hint}")
    });
    Tried { answer, error }
}

/// Reads the body to its end, so that the connection can be used again, unless it is long.
async fn drain(mut response: Response) {
    let mut read = 0;
    while read < BODY_MAX
        && let Ok(Some(chunk)) = response.chunk().await
    {
        read += chunk.len();
    }
}

/// What was wrong, in one line. What the guard said goes before all that was made of it on the way up.
fn told(error: &reqwest::Error) -> String {
    let chain = || std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
    if let Some(refused) = chain().find_map(|cause| cause.downcast_ref::<Refused>()) {
        return format!("the address {refused}");
    }
    // The outermost only names the address, which is known.
    chain().skip(1).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_name_that_means_a_special_address_is_never_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
        // Past the first check, as a name is whose meaning changed after it was named.
        let ask = |guard: Guard| client(guard).unwrap().post(&url).timeout(Duration::from_secs(30)).send();
        let error = ask(Guard::default()).await.unwrap_err();
        assert!(told(&error).contains("which is not a public address"), "{}", told(&error));
        assert!(listener.accept().now_or_never().is_none(), "it was connected to");

        let allowed = ["127.0.0.0/8", "::1/128"].map(|net| net.parse().unwrap());
        let asked = tokio::spawn(ask(Guard::allowing(allowed.into())));
        tokio::time::timeout(Duration::from_secs(30), listener.accept()).await.unwrap().unwrap();
        asked.abort();
    }

    #[tokio::test]
    async fn an_address_that_is_allowed_no_more_is_not_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let client = Client::new(&Settings::default());
        let tried = client.send(WebhookId::from_parts(1, 1), &url, &RawJson::parse("{}").unwrap()).await;
        assert_eq!(tried.answer, Answer::Silence);
        assert!(tried.error.unwrap().starts_with("the address is 127.0.0.1, which is not a public address"));
        assert!(listener.accept().now_or_never().is_none(), "it was connected to");
    }
}
