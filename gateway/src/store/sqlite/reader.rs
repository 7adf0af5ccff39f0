//! The threads and connections that read. Reading never waits for the writer: each read sees the last commit.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failure::{failure, io_failure};
use super::schema::open_reader;
use crate::store::Error;

/// How many threads read.
const READERS: usize = 2;
/// How many connections serve point reads on the caller's own thread.
const POINTS: usize = 2;
/// How many reads may wait for a thread; one more is refused.
const READS_MAX: usize = 1024;

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// The way to those who read.
pub(super) struct Readers {
    path: Arc<Path>,
    points: [Mutex<Connection>; POINTS],
    queue: Option<SyncSender<Read>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Opens the connections and starts the threads.
    pub(super) fn start(path: &Path) -> Result<Self, Error> {
        let connect = || open_reader(path).map_err(|error| failure(path, error));
        let (queue, reads) = sync_channel(READS_MAX);
        let reads = Arc::new(Mutex::new(reads));
        let mut readers = Self {
            path: path.into(),
            points: [Mutex::new(connect()?), Mutex::new(connect()?)],
            queue: Some(queue),
            threads: Vec::new(),
        };
        for _ in 0..READERS {
            let (file, reads) = (connect()?, Arc::clone(&reads));
            let thread = thread::Builder::new().name("store-reader".to_owned()).spawn(move || run(&file, &reads));
            readers.threads.push(thread.map_err(|error| io_failure(path, error))?);
        }
        Ok(readers)
    }

    /// Reads on a thread of its own kind: for whatever may touch many pages, or cold ones.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, found) = oneshot::channel();
        let job: Read = Box::new(move |file| {
            // Whoever asked may have gone away.
            let _ = answer.send(read(file));
        });
        let queue = self.queue.as_ref().ok_or(Error::Closed)?;
        queue.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => Error::Busy { waiting_max: READS_MAX },
            TrySendError::Disconnected(_) => Error::Closed,
        })?;
        found.await.map_err(|_| Error::Closed)?.map_err(|error| failure(&self.path, error))
    }

    /// Reads at once, on the caller's thread: only for a few pages that were written lately, where handing over
    /// would cost more than the read.
    pub(super) fn read_here<T>(&self, read: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let free = self.points.iter().find_map(|point| point.try_lock().ok());
        let file = free.unwrap_or_else(|| self.points[0].lock().unwrap_or_else(PoisonError::into_inner));
        read(&file).map_err(|error| failure(&self.path, error))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(file: &Connection, reads: &Mutex<Receiver<Read>>) {
    loop {
        let next = reads.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = next else { return };
        read(file);
    }
}
