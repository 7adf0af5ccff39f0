//! What is done with a gateway, act by act.

pub(super) mod alike;
pub(super) mod deliveries;
pub(super) mod frames;
pub(super) mod keys;
pub(super) mod tools;
pub(super) mod walls;

use reach_schemas::ErrorCode;
use serde_json::{Value, json};

use super::peer::{Answer, Peer};
use crate::engine::Stop;

/// The name of the error that a call was refused with: by its data, or where that is not there by its number. That it is
/// there is another requirement.
fn refused(answer: &Answer) -> Option<&str> {
    let error = answer.as_ref().err()?;
    let by_number = || ErrorCode::ALL.iter().find(|code| error["code"] == code.number()).map(|code| code.name());
    error["data"]["code"].as_str().or_else(by_number)
}

/// What an answer is, in words.
fn words(answer: &Answer) -> String {
    match answer {
        Ok(result) => format!("the result {}", crate::exchange::short(&result.to_string())),
        Err(error) => format!("the error {}", crate::exchange::short(&error.to_string())),
    }
}

/// That a call was refused by this error.
fn is_refused(answer: &Answer, code: &str) -> Result<(), String> {
    if refused(answer) == Some(code) { Ok(()) } else { Err(words(answer)) }
}

/// The result of a call that the act cannot go on without.
async fn must(peer: &mut Peer, method: &str, params: &Value) -> Result<Value, Stop> {
    match peer.call(method, params).await {
        Ok(Ok(result)) => Ok(result),
        Ok(answer @ Err(_)) => Err(Stop(format!("{method} came to {}", words(&answer)))),
        Err(why) => Err(Stop(why)),
    }
}

/// Registers an agent that pulls, with one capability.
async fn register(peer: &mut Peer, agent: &str, capability: &str, effect: &str) -> Result<Value, Stop> {
    must(peer, "agent/register", &card(agent, capability, effect)).await
}

fn card(agent: &str, capability: &str, effect: &str) -> Value {
    json!({
        "agent_id": agent, "endpoints": [{ "protocol": "queue" }],
        "capabilities": [{ "name": capability, "description": "A thing to check gateways with.", "effect": effect }],
    })
}
