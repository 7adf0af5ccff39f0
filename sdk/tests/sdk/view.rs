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
