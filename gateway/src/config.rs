//! The configuration, typed twice: as the operator writes it (TOML), and as the gateway uses it. The passage between
//! checks everything and tells every mistake at once.

mod auth;
mod endpoints;
pub mod in_force;
pub mod keys;
mod limits;
mod mcp;
mod policies;
mod read;
mod servers;
mod telemetry;
mod tls;
mod webhooks;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use reach_core::admission::WaitingLimits;
use reach_core::bulkhead::TierLimits;
use reach_core::fleet::{self, Checked, Defaults, Mistake, form_mistakes};
use reach_core::health::HealthPolicy;
use reach_core::lexical::Thresholds;
use reach_core::retry::Shares;
use reach_core::score::Learning;
use reach_schemas::{AgentCard, AgentId, ServerSpec, Span};
use serde::Deserialize;

use crate::envelope::TextLimits;
use crate::gateway::Settings;
use crate::rates::RateLimits;
use crate::telemetry::log::Format;
use crate::transport::{HttpSettings, Tls};
use crate::webhook::Secrets;

pub use read::{Said, load, read};

/// Where the gateway listens unless told otherwise.
pub const LISTEN: &str = "127.0.0.1:7340";
/// Where its data is unless told otherwise.
pub const DATA: &str = "agent-reach-data";

/// The longest that a person may have for a task that no agent could do.
const HUMAN_WAIT_MAX: Span = Span::from_hours(24 * 7);

/// The configuration as it is written. Every field may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// Address and port.
    pub listen: Option<String>,
    /// The folder of the database.
    pub data: Option<PathBuf>,
    /// The name that registrations are answered with.
    pub cluster: Option<String>,
    /// How many tasks may be open at once.
    pub open_max: Option<usize>,
    /// How long a task may take if its caller does not say.
    pub deadline: Option<String>,
    /// The same for the tier `long`.
    pub deadline_long: Option<String>,
    /// How long finished tasks are kept.
    pub keep_finished: Option<String>,
    /// How long an idempotency key is kept once its task is done.
    pub keep_keys: Option<String>,
    /// How long a person has at least for a task that no agent could do.
    pub human_wait: Option<String>,
    /// Lets agents register commands that the gateway then runs.
    pub allow_process_registration: bool,
    /// How much work of each tier may be out at once.
    pub tiers: Option<TierLimits>,
    /// How webhooks are sent.
    pub webhooks: webhooks::Section,
    /// Where agents may be that are reached over HTTP.
    pub endpoints: endpoints::Section,
    /// The port's certificate.
    pub tls: tls::Section,
    /// What the port takes, and how fast agents may ask.
    pub limits: limits::Section,
    /// Whether callers are asked who they are.
    pub auth: auth::Section,
    /// How the log looks, and where traces go.
    pub telemetry: telemetry::Section,
    /// How many tasks may wait for an agent at once.
    pub waiting: Option<WaitingLimits>,
    /// How many retries each agent is sent, and each caller is given.
    pub retries: Option<Shares>,
    /// Whether outcomes move routing weights, and how far.
    pub learning: Option<Learning>,
    /// When the words of an intent are enough to choose by.
    pub intent: Option<Thresholds>,
    /// When probes eject an agent, and how slowly it starts.
    pub health: Option<HealthPolicy>,
    /// What a capability goes by whose card does not say.
    pub defaults: Option<Defaults>,
    /// What the gateway's own MCP server shows.
    pub mcp: mcp::Section,
    /// Agents that the gateway knows from the start; the way in for commands.
    pub agents: Vec<toml::Value>,
    /// MCP servers that agents are made of.
    pub mcp_servers: Vec<toml::Value>,
}

/// The configuration as it is used.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The folder of the database.
    pub data: PathBuf,
    /// What the gateway goes by.
    pub settings: Settings,
    /// What the port goes by.
    pub http: HttpSettings,
    /// What its own MCP server goes by.
    pub mcp: crate::mcp::server::Settings,
    /// What signs webhooks, if the file says where it is. None: a file in the data folder, made if it is not there.
    pub webhook_secrets: Option<Secrets>,
    /// How the log looks, and where traces go.
    pub telemetry: telemetry::Telemetry,
    /// Agents that it knows from the start.
    pub agents: Vec<AgentCard>,
    /// MCP servers that agents are made of.
    pub servers: Vec<ServerSpec>,
    /// Who said what of all this.
    pub said: Said,
}

/// What the command line says; it goes before the file.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// Address and port.
    pub listen: Option<String>,
    /// The folder of the database.
    pub data: Option<PathBuf>,
    /// How log lines look.
    pub log_format: Option<Format>,
    /// Where traces go; nowhere, if it is empty.
    pub otlp: Option<String>,
    /// Which tools its own MCP server shows.
    pub mcp_tools: Option<String>,
}

/// Everything that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<String>);

