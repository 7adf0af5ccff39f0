//! One MCP server that the gateway starts: a message a line on its standard input and output (2026-07-28, Transports,
//! stdio). What it prints that is no message is passed over; what it complains of goes into the log. It is ended with
//! everything that it started once nobody holds the link any more.

mod pending;
mod process;
mod share;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reach_schemas::ServerSpec;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::pending::{PROGRESS, Pending};
use super::ask::{self, Ask};
use super::greeting::Greeting;
use super::reply::{Fault, Hears, Reply, Word};
use crate::mcp::wire::Era;

pub(crate) use process::{Outgoing, Running, start};
pub(crate) use share::{Passed, Shares};

/// How long a server has to answer a question of the stateless era before it is held to be of the other.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long changes are listened for at a time.
const LISTEN_FOR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The way to one running server, in the era that it is of.
#[derive(Clone)]
pub(super) struct StdioLink {
    way: Arc<Way>,
    era: Era,
}

struct Way {
    ids: AtomicU64,
    pending: Arc<Pending>,
    outgoing: mpsc::Sender<Outgoing>,
    /// Cancelled once the process has ended.
    gone: CancellationToken,
    _ended_when_dropped: DropGuard,
}

impl StdioLink {
    /// Starts a server and finds out which era it is of. `known` is what it was found to be before; `changed` is rung when
    /// it says that its lists have changed.
    pub(super) async fn open(
        spec: &ServerSpec,
        known: Option<Era>,
        changed: &Arc<Notify>,
        until: Instant,
    ) -> Result<(Self, Greeting), Fault> {
        if known == Some(Era::Handshake) {
            return Self::start(spec, changed)?.greet(until).await;
        }
        let link = Self::start(spec, changed)?;
        let patience = until.min(Instant::now() + PROBE_TIMEOUT);
        if let Some(greeting) = link.discover(patience).await {
            return Ok((link, greeting));
        }
        // A server that ends when it does not understand is started again.
        let link = if link.is_gone() { Self::start(spec, changed)? } else { link };
        link.greet(until).await
    }

    /// What a server of the stateless era says of itself.
    async fn discover(&self, until: Instant) -> Option<Greeting> {
        let discover = Ask { method: "server/discover", ..Ask::default() };
        match self.request(&discover, until, &mut |_| {}).await {
            Ok(Reply::Result(result)) => Greeting::discovered(&result),
            Ok(Reply::Refused(_)) | Err(_) => None,
        }
    }

    async fn greet(self, until: Instant) -> Result<(Self, Greeting), Fault> {
        let link = Self { era: Era::Handshake, ..self };
        let members = ask::initialize();
        let initialize = Ask { method: "initialize", members: &members, ..Ask::default() };
        let reply = link.request(&initialize, until, &mut |_| {}).await?;
        if matches!(&reply, Reply::Refused(rejection) if rejection.is_of_the_stateless_era()) {
            // It is of that era, and was only too slow to start: it has read the question meanwhile.
            let link = Self { era: Era::Stateless, ..link.clone() };
            if let Some(greeting) = link.discover(until).await {
                return Ok((link, greeting));
            }
        }
        let greeting = Greeting::initialized(reply)?;
        link.say(ask::notice::<()>("notifications/initialized", None)).await;
        Ok((link, greeting))
    }

    fn start(spec: &ServerSpec, changed: &Arc<Notify>) -> Result<Self, Fault> {
        let stop = CancellationToken::new();
        let Running { outgoing, mut incoming, end } = start(spec, stop.clone()).map_err(Fault::NeverSent)?;
        let (pending, gone) = (Arc::new(Pending::default()), CancellationToken::new());
        let (hears, answers, changed) = (Arc::clone(&pending), outgoing.downgrade(), Arc::clone(changed));
        let ended = gone.clone();
        tokio::spawn(async move {
            while let Some(line) = incoming.recv().await {
                for text in hears.take(&line, &changed) {
                    // A server that reads nothing while it asks gets no answer.
                    let _ = answers.upgrade().map(|answers| answers.try_send(Outgoing::new(text)));
                }
            }
            // Whoever hears that nothing was sent finds that the process is gone.
            ended.cancel();
            hears.end(&end.told());
        });
        let way = Way { ids: AtomicU64::new(1), pending, outgoing, gone, _ended_when_dropped: stop.drop_guard() };
        Ok(Self { way: Arc::new(way), era: Era::Stateless })
    }

    /// Sends a request and waits for its answer. `hears` is told of progress. A request whose future is dropped, or whose
    /// time is over, is called off.
    pub(super) async fn request(&self, ask: &Ask<'_>, until: Instant, hears: Hears<'_>) -> Result<Reply, Fault> {
        let way = &self.way;
        let id = way.ids.fetch_add(1, Ordering::Relaxed);
        let line = Outgoing::new(ask::frame(ask, id, self.era));
        let mut waiter = way.pending.enter(id, &line.is_written)?;
        let _open = Open { way, id };
        let exchange = async {
            if way.outgoing.send(line).await.is_err() {
                way.gone.cancelled().await;
            }
            loop {
                tokio::select! {
                    biased;
                    Some(params) = waiter.notices.recv() => {
                        hears(Word { method: PROGRESS, params: Some(params.as_raw()) });
                    }
                    answer = &mut waiter.answer => {
                        return answer.unwrap_or_else(|_| Err(Fault::Lost("the server's process has ended".to_owned())));
                    }
                }
            }
        };
        timeout_at(until, exchange).await.unwrap_or(Err(Fault::Late))
    }

    /// Sends what needs no answer.
    pub(super) async fn say(&self, text: String) {
        // A process that has ended needs no word.
        let _ = self.way.outgoing.send(Outgoing::new(text)).await;
    }

    /// Whether the process has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.way.gone.is_cancelled()
    }

    /// Has the server tell of changes, as far as it has to be asked for that, and returns once the process has ended.
    pub(super) async fn listen(&self, hears: Hears<'_>) {
        if self.era == Era::Stateless {
            let until = Instant::now() + LISTEN_FOR;
            tokio::select! {
                // A server that will not tell is none the worse for it.
                _ = self.request(&ask::LISTEN, until, hears) => {}
                () = self.way.gone.cancelled() => return,
            }
        }
        self.way.gone.cancelled().await;
    }

    pub(super) fn era(&self) -> Era {
        self.era
    }
}

/// A request that has no answer yet. Dropped, it calls it off.
struct Open<'a> {
    way: &'a Arc<Way>,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.way.pending.leave(self.id) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let (outgoing, text) = (self.way.outgoing.clone(), ask::cancelled(self.id));
            runtime.spawn(async move { outgoing.send(Outgoing::new(text)).await.is_ok() });
        }
    }
}
