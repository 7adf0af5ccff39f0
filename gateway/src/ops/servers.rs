//! MCP servers: added, removed, listed, and the agents that are made of them.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use reach_core::access::{Caller, Grant, may_call_all};
use reach_core::fleet::server_name;
use reach_schemas::call::{ProofWanted, ServerAdd, ServerRef, Servers};
use reach_schemas::{AgentCard, AgentId, AuditKind, ErrorCode, Failure, RawJson, ServerSpec, ServerView};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::gateway::Gateway;
use crate::identity::is_equal;
use crate::store::Command;
use crate::upstream::card::{Cards, cards};
use crate::upstream::server::Server;
use crate::upstream::spec::mistakes;

/// What proves that a caller may start commands: it has read a file that only the gateway's own user can read.
#[derive(Clone)]
pub struct Proof {
    /// The file.
    pub file: PathBuf,
    /// What is in it.
    pub key: String,
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proof({})", self.file.display())
    }
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::InvalidParams, message)
}

impl Gateway {
    /// The MCP servers that it is a client of.
    #[must_use]
    pub const fn upstreams(&self) -> &Arc<crate::upstream::Upstreams> {
        &self.upstreams
    }

    /// Meets a server, makes agents of what it offers, and keeps it over restarts.
    ///
    /// # Errors
    /// What is said of it is wrong, it may not be started by this caller, it cannot be met, or it has no tools. Then nothing
    /// is changed.
    pub async fn add_server(&self, grant: Grant, request: ServerAdd) -> Result<ServerView, Failure> {
        let broken_off = |why: &str| Failure::new(ErrorCode::ShuttingDown, format!("the server was not added: {why}"));
        let me = self.me.upgrade().ok_or_else(|| broken_off("the gateway is ending"))?;
        // Whoever asks may go away meanwhile: it is added and that is written down, or all is as before, even so.
        let adding = async move { me.meet_and_add(grant, request).await };
        tokio::spawn(adding.in_current_span()).await.unwrap_or_else(|ended| Err(broken_off(&ended.to_string())))
    }

    async fn meet_and_add(&self, grant: Grant, request: ServerAdd) -> Result<ServerView, Failure> {
        let ServerAdd { server: spec, proof } = request;
        let wrong = mistakes(&spec);
        if !wrong.is_empty() {
            return Err(refused(format!("server: {}", wrong.join("; "))));
        }
        if spec.command.is_some() {
            self.may_start_commands(proof.as_deref())?;
        }
        let name = spec.name.clone();
        if self.upstreams.get(name.as_str()).is_some_and(|known| known.is_configured()) {
            return Err(refused(format!("the server {name} stands in the configuration file; change it there")));
        }
        self.is_free_for(&spec)?;
        let (server, old) = self.upstreams.put(spec, false);
        match self.refresh_server(&server, true).await {
            Ok(()) if !server.offers().agents.is_empty() => {
                if let Some(old) = old {
                    old.close().await;
                }
                self.audit.note(self.audit_event(AuditKind::ServerAdded, grant.caller().to_string()).on(name.as_str()));
                Ok(view(&server))
            }
            met => {
                self.upstreams.put_back(&server, old).await;
                let why = match met {
                    Ok(()) => "it has no tools, so there is nothing to make an agent of".to_owned(),
                    Err(failure) => failure.message,
                };
                Err(Failure::new(ErrorCode::Unreachable, format!("the server {name} was not added: {why}")))
            }
        }
    }

    /// Who reaches the port is trusted with the gateway's work, but not with its user's account.
    fn may_start_commands(&self, proof: Option<&str>) -> Result<(), Failure> {
        let settings = self.settings();
        if settings.allow_process {
            return Ok(());
        }
        let Some(wanted) = &settings.proof else {
            let message = "server.command: a caller must not make the gateway run commands; put the server into its \
                           configuration file";
            return Err(Failure::new(ErrorCode::Forbidden, message));
        };
        if proof.is_some_and(|proof| is_equal(proof.trim(), &wanted.key)) {
            return Ok(());
        }
        let file = wanted.file.display().to_string();
        if proof.is_some() {
            let message = format!(
                "server.command: `proof` is not what stands in {file}, so the caller may not make the \
                                   gateway run commands"
            );
            return Err(Failure::new(ErrorCode::Forbidden, message));
        }
        let data = RawJson::of(&ProofWanted { proof_file: file }).ok();
        let message = "server.command: a caller must not make the gateway run commands, unless it proves that it can read \
                       the gateway's files: send the content of `proof_file` as `proof`, or put the server into the \
                       configuration file";
        Err(Failure { data, ..Failure::new(ErrorCode::Forbidden, message) })
    }

    /// An agent of another kind is not taken the place of.
    fn is_free_for(&self, spec: &ServerSpec) -> Result<(), Failure> {
        let agent = AgentId::new(&spec.name, &spec.namespace);
        let fleet = self.fleet();
        match fleet.node(&agent).map(|node| server_name(&node.card)) {
            None => Ok(()),
            Some(Some(name)) if name == spec.name.as_str() => Ok(()),
            Some(_) => Err(refused(format!("there is an agent {agent} already; name the server otherwise"))),
        }
    }

