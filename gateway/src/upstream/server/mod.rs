//! One server: met when it is needed, met again when it was lost, and asked.

mod change;
mod meet;
mod pass;
mod tools;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::{ArcSwap, ArcSwapOption};
use http::{HeaderMap, Uri};
use reach_schemas::{AgentId, CapabilityName, ServerSpec, ServerState, Timestamp};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::meet::Tries;
use self::tools::Tool;
use super::ask::Ask;
use super::link::Link;
use super::reply::{Fault, Hears, Reply};
use super::spec;
use crate::clock::Clock;
use crate::outbound::Client;

pub use tools::ToolCall;

/// What all servers share.
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) client: Arc<Client>,
    /// How many may begin to be met at once.
    pub(super) meeting: Semaphore,
}

/// One server.
pub struct Server {
    me: Weak<Self>,
    spec: ServerSpec,
    uri: Option<Uri>,
    is_configured: bool,
    shared: Arc<Shared>,
    link: ArcSwapOption<Link>,
    /// The headers of the configuration, once they were read.
    headers: ArcSwapOption<HeaderMap>,
    meeting: tokio::sync::Mutex<Tries>,
    tools: ArcSwap<HashMap<CapabilityName, Arc<Tool>>>,
    changed: Arc<Notify>,
    /// How often it was met.
    met: watch::Sender<u64>,
    state: Mutex<State>,
    offers: Mutex<Offers>,
    is_kept: AtomicBool,
    stop: CancellationToken,
}

/// What was made of what a server offers.
#[derive(Debug, Clone, Default)]
pub struct Offers {
    /// The agents.
    pub agents: Vec<AgentId>,
    /// How many tools it has.
    pub tools: u32,
    /// What is odd about them.
    pub warnings: Vec<String>,
}

/// How a server is.
#[derive(Debug, Clone)]
pub struct State {
    /// Whether it can be asked.
    pub state: ServerState,
    /// Why not.
    pub why: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

impl Server {
    pub(super) fn new(spec: ServerSpec, is_configured: bool, shared: &Arc<Shared>) -> Arc<Self> {
        let uri = spec.url.as_deref().and_then(|url| spec::address(url).ok());
        let state = State { state: ServerState::Starting, why: None, since: shared.clock.now() };
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            spec,
            uri,
            is_configured,
            shared: Arc::clone(shared),
            link: ArcSwapOption::empty(),
            headers: ArcSwapOption::empty(),
            meeting: tokio::sync::Mutex::default(),
            tools: ArcSwap::default(),
            changed: Arc::default(),
            met: watch::Sender::new(0),
            state: Mutex::new(state),
            offers: Mutex::default(),
            is_kept: AtomicBool::new(false),
            stop: CancellationToken::new(),
        })
    }

    /// How it is reached.
    #[must_use]
    pub const fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Whether the configuration names it.
    #[must_use]
    pub const fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// How it is.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was made of what it offers.
    #[must_use]
    pub fn offers(&self) -> Offers {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what was made of what it offers.
    pub fn offer(&self, agents: Vec<AgentId>, tools: usize, warnings: Vec<String>) {
        let tools = u32::try_from(tools).unwrap_or(u32::MAX);
        *self.offers.lock().unwrap_or_else(PoisonError::into_inner) = Offers { agents, tools, warnings };
    }

    /// True the first time: whoever asks keeps in touch with it from then on.
    pub fn begin_to_keep(&self) -> bool {
        !self.is_kept.swap(true, Ordering::Relaxed)
    }

    /// The revision that is spoken with it, once it was met.
    #[must_use]
    pub fn revision(&self) -> Option<&'static str> {
        self.link.load().as_ref().map(|link| link.greeting.revision.as_str())
    }

    /// How often it was met.
    #[must_use]
    pub fn met(&self) -> u64 {
        *self.met.borrow()
    }

    /// Cancelled once nobody wants it any more.
    #[must_use]
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// When it is tried again at the earliest, if it could not be met.
    pub async fn again_at(&self) -> Instant {
        let not_before = self.meeting.lock().await.not_before;
        not_before.unwrap_or_else(Instant::now)
    }

    fn note(&self, state: ServerState, why: Option<String>) {
        let mut now = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now.state != state {
            *now = State { state, why, since: self.shared.clock.now() };
        } else if why.is_some() {
            now.why = why;
        }
    }

    /// Asks the server something. A session that it has lost is opened again, once.
    ///
    /// # Errors
    /// There is no answer: why, and whether the request may have arrived.
    pub async fn ask(&self, ask: &Ask<'_>, until: Instant, hears: Hears<'_>) -> Result<Reply, Fault> {
        let link = self.link(until).await?;
        let asked = match link.request(ask, until, hears).await {
            Err(Fault::SessionGone) => {
                let link = self.meet(Some(link), until).await?;
                link.request(ask, until, hears).await
            }
            // The process ended before it was given anything.
            Err(Fault::NeverSent(_)) if link.is_gone() => self.link(until).await?.request(ask, until, hears).await,
            other => other,
        };
        match &asked {
            Ok(_) => self.note(ServerState::Up, None),
            Err(Fault::NeverSent(why)) => self.note(ServerState::Down, Some(why.clone())),
            Err(Fault::Lost(_) | Fault::Late | Fault::SessionGone | Fault::Status { .. }) => {}
        }
        match asked {
            Err(Fault::SessionGone) => Err(Fault::NeverSent("it has lost two sessions one after another".to_owned())),
            other => other,
        }
    }

    /// Ends it: the session is closed, the process is ended.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        if let Some(link) = self.link.swap(None) {
            link.close().await;
        }
    }
}
