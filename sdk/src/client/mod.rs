//! The caller's side: one [`Client`], cloned freely, shared by as many tasks as there are.

mod abandon;
mod builder;
mod calls;
mod handle;
mod request;
mod retry;
mod wait;
mod watch;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reach_schemas::{AgentId, Method, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

pub use abandon::CancelOnDrop;
pub use builder::{ClientBuilder, DEFAULT_URL};
pub use handle::{Completed, TaskHandle};
pub use request::TaskRequest;
pub use retry::RetryPolicy;
pub(crate) use retry::is_passing;
pub use watch::Watch;

use crate::error::{Error, Result};
use crate::transport::{Call, Target, Transport};

/// A caller of the gateway. Cloning is cheap, and all clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    transport: Transport,
    /// Where the gateway is, for those who need a connection of their own.
    pub(crate) target: Target,
    from_agent: Option<AgentId>,
    retry: RetryPolicy,
    call_timeout: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("from_agent", &self.inner.from_agent).finish_non_exhaustive()
    }
}

impl Client {
    /// What a client is told before it connects.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), agent_reach_sdk::Error> {
    /// use agent_reach_sdk::Client;
    /// let client = Client::builder().url("http://127.0.0.1:7340").from_agent("editor@news").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client as `AGENT_REACH_URL`, `AGENT_REACH_TOKEN`, `AGENT_REACH_JOIN` and `AGENT_REACH_KEY_FILE` say.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn from_env() -> Result<Self> {
        Self::builder().connect().await
    }

    /// On whose behalf calls are made.
    #[must_use]
    pub fn from_agent(&self) -> Option<&AgentId> {
        self.inner.from_agent.as_ref()
    }

    /// Calls any method by its name. It is tried again only where [`Method`] tells that this is safe, or if it did not
    /// arrive.
    ///
    /// # Errors
    /// What the gateway answered, what happened on the way, or [`Error::Protocol`] if the answer is not an `R`.
    pub async fn call<R: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<R> {
        self.call_within(method, params, self.inner.call_timeout).await
    }

    /// As [`Client::call`], where one try may take so long, in place of
    /// [`call_timeout`](ClientBuilder::call_timeout): for what takes its time, such as meeting a server.
    ///
    /// # Errors
    /// As [`Client::call`]. Whether it was the time that was too short, [`Error::unanswered_for`] tells.
    pub async fn call_within<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        timeout: Duration,
    ) -> Result<R> {
        let params = RawJson::of(params).map_err(|error| Error::Config(format!("parameters: {error}")))?;
        let is_safe = Method::by_name(method).is_some_and(|method| is_repeatable(method, &params));
        let call = Call {
            method: Cow::Owned(method.to_owned()),
            timeout: timeout + wait_in(&params),
            params: Some(params),
            is_safe,
        };
        read(method, &self.retried(&call).await?)
    }

    /// A call of the table, tried again as the policy has it.
    pub(crate) async fn invoke<R: DeserializeOwned>(&self, method: Method, params: &impl Serialize) -> Result<R> {
        let call = self.prepare(method, params, Duration::ZERO)?;
        read(method.name(), &self.retried(&call).await?)
    }

    /// A call of the table, tried once.
    pub(crate) async fn once<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &impl Serialize,
        wait: Duration,
    ) -> Result<R> {
        let call = self.prepare(method, params, wait)?;
        read(method.name(), &self.inner.transport.call(&call).await?)
    }

    /// Ends the connection, if there is one that lasts.
    pub(crate) fn close(&self) {
        self.inner.transport.close();
    }

    pub(crate) fn prepare(&self, method: Method, params: &impl Serialize, wait: Duration) -> Result<Call> {
        let params = RawJson::of(params).map_err(|error| Error::Config(format!("parameters: {error}")))?;
        let is_safe = is_repeatable(method, &params);
        let timeout = self.inner.call_timeout + wait;
        Ok(Call { method: Cow::Borrowed(method.name()), params: Some(params), timeout, is_safe })
    }

    pub(crate) async fn retried(&self, call: &Call) -> Result<RawJson> {
        self.retried_within(call, self.inner.retry.within).await
    }

    /// Tries a call as the policy has it, but begins no try after `within`.
    pub(crate) async fn retried_within(&self, call: &Call, within: Duration) -> Result<RawJson> {
        let policy = RetryPolicy { within: within.min(self.inner.retry.within), ..self.inner.retry };
        let begun = Instant::now();
        let mut retry = 0;
        loop {
            let error = match self.inner.transport.call(call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let next = policy.next(&error, call.is_safe, retry, begun.elapsed(), fastrand::f64());
            let Some(pause) = next else { return Err(error) };
            tracing::debug!(method = %call.method, retry, ?pause, %error, "will try again");
            tokio::time::sleep(pause).await;
            retry += 1;
        }
    }
}