    /// Forgets a server that was added, and its agents.
    ///
    /// # Errors
    /// There is none of this name, or it stands in the configuration file.
    pub async fn remove_server(&self, grant: Grant, request: ServerRef) -> Result<ServerView, Failure> {
        let name = &request.name;
        let server = self.upstreams.get(name.as_str());
        let server =
            server.ok_or_else(|| Failure::new(ErrorCode::AgentNotFound, format!("there is no server {name}")))?;
        if server.is_configured() {
            return Err(refused(format!("the server {name} stands in the configuration file; take it out there")));
        }
        for agent in self.agents_of(name.as_str()) {
            self.forget_server_agent(&agent).await?;
        }
        let view = view(&server);
        self.audit.note(self.audit_event(AuditKind::ServerRemoved, grant.caller().to_string()).on(name.as_str()));
        self.upstreams.remove(&server).await;
        Ok(view)
    }

    /// All servers.
    #[must_use]
    pub fn servers(&self, _grant: Grant) -> Servers {
        Servers { servers: self.upstreams.all().iter().map(|server| view(server)).collect() }
    }

    /// Asks a server what it offers, and registers the agents that are made of it. `is_anew`: what is stored of it is
    /// written again, though nothing changed.
    ///
    /// # Errors
    /// It cannot be met or asked, or a card by hand makes a card that is refused.
    pub(crate) async fn refresh_server(&self, server: &Arc<Server>, is_anew: bool) -> Result<(), Failure> {
        let until = Instant::now() + server.spec().start_timeout.into();
        let catalogue = server.catalogue(until).await;
        let catalogue = catalogue.map_err(|fault| Failure::new(ErrorCode::Unreachable, fault.to_string()))?;
        if server.stop().is_cancelled() {
            return Err(Failure::new(ErrorCode::Unreachable, "it was removed meanwhile"));
        }
        let Cards { cards, warnings } = cards(server.spec(), &catalogue);
        let name = server.spec().name.as_str();
        let agents: Vec<AgentId> = cards.iter().map(|card| card.agent_id.clone()).collect();
        for card in cards {
            self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(card.agent_id.clone());
            self.admit_server(card, is_anew).await?;
        }
        for agent in self.agents_of(name) {
            if !agents.contains(&agent) {
                self.forget_server_agent(&agent).await?;
            }
        }
        for warning in warnings.iter().filter(|warning| !server.offers().warnings.contains(warning)) {
            tracing::warn!(server = name, "{warning}");
        }
        server.offer(agents, catalogue.tools.len(), warnings);
        Ok(())
    }

    /// The agents that were made of a server.
    pub(crate) fn agents_of(&self, name: &str) -> Vec<AgentId> {
        let fleet = self.fleet();
        fleet.made_of(name).map(|node| node.card.agent_id.clone()).collect()
    }

    /// Whether a caller may use a server as it is, past the router: of every agent that is made of it, it must be one that
    /// may call whatever there is, for what has no capability (a resource, a tool that is hidden) is reached here as well. Of
    /// a server without agents, the agent is asked about that would be made of it, by the card that would be its.
    #[must_use]
    pub fn may_use_server(&self, caller: &Caller, name: &str) -> bool {
        let Some(server) = self.upstreams.get(name) else { return false };
        let fleet = self.fleet();
        let mut agents = fleet.made_of(name).peekable();
        if agents.peek().is_none() {
            let spec = server.spec();
            let access = spec.card.access.clone().unwrap_or_default();
            return may_call_all(caller, &AgentId::new(&spec.name, &spec.namespace), &access);
        }
        agents.all(|node| may_call_all(caller, &node.card.agent_id, &node.card.access))
    }

    async fn forget_server_agent(&self, agent: &AgentId) -> Result<(), Failure> {
        let audit = self.audit_event(AuditKind::AgentDeregistered, "gateway").on(agent.as_str());
        let audit = audit.because("its server does not offer it any more, or was removed");
        self.committer.submit(Command::RemoveAgent(agent.clone()).audited(vec![audit])).await?;
        self.own.lock().unwrap_or_else(PoisonError::into_inner).remove(agent);
        self.take_back(agent, "its server was removed").await;
        self.fleet().remove(agent);
        self.cards.send_modify(|version| *version += 1);
        Ok(())
    }

    /// How the server of an agent is reached, if it is kept with the agent: the configuration's are not.
    pub(crate) fn kept_server(&self, card: &AgentCard) -> Option<ServerSpec> {
        let server = self.upstreams.get(server_name(card)?)?;
        (!server.is_configured()).then(|| server.spec().clone())
    }
}

fn view(server: &Server) -> ServerView {
    let (state, offers) = (server.state(), server.offers());
    ServerView {
        server: server.spec().clone(),
        is_configured: server.is_configured(),
        state: state.state,
        why: state.why,
        since: state.since,
        revision: server.revision().map(str::to_owned),
        agents: offers.agents,
        tools: offers.tools,
        connects: server.met(),
        warnings: offers.warnings,
    }
}
