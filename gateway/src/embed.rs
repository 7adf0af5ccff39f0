//! A gateway within another process, for the tests of those who build on it. It is put together as the program's is, over a
//! store in memory, and has a runtime of its own. It never touches what is the process's: no subscriber for all threads, no
//! handler for a signal, no exit.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::boot::{self, Running};
use crate::config::{Config, Flags};
use crate::reload::{self, Source};
use crate::store::Store;
use crate::store::memory::MemoryStore;
use crate::telemetry::log;
use crate::transport;

/// How many threads it has, beside those for what blocks.
const THREADS: usize = 2;
/// How many of its last log lines are kept.
const LINES_MAX: usize = 200;
/// How long its threads may take to leave what they do when it is killed.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// Where its configuration and its files are.
#[derive(Debug, Clone)]
pub struct Place {
    /// The configuration file.
    pub config: PathBuf,
    /// The folder for what it has to keep in files, which are its keys; and the working folder of its commands' data.
    pub data: PathBuf,
}

/// A gateway within this process. Its store, its port and its log outlive a stop and a start.
pub struct Embedded {
    place: Place,
    store: Arc<dyn Store>,
    lines: Lines,
    address: Option<SocketAddr>,
    up: Option<Up>,
}

/// A gateway that runs.
struct Up {
    runtime: Runtime,
    served: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
    listener: RawFd,
}

impl Embedded {
    /// A gateway that is not started yet.
    #[must_use]
    pub fn new(place: Place) -> Self {
        Self { place, store: Arc::new(MemoryStore::new()), lines: Lines::default(), address: None, up: None }
    }

    /// Starts it, on a port of this machine that is free, and later on that same port. Returns once it listens, with its URL.
    ///
    /// # Errors
    /// It runs already; the configuration is wrong; the port was taken by somebody else meanwhile.
    pub fn start(&mut self) -> anyhow::Result<String> {
        anyhow::ensure!(self.up.is_none(), "the gateway runs already");
        let listen = self.address.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        // Without a word about traces, the environment is not asked either.
        let flags = Flags {
            listen: Some(listen.to_string()),
            data: Some(self.place.data.clone()),
            otlp: Some(String::new()),
            ..Flags::default()
        };
        let source = Source { path: Some(self.place.config.clone()), flags };
        let config = source.load()?;
        let scheme = if config.http.tls.is_some() { "https" } else { "http" };
        let runtime = self.lines.runtime().context("the runtime cannot be started")?;
        let begun = runtime.block_on(self.begin(config, source));
        let (served, stop, listener, address) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                runtime.shutdown_timeout(LEAVE_WITHIN);
                return Err(error);
            }
        };
        self.address = Some(address);
        self.up = Some(Up { runtime, served, stop, listener });
        Ok(format!("{scheme}://{address}"))
    }

    async fn begin(
        &self,
        config: Config,
        source: Source,
    ) -> anyhow::Result<(JoinHandle<anyhow::Result<()>>, CancellationToken, RawFd, SocketAddr)> {
        std::fs::create_dir_all(&config.data).context("its folder cannot be made")?;
        let listener = TcpListener::bind(config.listen).await;
        let listener = listener.with_context(|| format!("cannot listen on {}", config.listen))?;
        let (address, descriptor) = (listener.local_addr()?, listener.as_raw_fd());
        let store = Arc::clone(&self.store);
        // On a thread of the runtime, where the log is.
        let served = tokio::spawn(async move {
            let running = boot::start(&config, store).await?;
            anyhow::Ok((running, config))
        });
        let (running, config) = served.await.context("the start broke off")??;
        let (stop, http) = (running.stop.clone(), config.http.clone());
        reload::start(&running, source, config, None);
        let served = tokio::spawn(serve(running, listener, http));
        Ok((served, stop, descriptor, address))
    }

    /// Whether it runs.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up.is_some()
    }

    /// The file descriptor of its port. A forked child has a copy of it, and should close that. None: it does not run.
    #[must_use]
    pub fn listener(&self) -> Option<RawFd> {
        self.up.as_ref().map(|up| up.listener)
    }

    /// Stops it in an orderly way, as SIGTERM stops the program. Calls that wait have until the end of the port's drain.
    ///
    /// # Errors
    /// The port failed while it served.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        let Some(Up { runtime, served, stop, .. }) = self.up.take() else { return Ok(()) };
        stop.cancel();
        let ended = runtime.block_on(served);
        runtime.shutdown_timeout(LEAVE_WITHIN);
        ended.context("the gateway broke off")?
    }

    /// Ends it where it stands, as `kill -9` ends the program: nobody is told, nothing is finished. What was committed is
    /// there at the next start.
    pub fn kill(&mut self) {
        if let Some(up) = self.up.take() {
            up.runtime.shutdown_timeout(LEAVE_WITHIN);
        }
    }

    /// Its last log lines. Which there are is said by `RUST_LOG`, else it is `info` and graver ones.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.lines.kept().iter().cloned().collect()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(up) = self.up.take() {
            // Whoever drops it may be on a thread that must not block.
            up.runtime.shutdown_background();
        }
    }
}

async fn serve(running: Running, listener: TcpListener, http: transport::HttpSettings) -> anyhow::Result<()> {
    tracing::info!(address = ?listener.local_addr().ok(), "listening within another process, with a store in memory");
    transport::serve(running.gateway.clone(), listener, http, running.stop.clone()).await?;
    boot::end(running).await;
    Ok(())
}

/// The last log lines of one gateway.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<VecDeque<String>>>);

impl Lines {
    fn kept(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A runtime whose threads, and no others, log here.
    fn runtime(&self) -> io::Result<Runtime> {
        let lines = self.clone();
        let dispatch = tracing::Dispatch::new(log::to_writer("info", move || lines.clone()));
        Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("reach-gateway")
            .on_thread_start(move || log::on_this_thread(&dispatch))
            .enable_all()
            .build()
    }
}

impl io::Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut kept = self.kept();
        while kept.len() >= LINES_MAX {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(text).into_owned());
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
