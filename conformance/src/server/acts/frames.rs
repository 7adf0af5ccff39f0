//! JSON-RPC as a server must speak it, and what Agent-Reach adds to a call.

use serde_json::{Value, json};

use crate::engine::{Act, Findings};
use crate::server::stage::{Server, good};

/// Ids that are read as something else, or written in another way, by who does not keep them.
const IDS: [&str; 4] = ["\"check-é-1\"", "4294967301", "-7", "0"];

/// Requests, notifications and what is neither.
pub(crate) async fn frames(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    let mut found = Ok(());
    for id in IDS {
        let said = main.ask_as(id, "tools/list", json!({})).wait(server.options.timeout).await.0;
        if said.result().is_err() {
            let last = main.inbox.strays().pop().map_or_else(String::new, |last| format!("; it sent {last}"));
            found = Err(format!("id {id}: {}{last}", said.words()));
            break;
        }
    }
    findings.judge("mcp-echoes-ids", "an answer with the id of the request", found);
    findings.begin(false);
    let said = main.call("reach/no_such_method", json!({})).await;
    let found = if said.code() == Some(-32601) { Ok(()) } else { Err(said.words()) };
    findings.judge("mcp-unknown-method", "error -32601", found);

    if let Some(talk) = server.legacy.as_ref() {
        findings.begin(false);
        let before = talk.inbox.strays().len();
        let sent = talk.notify("notifications/reach_no_such_notice", json!({})).await;
        if let Some(sent) = sent {
            let found = match sent {
                Ok(outcome) if outcome.status == 202 && !outcome.has_body => Ok(()),
                Ok(outcome) => Err(format!("status {}, with a body: {}", outcome.status, outcome.has_body)),
                Err(why) => Err(why),
            };
            findings.judge("mcp-http-accepts-notices", "202 without a body", found);
        }
        // Messages are read in order: once this is answered, an answer to the notification would be here.
        let _ = talk.call("tools/list", json!({})).await;
        let stray = talk.inbox.strays().into_iter().nth(before);
        findings.judge("mcp-silent-to-notices", "no answer", stray.map_or(Ok(()), Err));
    }
    findings.begin(false);
    let refused = main.send(Vec::new(), "{\"jsonrpc\": ".to_owned()).await;
    if let Some(refused) = refused {
        let found = match refused {
            Ok(outcome) if (400..500).contains(&outcome.status) => Ok(()),
            Ok(outcome) => Err(format!("status {}", outcome.status)),
            Err(why) => Err(why),
        };
        findings.judge("mcp-http-refuses-garbage", "a status 4xx", found);
    }
    let said = main.call("tools/list", json!({})).await;
    findings.judge("mcp-survives-garbage", "tools/list, as before", said.result().map(drop));
    Ok(())
}

/// A call as Agent-Reach sends it, and with what a newer one might send.
pub(crate) async fn meta(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    let (name, arguments) = server.easy()?;
    let call = json!({
        "name": name, "arguments": arguments,
        "_meta": {
            "idempotencyKey": "checker@conformance/order 17", "progressToken": "conformance-meta",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        },
    });
    let said = main.call("tools/call", call.clone()).await;
    findings.judge("mcp-takes-meta", "a result, as without `_meta`", good(&said).map(drop));
    findings.begin(false);
    let mut newer = call;
    newer["x_from_a_newer_gateway"] = json!({ "region": "eu", "hops": [1, 2, 3] });
    newer["_meta"] = json!({ "example.com/from-a-newer-gateway": { "pace": Value::Null } });
    let said = main.call("tools/call", newer).await;
    findings.judge("mcp-passes-over-unknown", "a result, as without the unknown members", good(&said).map(drop));
    Ok(())
}
