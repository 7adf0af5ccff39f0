//! MCP servers: added, removed, listed.

use std::io::Read as _;
use std::time::Duration;

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
/// How much longer than a server may take to start it may take until the gateway has answered.
const ANSWER_GRACE: Duration = Duration::from_secs(10);

/// Adds a server. A gateway that wants proof that we may start commands is given it, if we can read it.
pub(crate) async fn add(args: AddMcp, session: &Session) -> Result<Exit, Stop> {
    let card = match &args.card {
        Some(file) => {
            let text = input::json_file("the card", file)?;
            text.read::<Overlay>().map_err(|error| Stop::Input(format!("the card from {file}: {error}")))?
        }
        None => Overlay::default(),
    };
    let mut params = ServerAdd { server: args.into_spec(card), proof: None };
    // It is met before the answer comes.
    let timeout = Duration::from(params.server.start_timeout) + ANSWER_GRACE;
    let answer = match session.ask_within(Method::ServerAdd, &params, timeout).await {
        Err(Stop::Call(Error::Forbidden(refusal))) => {
            let wanted = refusal.data.as_ref().and_then(|data| data.read::<ProofWanted>().ok());
            let Some(ProofWanted { proof_file }) = wanted else {
                return Err(Stop::Call(Error::Forbidden(refusal)));
            };
            let proof = if is_of_this_machine(&session.url) { read_proof(&proof_file) } else { None };
            let note = proof.is_none().then(|| how_to_prove(session, &proof_file));
            // Without one it is refused, and the gateway writes down that somebody tried.
            params.proof = Some(proof.unwrap_or_default());
            let asked = session.ask_within(Method::ServerAdd, &params, timeout).await;
            asked.map_err(|stop| note.into_iter().fold(stop, |stop, note| Stop::Noted(Box::new(stop), note)))
        }
        answer => answer,
    };
    session.print::<ServerView>(Method::ServerAdd, &answer?, servers::added)
}

fn how_to_prove(session: &Session, file: &str) -> String {
    let run = if is_of_this_machine(&session.url) {
        format!("run it as the gateway's user, who can read {file}")
    } else {
        "run it on the gateway's own machine, as its user".to_owned()
    };
    format!("{run}; or put the server into the gateway's configuration file")
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
