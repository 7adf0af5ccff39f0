//! `config`: what the gateway goes by, reading its file again, and checking a file before.

use std::path::Path;

use agent_reach_sdk::schemas::call::{ConfigRefused, ConfigReload, ConfigReloaded, ConfigView, Nothing};
use agent_reach_sdk::{Error, ErrorCode, Method, RawJson, Refusal};
use reach_gateway::config::{self, Flags, Mistakes};
use serde_json::json;

use crate::args::Config;
use crate::exit::{Exit, Stop};
use crate::output::Out;
use crate::render::config::{reloaded, table};
use crate::render::text::{clean, count};
use crate::session::{Session, read};

/// Reads a file as a gateway would that is started with it and nothing else.
pub(crate) fn check(file: &Path, out: &Out) -> Result<Exit, Stop> {
    let place = file.display().to_string();
    match config::load(Some(file), Flags::default()) {
        Ok(config) => {
            let (agents, servers) = (config.agents.len(), config.servers.len());
            if out.is_json {
                let told = json!({ "file": place, "mistakes": [], "agents": agents, "mcp_servers": servers });
                out.line(&told.to_string())?;
            } else {
                let (agents, servers) = (count(agents, "agent", "agents"), count(servers, "MCP server", "MCP servers"));
                out.text(&clean(&format!("{place} is right: {agents}, {servers}\n")))?;
            }
            Ok(Exit::Done)
        }
        Err(Mistakes(mistakes)) => {
            let message = format!("{place} is not right: {}", reach_gateway::config::told(&mistakes));
            let data = RawJson::of(&ConfigRefused { mistakes, ..ConfigRefused::default() }).ok();
            let refusal = Refusal { data, ..Refusal::new(ErrorCode::InvalidConfig, message) };
            Err(Stop::Call(Error::from(refusal)))
        }
    }
}

pub(crate) async fn reload(dry_run: bool, session: &Session) -> Result<Exit, Stop> {
    session.show::<ConfigReloaded>(Method::ConfigReload, &ConfigReload { dry_run }, reloaded).await
}

pub(crate) async fn show(prefix: Option<&str>, session: &Session) -> Result<Exit, Stop> {
    let answer = session.ask(Method::ConfigShow, &Nothing {}).await?;
    let mut view: ConfigView = read(Method::ConfigShow, &answer)?;
    view.keys.retain(|key| prefix.is_none_or(|prefix| key.key.starts_with(prefix)));
    if session.out.is_json {
        let json = serde_json::to_string(&view).map_err(|error| Stop::Unreadable(error.to_string()))?;
        session.out.line(&json)?;
    } else {
        session.out.text(&table(&view, &session.out.look()))?;
    }
    Ok(Exit::Done)
}

/// Runs one of the commands; only those that need the gateway look at where it is.
pub(crate) async fn run(command: Config, url: &str, token_file: Option<&Path>, out: Out) -> Result<Exit, Stop> {
    match command {
        Config::Check { file } => check(&file, &out),
        Config::Reload { dry_run } => reload(dry_run, &Session::open(url, token_file, out).await?).await,
        Config::Show { prefix } => show(prefix.as_deref(), &Session::open(url, token_file, out).await?).await,
    }
}
