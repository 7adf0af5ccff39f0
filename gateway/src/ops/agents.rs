//! Agents: registering, heartbeats, draining, leaving, and looking at them.

use std::sync::PoisonError;

use reach_core::access::Grant;
use reach_core::audit::Event as AuditEvent;
use reach_core::fleet::{CardError, Checked, Mistake, server_name};
use reach_core::task::Event;
use reach_core::task::event::Trace;
use reach_schemas::call::{
    AgentList, AgentRef, AgentView, Agents, Drained, Heartbeat, HeartbeatAnswer, Registered, WORKING_MAX, Working,
};
use reach_schemas::card::limits::{DEPENDENCIES_MAX, NAME_MAX};
use reach_schemas::{
    Access, AgentCard, AgentId, AuditKind, Endpoint, ErrorCode, Failure, FencingToken, Protocol, RawJson,
    SERVER_PREFIX, TaskId,
};
use serde_json::json;

use super::bounds;
use crate::gateway::Gateway;
use crate::outbound::Guard;
use crate::sessions::SessionId;
use crate::store::{AgentRow, Command};

/// How many agents a list has if its caller does not say.
const LIST: u32 = 100;

pub(crate) fn agent_not_found(agent: &AgentId) -> Failure {
    let message = format!("there is no agent {agent}; an agent registers with agent/register before anything else");
    Failure::new(ErrorCode::AgentNotFound, message)
}

/// An agent that was made of an MCP server is what the server says, for as long as there is the server.
fn of_a_server(agent: &AgentId) -> Failure {
    let message = format!("{agent} was made of an MCP server; it goes with the server: reachctl remove mcp NAME");
    Failure::new(ErrorCode::Forbidden, message)
}

fn forbidden(denial: reach_core::access::Denial) -> Failure {
    Failure::new(ErrorCode::Forbidden, denial.to_string())
}

/// All that is wrong with a card, in words, and in `data` as a list of `{"at", "says"}`.
pub(crate) fn bad_card(error: &CardError) -> Failure {
    let code = if error.is_of_schemas() { ErrorCode::InvalidSchema } else { ErrorCode::InvalidCard };
    let told = |mistake: &Mistake| json!({ "at": mistake.at, "says": mistake.says });
    let mistakes: Vec<_> = error.mistakes.iter().map(told).collect();
    let data = RawJson::of(&json!({ "mistakes": mistakes })).ok();
    Failure { data, ..Failure::new(code, error.to_string()) }
}

/// A heartbeat is remembered, and each attempt in it is looked up.
fn check_beat(beat: &Heartbeat) -> Result<(), Failure> {
    let refused = |message: String| Err(Failure::new(ErrorCode::InvalidParams, message));
    if beat.working_on.len() > WORKING_MAX {
        return refused(format!("`working_on` has {} entries: send at most {WORKING_MAX}", beat.working_on.len()));
    }
    if beat.dependency_status.len() > DEPENDENCIES_MAX {
        let count = beat.dependency_status.len();
        return refused(format!("`dependency_status` has {count} entries: send at most {DEPENDENCIES_MAX}"));
    }
    if beat.dependency_status.keys().any(|name| name.len() > NAME_MAX) {
        return refused(format!("`dependency_status` has a name of more than {NAME_MAX} bytes"));
    }
    Ok(())
}

impl Gateway {
    /// Takes an agent in, or takes it in again. Over a connection, the agent is reached by it from then on.
    ///
    /// # Errors
    /// The card is wrong: which field, and why.
    pub async fn register(
        &self,
        grant: Grant,
        card: AgentCard,
        connection: Option<SessionId>,
    ) -> Result<Registered, Failure> {
        grant.acts_as(&card.agent_id).map_err(forbidden)?;
        self.may_register(&card)?;
        self.admit(card, connection, false, &grant.caller().to_string()).await
    }

