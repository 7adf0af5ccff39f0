//! All agents as this gateway knows them: their cards, leases, health, breakers and seats. From it a task is
//! routed, and what becomes of attempts flows back into it. It holds belief, not truth: it can be built anew from
//! the stored cards and what agents report.

mod census;
mod check;
mod defaults;
mod feedback;
mod filter;
mod find;
mod intent;
mod made_of;
mod node;
mod refusal;
mod register;
mod retries;
mod route;
mod select;
mod wall;
mod weigh;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reach_schemas::{AgentId, CapabilityName, RawJson, Span, Timestamp};

use self::made_of::ByServer;
use crate::access::Caller;
use crate::access::policy::{Policy, Rulings};
use crate::bulkhead::{Bulkhead, Place, Seat, TierLimits};
use crate::health::HealthPolicy;
use crate::lexical::{Index, Scratch, Thresholds};
use crate::retry::{Bucket, Budget, Shares, Turn};
use crate::score::Learning;
use crate::task::{Target, human};

pub use census::Census;
pub use check::{CardError, MISTAKES_MAX, Mistake, form_mistakes, policy_form_mistakes};
pub use defaults::{Breakers, Defaults, Timeouts};
pub use feedback::RESULT_DEPTH_MAX;
pub use made_of::server_name;
pub use node::{Node, Offer};
pub use refusal::Unroutable;
pub use register::Registration;
pub use route::{Offering, Route};

/// What may be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How much work of each tier may be out at once.
    pub tier_limits: TierLimits,
    /// When the words of an intent are enough to choose by.
    pub thresholds: Thresholds,
    /// When probes eject an agent, and how slowly it starts.
    pub health: HealthPolicy,
    /// How many retries agents are sent, and callers are given.
    pub retries: Shares,
    /// How long a person has at least for a task that no agent could do.
    pub human_wait: Span,
    /// Whether outcomes move routing weights, and how far.
    pub learning: Learning,
    /// What a capability goes by that does not say.
    pub defaults: Defaults,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tier_limits: TierLimits::default(),
            thresholds: Thresholds::default(),
            health: HealthPolicy::default(),
            retries: Shares::default(),
            human_wait: human::WAIT,
            learning: Learning::default(),
            defaults: Defaults::default(),
        }
    }
}

/// All agents, and what they offer.
#[derive(Default)]
pub struct Fleet {
    settings: Settings,
    nodes: Vec<Option<Node>>,
    free_nodes: Vec<usize>,
    by_id: BTreeMap<AgentId, usize>,
    by_server: ByServer,
    offers: Vec<Option<OfferRef>>,
    free_offers: Vec<u32>,
    by_capability: BTreeMap<CapabilityName, BTreeSet<u32>>,
    index: Index,
    scratch: RefCell<Scratch>,
    policy: Policy,
    /// What the policy says of those who asked of late.
    rulings: RefCell<BTreeMap<AgentId, Arc<Rulings>>>,
    bulkhead: Bulkhead,
    /// How many retries each caller may still have.
    callers: BTreeMap<String, Budget>,
    /// Paces what a restart of this gateway lost.
    orphans: Bucket,
}

/// Where an offer is: the agent's place in `nodes`, and the offer's place within the agent.
#[derive(Debug, Clone, Copy)]
struct OfferRef {
    node: usize,
    offer: usize,
}

/// What is asked of the router.
#[derive(Debug)]
pub struct Ask<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// What is wanted.
    pub target: &'a Target,
    /// The parameters.
    pub params: Option<&'a RawJson>,
    /// Who has been tried already.
    pub tried: Vec<&'a AgentId>,
    /// Which attempt this is for, counted from 1.
    pub attempt: u32,
    /// What it counts as.
    pub turn: Turn,
    /// The attempt's timeout, if the caller laid one down.
    pub attempt_timeout: Option<Span>,
    /// The place that the attempt will take.
    pub seat: Seat,
    /// At whom others wait that go before it. None: it goes before all.
    pub yields: Option<Yields<'a>>,
}

/// Says where others have waited for a seat, and go before a newcomer.
#[derive(Clone, Copy)]
pub struct Yields<'a>(pub &'a dyn Fn(&Place) -> bool);

impl std::fmt::Debug for Yields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Yields")
    }
}

impl Fleet {
    /// An empty fleet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Goes by other settings from now on. What agents have, and what is known of them, stays as it is: breakers keep
    /// their state, seats that are out stay out, attempts keep the time that they were promised.
    pub fn go_by(&mut self, settings: Settings) {
        for node in self.nodes.iter_mut().flatten() {
            let card = Arc::clone(&node.card);
            for offer in &mut node.offers {
                offer.go_by(&card.capabilities[offer.at], &settings.defaults);
            }
        }
        self.settings = settings;
    }

    /// The agent with this id.
    #[must_use]
    pub fn node(&self, agent: &AgentId) -> Option<&Node> {
        self.by_id.get(agent).and_then(|at| self.nodes[*at].as_ref())
    }

    fn node_mut(&mut self, agent: &AgentId) -> Option<&mut Node> {
        self.by_id.get(agent).and_then(|at| self.nodes[*at].as_mut())
    }

    /// All agents, in the order of their ids.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.by_id.values().filter_map(|at| self.nodes[*at].as_ref())
    }

    /// How many agents there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// How many attempts the agent has.
    #[must_use]
    pub fn in_flight(&self, agent: &AgentId) -> u32 {
        self.bulkhead.in_flight(agent)
    }

    fn offer(&self, number: u32) -> Option<(&Node, &Offer)> {
        let at = self.offers.get(number as usize).copied().flatten()?;
        let node = self.nodes[at.node].as_ref()?;
        Some((node, &node.offers[at.offer]))
    }

    /// The agent's access rules, as a caller.
    #[must_use]
    pub fn caller(&self, agent: &AgentId) -> Caller {
        let access = self.node(agent).map(|node| node.card.access.clone()).unwrap_or_default();
        Caller::Agent { id: agent.clone(), access, rulings: self.rulings_of(agent) }
    }

    /// When the presence of some agent changes next, if none is heard of until then.
    #[must_use]
    pub fn next_change_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.nodes().filter_map(|node| node.lease.next_change_at(now)).min()
    }
}

/// A card with its compiled schemas: what registration works on, made outside any lock.
#[derive(Debug)]
pub struct Checked {
    card: Arc<reach_schemas::AgentCard>,
    schemas: Vec<(Option<crate::schema::Schema>, Option<crate::schema::Schema>)>,
    warnings: Vec<String>,
}
