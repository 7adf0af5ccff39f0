//! Idempotency keys and fencing tokens, as a caller and a pulling agent see them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{is_refused, must, register, words};
use crate::engine::{Act, Findings, Stop};
use crate::gateway::peer::Peer;
use crate::gateway::stage::Gateway;

/// How many callers send one key at once.
const CALLERS: usize = 8;

/// A caller's request.
struct Wanted<'a> {
    capability: &'a str,
    caller: &'a str,
    key: &'a str,
    say: u8,
}

impl Wanted<'_> {
    fn params(&self) -> Value {
        json!({
            "capability": self.capability, "from_agent": self.caller, "idempotency_key": self.key, "mode": "queue",
            "params": { "say": self.say },
        })
    }
}

fn is_same(view: &Value, first: &Value) -> Result<(), String> {
    if view["task_id"] != first["task_id"] {
        return Err(format!("another task, {}", view["task_id"]));
    }
    if view["replayed"] == true { Ok(()) } else { Err("the same task, and no \"replayed\": true".to_owned()) }
}

/// The table of idempotency: same or other key, request, caller; running or done.
pub(crate) async fn keys(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    let (space, key) = (gateway.namespace("keys"), gateway.namespace("key"));
    let (agent, caller, other) = (format!("worker@{space}"), format!("caller@{space}"), format!("other@{space}"));
    let capability = format!("keep_{}", gateway.run);
    let peer = gateway.http()?;
    register(peer, &agent, &capability, "write").await?;
    let wanted = Wanted { capability: &capability, caller: &caller, key: &key, say: 1 };
    let first = must(peer, "task/submit", &wanted.params()).await?;
    let again = must(peer, "task/submit", &wanted.params()).await?;
    findings.judge("gw-key-replays", "the same task, with \"replayed\": true", is_same(&again, &first));

    findings.begin(false);
    let changed = Wanted { say: 2, ..wanted };
    let answer = peer.call("task/submit", &changed.params()).await.map_err(Stop)?;
    let found = is_refused(&answer, "idempotency_key_reused");
    findings.judge("gw-key-conflicts", "the refusal idempotency_key_reused", found);

    findings.begin(false);
    let theirs = Wanted { caller: &other, ..wanted };
    let view = must(peer, "task/submit", &theirs.params()).await?;
    let found = if view["task_id"] == first["task_id"] { Err("the first caller's task".to_owned()) } else { Ok(()) };
    findings.judge("gw-key-scoped", "a task of its own for another caller with the same key", found);

    findings.begin(false);
    let mut reject = wanted.params();
    reject["on_in_flight"] = json!("reject");
    let answer = peer.call("task/submit", &reject).await.map_err(Stop)?;
    findings.judge("gw-key-rejects", "the refusal idempotency_in_flight", is_refused(&answer, "idempotency_in_flight"));

    done(peer, findings, &agent, &wanted, &first).await?;
    race(gateway, findings, &capability, &caller).await
}

/// Once the work is done, the key gives its result, and there is no more work.
async fn done(peer: &mut Peer, findings: &mut Findings<'_>, agent: &str, wanted: &Wanted<'_>, first: &Value) -> Act {
    findings.begin(false);
    let claimed = must(peer, "task/claim", &json!({ "agent_id": agent, "limit": 100 })).await?;
    let works: Vec<&Value> = claimed["tasks"].as_array().into_iter().flatten().collect();
    let handed_out: BTreeSet<&str> = works.iter().filter_map(|work| work["idempotency_key"].as_str()).collect();
    let are_apart = handed_out.len() == works.len();
    let found = if are_apart { Ok(()) } else { Err(format!("{} tasks under {handed_out:?}", works.len())) };
    findings.judge("gw-key-handed-out", "a key for each caller's task", found);
    for work in works {
        let done = json!({ "task_id": work["task_id"], "token": work["token"], "result": { "of": work["task_id"] } });
        must(peer, "task/complete", &done).await?;
    }
    let view = must(peer, "task/submit", &wanted.params()).await?;
    let is_kept = view["task_id"] == first["task_id"] && view["result"] == json!({ "of": first["task_id"] });
    let found = if is_kept { Ok(()) } else { Err(format!("task {}, result {}", view["task_id"], view["result"])) };
    let more = must(peer, "task/claim", &json!({ "agent_id": agent })).await?;
    let is_idle = more["tasks"].as_array().is_some_and(Vec::is_empty);
    let found = found.and_then(|()| if is_idle { Ok(()) } else { Err(format!("more work: {more}")) });
    findings.judge("gw-key-keeps-result", "the first one's result, and no more work for the agent", found);
    Ok(())
}

