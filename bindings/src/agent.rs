//! An agent that serves. Its handlers run in Python; all that the gateway wants of an agent is done by the SDK.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use agent_reach_sdk::schemas::call::DependencyState;
use agent_reach_sdk::{AgentBuilder, AgentCard, AgentHandle, Error, HandlerError, RawJson};
use pyo3::{PyResult, Python, pyclass, pymethods};
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, parsed, written};
use crate::client::Client;
use crate::connection::{Connection, seconds};
use crate::mailbox::{Mailbox, Ticket};
use crate::runtime;
use crate::works::{Forward, Works};

/// How an agent is reached and what it is told, as Python writes it.
#[derive(Deserialize)]
struct Settings {
    card: AgentCard,
    connection: Connection,
    via: Via,
    listen: Option<SocketAddr>,
    public_url: Option<String>,
    answer_within: Option<f64>,
}

/// By which way work comes.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Via {
    Websocket,
    Queue,
    Http,
}

/// How a handler failed.
#[derive(Deserialize)]
struct Failed {
    kind: FailedKind,
    message: String,
    retry_after: Option<f64>,
    data: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailedKind {
    Final,
    Retryable,
    NotStarted,
    Poison,
}

/// The answer to an HTTP request.
#[derive(Serialize)]
struct Answered {
    status: u16,
    body: String,
    retry_after: Option<u64>,
    token_count: Option<u64>,
}

/// An agent.
#[pyclass(frozen, module = "agent_reach._core")]
pub(crate) struct Agent {
    pid: u32,
    settings: Mutex<Option<Settings>>,
    works: Arc<Works>,
    mailbox: Arc<crate::mailbox::Box>,
    running: Running,
}

type Running = Arc<OnceLock<Arc<AgentHandle>>>;

impl Drop for Agent {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // The work is the parent's.
            std::mem::forget(self.running.clone());
        }
    }
}

impl Settings {
    fn builder(self, works: &Arc<Works>) -> AgentBuilder {
        let offers = self.card.capabilities.clone();
        let mut agent = agent_reach_sdk::Agent::builder(self.card).connection(self.connection.builder());
        for offer in offers {
            agent = agent.capability(offer, Forward(works.clone()));
        }
        match self.via {
            Via::Websocket => {}
            Via::Queue => agent = agent.pull(),
            Via::Http => {
                if let Some(listen) = self.listen {
                    agent = agent.http(listen);
                }
                if let Some(url) = self.public_url {
                    agent = agent.public_url(url);
                }
            }
        }
        match self.answer_within {
            Some(within) => agent.answer_within(seconds(within)),
            None => agent,
        }
    }
}

fn not_running() -> Error {
    Error::Config("the agent does not serve; start it first".to_owned())
}

#[pymethods]
impl Agent {
    /// An agent whose work, and the answers to whose calls, go into the mailbox. The settings are JSON.
    #[new]
    fn new(mailbox: &Mailbox, settings: &str) -> PyResult<Self> {
        let settings = parsed(settings).map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        Ok(Self {
            pid: std::process::id(),
            settings: Mutex::new(Some(settings)),
            works: Works::new(mailbox.inner.clone()),
            mailbox: mailbox.inner.clone(),
            running: Arc::default(),
        })
    }

    /// Registers and begins to serve; the answer is what the gateway understood.
    fn start(&self, py: Python<'_>, ticket: u64) -> PyResult<Ticket> {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (works, running) = (self.works.clone(), self.running.clone());
        runtime::begin(py, &self.mailbox, ticket, async move {
            let settings = settings.ok_or_else(|| Error::Config("the agent was started before".to_owned()))?;
            let handle = Arc::new(settings.builder(&works).start().await?);
            let registered = written(handle.registered());
            running.get_or_init(|| handle);
            registered
        })
    }

    /// Ends work with a result, as JSON.
    fn finish(&self, work: u64, result: &str) {
        let result = RawJson::parse(result).map_err(|error| HandlerError::failed(format!("not JSON: {error}")));
        self.works.end(work, result);
    }

    /// Ends work with a failure, as JSON.
    fn fail(&self, work: u64, failed: &str) -> PyResult<()> {
        let failed: Failed =
            parsed(failed).map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        let mut error = match failed.kind {
            FailedKind::Final => HandlerError::failed(failed.message),
            FailedKind::Retryable => HandlerError::retryable(failed.message),
            FailedKind::NotStarted => HandlerError::not_started(failed.message),
            FailedKind::Poison => HandlerError::poison(failed.message),
        };
        if let Some(after) = failed.retry_after {
            error = error.retry_after(seconds(after));
        }
        if let Some(data) = &failed.data {
            error = error.data(data);
        }
        self.works.end(work, Err(error));
        Ok(())
    }

    /// Tells how far work is.
    fn progress(&self, py: Python<'_>, ticket: u64, work: u64, progress: String) -> PyResult<Ticket> {
        let context = self.works.context(work);
        runtime::begin(py, &self.mailbox, ticket, async move {
            let context = context.ok_or_else(|| Error::Config("the work has ended".to_owned()))?;
            context.progress(&parsed::<RawJson>(&progress)?).await?;
            Ok("null".to_owned())
        })
    }

    /// Counts tokens of a language model that work took.
    fn count_tokens(&self, work: u64, tokens: u64) {
        if let Some(context) = self.works.context(work) {
            context.count_tokens(tokens);
        }
    }

    /// Takes no new work and lets what runs finish; the answer is how many were cut short.
    fn drain(&self, py: Python<'_>, ticket: u64, grace: f64) -> PyResult<Ticket> {
        self.with(py, ticket, move |handle| async move { written(&handle.drain(seconds(grace)).await) })
    }

    /// Waits until the agent can serve no more; the answer is why.
    fn ended(&self, py: Python<'_>, ticket: u64) -> PyResult<Ticket> {
        self.with(py, ticket, |handle| async move { Err(handle.ended().await) })
    }

    /// Answers an HTTP request to the agent.
    fn answer_http(
        &self,
        py: Python<'_>,
        ticket: u64,
        method: String,
        target: String,
        body: Vec<u8>,
    ) -> PyResult<Ticket> {
        self.with(py, ticket, move |handle| async move {
            let answer = handle.answer_http(&method, &target, &body).await;
            let (retry_after, token_count) = (answer.retry_after, answer.token_count);
            written(&Answered { status: answer.status, body: answer.body, retry_after, token_count })
        })
    }

    /// Reports the state of something that the agent needs: `up`, `degraded` or `down`.
    fn set_dependency(&self, name: String, state: &str) -> PyResult<()> {
        let state: DependencyState = written(&state)
            .and_then(|state| parsed(&state))
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        if let Some(handle) = self.running.get() {
            handle.set_dependency(name, state);
        }
        Ok(())
    }

    /// A client over the agent's connection. None: the agent does not serve.
    fn client(&self) -> Option<Client> {
        self.running.get().map(|handle| Client::shared(handle.client().clone()))
    }

    /// How many tasks it works on.
    fn load(&self) -> u32 {
        self.running.get().map_or(0, |handle| handle.load())
    }
}

impl Agent {
    fn with<F: Future<Output = Answer> + Send>(
        &self,
        py: Python<'_>,
        ticket: u64,
        call: impl FnOnce(Arc<AgentHandle>) -> F + Send + 'static,
    ) -> PyResult<Ticket> {
        let handle = self.running.get().cloned();
        runtime::begin(py, &self.mailbox, ticket, async move { call(handle.ok_or_else(not_running)?).await })
    }
}
