//! Where the runtime leaves what it has to say to one event loop. Its bell is a file descriptor that the loop watches: it
//! rings at most once until it was heard, however much comes, and nobody needs the interpreter's lock to ring it.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{PyResult, pyclass, pymethods};
use tokio::task::AbortHandle;

use crate::answer::{Answer, Parts, pair};

/// What lies in a mailbox: what it is, whose it is, and what it says.
pub(crate) type Letter = (u8, u64, Option<String>, Option<Parts>);

/// The answer to a call.
pub(crate) const ANSWER: u8 = 0;
/// Work for a handler.
pub(crate) const WORK: u8 = 1;
/// Work that is called off.
pub(crate) const STOP: u8 = 2;
/// Work of which no more is wanted.
pub(crate) const GONE: u8 = 3;

/// The runtime's end of a mailbox.
pub(crate) struct Box {
    letters: Mutex<Vec<Letter>>,
    is_rung: AtomicBool,
    bell: UnixStream,
    ear: UnixStream,
}

impl Box {
    /// Leaves a letter and rings.
    pub(crate) fn put(&self, letter: Letter) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            // It fails only when nobody listens any more, or when it rings already.
            let _unheard = (&self.bell).write(&[1]);
        }
    }

    /// Leaves the answer to a call.
    pub(crate) fn answer(&self, ticket: u64, answer: Answer) {
        let (text, parts) = pair(answer);
        self.put((ANSWER, ticket, text, parts));
    }
}

/// Where the runtime leaves what it has to say to one event loop.
#[pyclass(frozen, module = "agent_reach._core")]
pub(crate) struct Mailbox {
    pub(crate) inner: Arc<Box>,
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        let inner = Box { letters: Mutex::default(), is_rung: AtomicBool::new(false), bell, ear };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What to watch: it can be read when there are letters.
    fn fileno(&self) -> i32 {
        self.inner.ear.as_raw_fd()
    }

    /// Takes the letters out.
    fn drain(&self) -> Vec<Letter> {
        let mut rings = [0; 16];
        while matches!((&self.inner.ear).read(&mut rings), Ok(count) if count == rings.len()) {}
        // Before the letters are taken: whoever comes after them rings again.
        self.inner.is_rung.store(false, Ordering::Release);
        std::mem::take(&mut *self.inner.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A call that is under way.
#[pyclass(frozen, module = "agent_reach._core")]
pub(crate) struct Ticket {
    pub(crate) running: AbortHandle,
}

#[pymethods]
impl Ticket {
    /// Gives the call up; there will be no answer.
    fn abort(&self) {
        self.running.abort();
    }
}
