//! The one runtime of the process, made when it is first needed and made anew in a forked child, and how a thread of
//! Python waits for it.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent_reach_sdk::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyErr, PyResult, Python, pyfunction};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::mailbox::{Box as Mail, Ticket};

/// How many threads move bytes. What Python does is done by its own threads.
const THREADS: usize = 2;
/// How often a waiting main thread looks whether a signal came.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);
/// How long an ending interpreter waits for threads that wait here.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Only ever locked by threads that are attached to the interpreter, as the one that forks is: so no child finds it locked.
static HOME: Mutex<Option<Home>> = Mutex::new(None);
/// How many threads of Python wait here.
static WAITING: AtomicUsize = AtomicUsize::new(0);

struct Home {
    pid: u32,
    /// None: the interpreter is ending.
    runtime: Option<Runtime>,
    ending: CancellationToken,
}

impl Home {
    fn new() -> std::io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(THREADS).thread_name("agent-reach").enable_all().build()?;
        Ok(Self { pid: std::process::id(), runtime: Some(runtime), ending: CancellationToken::new() })
    }
}

fn home(_attached: Python<'_>) -> PyResult<(Handle, CancellationToken)> {
    let mut home = HOME.lock().unwrap_or_else(PoisonError::into_inner);
    match home.as_ref() {
        Some(known) if known.pid == std::process::id() => {}
        Some(_) | None => {
            // In a forked child the threads of the old runtime are not there, and what they held is held for ever.
            std::mem::forget(home.take());
            *home = Some(Home::new()?);
        }
    }
    let running = home.as_ref().and_then(|home| Some((home.runtime.as_ref()?.handle().clone(), home.ending.clone())));
    running.ok_or_else(ending)
}

fn ending() -> PyErr {
    PyRuntimeError::new_err("the interpreter is shutting down")
}

/// Starts a call whose answer goes into a mailbox.
pub(crate) fn begin(
    attached: Python<'_>,
    mailbox: &Arc<Mail>,
    ticket: u64,
    call: impl Future<Output = Answer> + Send + 'static,
) -> PyResult<Ticket> {
    let mailbox = mailbox.clone();
    let (runtime, _) = home(attached)?;
    let running = runtime.spawn(async move { mailbox.answer(ticket, call.await) });
    Ok(Ticket { running: running.abort_handle() })
}

/// Waits for something without holding up the interpreter. A main thread is interrupted by signals.
pub(crate) fn wait<T: Send>(
    attached: Python<'_>,
    is_main: bool,
    future: impl Future<Output = T> + Send,
) -> PyResult<T> {
    let (runtime, ended) = home(attached)?;
    let _seat = Seat::take();
    attached.detach(|| {
        runtime.block_on(async {
            tokio::pin!(future);
            loop {
                tokio::select! {
                    biased;
                    answer = &mut future => return Ok(answer),
                    () = ended.cancelled() => return Err(ending()),
                    () = tokio::time::sleep(SIGNALS_EVERY), if is_main => Python::attach(|py| py.check_signals())?,
                }
            }
        })
    })
}

/// Counts those who wait.
struct Seat;

impl Seat {
    fn take() -> Self {
        WAITING.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The interpreter is about to end: whoever waits here is sent away, and nobody else is let in.
#[pyfunction]
pub(crate) fn shutdown(attached: Python<'_>) {
    let taken = {
        let mut home = HOME.lock().unwrap_or_else(PoisonError::into_inner);
        home.as_mut().filter(|home| home.pid == std::process::id()).and_then(|home| {
            home.ending.cancel();
            home.runtime.take()
        })
    };
    let Some(runtime) = taken else { return };
    attached.detach(|| {
        // Threads that wait must be back before the interpreter is gone; they need the lock that we do not hold here.
        let until = Instant::now() + LEAVE_WITHIN;
        while WAITING.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        runtime.shutdown_background();
    });
}

/// The error for what was made before a fork and cannot be used after it.
pub(crate) fn forked(what: &str) -> Error {
    Error::Config(format!("this {what} was made before the process was forked; make one in the child"))
}
