//! The gateway's own MCP server, in what the official suite does not look at: capabilities as tools, idempotency keys,
//! and the wall. Revision 2025-06-18, over Streamable HTTP.

use std::time::Duration;

use serde_json::{Value, json};

use super::alike::present;
use super::must;
use crate::engine::{Act, Findings, Stop};
use crate::exchange::{Way, short};
use crate::gateway::peer::Peer;
use crate::gateway::stage::Gateway;

const REVISION: &str = "2025-06-18";
/// How long the agent behind the tool looks for work.
const WORK: Duration = Duration::from_secs(5);

/// A session with the MCP server.
struct Session<'a> {
    gateway: &'a Gateway,
    id: Option<String>,
    agent: Option<String>,
    sent: u64,
}

impl<'a> Session<'a> {
    /// Opens one, in the name of an agent or of the operator.
    async fn open(gateway: &'a Gateway, agent: Option<String>) -> Result<Self, String> {
        let mut session = Self { gateway, id: None, agent, sent: 0 };
        let client = json!({ "name": "reach-conformance", "version": "1" });
        let params = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": client });
        session.ask("initialize", &params).await?.map_err(|error| format!("initialize: {error}"))?;
        session.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(session)
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<Result<Value, Value>, String> {
        self.sent += 1;
        let frame = json!({ "jsonrpc": "2.0", "id": self.sent, "method": method, "params": params });
        let text = self.post(&frame).await?;
        // An answer that takes long is the last event of a stream.
        let is_answer = |value: &Value| value["id"] == self.sent;
        let lines = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        let answer = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(is_answer);
        let answer = answer.ok_or_else(|| format!("{method} was answered {}", short(&text)))?;
        Ok(answer.get("error").map_or_else(|| Ok(answer["result"].clone()), |error| Err(error.clone())))
    }

    async fn post(&mut self, frame: &Value) -> Result<String, String> {
        let Gateway { client, options, exchange, .. } = self.gateway;
        exchange.add(Way::Out, &format!("POST /mcp {frame}"));
        let mut request = client
            .post(format!("{}/mcp", options.url))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", REVISION);
        if let Some(id) = &self.id {
            request = request.header("mcp-session-id", id);
        }
        if let Some(agent) = &self.agent {
            request = request.header("reach-agent", agent);
        }
        let answer = request.body(frame.to_string()).timeout(options.timeout * 2).send().await;
        let response = answer.map_err(|error| format!("no answer: {error}"))?;
        let id = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        self.id = id.or(self.id.take());
        let status = response.status();
        let text = response.text().await.map_err(|error| format!("the answer broke off: {error}"))?;
        exchange.add(Way::In, &format!("{status} {text}"));
        if status.is_server_error() || status.as_u16() == 404 { Err(format!("{status}")) } else { Ok(text) }
    }

    /// The names of all tools.
    async fn tools(&mut self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let mut params = json!({});
        for _ in 0..100 {
            let page = self.ask("tools/list", &params).await?.map_err(|error| format!("tools/list: {error}"))?;
            let tools = page["tools"].as_array().into_iter().flatten();
            names.extend(tools.filter_map(|tool| tool["name"].as_str()).map(str::to_owned));
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        Ok(names)
    }
}

/// Looks at the tools, and calls one.
pub(crate) async fn tools(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    let space = gateway.namespace("tools");
    let (agent, capability) = (format!("tool@{space}"), format!("tool.{}", gateway.run));
    present(gateway.http()?, &agent, &capability).await?;
    let opened = Session::open(gateway, Some(format!("friend@{space}"))).await;
    let mut session = match opened {
        Ok(session) => session,
        Err(why) => {
            if why.contains("404") {
                gateway.has_no_mcp = true;
            } else {
                findings.fail("gw-mcp-lists", "an MCP session", why.clone());
            }
            return Err(Stop(format!("there is no MCP session: {why}")));
        }
    };
    let names = session.tools().await.map_err(Stop)?;
    let is_name =
        |name: &String| name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let name = capability.replace('.', "_");
    let found = match (names.contains(&name), names.iter().find(|name| !is_name(name))) {
        (true, None) => Ok(()),
        (false, _) => Err(format!("no tool {name} among {names:?}")),
        (true, Some(odd)) => Err(format!("the name {odd}")),
    };
    findings.judge("gw-mcp-lists", "a tool for the capability, and names that every host takes", found);
    refusals(&mut session, findings, &name).await?;
    once(&mut session, findings, &agent, &name).await?;
    findings.begin(false);
    let mut stranger =
        Session::open(session.gateway, Some(format!("stranger@else-{}", session.gateway.run))).await.map_err(Stop)?;
    let seen = stranger.tools().await.map_err(Stop)?.contains(&name);
    let called = stranger.ask("tools/call", &json!({ "name": name, "arguments": {} })).await.map_err(Stop)?;
    let found = match (seen, called) {
        (false, Err(error)) if error["code"] == -32602 => Ok(()),
        (true, _) => Err("the tool is listed".to_owned()),
        (false, other) => Err(format!("the call gave {other:?}")),
    };
    findings.judge("gw-mcp-wall", "a caller of another namespace has no such tool", found);
    Ok(())
}

async fn refusals(session: &mut Session<'_>, findings: &mut Findings<'_>, name: &str) -> Act {
    let differ = json!({ "name": name, "arguments": {}, "idempotencyKey": "a", "_meta": { "idempotencyKey": "b" } });
    let cases = [
        ("gw-mcp-unknown-tool", "tools/call", json!({ "name": "no_such_tool_at_all", "arguments": {} })),
        ("gw-mcp-bad-cursor", "tools/list", json!({ "cursor": "no such cursor" })),
        ("gw-mcp-keys-differ", "tools/call", differ),
    ];
    for (id, method, params) in cases {
        findings.begin(false);
        let found = match session.ask(method, &params).await.map_err(Stop)? {
            Err(error) if error["code"] == -32602 => Ok(()),
            Err(error) => Err(format!("the error {error}")),
            Ok(result) => Err(format!("the result {result}")),
        };
        findings.judge(id, "error -32602", found);
    }
    Ok(())
}

/// One key, two calls, one piece of work.
async fn once(session: &mut Session<'_>, findings: &mut Findings<'_>, agent: &str, name: &str) -> Act {
    findings.begin(false);
    let gateway = session.gateway;
    let mut worker = Peer::http(gateway.client.clone(), &gateway.options.url, gateway.exchange.clone(), WORK);
    let key = gateway.namespace("tool-key");
    let call = json!({ "name": name, "arguments": {}, "idempotencyKey": key });
    let work = async {
        let wait = json!({ "agent_id": agent, "wait": format!("{}ms", WORK.as_millis()) });
        let claimed = must(&mut worker, "task/claim", &wait).await?;
        let Some(task) = claimed["tasks"].get(0) else { return Err(Stop("the call brought no work".to_owned())) };
        let done = json!({ "task_id": task["task_id"], "token": task["token"], "result": { "done": 1 } });
        must(&mut worker, "task/complete", &done).await
    };
    let (first, worked) = tokio::join!(session.ask("tools/call", &call), work);
    worked?;
    let first = first.map_err(Stop)?.map_err(|error| Stop(format!("tools/call came to {error}")))?;
    let again = session.ask("tools/call", &call).await.map_err(Stop)?;
    let idle = must(&mut worker, "task/claim", &json!({ "agent_id": agent })).await?;
    let found = match again {
        Ok(again) if again["content"] != first["content"] => Err(format!("{again}, and before {first}")),
        Ok(again) if again["_meta"]["agent-reach/replayed"] != true => {
            Err(format!("no agent-reach/replayed in {again}"))
        }
        Ok(_) if idle["tasks"].as_array().is_some_and(Vec::is_empty) => Ok(()),
        Ok(_) => Err(format!("more work: {idle}")),
        Err(error) => Err(format!("the error {error}")),
    };
    findings.judge("gw-mcp-key-once", "the first call's result, marked as a replay, and no more work", found);
    Ok(())
}
