//! Agents that are reached by HTTP.
//!
//! | the gateway sends | the agent answers |
//! | --- | --- |
//! | `POST {address}`, the delivery as JSON | 200 and the result, 204 and none, or 202: it reports by `task/complete` |
//! | `DELETE {address}/{task_id}?token=N` when an attempt is called off | anything; nobody waits for it to act |
//! | `GET /healthz` of the same host and port | 2xx, with a [`HealthReport`] as JSON or without |
//!
//! A result may come with `Agent-Reach-Token-Count`, the tokens of a language model that it took.
//!
//! A delivery carries `Idempotency-Key`, `Agent-Reach-Task-Id`, `Agent-Reach-Token` and `traceparent` as headers too, so
//! that a proxy or a framework can use them without reading the body.

mod answer;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use reach_schemas::call::HealthReport;
use reach_schemas::{AgentId, Delivery, Endpoint, ErrorCode, Failure, FencingToken, ProbePolicy, Span, TaskId};
use tokio::time::Instant;

use crate::adapter::{Adapter, Answer, Delivered, not_started};
use crate::clock::Clock;
use crate::outbound::{Client, Guard};

/// How long the agent has to answer that it heard of a cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Where an agent tells how it is.
const HEALTH_PATH: &str = "/healthz";

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TASK_ID: HeaderName = HeaderName::from_static("agent-reach-task-id");
const TOKEN: HeaderName = HeaderName::from_static("agent-reach-token");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Reaches agents over HTTP/1.1, `http` and `https`.
pub struct HttpAdapter {
    clock: Clock,
    guard: Guard,
    deliveries: Client,
    /// Probes and cancellations go apart, so that a stuck delivery never holds them up.
    signals: Client,
}

impl HttpAdapter {
    /// An adapter that gives up by this clock, and goes where the guard lets it. Must be used within a Tokio runtime.
    #[must_use]
    pub fn new(clock: Clock, guard: Guard) -> Self {
        let client = || Client::new(guard.clone());
        Self { clock, deliveries: client(), signals: client(), guard }
    }

    async fn post(&self, endpoint: &Endpoint, delivery: Delivery) -> Delivered {
        let uri = match parse(&endpoint.address, &self.guard) {
            Ok(uri) => uri,
            Err(why) => return not_started(Failure::new(ErrorCode::Unreachable, why)),
        };
        let place = origin(&uri);
        let text = serde_json::to_vec(&delivery).expect("a delivery is made of types that can be written as JSON");
        let mut request = request(Method::POST, uri, Bytes::from(text));
        *request.headers_mut() = headers(&delivery);
        let until = self.clock.instant(delivery.attempt_until);
        match self.deliveries.send(request, until).await {
            Ok(answered) => answer::delivered(answered, delivery.effect, self.clock.now()),
            Err(silence) => answer::silent(silence, &place),
        }
    }

    async fn delete(&self, endpoint: &Endpoint, task: TaskId, token: FencingToken) {
        let Ok(uri) = parse(&endpoint.address, &self.guard) else { return };
        let Some(uri) = attempt_uri(uri, task, token) else { return };
        let until = Instant::now() + CANCEL_TIMEOUT;
        // Best effort: an agent that knows no such route, or is gone, has its result refused by the token.
        let _ = self.signals.send(request(Method::DELETE, uri, Bytes::new()), until).await;
    }

    async fn ask_health(&self, endpoint: &Endpoint, timeout: Span) -> Result<HealthReport, String> {
        let uri = with_path(parse(&endpoint.address, &self.guard)?, HEALTH_PATH).ok_or("the address has no host")?;
        let mut request = request(Method::GET, uri, Bytes::new());
        request.headers_mut().insert(ACCEPT, JSON);
        let answered = self.signals.send(request, Instant::now() + timeout.into()).await;
        answered.map_err(answer::no_health).and_then(answer::health)
    }
}

impl Adapter for HttpAdapter {
    fn deliver<'a>(&'a self, endpoint: &'a Endpoint, delivery: Delivery) -> Answer<'a, Delivered> {
        Box::pin(self.post(endpoint, delivery))
    }

    fn cancel<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        _: &'a AgentId,
        task: TaskId,
        token: FencingToken,
    ) -> Answer<'a, ()> {
        Box::pin(self.delete(endpoint, task, token))
    }

    fn probe<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        _: &'a AgentId,
        policy: &'a ProbePolicy,
    ) -> Answer<'a, Result<HealthReport, String>> {
        Box::pin(self.ask_health(endpoint, policy.timeout))
    }
}

fn request(method: Method, uri: Uri, body: Bytes) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    request
}

fn headers(delivery: &Delivery) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON);
    headers.insert(TOKEN, HeaderValue::from(delivery.token.0));
    let task_id = delivery.task_id.to_string();
    let traceparent = delivery.traceparent.map(|context| context.to_string());
    let texts = [
        (TASK_ID, Some(task_id.as_str())),
        (IDEMPOTENCY_KEY, Some(delivery.idempotency_key.as_str())),
        (TRACEPARENT, traceparent.as_deref()),
    ];
    for (name, text) in texts {
        // What cannot stand in a header stands in the body all the same.
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
    headers
}

/// The address as the guard reads it, so that what is judged and what is gone to is the same host. What is wrong with it is
/// said without the address: a path may be a secret.
fn parse(address: &str, guard: &Guard) -> Result<Uri, String> {
    let url = guard.check(address).map_err(|refused| format!("the address of the endpoint {refused}"))?;
    url.as_str().parse().map_err(|_| "the address of the endpoint is none that HTTP can carry".to_owned())
}

/// Scheme, host and port: what may be shown of an address. A path or a user's name may be a secret.
fn origin(uri: &Uri) -> String {
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default())
}

fn with_path(uri: Uri, path: &str) -> Option<Uri> {
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(path.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

/// The address of one attempt; a query of the endpoint's address stays.
fn attempt_uri(uri: Uri, task: TaskId, token: FencingToken) -> Option<Uri> {
    let query = uri.query().map(|query| format!("{query}&")).unwrap_or_default();
    let path = format!("{}/{task}?{query}token={}", uri.path().trim_end_matches('/'), token.0);
    with_path(uri, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> Result<Uri, String> {
        super::parse(address, &Guard::of_endpoints(Guard::loopback()))
    }

    #[test]
    fn an_attempt_lies_under_the_endpoint_and_keeps_its_query() {
        let task: TaskId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let check = |address: &str, expected: &str| {
            let uri = attempt_uri(parse(address).unwrap(), task, FencingToken(3)).unwrap();
            assert_eq!(uri.to_string(), expected.replace("ID", &task.to_string()));
        };
        check("http://a:1/work", "http://a:1/work/ID?token=3");
        check("http://a:1/", "http://a:1/ID?token=3");
        check("https://a/work/?x=1", "https://a/work/ID?x=1&token=3");
    }

    #[test]
    fn what_is_shown_of_an_address_holds_no_secret() {
        assert_eq!(origin(&parse("http://host:81/secret?key=1").unwrap()), "http://host:81");
        for address in
            ["ftp://host/secret", "/secret", "http://", "http://me:pass@host/secret", "http://10.0.0.1/secret"]
        {
            let why = parse(address).unwrap_err();
            assert!(!why.contains("secret") && !why.contains("pass@"), "{why}");
        }
    }
}