/// Many at once.
async fn race(gateway: &mut Gateway, findings: &mut Findings<'_>, capability: &str, caller: &str) -> Act {
    findings.begin(false);
    let key = gateway.namespace("race");
    let wanted = Wanted { capability, caller, key: &key, say: 3 };
    let calls = (0..CALLERS).map(|_| {
        let timeout = gateway.options.timeout;
        let mut peer = Peer::http(gateway.client.clone(), &gateway.options.url, gateway.exchange.clone(), timeout);
        let params = wanted.params();
        async move { must(&mut peer, "task/submit", &params).await }
    });
    let mut tasks = Vec::new();
    for view in futures_util::future::join_all(calls).await {
        let view = view?;
        tasks.push(view["task_id"].to_string());
    }
    tasks.sort();
    tasks.dedup();
    let found = if tasks.len() == 1 { Ok(()) } else { Err(format!("{} tasks", tasks.len())) };
    findings.judge("gw-key-races", "one task for eight callers at once", found);
    Ok(())
}

/// Reports of an attempt, with a member that they need beside its name.
const STALE: [(&str, Option<&str>); 4] = [
    ("task/fail", Some("message")),
    ("task/accept", None),
    ("task/progress", Some("progress")),
    ("task/release", None),
];

/// Every other report under a token that is too old. `Err`: one was not refused as that.
async fn late_reports(peer: &mut Peer, task_id: &Value, token: u64) -> Result<Result<(), String>, Stop> {
    let mut found = Ok(());
    for (method, more) in STALE {
        let mut late = json!({ "task_id": task_id, "token": token });
        if let Some(name) = more {
            late[name] = json!("late");
        }
        let answer = peer.call(method, &late).await.map_err(Stop)?;
        found = found.and(is_refused(&answer, "stale_token").map_err(|words| format!("{method}: {words}")));
    }
    Ok(found)
}

/// Two attempts of one task, of which the older one comes too late.
pub(crate) async fn fencing(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    let space = gateway.namespace("fence");
    let (slow, quick) = (format!("slow@{space}"), format!("quick@{space}"));
    let capability = format!("fence_{}", gateway.run);
    let patience = gateway.options.timeout;
    let peer = gateway.http()?;
    register(peer, &slow, &capability, "read").await?;
    register(peer, &quick, &capability, "read").await?;
    let wanted = json!({ "capability": capability, "namespace": space, "mode": "queue" });
    let task = must(peer, "task/submit", &wanted).await?;
    let first = claim(peer, &slow, Duration::ZERO, "150ms").await?;
    findings.judge(
        "gw-delivery-fits",
        "a claimed task that fits Delivery.json",
        crate::schema::fits("Delivery", &first),
    );
    // Its lease runs out, and the other takes it.
    let second = claim(peer, &quick, patience, "30s").await?;
    let tokens = (first["token"].as_u64().unwrap_or_default(), second["token"].as_u64().unwrap_or_default());
    let found = if tokens.1 > tokens.0 { Ok(()) } else { Err(format!("token {} after {}", tokens.1, tokens.0)) };
    findings.judge("gw-token-grows", "a greater token for the second attempt", found);

    findings.begin(false);
    let late = json!({ "task_id": task["task_id"], "token": tokens.0, "result": "late" });
    let answer = peer.call("task/complete", &late).await.map_err(Stop)?;
    let mut found = is_refused(&answer, "stale_token");
    found = found.and(late_reports(peer, &task["task_id"], tokens.0).await?);
    let view = must(peer, "task/get", &json!({ "task_id": task["task_id"] })).await?;
    if view["result"] == "late" {
        found = Err("the late result was taken".to_owned());
    }
    findings.judge("gw-stale-refused", "the refusal stale_token to each report of it, and the task as it was", found);

    findings.begin(false);
    let good = json!({ "task_id": task["task_id"], "token": tokens.1, "result": "good" });
    must(peer, "task/complete", &good).await?;
    // What is answered to a second end of the same attempt is free, as long as it changes nothing.
    let again = json!({ "task_id": task["task_id"], "token": tokens.1, "result": "again" });
    let _ = peer.call("task/complete", &again).await.map_err(Stop)?;
    let failed = json!({ "task_id": task["task_id"], "token": tokens.1, "message": "again" });
    let _ = peer.call("task/fail", &failed).await.map_err(Stop)?;
    let answer = peer.call("task/cancel", &json!({ "task_id": task["task_id"] })).await.map_err(Stop)?;
    let mut found = is_refused(&answer, "wrong_phase");
    let _ = peer.call("task/complete", &late).await.map_err(Stop)?;
    let view = must(peer, "task/get", &json!({ "task_id": task["task_id"] })).await?;
    if view["result"] != "good" || view["phase"] != "completed" {
        found = Err(format!("phase {}, result {}", view["phase"], view["result"]));
    }
    findings.judge("gw-final-stays", "wrong_phase, and the result stays", found);
    Ok(())
}

/// One task for an agent, waited for.
async fn claim(peer: &mut Peer, agent: &str, wait: Duration, lease: &str) -> Result<Value, Stop> {
    let wait = format!("{}ms", wait.as_millis());
    let params = json!({ "agent_id": agent, "wait": wait, "lease": lease });
    let claimed = must(peer, "task/claim", &params).await?;
    match claimed["tasks"].get(0) {
        Some(task) => Ok(task.clone()),
        None => Err(Stop(format!("task/claim of {agent} came to {}", words(&Ok(claimed))))),
    }
}
