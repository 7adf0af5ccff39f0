//! What reaches an agent that is connected, and what comes back of it.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{is_refused, must, words};
use crate::engine::{Act, Findings, Stop};
use crate::exchange::short;
use crate::gateway::peer::Peer;
use crate::gateway::stage::Gateway;
use crate::schema;

/// Parameters in which every byte matters.
const PARAMS: &str = r#"{"z":1.10,"big":9007199254740993,"a":"\u00e9 统计","deep":{ "x" : [1e2, -0.0] }}"#;
/// A result in which every byte matters.
const RESULT: &str = r#"{"sum":123456789012345678901234567890,"b":2.50,"a":"\u2028"}"#;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Plays an agent on a WebSocket, and one who asks.
pub(crate) async fn deliveries(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    let space = gateway.namespace("push");
    let agent = format!("pushed@{space}");
    let capability = format!("push_{}", gateway.run);
    let mut own = gateway.socket().await?;
    let card = json!({
        "agent_id": agent, "endpoints": [{ "protocol": "websocket" }],
        "capabilities": [{ "name": capability, "description": "Is pushed.", "effect": "read", "cancellable": true,
                           "input_schema": { "type": "object", "required": ["z"] } }],
    });
    let first = must(&mut own, "agent/register", &card).await?;
    let again = must(&mut own, "agent/register", &card).await?;
    let found = match (&first["unchanged"], &again["unchanged"], first["generation"] == again["generation"]) {
        (Value::Bool(false), Value::Bool(true), true) => Ok(()),
        (_, _, _) => Err(format!("{} and then {}", short(&first.to_string()), short(&again.to_string()))),
    };
    findings.judge("gw-registers-again", "the second time \"unchanged\": true, and the same generation", found);
    let peer = gateway.http()?;
    exact(peer, &mut own, findings, &space, &capability).await?;
    stopped(peer, &mut own, findings, &space, &capability).await?;
    findings.begin(false);
    let wrong = json!({ "namespace": space, "capability": capability, "params": { "y": 1 } });
    let answer = peer.call("task/submit", &wrong).await.map_err(Stop)?;
    findings.judge("gw-holds-params", "the refusal params_mismatch", is_refused(&answer, "params_mismatch"));
    findings.begin(false);
    let stranger = json!({ "agent_id": format!("forgotten@{space}") });
    let answer = peer.call("agent/heartbeat", &stranger).await.map_err(Stop)?;
    findings.judge(
        "gw-disowns",
        "the refusal agent_not_found to a heartbeat of nobody",
        is_refused(&answer, "agent_not_found"),
    );
    // It goes as it came.
    let _ = own.call("agent/deregister", &json!({ "agent_id": agent })).await;
    Ok(())
}

#[derive(serde::Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(serde::Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(serde::Deserialize)]
struct Answered<'a> {
    #[serde(borrow)]
    result: View<'a>,
}

#[derive(serde::Deserialize)]
struct View<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// A task, all the way, byte for byte.
async fn exact(peer: &mut Peer, own: &mut Peer, findings: &mut Findings<'_>, space: &str, capability: &str) -> Act {
    findings.begin(false);
    let params = format!(
        r#"{{"namespace":"{space}","capability":"{capability}","params":{PARAMS},"traceparent":"00-{TRACE}-b7ad6b7169203331-01"}}"#
    );
    let (answer, _) = peer.call_raw("task/submit", &params).await.map_err(Stop)?;
    let task = answer.map_err(|error| Stop(format!("task/submit came to {error}")))?["task_id"].clone();
    let pushed = match own.pushed("task/deliver").await {
        Ok(pushed) => pushed,
        Err(why) => {
            findings.fail("gw-delivers", "task/deliver on the agent's connection", why);
            return Err(Stop("nothing was delivered".to_owned()));
        }
    };
    findings.pass("gw-delivers");
    let value: Value = serde_json::from_str(&pushed).unwrap_or_default();
    findings.judge("gw-delivery-fits", "params that fit Delivery.json", schema::fits("Delivery", &value["params"]));
    let traceparent = value["params"]["traceparent"].as_str().unwrap_or_default();
    let found = if traceparent.contains(TRACE) { Ok(()) } else { Err(format!("traceparent {traceparent:?}")) };
    findings.judge("gw-carries-trace", "a traceparent of the caller's trace", found);
    let frame: Frame<'_> = serde_json::from_str(&pushed).map_err(|error| Stop(format!("task/deliver: {error}")))?;
    let mut exact =
        if frame.params.params.get() == PARAMS { Ok(()) } else { Err(frame.params.params.get().to_owned()) };
    own.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, frame.id.get())).await.map_err(Stop)?;
    let done = format!(r#"{{"task_id":{task},"token":{},"result":{RESULT}}}"#, value["params"]["token"]);
    let (answer, _) = own.call_raw("task/complete", &done).await.map_err(Stop)?;
    answer.map_err(|error| Stop(format!("task/complete came to {error}")))?;
    let (_, text) = peer.call_raw("task/wait", &json!({ "task_id": task }).to_string()).await.map_err(Stop)?;
    let view: Answered<'_> = serde_json::from_str(&text).map_err(|error| Stop(format!("task/wait: {error}")))?;
    if view.result.result.get() != RESULT {
        exact = Err(view.result.result.get().to_owned());
    }
    findings.judge("gw-carries-exactly", "params and result byte for byte", exact);
    Ok(())
}

/// A task that is called off.
async fn stopped(peer: &mut Peer, own: &mut Peer, findings: &mut Findings<'_>, space: &str, capability: &str) -> Act {
    findings.begin(false);
    let wanted = json!({ "namespace": space, "capability": capability, "params": { "z": 2 } });
    let task = must(peer, "task/submit", &wanted).await?["task_id"].clone();
    let pushed: Value = serde_json::from_str(&own.pushed("task/deliver").await.map_err(Stop)?).unwrap_or_default();
    own.say(&json!({ "jsonrpc": "2.0", "id": pushed["id"], "result": {} }).to_string()).await.map_err(Stop)?;
    let view = peer.call("task/cancel", &json!({ "task_id": task })).await.map_err(Stop)?;
    let found = match (&view, own.pushed("task/stop").await) {
        (Ok(view), Ok(stop)) => {
            let stop: Value = serde_json::from_str(&stop).unwrap_or_default();
            let is_right = stop["params"]["task_id"] == task && stop["params"]["token"] == pushed["params"]["token"];
            if is_right && stop.get("id").is_none() && view["phase"] == "cancelled" {
                Ok(())
            } else {
                Err(format!("{stop}, phase {}", view["phase"]))
            }
        }
        (Ok(_), Err(why)) => Err(why),
        (Err(_), _) => Err(words(&view)),
    };
    findings.judge("gw-tells-cancel", "the notification task/stop with task and token, and the phase cancelled", found);
    Ok(())
}
