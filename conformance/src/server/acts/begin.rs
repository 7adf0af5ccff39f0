//! How a conversation begins: which eras a server speaks, and which revisions.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::engine::{Act, Findings, Stop};
use crate::server::inbox::Said;
use crate::server::revision::{self, HANDSHAKE, LAST_HANDSHAKE, STATELESS, UNKNOWN};
use crate::server::session::Session;
use crate::server::stage::Server;

/// How long a server of the handshake era may leave `server/discover` unanswered.
const DISCOVER: Duration = Duration::from_secs(3);

/// How many conversations are begun at once: each may be a process.
const AT_ONCE: usize = 3;

/// Finds out which eras it speaks, as a gateway does.
pub(crate) async fn begin(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let (timeout, began) = (server.options.timeout, Instant::now());
    let legacy = server.anew(LAST_HANDSHAKE).await;
    // What it took to start it, it may take again.
    let within = if legacy.is_ok() { DISCOVER.max(began.elapsed() * 2).min(timeout) } else { timeout };
    let modern = Session::stateless(&server.road, server.exchange.clone(), within, timeout).await;
    let words = |said: &Said| said.words();
    if let (Err(modern), Err(legacy)) = (&modern, &legacy) {
        let found = format!("server/discover: {}; initialize: {}", words(modern), words(legacy));
        findings.fail("mcp-begins", "a result of server/discover or of initialize", found);
        return Err(Stop("no conversation could be begun".to_owned()));
    }
    findings.pass("mcp-begins");
    server.modern = modern.ok();
    server.legacy = legacy.ok();
    if let Some(legacy) = &server.legacy {
        findings.judge("mcp-greets", "an InitializeResult", is_greeting(&legacy.greeting));
        let found = match legacy.call("ping", json!({})).await.result() {
            Ok(Value::Object(_)) => Ok(()),
            Ok(other) => Err(format!("the result {other}")),
            Err(words) => Err(words),
        };
        findings.judge("mcp-pings", "an empty result", found);
    }
    if let Some(modern) = &server.modern {
        findings.judge("mcp-discovers", "a DiscoverResult", is_discovery(&modern.greeting));
    }
    Ok(())
}

fn has(value: &Value, what: &str, fits: bool) -> Result<(), String> {
    if fits { Ok(()) } else { Err(format!("no {what} in {value}")) }
}

fn is_greeting(greeting: &Value) -> Result<(), String> {
    has(greeting, "protocolVersion", greeting["protocolVersion"].is_string())?;
    has(greeting, "capabilities.tools", greeting["capabilities"]["tools"].is_object())?;
    let info = &greeting["serverInfo"];
    has(greeting, "serverInfo with name and version", info["name"].is_string() && info["version"].is_string())
}

fn is_discovery(greeting: &Value) -> Result<(), String> {
    let versions = greeting["supportedVersions"].as_array().cloned().unwrap_or_default();
    has(greeting, &format!("{STATELESS} in supportedVersions"), versions.contains(&json!(STATELESS)))?;
    has(greeting, "capabilities.tools", greeting["capabilities"]["tools"].is_object())
}

/// Asks for every revision, and for some that there are not.
pub(crate) async fn versions(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    if let Some(modern) = &server.modern {
        unknown_stateless(server, modern, findings).await;
    }
    if server.legacy.is_none() {
        return Err(Stop("the server takes no handshake".to_owned()));
    }
    findings.begin(false);
    let asked: Vec<&str> = HANDSHAKE.into_iter().chain(UNKNOWN).collect();
    let mut sessions = Vec::new();
    for some in asked.chunks(AT_ONCE) {
        sessions.extend(join_all(some.iter().map(|version| server.anew(version))).await);
    }
    let spoken = |version: &str| {
        let at = asked.iter().position(|other| *other == version)?;
        sessions[at].as_ref().ok().map(|session| session.revision.clone())
    };
    let (mut wrong, mut made_up) = (Ok(()), Ok(()));
    for (version, session) in asked.iter().zip(&sessions) {
        let is_real = revision::is_known(version);
        match session {
            Ok(session) if !revision::is_known(&session.revision) => {
                let found = Err(format!("asked for {version}, it speaks {:?}", session.revision));
                if is_real { wrong = wrong.and(found) } else { made_up = made_up.and(found) }
            }
            // What it speaks when it was asked for something else, it must speak when it is asked for that.
            Ok(session) if spoken(&session.revision).as_ref() != Some(&session.revision) => {
                let told = spoken(&session.revision).unwrap_or_else(|| "nothing".to_owned());
                let answer = &session.revision;
                wrong =
                    wrong.and(Err(format!("asked for {version} it speaks {answer}, and asked for {answer} {told}")));
            }
            Ok(_) => {}
            Err(Said::Error(_)) => {}
            Err(said) => wrong = wrong.and(Err(format!("asked for {version}: {}", said.words()))),
        }
    }
    findings.judge("mcp-negotiates", "the revision that was asked for, or another that it speaks", wrong);
    findings.judge("mcp-knows-its-revisions", "an error, or a revision that there is", made_up);
    let known = sessions.iter().flatten().filter(|session| revision::is_known(&session.revision));
    let lists = known.map(|session| async {
        let said = session.call("tools/list", json!({})).await;
        match said.result() {
            Ok(result) if result["tools"].is_array() => Ok(()),
            Ok(_) | Err(_) => Err(format!("in {}: {}", session.revision, said.words())),
        }
    });
    let found = join_all(lists).await.into_iter().find(Result::is_err).unwrap_or(Ok(()));
    findings.judge("mcp-serves-each-revision", "tools/list in every revision that it agreed to", found);
    Ok(())
}

async fn unknown_stateless(server: &Server, modern: &Session, findings: &mut Findings<'_>) {
    let id = modern.next_id();
    let mut params = json!({});
    revision::say_stateless(&mut params, UNKNOWN[1]);
    let headers = vec![("mcp-protocol-version", UNKNOWN[1].to_owned()), ("mcp-method", "tools/list".to_owned())];
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{params}}}"#);
    let said = modern.send_request(&id, headers, text).wait(server.options.timeout).await.0;
    let found = match &said {
        Said::Error(error) if error["code"] == -32022 && error["data"]["supported"].is_array() => Ok(()),
        other @ (Said::Result(_) | Said::Error(_) | Said::Nothing(_)) => Err(other.words()),
    };
    findings.judge("mcp-stateless-refuses-version", "error -32022 with data.supported", found);
}
