//! Sessions over HTTP, and the end.

use std::time::Duration;

use serde_json::json;

use crate::engine::{Act, Findings, Stop};
use crate::server::revision::{LAST_HANDSHAKE, UNKNOWN};
use crate::server::session::Session;
use crate::server::stage::{Server, good};

/// How long a child may take to end once its standard input is closed.
const END: Duration = Duration::from_secs(5);
const NO_SESSION: &str = "reach-conformance-no-such-session";

/// Sessions that are apart, end, and are begun anew.
pub(crate) async fn session(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let id = server.legacy.as_ref().and_then(|legacy| legacy.id.clone());
    let (Some(id), Some(legacy)) = (id, &server.legacy) else {
        let why = if server.is_http() { "the server gives no session ids" } else { "a child process is one session" };
        server.reasons.insert("mcp-session", why.to_owned());
        return Err(Stop(why.to_owned()));
    };
    let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic());
    findings.judge(
        "mcp-session-id-plain",
        "visible ASCII only",
        if is_plain { Ok(()) } else { Err(format!("{id:?}")) },
    );

    findings.begin(false);
    let second = server.anew(LAST_HANDSHAKE).await.map_err(|said| Stop(said.words()))?;
    let is_apart = second.id.as_ref() != Some(&id);
    findings.judge(
        "mcp-sessions-apart",
        "another id for another session",
        if is_apart { Ok(()) } else { Err(format!("{id} twice")) },
    );
    findings.begin(false);
    findings.judge("mcp-forgets-sessions", "404 for a session that there is not", is_gone(legacy, NO_SESSION).await);

    findings.begin(false);
    let ended = second.end(server.options.timeout).await;
    let found = match ended {
        Ok(405 | 200..=299) => Ok(()),
        Ok(status) => Err(format!("status {status}")),
        Err(ref why) => Err(why.clone()),
    };
    findings.judge("mcp-session-ends", "2xx, or 405", found);
    if matches!(ended, Ok(200..=299)) && is_apart {
        let gone = is_gone(&second, second.id.as_deref().unwrap_or_default()).await;
        findings.judge("mcp-ended-is-ended", "404 for a session that has ended", gone);
    } else {
        findings.skip("mcp-ended-is-ended", "the session could not be ended");
    }
    findings.begin(false);
    let found = match server.anew(LAST_HANDSHAKE).await {
        Ok(third) => match server.easy() {
            Ok((name, arguments)) => good(&third.tool(&name, &arguments).await).map(drop),
            Err(_) => third.call("tools/list", json!({})).await.result().map(drop),
        },
        Err(said) => Err(said.words()),
    };
    findings.judge("mcp-session-anew", "a new session that works", found);
    findings.begin(false);
    let text = r#"{"jsonrpc":"2.0","id":"version","method":"tools/list","params":{}}"#.to_owned();
    let headers = vec![("mcp-session-id", id), ("mcp-protocol-version", UNKNOWN[0].to_owned())];
    let status = status(legacy, headers, text).await;
    let found = if status == Some(400) { Ok(()) } else { Err(format!("status {status:?}")) };
    findings.judge("mcp-http-refuses-version", "400", found);
    Ok(())
}

async fn status(session: &Session, headers: Vec<(&'static str, String)>, text: String) -> Option<u16> {
    session.send(headers, text).await?.ok().map(|outcome| outcome.status)
}

async fn is_gone(session: &Session, id: &str) -> Result<(), String> {
    let text = r#"{"jsonrpc":"2.0","id":"gone","method":"tools/list","params":{}}"#.to_owned();
    let headers = vec![("mcp-session-id", id.to_owned()), ("mcp-protocol-version", session.revision.clone())];
    match status(session, headers, text).await {
        Some(404) => Ok(()),
        Some(status) => Err(format!("status {status}")),
        None => Err("no answer".to_owned()),
    }
}

/// What is known only at the end, and the end of a child.
pub(crate) async fn end(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    if server.is_http() {
        return Err(Stop("the server is reached over HTTP".to_owned()));
    }
    let sessions = || [&server.modern, &server.legacy].into_iter().flatten();
    let junk = sessions().find_map(|session| session.inbox.junk().into_iter().next());
    findings.judge("mcp-stdio-clean", "messages of JSON-RPC 2.0 only", junk.map_or(Ok(()), Err));
    findings.begin(false);
    let mut found = Ok(());
    for session in sessions() {
        found = found.and(session.end(END).await.map(drop));
    }
    findings.judge("mcp-stdio-ends", "an end within 5 s of its standard input being closed", found);
    Ok(())
}
