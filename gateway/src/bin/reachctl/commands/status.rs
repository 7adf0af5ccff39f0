//! `status`: whether the gateway is well, what it says of itself, and how many agents it has in which state.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_reach_sdk::schemas::call::{AgentList, Agents, LIST_MAX};
use agent_reach_sdk::{Error, Method, RawJson};
use serde::Serialize;

use crate::exit::{Exit, Stop};
use crate::render::status;
use crate::session::{Session, read};

/// How long the gateway may take to say how it is.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// What is known of the gateway.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    /// Where it is.
    pub(crate) url: String,
    /// Whether it says that it is well.
    pub(crate) is_well: bool,
    /// What it says, if that is JSON.
    pub(crate) health: Option<RawJson>,
    /// How many agents are in which state.
    pub(crate) agents: BTreeMap<&'static str, u64>,
}

pub(crate) async fn run(session: &Session) -> Result<Exit, Stop> {
    let (is_well, health) = health(session).await?;
    let agents = agents(session).await?;
    let status = Status { url: session.url.clone(), is_well, health, agents };
    if session.out.is_json {
        let json = serde_json::to_string(&status).map_err(|error| Stop::Unreadable(error.to_string()))?;
        session.out.line(&json)?;
    } else {
        session.out.text(&status::sheet(&status, &session.out.look()))?;
    }
    Ok(if is_well { Exit::Done } else { Exit::Later })
}

/// How many agents are in which state; there may be more than one list holds.
async fn agents(session: &Session) -> Result<BTreeMap<&'static str, u64>, Stop> {
    let mut agents = BTreeMap::new();
    let mut after = None;
    loop {
        let params = AgentList { namespace: None, limit: Some(LIST_MAX), after };
        let answer = session.ask(Method::AgentList, &params).await?;
        let listed: Agents = read(Method::AgentList, &answer)?;
        for agent in &listed.agents {
            *agents.entry(agent.state.as_str()).or_insert(0) += 1;
        }
        if listed.agents.len() < LIST_MAX as usize {
            return Ok(agents);
        }
        after = listed.agents.last().map(|agent| agent.card.agent_id.clone());
    }
}

async fn health(session: &Session) -> Result<(bool, Option<RawJson>), Stop> {
    let url = health_url(&session.url)?;
    let lost = |error: reqwest::Error| {
        let url = session.url.clone();
        if error.is_timeout() && !error.is_connect() {
            return Stop::NoAnswer { url, waited: HEALTH_TIMEOUT };
        }
        Stop::NoGateway { url, why: innermost(&error) }
    };
    let builder = reqwest::Client::builder().timeout(HEALTH_TIMEOUT);
    // A proxy from the environment has no business with this machine itself.
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    let builder = if is_here { builder.no_proxy() } else { builder };
    let client = builder.build().map_err(|error| session.stopped(Error::Config(innermost(&error))))?;
    let request = client.get(url);
    let request = match &session.token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let response = request.send().await.map_err(lost)?;
    // One that has no such page, but answers, is well as far as anyone can tell.
    let is_well = response.status().is_success() || response.status() == reqwest::StatusCode::NOT_FOUND;
    let body = response.text().await.map_err(lost)?;
    Ok((is_well, RawJson::parse(&body).ok()))
}

/// The health page beside the JSON-RPC endpoint, whatever way the gateway's URL is written.
fn health_url(base: &str) -> Result<reqwest::Url, Stop> {
    let base = base.replacen("ws", "http", usize::from(base.starts_with("ws")));
    let mut url: reqwest::Url = base.parse().map_err(|error| Stop::Usage(format!("{base:?} is not a URL: {error}")))?;
    let kept = url.path().trim_end_matches('/').trim_end_matches("/rpc/ws").trim_end_matches("/rpc").to_owned();
    url.set_path(&format!("{kept}/healthz"));
    Ok(url)
}

fn innermost(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_health_page_stands_beside_the_endpoint() {
        for base in ["http://h:1", "http://h:1/", "http://h:1/rpc", "ws://h:1/rpc/ws"] {
            assert_eq!(health_url(base).unwrap().as_str(), "http://h:1/healthz", "{base}");
        }
        assert_eq!(health_url("https://h/reach").unwrap().as_str(), "https://h/reach/healthz");
    }
}
