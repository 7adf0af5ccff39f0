//! Going by another configuration while the gateway runs: all of it, or nothing of it. What is wrong is found before
//! anything is changed, cards are stored in one commit, and routing sees settings and agents change in one moment. What is
//! at work stays at work: an agent that is taken out ends what it has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use reach_core::fleet::{Checked, server_name};
use reach_schemas::call::ConfigMoves;
use reach_schemas::{AgentCard, AgentId, AuditKind, ServerSpec};

use super::leaving::LeavingServer;
use crate::gateway::{Gateway, Settings};
use crate::store::{self, AgentRow, Command};
use crate::upstream::server::Server;

/// What the gateway is to go by.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The settings.
    pub settings: Settings,
    /// All agents of the configuration.
    pub agents: Vec<AgentCard>,
    /// All its MCP servers.
    pub servers: Vec<ServerSpec>,
}

/// Who came and went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// Agents of the configuration.
    pub agents: ConfigMoves,
    /// Its MCP servers.
    pub servers: ConfigMoves,
}

/// Why nothing was changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotChanged {
    /// All that is wrong.
    #[error("{}", .0.join("; "))]
    Mistakes(Vec<String>),
    /// It cannot be stored.
    #[error("it cannot be stored: {0}")]
    Store(#[from] store::Error),
}

/// What is to be done, once it is known that it can be.
#[derive(Default)]
struct Plan {
    moved: Moved,
    /// Cards to take in.
    cards: Vec<Checked>,
    /// Agents that go.
    going: Vec<AgentId>,
    /// Servers to put in the place of what was there.
    servers: Vec<ServerSpec>,
    /// Servers that go, each with its agents.
    closing: Vec<(Arc<Server>, Vec<AgentId>)>,
}

impl Gateway {
    /// Goes by this from now on. `dry_run`: only tells what would be done.
    ///
    /// # Errors
    /// All that is wrong, or that it cannot be stored: then nothing is changed.
    pub async fn reconfigure(&self, wanted: Wanted, dry_run: bool) -> Result<Moved, NotChanged> {
        let _one_at_a_time = self.configuration.changing.lock().await;
        let Wanted { settings, agents, servers } = wanted;
        let mut plan = Plan::default();
        self.plan_servers(servers, &mut plan);
        self.plan_agents(agents, &settings, &mut plan)?;
        if dry_run {
            return Ok(plan.moved);
        }
        let commands = self.rows(&plan);
        let coming: Vec<AgentId> = plan.cards.iter().map(|checked| checked.card().agent_id.clone()).collect();
        // From here on nobody registers in their place.
        let new: Vec<AgentId> = {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            coming.iter().filter(|agent| own.insert((*agent).clone())).cloned().collect()
        };
        if !commands.is_empty()
            && let Err(error) = self.store.apply(commands).await
        {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            own.retain(|agent| !new.contains(agent));
            return Err(error.into());
        }
        let moved = plan.moved.clone();
        self.change(settings, plan);
        self.follow_up(&coming);
        self.see_off_now().await;
        Ok(moved)
    }

    fn plan_servers(&self, servers: Vec<ServerSpec>, plan: &mut Plan) {
        let stopped = |server: &Server| server.stop().is_cancelled();
        let mut old: BTreeMap<_, _> = self.upstreams.all().into_iter().map(|it| (it.spec().name.clone(), it)).collect();
        for spec in servers {
            let known = old.remove(&spec.name).filter(|known| known.is_configured() && !stopped(known));
            let moves = &mut plan.moved.servers;
            match known {
                Some(known) if *known.spec() == spec => continue,
                Some(_) => moves.changed.push(spec.name.to_string()),
                None => moves.added.push(spec.name.to_string()),
            }
            plan.servers.push(spec);
        }
        for (name, server) in old.into_iter().filter(|(_, it)| it.is_configured() && !stopped(it)) {
            plan.moved.servers.removed.push(name.to_string());
            let agents = self.agents_of(name.as_str());
            plan.going.extend(agents.iter().cloned());
            plan.closing.push((server, agents));
        }
    }

    fn plan_agents(&self, cards: Vec<AgentCard>, settings: &Settings, plan: &mut Plan) -> Result<(), NotChanged> {
        let mut mistakes = Vec::new();
        let mut gone: BTreeSet<AgentId> = self.configured_agents();
        let leaving = self.leaving().agents.clone();
        for (at, card) in cards.into_iter().enumerate() {
            let id = card.agent_id.clone();
            let was = gone.remove(&id);
            let known = self.fleet().node(&id).map(|node| Arc::clone(&node.card));
            let of_server = known.as_ref().and_then(|known| server_name(known)).filter(|_| !plan.going.contains(&id));
            if let Some(name) = of_server {
                mistakes
                    .push(format!("agents[{at}]: {id} is made of the MCP server {name}; name one of them otherwise"));
            }
            let may_go = Self::check_endpoints(&settings.endpoints, &card)
                .and_then(|()| Self::check_failure_callbacks(&settings.webhooks.guard, &card));
            if let Err(failure) = may_go {
                mistakes.push(format!("agents[{at}] ({id}): {}", failure.message));
            }
            if was && !leaving.contains(&id) && known.is_some_and(|known| *known == card) {
                continue;
            }
            let moves = &mut plan.moved.agents;
            if was {
                moves.changed.push(id.to_string())
            } else {
                moves.added.push(id.to_string())
            }
            match Checked::new(card) {
                Ok(checked) => plan.cards.push(checked),
                Err(error) => mistakes.push(format!("agents[{at}] ({id}): {error}")),
            }
        }
        for agent in gone.into_iter().filter(|agent| !leaving.contains(agent)) {
            plan.moved.agents.removed.push(agent.to_string());
            plan.going.push(agent);
        }
        if mistakes.is_empty() { Ok(()) } else { Err(NotChanged::Mistakes(mistakes)) }
    }

