//! What agents offer, as tools. It is made of the cards when they have changed, never for a request, and each caller has
//! its own view of it.
//!
//! - Several agents that offer one capability with the same schemas are one tool, and the router chooses among them, by
//!   the same rules as for every task. If their schemas differ, it is one tool for each agent, which then is the one that
//!   is asked. Tools of MCP servers are always one for each.
//! - An agent that is unwell keeps its tools: health comes and goes within seconds, and lists that flap with it would cost
//!   every host its cache. Whoever calls then is told what is wrong, and what is near. The tools of an agent that nothing
//!   was heard of for [`LOST_LISTED_FOR`] are left out until it is back.

mod mirrored;
mod name;
mod page;
mod shape;
mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use reach_core::access::Caller;
use reach_schemas::{AgentCard, AgentId, Span};
use tokio::sync::watch;

use crate::gateway::Gateway;
use view::Offering;

pub(crate) use page::{Cursor, Page};
pub(crate) use shape::{Output, WRAPPED};
pub(crate) use view::{Tool, View};

/// For how long the tools of an agent that is lost are kept.
const LOST_LISTED_FOR: Span = Span::from_mins(10);
/// How often it is looked whether an agent is lost for that long, or is back.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Changes that come within this time are told as one.
const TOLD_TOGETHER: Duration = Duration::from_millis(100);
/// How many views of agents are kept; those beyond are made when they are asked for.
const VIEWS_MAX: usize = 64;

/// All tools, for all callers.
pub(crate) struct Catalog {
    gateway: Arc<Gateway>,
    reserved: &'static [&'static str],
    changes: watch::Receiver<u64>,
    current: ArcSwapOption<Snapshot>,
    /// Held by the one who makes the next snapshot.
    making: Mutex<()>,
    told: watch::Sender<u64>,
}

/// What was made of the cards of one moment.
struct Snapshot {
    version: u64,
    shapes: BTreeMap<AgentId, Shaped>,
    offerings: Vec<Offering>,
    views: Mutex<BTreeMap<Option<AgentId>, Arc<View>>>,
}

/// An agent's card, and the shapes of its capabilities, which cost the most to make.
#[derive(Clone)]
struct Shaped {
    card: Arc<AgentCard>,
    shapes: Vec<Arc<shape::Shape>>,
}

impl Catalog {
    pub(crate) fn new(gateway: &Arc<Gateway>, reserved: &'static [&'static str]) -> Self {
        Self {
            gateway: Arc::clone(gateway),
            reserved,
            changes: gateway.cards(),
            current: ArcSwapOption::empty(),
            making: Mutex::default(),
            told: watch::Sender::new(0),
        }
    }

    /// What a caller sees now: what was registered before this call is in it.
    pub(crate) fn view(&self, caller: &Caller) -> Arc<View> {
        let snapshot = self.snapshot();
        // Read after the snapshot: what is kept with it is never of an older policy.
        let now_known = caller.agent_id().map(|agent| self.gateway.caller_named(agent));
        let caller = now_known.as_ref().unwrap_or(caller);
        let key = caller.agent_id().cloned();
        if let Some(view) = snapshot.views().get(&key) {
            return Arc::clone(view);
        }
        let view = Arc::new(View::of(&snapshot.offerings, caller, self.reserved));
        let mut views = snapshot.views();
        if views.len() < VIEWS_MAX || key.is_none() {
            views.insert(key, Arc::clone(&view));
        }
        view
    }

    /// A number that changes some time after the tools have: whoever is to be told then looks at its view.
    pub(crate) fn told(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    /// Tells of changes, until it is dropped.
    pub(crate) async fn run(&self) {
        let mut changes = self.changes.clone();
        let mut known = self.snapshot();
        loop {
            let is_changed = tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep(TOLD_TOGETHER).await;
                    changes.mark_unchanged();
                    true
                }
                () = tokio::time::sleep(LOOK_EVERY) => !known.is_of(&self.gateway.cards_of_known(LOST_LISTED_FOR)),
            };
            if is_changed {
                known = self.make(*changes.borrow());
                self.told.send_modify(|version| *version += 1);
            }
        }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        let version = *self.changes.borrow();
        match self.current.load_full() {
            Some(snapshot) if snapshot.version == version => snapshot,
            Some(_) | None => self.make_if_older(version),
        }
    }

    fn make_if_older(&self, version: u64) -> Arc<Snapshot> {
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = self.current.load_full().filter(|snapshot| snapshot.version >= version) {
            return snapshot;
        }
        self.make_now(version)
    }

    fn make(&self, version: u64) -> Arc<Snapshot> {
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        self.make_now(version)
    }

    /// The version is read before the cards are, so that what is made is never older than it says.
    fn make_now(&self, version: u64) -> Arc<Snapshot> {
        let cards = self.gateway.cards_of_known(LOST_LISTED_FOR);
        let snapshot = Arc::new(Snapshot::of(cards, self.current.load_full().as_deref(), version));
        self.current.store(Some(Arc::clone(&snapshot)));
        snapshot
    }
}

impl Snapshot {
    fn of(cards: Vec<Arc<AgentCard>>, earlier: Option<&Self>, version: u64) -> Self {
        let known = |card: &Arc<AgentCard>| {
            let shaped = earlier.and_then(|earlier| earlier.shapes.get(&card.agent_id));
            shaped.filter(|shaped| Arc::ptr_eq(&shaped.card, card)).cloned()
        };
        let shaped = |card: Arc<AgentCard>| {
            let shaped = known(&card).unwrap_or_else(|| {
                let shapes = card.capabilities.iter().map(|capability| Arc::new(shape::Shape::of(capability)));
                Shaped { shapes: shapes.collect(), card: Arc::clone(&card) }
            });
            (card.agent_id.clone(), shaped)
        };
        let shapes: BTreeMap<AgentId, Shaped> = cards.into_iter().map(shaped).collect();
        let offerings = shapes.values().flat_map(|Shaped { card, shapes }| {
            let offering = |(at, shape): (usize, &Arc<shape::Shape>)| Offering {
                card: Arc::clone(card),
                at,
                shape: Arc::clone(shape),
            };
            shapes.iter().enumerate().map(offering)
        });
        Self { version, offerings: offerings.collect(), shapes, views: Mutex::default() }
    }

    fn views(&self) -> MutexGuard<'_, BTreeMap<Option<AgentId>, Arc<View>>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_of(&self, cards: &[Arc<AgentCard>]) -> bool {
        self.shapes.len() == cards.len()
            && cards.iter().all(|card| self.shapes.get(&card.agent_id).is_some_and(|own| Arc::ptr_eq(&own.card, card)))
    }
}
