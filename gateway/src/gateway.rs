//! The gateway itself: what it holds, and the one door through which a task changes, [`Gateway::apply`].

mod apply;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwap;
use fastrand::Rng;
use reach_core::admission::WaitingLimits;
use reach_core::fleet::{self, Fleet};
use reach_core::idempotency;
use reach_core::task::{Refusal, Task};
use reach_schemas::{AgentId, ErrorCode, Failure, Span, TaskId, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::adapter::Adapters;
use crate::audit;
use crate::bus::{Bus, Note};
use crate::clock::Clock;
use crate::effects::Deliveries;
use crate::envelope::TextLimits;
use crate::identity::{self, Identity, KeyHome};
use crate::metrics::Metrics;
use crate::open_tasks::OpenTasks;
use crate::ops::configuration::Configuration;
use crate::ops::interest::Interest;
use crate::ops::leaving::Leaving;
use crate::ops::servers::Proof;
use crate::outbound::Guard;
use crate::outbox::Outbox;
use crate::rates::{RateLimits, Rates};
use crate::sessions::Sessions;
use crate::spans::Spans;
use crate::store::{self, Committer, Store};
use crate::stores::Stores;
use crate::upstream::Upstreams;
use crate::waiters::Waiters;
use crate::webhook;

/// What may be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name that registrations are answered with.
    pub cluster: String,
    /// How many tasks may be open at once; with more, new ones are refused as `overloaded`.
    pub open_max: usize,
    /// How fast agents may ask.
    pub rates: RateLimits,
    /// What one text may hold.
    pub texts: TextLimits,
    /// How many tasks may wait for an agent at once.
    pub waiting: WaitingLimits,
    /// How long a task may take if its caller does not say.
    pub deadline: Span,
    /// The same for the tier `long`.
    pub deadline_long: Span,
    /// How long finished tasks are kept.
    pub kept_for: Span,
    /// How long an idempotency key is kept once its task is done.
    pub keys_kept_for: Span,
    /// Whether agents may register commands that the gateway then runs.
    pub allow_process: bool,
    /// What proves that a caller may start commands. None: no caller may.
    pub proof: Option<Proof>,
    /// What the router goes by.
    pub fleet: fleet::Settings,
    /// How webhooks are sent.
    pub webhooks: webhook::Settings,
    /// Where agents may be that are reached over HTTP.
    pub endpoints: Guard,
    /// How the audit log is looked after.
    pub audit: audit::Settings,
    /// Who callers are.
    pub identity: identity::Settings,
    /// The share of traces, from 0 to 1, that are recorded, of those that begin here: a caller's own is recorded if it says
    /// so.
    pub trace_share: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster: "local".to_owned(),
            open_max: 100_000,
            rates: RateLimits::default(),
            texts: TextLimits::default(),
            waiting: WaitingLimits::default(),
            deadline: Span::from_mins(5),
            deadline_long: Span::from_hours(1),
            kept_for: Span::from_hours(24 * 7),
            keys_kept_for: idempotency::KEPT_FOR,
            allow_process: false,
            proof: None,
            fleet: fleet::Settings::default(),
            webhooks: webhook::Settings::default(),
            endpoints: Guard::of_endpoints(Guard::loopback()),
            audit: audit::Settings::default(),
            identity: identity::Settings::default(),
            trace_share: 1.0,
        }
    }
}

/// What the gateway stands on.
pub struct Ports {
    /// The truth.
    pub store: Arc<dyn Store>,
    /// An empty one in memory, for what need not outlive the process.
    pub memory: Arc<dyn Store>,
    /// The doorbell.
    pub bus: Arc<dyn Bus>,
    /// How agents are reached.
    pub adapters: Adapters,
    /// Their open connections.
    pub sessions: Arc<Sessions>,
    /// MCP servers that are asked.
    pub upstreams: Arc<Upstreams>,
    /// The time.
    pub clock: Clock,
    /// Chance.
    pub rng: Rng,
}

/// The gateway.
pub struct Gateway {
    pub(crate) me: Weak<Gateway>,
    /// What it goes by now.
    pub(crate) settings: ArcSwap<Settings>,
    /// The durable store, for agents and keys. Where a task is, `stores` knows.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) committer: Committer,
    pub(crate) stores: Arc<Stores>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) adapters: Adapters,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) clock: Clock,
    pub(crate) identity: Identity,
    rng: Mutex<Rng>,
    fleet: Mutex<Fleet>,
    pub(crate) open: Arc<OpenTasks>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) interest: Arc<Interest>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) spans: Arc<Spans>,
    pub(crate) outbox: Outbox,
    pub(crate) rates: Rates,
    pub(crate) audit: audit::Recorder,
    /// Agents of the configuration: they are there because it says so, and probes alone judge them.
    pub(crate) own: Mutex<BTreeSet<AgentId>>,
    /// What was taken out of the configuration and still works.
    pub(crate) leaving: Mutex<Leaving>,
    /// The way to whoever reads the configuration.
    pub(crate) configuration: Configuration,
    /// Grows whenever an agent's card comes, changes or goes.
    pub(crate) cards: watch::Sender<u64>,
    pub(crate) stopping: CancellationToken,
    /// Deliveries that are under way, to be waited for before a stop.
    pub(crate) under_way: TaskTracker,
    pub(crate) deliveries: Deliveries,
    /// Dead letters are sent again by one call at a time, so that two of them keep to their rates together.
    pub(crate) redriving: tokio::sync::Mutex<()>,
}