/// Mistakes in one line: the first, and how many more there are.
#[must_use]
pub fn told(mistakes: &[String]) -> String {
    match mistakes {
        [] => "there is no mistake".to_owned(),
        [only] => only.clone(),
        [first, more @ ..] => format!("{first}; and {} more", more.len()),
    }
}

impl std::fmt::Display for Mistakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for mistake in &self.0 {
            writeln!(f, "- {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Checks a configuration.
///
/// # Errors
/// All that is wrong with it.
pub fn check(file: File, flags: Flags) -> Result<Config, Mistakes> {
    let mut mistakes = Vec::new();
    let usual = Settings::default();
    let listen = listens_on(flags.listen.or(file.listen), &mut mistakes);
    let mut span = |name: &str, text: Option<String>, usual: Span| match text.map(|text| text.parse::<Span>()) {
        None => usual,
        Some(Ok(span)) if span > Span::ZERO => span,
        Some(Ok(_)) => {
            mistakes.push(format!("{name}: is zero"));
            usual
        }
        Some(Err(error)) => {
            mistakes.push(format!("{name}: {error}"));
            usual
        }
    };
    let deadline = span("deadline", file.deadline, usual.deadline);
    let deadline_long = span("deadline_long", file.deadline_long, usual.deadline_long);
    let kept_for = span("keep_finished", file.keep_finished, usual.kept_for);
    let keys_kept_for = span("keep_keys", file.keep_keys, usual.keys_kept_for);
    let human_wait = span("human_wait", file.human_wait, usual.fleet.human_wait);
    let (webhooks, webhook_secrets) = webhooks::check(file.webhooks, &mut mistakes);
    let endpoints = endpoints::check(file.endpoints, listen, &mut mistakes);
    let section = telemetry::Section { otlp: flags.otlp.or(file.telemetry.otlp), ..file.telemetry };
    let (mut telemetry, trace_share) = telemetry::check(section, &mut mistakes);
    telemetry.log_format = flags.log_format.unwrap_or(telemetry.log_format);
    let mcp = mcp::check(file.mcp, flags.mcp_tools, &mut mistakes);
    let (http, rates, texts) = port((file.tls, file.limits), listen, &mcp, &mut mistakes);
    let shows_who = http.tls.as_deref().is_some_and(Tls::knows_callers);
    let identity = auth::check(file.auth, listen, shows_who, &mut mistakes);
    let settings = Settings {
        cluster: file.cluster.unwrap_or(usual.cluster),
        open_max: file.open_max.unwrap_or(usual.open_max),
        waiting: file.waiting.unwrap_or(usual.waiting),
        rates,
        texts,
        deadline,
        deadline_long,
        kept_for,
        keys_kept_for,
        allow_process: file.allow_process_registration,
        proof: None,
        fleet: fleet::Settings {
            tier_limits: file.tiers.unwrap_or_default(),
            retries: file.retries.unwrap_or_default(),
            human_wait,
            learning: file.learning.unwrap_or_default(),
            thresholds: file.intent.unwrap_or_default(),
            health: file.health.unwrap_or_default(),
            defaults: file.defaults.unwrap_or_default(),
        },
        webhooks,
        endpoints,
        audit: usual.audit,
        identity,
        trace_share,
    };
    policies::check(&settings, &mut mistakes);
    let agents = cards_of(file.agents, &mut mistakes);
    let servers = servers::check(file.mcp_servers, &mut mistakes);
    told_twice(&agents, &servers, &mut mistakes);
    match listen {
        Some(listen) if mistakes.is_empty() => {
            let data = flags.data.or(file.data).unwrap_or_else(|| PathBuf::from(DATA));
            let said = Said::default();
            Ok(Config { listen, data, settings, http, mcp, webhook_secrets, telemetry, agents, servers, said })
        }
        Some(_) | None => Err(Mistakes(mistakes)),
    }
}

/// Where to listen. Whether it may be elsewhere than on this machine, `auth` and `tls` say.
fn listens_on(text: Option<String>, mistakes: &mut Vec<String>) -> Option<SocketAddr> {
    let text = text.unwrap_or_else(|| LISTEN.to_owned());
    let Ok(listen) = text.parse::<SocketAddr>() else {
        mistakes.push(format!("listen: {text:?} is not an address with a port, such as \"{LISTEN}\""));
        return None;
    };
    Some(listen)
}

/// What the port goes by.
fn port(
    (tls, limits): (tls::Section, limits::Section),
    listen: Option<SocketAddr>,
    mcp: &crate::mcp::server::Settings,
    mistakes: &mut Vec<String>,
) -> (HttpSettings, RateLimits, TextLimits) {
    let tls = tls::check(tls, listen, mistakes);
    let (http, rates, texts) = limits::check(limits, mistakes);
    (HttpSettings { tls, mcp: mcp.clone(), ..http }, rates, texts)
}

fn cards_of(agents: Vec<toml::Value>, mistakes: &mut Vec<String>) -> Vec<AgentCard> {
    let mut cards = Vec::with_capacity(agents.len());
    for (at, agent) in agents.into_iter().enumerate() {
        match card_of(agent) {
            Ok(card) => cards.push(card),
            Err(wrong) => mistakes.extend(wrong.into_iter().map(|mistake| format!("agents[{at}]{mistake}"))),
        }
    }
    cards
}

/// Each agent is told of once: by a card, or by the server that it is made of.
fn told_twice(agents: &[AgentCard], servers: &[ServerSpec], mistakes: &mut Vec<String>) {
    let mut known: BTreeSet<AgentId> =
        servers.iter().map(|server| AgentId::new(&server.name, &server.namespace)).collect();
    for (at, agent) in agents.iter().enumerate().filter(|(_, agent)| !known.insert(agent.agent_id.clone())) {
        mistakes
            .push(format!("agents[{at}]: {} is told of twice; an agent has one card, or is a server", agent.agent_id));
    }
}

/// A card written in TOML is the same card as in JSON. What is wrong begins with the place in it.
fn card_of(card: toml::Value) -> Result<AgentCard, Vec<String>> {
    let whole = |error: &dyn ToString| vec![format!(": {}", error.to_string())];
    let text = serde_json::to_string(&card).map_err(|error| whole(&error))?;
    let card: AgentCard = serde_json::from_str(&text).map_err(|error| {
        let named = |mistake: Mistake| match mistake.at.as_str() {
            "" => format!(": {}", mistake.says),
            _ => format!(".{mistake}"),
        };
        let all: Vec<String> = form_mistakes(&text).into_iter().map(named).collect();
        if all.is_empty() { whole(&error) } else { all }
    })?;
    let checked = Checked::new(card).map_err(|error| whole(&error))?;
    Ok(checked.card().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let file = toml::from_str(text).map_err(|error| error.to_string())?;
        check(file, Flags::default()).map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn an_empty_file_is_the_defaults() {
        let config = read("").unwrap();
        assert_eq!((config.listen.to_string().as_str(), config.data.to_str()), (LISTEN, Some(DATA)));
    }

    #[test]
    fn the_command_line_says_where_traces_go_before_the_file_and_an_empty_address_is_none() {
        let file = || toml::from_str("[telemetry]\notlp = \"http://a:1\"\n").unwrap();
        let with = |otlp: Option<&str>| {
            let flags = Flags { otlp: otlp.map(str::to_owned), ..Flags::default() };
            check(file(), flags).map(|config| config.telemetry.otlp.map(|receiver| receiver.address.to_string()))
        };
        assert_eq!(with(None).unwrap().as_deref(), Some("http://a:1/v1/traces"));
        assert_eq!(with(Some("http://b:2")).unwrap().as_deref(), Some("http://b:2/v1/traces"));
        assert_eq!(with(Some("")).unwrap(), None);
        assert!(with(Some("b:2")).unwrap_err().to_string().contains("telemetry.otlp: "));
        for text in ["share = 1.5", "log_format = \"xml\"", "otpl = \"\""] {
            assert!(read(&format!("[telemetry]\n{text}\n")).is_err(), "{text}");
        }
    }

    #[test]
    fn every_flaw_of_a_card_is_told_at_once() {
        let card = "[[agents]]\nagent_id = \"a@n\"\ncolour = 1\n[[agents.capabilities]]\nefect = \"read\"\n";
        let told = read(card).unwrap_err();
        for part in ["agents[0]: unknown field `colour`", "agents[0].capabilities[0]: missing field `name`", "`efect`"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        let told =
            read("listen = \"x\"\ndeadline = \"soon\"\nopen_max = 0\n[[agents]]\nagent_id = \"a@n\"\n").unwrap_err();
        for part in ["listen: \"x\"", "deadline: \"soon\"", "open_max: is 0", "agents[0]: missing field `capabilities`"]
        {
            assert!(told.contains(part), "{told}");
        }
        assert!(read("lissen = 1").unwrap_err().contains("unknown field `lissen`"));
    }

    #[test]
    fn what_the_page_on_overload_shows_are_the_defaults() {
        let page = include_str!("../../docs/overload.md");
        let shown = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
        let (shown, usual) = (read(shown).unwrap().settings, read("").unwrap().settings);
        assert_eq!((shown.open_max, shown.waiting), (usual.open_max, usual.waiting));
        assert_eq!((shown.fleet.tier_limits, shown.fleet.retries), (usual.fleet.tier_limits, usual.fleet.retries));
    }

    #[test]
    fn a_command_is_an_agent_of_the_file() {
        let text = "[[agents]]\nagent_id = \"wc@tools\"\n[[agents.endpoints]]\nprotocol = \"process\"\naddress = \"wc -w\"\n[[agents.capabilities]]\nname = \"count_words\"\neffect = \"read\"\n";
        let config = read(text).unwrap();
        assert_eq!(config.agents[0].endpoints[0].address, "wc -w");
    }
}
