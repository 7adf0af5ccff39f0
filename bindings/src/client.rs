//! A client, and a watch over one task. Both are opened when they are first used, and a client is opened anew in a forked
//! child.

use std::sync::{Arc, Mutex, PoisonError};

use agent_reach_sdk::{ClientBuilder, Error};
use pyo3::{PyResult, Python, pyclass, pymethods};
use tokio::sync::OnceCell;

use crate::answer::{Answer, Pair, pair, parsed, written};
use crate::connection::Connection;
use crate::mailbox::{Mailbox, Ticket};
use crate::{op, runtime};

/// A caller of the gateway.
#[pyclass(frozen, module = "agent_reach._core")]
pub(crate) struct Client {
    /// Only locked by threads that are attached, as the runtime's home is.
    slot: Mutex<Slot>,
}

#[derive(Clone)]
struct Slot {
    pid: u32,
    way: Way,
    opened: Arc<OnceCell<agent_reach_sdk::Client>>,
}

/// How a client is had.
#[derive(Clone)]
enum Way {
    /// It is opened.
    Open(Box<ClientBuilder>),
    /// It is that of an agent.
    Shared,
    /// It was closed.
    Closed,
}

impl Slot {
    fn new(way: Way) -> Self {
        Self { pid: std::process::id(), way, opened: Arc::default() }
    }

    async fn client(&self) -> Result<agent_reach_sdk::Client, Error> {
        let opened = self.opened.get_or_try_init(|| async {
            match &self.way {
                Way::Open(builder) => builder.as_ref().clone().connect_patiently().await,
                Way::Shared => Err(runtime::forked("client")),
                Way::Closed => Err(Error::Config("the client was closed".to_owned())),
            }
        });
        opened.await.cloned()
    }
}

impl Client {
    /// A client that shares the connection of another.
    pub(crate) fn shared(client: agent_reach_sdk::Client) -> Self {
        let slot = Slot { opened: Arc::new(OnceCell::from(client)), ..Slot::new(Way::Shared) };
        Self { slot: Mutex::new(slot) }
    }

    fn slot(&self, _attached: Python<'_>) -> Slot {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.pid != std::process::id() {
            let way = slot.way.clone();
            // Its connections are those of the parent, and its runtime is not here.
            std::mem::forget(std::mem::replace(&mut *slot, Slot::new(way)));
        }
        slot.clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        if slot.pid != std::process::id() {
            std::mem::forget(std::mem::replace(slot, Slot::new(Way::Closed)));
        }
    }
}

#[pymethods]
impl Client {
    /// A client that is opened when it is first used. The settings are JSON.
    #[new]
    fn new(settings: &str) -> PyResult<Self> {
        let settings = parsed::<Connection>(settings);
        let settings = settings.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        Ok(Self { slot: Mutex::new(Slot::new(Way::Open(Box::new(settings.builder())))) })
    }

    /// Whether the gateway's URL and the agent's id can be used, without connecting; the answer is `null`.
    fn check(&self, py: Python<'_>) -> Pair {
        let checked = match self.slot(py).way {
            Way::Open(builder) => builder.check(),
            Way::Shared | Way::Closed => Ok(()),
        };
        pair(checked.map(|()| "null".to_owned()))
    }

    /// Starts a call; its answer goes into the mailbox under the ticket.
    fn begin(&self, py: Python<'_>, mailbox: &Mailbox, ticket: u64, op: String, params: String) -> PyResult<Ticket> {
        let slot = self.slot(py);
        runtime::begin(py, &mailbox.inner, ticket, async move {
            let client = slot.client().await?;
            op::perform(&client, &op, &params).await
        })
    }

    /// Makes a call and waits for its answer.
    fn run(&self, py: Python<'_>, is_main: bool, op: &str, params: &str) -> PyResult<Pair> {
        let slot = self.slot(py);
        let call = async {
            let client = slot.client().await?;
            op::perform(&client, op, params).await
        };
        runtime::wait(py, is_main, call).map(pair)
    }

    /// Watches a task.
    fn watch(&self, py: Python<'_>, task_id: String) -> Watch {
        Watch { inner: Watching { slot: self.slot(py), task_id, opened: Arc::default() } }
    }

    /// Ends what there is of a connection; later calls fail.
    fn close(&self) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Slot::new(Way::Closed);
    }
}

/// A watch over one task.
#[pyclass(frozen, module = "agent_reach._core")]
pub(crate) struct Watch {
    inner: Watching,
}

#[derive(Clone)]
struct Watching {
    slot: Slot,
    task_id: String,
    opened: Arc<tokio::sync::Mutex<Option<agent_reach_sdk::Watch>>>,
}

impl Watching {
    /// The next view; `null` at the end.
    async fn next(self) -> Answer {
        let mut opened = self.opened.lock().await;
        let watch = match &mut *opened {
            Some(watch) => watch,
            none => {
                let task_id = self.task_id.parse().map_err(|error| Error::Config(format!("task_id: {error}")))?;
                none.insert(self.slot.client().await?.watch(task_id)?)
            }
        };
        written(&watch.next().await?)
    }
}

#[pymethods]
impl Watch {
    /// Starts to wait for the next view; the answer is `null` at the end.
    fn begin(&self, py: Python<'_>, mailbox: &Mailbox, ticket: u64) -> PyResult<Ticket> {
        runtime::begin(py, &mailbox.inner, ticket, self.inner.clone().next())
    }

    /// Waits for the next view; the answer is `null` at the end.
    fn run(&self, py: Python<'_>, is_main: bool) -> PyResult<Pair> {
        runtime::wait(py, is_main, self.inner.clone().next()).map(pair)
    }
}