    /// Whether an agent may be taken in with this card, as far as that can be told before it is.
    ///
    /// # Errors
    /// The name is the gateway's own, or something on the card is not for callers: what, and why.
    pub(super) fn may_register(&self, card: &AgentCard) -> Result<(), Failure> {
        self.refuse_own(&card.agent_id)?;
        let is_command = card.endpoints.iter().any(|endpoint| endpoint.protocol == Protocol::Process);
        if (is_command || card.probe.command.is_some()) && !self.settings().allow_process {
            let what = if is_command { "endpoints: `process`" } else { "probe.command:" };
            let message = format!(
                "{what} is for agents in the gateway's own configuration file: a caller must not make the gateway run \
                 commands"
            );
            return Err(Failure::new(ErrorCode::InvalidCard, message));
        }
        let is_added =
            |endpoint: &Endpoint| endpoint.protocol == Protocol::Mcp && endpoint.address.starts_with(SERVER_PREFIX);
        if card.endpoints.iter().any(is_added) {
            let message = format!(
                "endpoints: an address that begins with `{SERVER_PREFIX}` is for servers that the operator added; name \
                 the URL of yours"
            );
            return Err(Failure::new(ErrorCode::InvalidCard, message));
        }
        if self.fleet().node(&card.agent_id).is_some_and(|node| server_name(&node.card).is_some()) {
            return Err(of_a_server(&card.agent_id));
        }
        self.may_declare(card)
    }

    /// Whether the policy lets the agent declare what is on its card. The operator's own agents and servers are not asked.
    fn may_declare(&self, card: &AgentCard) -> Result<(), Failure> {
        let refused = self.fleet().policy().undeclarable(card);
        if refused.is_empty() {
            return Ok(());
        }
        let told: Vec<&str> = refused.iter().map(|mistake| mistake.says.as_str()).collect();
        Err(Failure::new(ErrorCode::Forbidden, told.join("; ")))
    }

