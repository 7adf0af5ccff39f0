//! Frames as a gateway writes them.

use agent_reach_sdk::ErrorCode;
use serde_json::{Value, json};

pub(crate) const TASK: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// The view of the one task that these tests speak of.
pub(crate) fn task(phase: &str) -> Value {
    json!({
        "task_id": TASK, "phase": phase, "mode": "direct", "priority": 5, "token": 1,
        "created_at": "2026-11-30T08:00:00.000Z", "deadline_at": "2026-11-30T08:05:00.000Z",
    })
}

/// The same, completed with a result.
pub(crate) fn completed(result: &Value) -> Value {
    let mut view = task("completed");
    view["outcome"] = json!("REACH_OK");
    view["result"] = result.clone();
    view
}

/// An error object.
pub(crate) fn error(code: ErrorCode, retry_after: Option<&str>) -> Value {
    let mut data = json!({ "code": code.name(), "fault": code.fault(), "retry": code.retry() });
    if let Some(retry_after) = retry_after {
        data["retry_after"] = json!(retry_after);
    }
    json!({ "code": code.number(), "message": "as the script says", "data": data })
}

pub(crate) const AGENT: &str = "counter@demo";

/// The answer to `agent/register`.
pub(crate) fn registered() -> Value {
    json!({
        "agent_id": AGENT, "cluster": "test", "generation": 1, "unchanged": false, "capabilities": ["work"],
        "endpoints": [], "heartbeat_due_at": "2026-11-30T08:00:10.000Z",
    })
}

/// Work for that agent.
pub(crate) fn delivery(task_id: &str, token: u64, params: &Value) -> Value {
    json!({
        "task_id": task_id, "token": token, "attempt": token, "agent_id": AGENT, "capability": "work",
        "effect": "read", "params": params, "idempotency_key": "k1", "attempt_until": "2026-11-30T08:00:15.000Z",
        "deadline_at": "2099-11-30T08:05:00.000Z",
    })
}

/// The answer to accept, progress, complete and fail.
pub(crate) fn noted() -> Value {
    json!({ "phase": "accepted" })
}