    /// The agents of the configuration's own cards, those among them that are leaving.
    fn configured_agents(&self) -> BTreeSet<AgentId> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fleet = self.fleet();
        let is_card = |agent: &AgentId| fleet.node(agent).is_some_and(|node| server_name(&node.card).is_none());
        own.into_iter().filter(|agent| is_card(agent)).collect()
    }

    /// What is to be stored: cards that come, and of those that go, that they take nothing new.
    fn rows(&self, plan: &Plan) -> Vec<Command> {
        let now = self.now();
        let fleet = self.fleet();
        let come = plan.cards.iter().map(|checked| {
            let card = checked.card().clone();
            let node = fleet.node(&card.agent_id);
            let generation = node.map_or(1, |node| node.generation + u64::from(*node.card != card));
            let registered_at = node.map_or(now, |node| node.registered_at);
            let is_new = node.is_none_or(|node| *node.card != card);
            let before = node.map(|node| &node.card.access);
            let told = is_new.then(|| self.told_of_card(&card, before, "configuration", generation));
            let server = None;
            let draining = false;
            let row = AgentRow { card, generation, registered_at, changed_at: now, draining, configured: true, server };
            Command::PutAgent(row).audited(told.unwrap_or_default())
        });
        // A server that stands in the configuration is not kept with its agents.
        let taken_over =
            |card: &AgentCard| plan.servers.iter().any(|spec| server_name(card) == Some(spec.name.as_str()));
        let stay = fleet.nodes().filter(|node| plan.going.contains(&node.card.agent_id) || taken_over(&node.card));
        let stay = stay.map(|node| {
            let card = (*node.card).clone();
            let configured = server_name(&card).is_none();
            let draining = node.is_draining || plan.going.contains(&card.agent_id);
            let changed_at = self.outbox.card_changed_at(&card.agent_id);
            let (generation, registered_at) = (node.generation, node.registered_at);
            let is_drained = draining && !node.is_draining;
            let told = self.audit_event(AuditKind::AgentDrained, "configuration").on(card.agent_id.as_str());
            let row = AgentRow { card, generation, registered_at, changed_at, draining, configured, server: None };
            Command::PutAgent(row).audited(if is_drained { vec![told] } else { Vec::new() })
        });
        come.chain(stay).collect()
    }

    /// Changes it, in one moment for all who route.
    fn change(&self, mut settings: Settings, plan: Plan) {
        let now = self.now();
        let in_force = self.settings.load_full();
        // Those who go out hold clones of the guard that was there at the start.
        in_force.endpoints.go_by(&settings.endpoints);
        settings.endpoints = in_force.endpoints.clone();
        let mut leaving = self.leaving();
        for spec in plan.servers {
            let name = spec.name.clone();
            let agents = self.agents_of(name.as_str());
            let (server, old) = self.upstreams.put(spec, true);
            for agent in &agents {
                if leaving.agents.remove(agent) {
                    self.fleet().drain(agent, false);
                }
                if let Some(node) = self.fleet().node(agent) {
                    server.remember(&node.card);
                }
            }
            leaving.servers.extend(old.map(|old| self.see_server_off(old, &agents, Vec::new())));
        }
        for (server, agents) in plan.closing {
            leaving.servers.push(self.see_server_off(server, &agents.clone(), agents));
        }
        let mut fleet = self.fleet();
        fleet.go_by(settings.fleet.clone());
        self.settings.store(Arc::new(settings));
        for checked in plan.cards {
            let agent = checked.card().agent_id.clone();
            leaving.agents.remove(&agent);
            fleet.register(checked, now);
            fleet.drain(&agent, false);
        }
        for agent in plan.going {
            fleet.drain(&agent, true);
            leaving.agents.insert(agent);
        }
    }

    /// Asks a server nothing new. It is closed once what its agents have now is done.
    fn see_server_off(&self, server: Arc<Server>, asked_by: &[AgentId], agents: Vec<AgentId>) -> LeavingServer {
        server.stop().cancel();
        let attempts = asked_by.iter().flat_map(|agent| self.open.held_by(agent)).collect();
        LeavingServer { server, attempts, agents }
    }

    /// Tells those whom it concerns.
    fn follow_up(&self, coming: &[AgentId]) {
        let now = self.now();
        for agent in coming {
            self.outbox.card_changed(agent, now);
            let room = self.fleet().node(agent).map_or(0, |node| node.card.max_concurrency);
            self.open.unpark_for(agent, room as usize, now);
            self.show_offers(agent);
        }
        if !coming.is_empty() {
            self.cards.send_modify(|version| *version += 1);
            self.offer_anew();
        }
        self.outbox.bell.notify_one();
    }
}