/// Why a step was not taken.
#[derive(Debug, Clone)]
pub enum NotApplied {
    /// The task says no.
    Refused(Refusal),
    /// There is no such task.
    NotFound,
    /// The store cannot.
    Store(store::Error),
}

impl From<NotApplied> for Failure {
    fn from(error: NotApplied) -> Self {
        match error {
            NotApplied::NotFound => task_not_found(),
            NotApplied::Store(error) => error.into(),
            NotApplied::Refused(refusal) => {
                let code = match refusal {
                    // A person whose lease ran out, or who put it back, has an old token as well.
                    Refusal::StaleToken { .. } | Refusal::NotTaken => ErrorCode::StaleToken,
                    Refusal::ClaimLost | Refusal::NotOffered => ErrorCode::ClaimLost,
                    Refusal::WrongPhase { .. } | Refusal::Already | Refusal::NotDue => ErrorCode::WrongPhase,
                };
                Self::new(code, refusal.to_string())
            }
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        let code = error.code();
        let retry_after = (code == ErrorCode::Overloaded).then_some(Span::from_secs(1));
        Self { retry_after, ..Self::new(code, error.to_string()) }
    }
}

pub(crate) fn task_not_found() -> Failure {
    Failure::new(ErrorCode::TaskNotFound, "there is no task with this id that this caller may see")
}

impl Gateway {
    /// Puts a gateway together. Nothing runs yet: see `worker`.
    #[must_use]
    pub fn new(ports: Ports, settings: Settings) -> Arc<Self> {
        let waiters = Arc::new(Waiters::default());
        let open = Arc::new(OpenTasks::default());
        let heard = Arc::clone(&open);
        ports.bus.subscribe(Arc::new(move |note| match note {
            Note::Due { task_id, at } => heard.schedule(task_id, at),
            Note::Changed { .. } => {}
        }));
        let identity = Identity::new(settings.identity.clone(), &settings.cluster);
        if *identity.key_home() == KeyHome::Memory {
            identity.open_keys(ports.clock.now()).expect("keys in memory are neither read nor written");
        }
        let committer = Committer::new(Arc::clone(&ports.store));
        let stores = Arc::new(Stores::new(Arc::clone(&ports.store), committer.clone(), ports.memory));
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            stores,
            committer,
            store: ports.store,
            bus: ports.bus,
            adapters: ports.adapters,
            sessions: ports.sessions,
            upstreams: ports.upstreams,
            clock: ports.clock,
            identity,
            rng: Mutex::new(ports.rng),
            fleet: Mutex::new(Fleet::new(settings.fleet.clone())),
            settings: ArcSwap::from_pointee(settings),
            open,
            waiters,
            interest: Arc::default(),
            metrics: Arc::default(),
            spans: Arc::new(Spans::new(ports.clock)),
            outbox: Outbox::default(),
            rates: Rates::default(),
            audit: audit::Recorder::default(),
            own: Mutex::default(),
            leaving: Mutex::default(),
            configuration: Configuration::default(),
            cards: watch::Sender::new(0),
            stopping: CancellationToken::new(),
            under_way: TaskTracker::new(),
            deliveries: Deliveries::default(),
            redriving: tokio::sync::Mutex::default(),
        })
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How many tasks are waited for by their callers.
    #[must_use]
    pub fn waits(&self) -> usize {
        self.waiters.len()
    }

    /// Ends every wait, those to come included: `task/wait`, `reach` and `task/claim` answer with what is so now. To
    /// be called once the gateway is about to stop, so that nobody holds that up.
    pub fn end_waits(&self) {
        self.stopping.cancel();
    }

    /// What is counted.
    #[must_use]
    pub const fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Where its spans go.
    #[must_use]
    pub const fn spans(&self) -> &Arc<Spans> {
        &self.spans
    }

    /// The connections that agents hold open.
    #[must_use]
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// A number that grows whenever an agent's card comes, changes or goes: what was made of the cards is then old.
    #[must_use]
    pub fn cards(&self) -> watch::Receiver<u64> {
        self.cards.subscribe()
    }

    /// Is done once the gateway is about to stop.
    pub async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Waits until no delivery is under way any more. Nothing keeps new ones from starting.
    pub async fn delivered(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }

    pub(crate) fn fleet(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new_task_id(&self) -> TaskId {
        let random = self.rng().u128(..);
        TaskId::from_parts(self.now().as_ms(), random)
    }

    /// A task, open or finished.
    pub(crate) async fn load(&self, id: TaskId) -> Result<Option<Arc<Task>>, store::Error> {
        if let Some(task) = self.open.get(id) {
            return Ok(Some(task));
        }
        Ok(self.stores.load(id).await?.map(Arc::new))
    }

    /// A task as it may be named to whoever asks: finished, or on disk. A killed gateway forgets no unfinished task whose
    /// id it gave out.
    pub(crate) async fn promised(&self, task: Arc<Task>) -> Result<Arc<Task>, store::Error> {
        if task.state.phase.name().is_final() {
            return Ok(task);
        }
        Ok(self.stores.persist(task.id(), self.now()).await?.map_or(task, Arc::new))
    }

    /// Writes what is in memory only to the durable store. To be called last, when nothing runs any more.
    ///
    /// # Errors
    /// It cannot be stored, and is lost with the process.
    pub async fn write_all(&self) -> Result<(), store::Error> {
        self.stores.write_all(self.now()).await
    }
}