    /// Whether an agent is the gateway's own: of its configuration, or made of an MCP server. Not to be asked while the fleet
    /// is held: others hold this one and ask for the fleet.
    fn is_own(&self, agent: &AgentId) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).contains(agent)
    }

    /// Checks whether the gateway may go where the card says that the agent is, and where its failures are to be told.
    pub(super) fn may_go_where_it_says(&self, card: &AgentCard) -> Result<(), Failure> {
        let settings = self.settings.load_full();
        Self::check_endpoints(&settings.endpoints, card)?;
        Self::check_failure_callbacks(&settings.webhooks.guard, card)
    }

    /// Checks whether the gateway may go where the card says that the agent is.
    pub(crate) fn check_endpoints(guard: &Guard, card: &AgentCard) -> Result<(), Failure> {
        for (at, endpoint) in card.endpoints.iter().enumerate() {
            let is_gone_to = match endpoint.protocol {
                Protocol::Http => true,
                // A server that the operator added is where they said.
                Protocol::Mcp => !endpoint.address.starts_with(SERVER_PREFIX),
                Protocol::Process | Protocol::Websocket | Protocol::Queue => false,
            };
            if is_gone_to {
                guard.check(&endpoint.address).map_err(|refused| {
                    Failure::new(ErrorCode::InvalidCard, format!("endpoints[{at}].address: {refused}"))
                })?;
            }
        }
        Ok(())
    }

    /// Takes an agent in that was made of an MCP server.
    pub(crate) async fn admit_server(&self, card: AgentCard, is_anew: bool) -> Result<Registered, Failure> {
        self.admit(card, None, is_anew, "gateway").await
    }

    /// `is_anew`: it is stored again, though its card did not change.
    async fn admit(
        &self,
        card: AgentCard,
        connection: Option<SessionId>,
        is_anew: bool,
        actor: &str,
    ) -> Result<Registered, Failure> {
        let checked = Checked::new(card).map_err(|error| bad_card(&error))?;
        self.may_go_where_it_says(checked.card())?;
        let card = checked.card().clone();
        let agent = card.agent_id.clone();
        self.keep(&card, is_anew, actor).await?;
        let now = self.now();
        let registration = self.fleet().register(checked, now);
        if let Some(session) = connection
            && self.sessions.bind(session, &agent)
        {
            self.fleet().connected(&agent, now);
        }
        self.open.unpark_for(&agent, card.max_concurrency as usize, now);
        self.show_offers(&agent);
        if !registration.unchanged {
            self.cards.send_modify(|version| *version += 1);
            self.offer_anew();
        }
        Ok(Registered {
            agent_id: agent,
            cluster: self.settings().cluster.clone(),
            generation: registration.generation,
            unchanged: registration.unchanged,
            capabilities: card.capabilities.into_iter().map(|capability| capability.name).collect(),
            endpoints: card.endpoints,
            heartbeat_due_at: registration.heartbeat_due_at,
            warnings: registration.warnings,
            token: None,
        })
    }

    /// Nobody takes the place of an agent that the gateway knows from its configuration.
    pub(crate) fn refuse_own(&self, agent: &AgentId) -> Result<(), Failure> {
        if !self.own.lock().unwrap_or_else(PoisonError::into_inner).contains(agent) {
            return Ok(());
        }
        let message = format!(
            "{agent} is an agent of the gateway's own configuration file, and nobody takes its place; register under \
             another name, or change the file"
        );
        Err(Failure::new(ErrorCode::Forbidden, message))
    }

    /// Stores the card, unless it is stored already.
    async fn keep(&self, card: &AgentCard, is_anew: bool, actor: &str) -> Result<(), Failure> {
        let known = {
            let fleet = self.fleet();
            fleet
                .node(&card.agent_id)
                .map(|node| (*node.card == *card && !node.is_draining, node.generation, node.registered_at))
        };
        let now = self.now();
        let mut audit = Vec::new();
        let (generation, registered_at) = match known {
            Some((true, generation, registered_at)) if is_anew => (generation, registered_at),
            Some((true, ..)) => return Ok(()),
            Some((false, generation, registered_at)) => (generation + 1, registered_at),
            None => (1, now),
        };
        if known.is_none_or(|(is_same, ..)| !is_same) {
            let before = self.fleet().node(&card.agent_id).map(|node| node.card.access.clone());
            audit = self.told_of_card(card, before.as_ref(), actor, generation);
        }
        let server = self.kept_server(card);
        let configured = self.is_own(&card.agent_id) && server_name(card).is_none();
        let card = card.clone();
        let row = AgentRow { card, generation, registered_at, changed_at: now, draining: false, configured, server };
        let agent = row.card.agent_id.clone();
        self.committer.submit(Command::PutAgent(row).audited(audit)).await?;
        self.outbox.card_changed(&agent, now);
        Ok(())
    }

    /// What is written down of a card that is new or changed: the digest of the card, and whether it moves a wall. `before`:
    /// what the last card said of access.
    pub(super) fn told_of_card(
        &self,
        card: &AgentCard,
        before: Option<&Access>,
        actor: &str,
        generation: u64,
    ) -> Vec<AuditEvent> {
        let agent = &card.agent_id;
        let text = serde_json::to_vec(card).unwrap_or_default();
        let event = self.audit_event(AuditKind::AgentRegistered, actor).on(agent.as_str()).with_payload(&text);
        let mut events = vec![event.because(format!("generation {generation}"))];
        if before.is_some_and(|before| *before != card.access) {
            let access = serde_json::to_vec(&card.access).unwrap_or_default();
            let event = self.audit_event(AuditKind::AccessChanged, actor).on(agent.as_str());
            events.push(event.with_payload(&access));
        }
        events
    }

    /// An agent is still here.
    ///
    /// # Errors
    /// It says too much, it is not registered, or the caller is not it.
    pub async fn heartbeat(&self, grant: Grant, beat: Heartbeat) -> Result<HeartbeatAnswer, Failure> {
        let agent = &beat.agent_id;
        grant.acts_as(agent).map_err(forbidden)?;
        check_beat(&beat)?;
        let now = self.now();
        let due_at = self.fleet().heartbeat(&beat, now).ok_or_else(|| agent_not_found(agent))?;
        let mut stop = Vec::new();
        for work in &beat.working_on {
            if !self.renew(agent, work.task_id, work.token).await {
                stop.push(Working { task_id: work.task_id, token: work.token });
            }
        }
        let waiting = u32::try_from(self.open.claimable_count(agent)).unwrap_or(u32::MAX);
        Ok(HeartbeatAnswer { heartbeat_due_at: due_at, stop, waiting, token: None })
    }

    /// Renews the lease of an attempt. False: it is not the agent's any more, or never was.
    async fn renew(&self, agent: &AgentId, task_id: TaskId, token: FencingToken) -> bool {
        let Ok(Some(task)) = self.load(task_id).await else { return false };
        if task.live_attempt().is_none_or(|attempt| attempt.token != token || &attempt.agent_id != agent) {
            return false;
        }
        // A refusal here is that there is nothing to renew.
        let _ = self.apply_to(&task, Event::Renew { token }).await;
        true
    }

    /// Sends an agent no new work.
    ///
    /// # Errors
    /// It is not registered, or the caller is not it.
    pub async fn drain(&self, grant: Grant, request: AgentRef) -> Result<Drained, Failure> {
        let agent = &request.agent_id;
        grant.acts_as(agent).map_err(forbidden)?;
        let is_own = self.is_own(agent);
        let row = {
            let fleet = self.fleet();
            let node = fleet.node(agent).ok_or_else(|| agent_not_found(agent))?;
            AgentRow {
                card: (*node.card).clone(),
                generation: node.generation,
                registered_at: node.registered_at,
                changed_at: self.outbox.card_changed_at(agent),
                draining: true,
                configured: is_own && server_name(&node.card).is_none(),
                server: self.kept_server(&node.card),
            }
        };
        let audit = self.audit_event(AuditKind::AgentDrained, grant.caller().to_string()).on(agent.as_str());
        self.committer.submit(Command::PutAgent(row).audited(vec![audit])).await?;
        let mut fleet = self.fleet();
        fleet.drain(agent, true);
        Ok(Drained { in_flight: fleet.in_flight(agent) })
    }

    /// Forgets an agent; what it has is taken back.
    ///
    /// # Errors
    /// It is not registered, or the caller is not it.
    pub async fn deregister(&self, grant: Grant, request: AgentRef) -> Result<Drained, Failure> {
        let agent = &request.agent_id;
        grant.acts_as(agent).map_err(forbidden)?;
        match self.fleet().node(agent).map(|node| server_name(&node.card).is_some()) {
            None => return Err(agent_not_found(agent)),
            Some(true) => return Err(of_a_server(agent)),
            Some(false) => {}
        }
        let audit = self.audit_event(AuditKind::AgentDeregistered, grant.caller().to_string()).on(agent.as_str());
        self.committer.submit(Command::RemoveAgent(agent.clone()).audited(vec![audit])).await?;
        let in_flight = self.fleet().in_flight(agent);
        self.take_back(agent, "it left").await;
        self.fleet().remove(agent);
        self.cards.send_modify(|version| *version += 1);
        Ok(Drained { in_flight })
    }

    /// Takes back what an agent has: nobody can tell what became of it.
    pub(crate) async fn take_back(&self, agent: &AgentId, why: &str) {
        for (task_id, token) in self.open.held_by(agent) {
            let failure = Failure::new(ErrorCode::AgentLost, format!("{agent} is lost: {why}"));
            // Whether it was pulled before is known only when the step is taken: a claim may come first.
            let trace = Trace::Unknown;
            if let Err(error) = self.apply(task_id, Event::Fail { token, failure, trace }).await {
                let failure = Failure::from(error);
                tracing::info!(reach_id = %task_id, %agent, reason = %failure.message, "an attempt was not taken back");
            }
        }
    }

    /// An agent as a caller, with the access rules of its card; one that is not registered has the usual ones.
    #[must_use]
    pub fn caller_named(&self, agent: &AgentId) -> reach_core::access::Caller {
        self.fleet().caller(agent)
    }

    /// One agent.
    ///
    /// # Errors
    /// It is not registered, or the caller may not know of it.
    pub fn agent(&self, grant: Grant, request: &AgentRef) -> Result<AgentView, Failure> {
        let agent = &request.agent_id;
        let seen = self.fleet().seen_by(grant.caller(), agent, self.now());
        seen.ok_or_else(|| agent_not_found(agent))
    }

    /// All agents that the caller may know of, in the order of their ids.
    ///
    /// # Errors
    /// More are asked for than one list holds.
    pub fn agents(&self, grant: Grant, request: &AgentList) -> Result<Agents, Failure> {
        let limit = bounds::limit(request.limit, LIST)? as usize;
        let now = self.now();
        let fleet = self.fleet();
        let is_wanted = |agent: &AgentId| {
            request.after.as_ref().is_none_or(|after| agent > after)
                && request.namespace.as_ref().is_none_or(|wanted| wanted.as_str() == agent.namespace_str())
        };
        let wanted = fleet.nodes().map(|node| &node.card.agent_id).filter(|agent| is_wanted(agent));
        let seen = wanted.filter_map(|agent| fleet.seen_by(grant.caller(), agent, now));
        Ok(Agents { agents: seen.take(limit).collect() })
    }

    /// A connection is gone, and with it the way to its agents.
    pub fn disconnected(&self, agents: &[AgentId]) {
        let mut fleet = self.fleet();
        for agent in agents {
            fleet.disconnected(agent);
        }
    }
}
