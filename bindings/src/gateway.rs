//! A gateway within this process, for users' tests. It has a runtime of its own, and never takes the interpreter's lock.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyResult, Python, pyclass, pymethods};
use reach_gateway::embed::{Embedded, Place};

/// A gateway.
#[pyclass(frozen, module = "agent_reach._core")]
pub(crate) struct Gateway {
    pid: u32,
    /// None: it was dropped. Locked by threads that are not attached, so that a long stop holds nobody up.
    inner: Mutex<Option<Embedded>>,
}

impl Gateway {
    fn lock(&self) -> MutexGuard<'_, Option<Embedded>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with it, if it is ours and not that of the process that we were forked from.
    fn with<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&mut Embedded) -> T + Send) -> PyResult<T> {
        if self.pid != std::process::id() {
            return Err(PyRuntimeError::new_err("this gateway is that of the parent process; make one in the child"));
        }
        py.detach(|| self.lock().as_mut().map(call)).ok_or_else(|| PyRuntimeError::new_err("the gateway is closed"))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.pid != std::process::id() {
            // Its threads are not here, and what they held is held for ever.
            std::mem::forget(inner);
        }
    }
}

fn failed(error: &anyhow::Error) -> pyo3::PyErr {
    PyRuntimeError::new_err(format!("{error:#}"))
}

#[pymethods]
impl Gateway {
    #[new]
    fn new(config: PathBuf, data: PathBuf) -> Self {
        Self { pid: std::process::id(), inner: Mutex::new(Some(Embedded::new(Place { config, data }))) }
    }

    /// Starts it; the answer is its URL.
    fn start(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, Embedded::start)?.map_err(|error| failed(&error))
    }

    /// Stops it in an orderly way.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Embedded::stop)?.map_err(|error| failed(&error))
    }

    /// Ends it where it stands.
    fn kill(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Embedded::kill)
    }

    /// The file descriptor of its port.
    fn listener(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        self.with(py, |gateway| gateway.listener())
    }

    /// Its last log lines.
    fn log(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |gateway| gateway.log())
    }
}