fn read<R: DeserializeOwned>(method: &str, answer: &RawJson) -> Result<R> {
    answer.read().map_err(|error| Error::unreadable(&format!("the answer to {method}"), error))
}

/// Whether a call may be sent again when nobody knows whether it arrived. Reads may; what is fenced or idempotent by
/// its nature may; a submit may if it carries its key. A claim may not: it would take more work than was asked for.
fn is_repeatable(method: Method, params: &RawJson) -> bool {
    match method {
        Method::TaskSubmit | Method::Reach => has_key(params),
        Method::TaskClaim
        | Method::TaskSubscribe
        | Method::HumanTake
        | Method::DeadLetterRedrive
        | Method::ServerAdd
        | Method::ServerRemove
        | Method::PolicyPut
        | Method::WebhookRetry
        | Method::AuditAccept
        | Method::TokenIssue
        | Method::TokenCreateJoin
        | Method::TokenCreateOperator => false,
        Method::AgentRegister
        | Method::AgentHeartbeat
        | Method::AgentDrain
        | Method::AgentDeregister
        | Method::AgentGet
        | Method::ConfigShow
        | Method::ConfigReload
        | Method::AgentList
        | Method::CapabilityFind
        | Method::Resolve
        | Method::TaskWait
        | Method::TaskGet
        | Method::TaskList
        | Method::TaskCancel
        | Method::TaskExplain
        | Method::TaskAccept
        | Method::TaskProgress
        | Method::TaskComplete
        | Method::TaskFail
        | Method::TaskRelease
        | Method::HumanList
        | Method::HumanAnswer
        | Method::HumanRefuse
        | Method::HumanReturn
        | Method::DeadLetterList
        | Method::DeadLetterGet
        | Method::MetricsOverview
        | Method::PolicyGet
        | Method::PolicyTest
        | Method::ServerList
        | Method::TokenTrustKey
        | Method::TokenList
        | Method::TokenRevoke
        | Method::WebhookList
        | Method::WebhookGet
        | Method::AuditTail
        | Method::AuditSearch
        | Method::AuditVerify
        | Method::AuditExport
        | Method::AuditCheckpoint => true,
    }
}

fn has_key(params: &RawJson) -> bool {
    #[derive(serde::Deserialize)]
    struct Keyed {
        idempotency_key: Option<serde::de::IgnoredAny>,
    }
    params.read::<Keyed>().is_ok_and(|keyed| keyed.idempotency_key.is_some())
}

/// How long the gateway itself was asked to wait.
fn wait_in(params: &RawJson) -> Duration {
    #[derive(serde::Deserialize)]
    struct Waiting {
        wait: Option<reach_schemas::Span>,
    }
    params.read::<Waiting>().ok().and_then(|waiting| waiting.wait).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submit_may_be_repeated_only_with_its_key() {
        let keyed = RawJson::parse(r#"{"intent":"x","idempotency_key":"k"}"#).unwrap();
        let bare = RawJson::parse(r#"{"intent":"x"}"#).unwrap();
        for method in [Method::TaskSubmit, Method::Reach] {
            assert!(is_repeatable(method, &keyed) && !is_repeatable(method, &bare));
        }
        assert!(!is_repeatable(Method::TaskClaim, &keyed));
        assert!(is_repeatable(Method::TaskGet, &bare));
    }
}
