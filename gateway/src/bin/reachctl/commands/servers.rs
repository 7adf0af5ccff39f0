//! MCP servers: added, removed, listed.

use std::io::Read as _;

use agent_reach_sdk::schemas::call::{Nothing, ProofWanted, ServerAdd, ServerRef, Servers};
use agent_reach_sdk::schemas::{AgentName, Overlay, ServerView};
use agent_reach_sdk::{Error, Method};

use crate::args::{AddMcp, Watch};
use crate::exit::{Exit, Stop};
use crate::input;
use crate::render::servers;
use crate::session::Session;
use crate::watch::{View, present};

/// The only file that is read for a gateway: whatever else it may ask for is not sent to it.
const PROOF_FILE: &str = "operator-key";
/// How much of it is read, in bytes.
const PROOF_MAX: u64 = 256;

/// Adds a server. A gateway that wants proof that we may start commands is given it, if we can read it.
pub(crate) async fn add(args: AddMcp, session: &Session) -> Result<Exit, Stop> {
    let card = match &args.card {
        Some(file) => {
            let text = input::json_file("the card", file)?;
            text.read::<Overlay>().map_err(|error| Stop::Usage(format!("the card from {file}: {error}")))?
        }
        None => Overlay::default(),
    };
    let mut params = ServerAdd { server: args.into_spec(card), proof: None };
    match session.show::<ServerView>(Method::ServerAdd, &params, servers::added).await {
        Err(Stop::Call(Error::Forbidden(refusal))) => {
            let wanted = refusal.data.as_ref().and_then(|data| data.read::<ProofWanted>().ok());
            let proof =
                wanted.filter(|_| is_of_this_machine(&session.url)).and_then(|wanted| read_proof(&wanted.proof_file));
            if proof.is_none() {
                return Err(Stop::Call(Error::Forbidden(refusal)));
            }
            params.proof = proof;
            session.show::<ServerView>(Method::ServerAdd, &params, servers::added).await
        }
        shown => shown,
    }
}

fn is_of_this_machine(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host == *name || host.starts_with(&format!("{name}:")))
}

fn read_proof(file: &str) -> Option<String> {
    let path = std::path::Path::new(file);
    if path.file_name().is_none_or(|name| name != PROOF_FILE) {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(PROOF_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

pub(crate) async fn remove(name: AgentName, session: &Session) -> Result<Exit, Stop> {
    session.show::<ServerView>(Method::ServerRemove, &ServerRef { name }, servers::removed).await
}

pub(crate) async fn list(watch: Watch, session: &Session) -> Result<Exit, Stop> {
    let view = View::<Servers> {
        render: Box::new(|answer, look| servers::table(&answer.servers, look)),
        lines: |answer| answer.servers.iter().map(servers::line).collect(),
        is_over: |_| false,
    };
    present(session, Method::ServerList, &Nothing {}, &watch, view).await
}
