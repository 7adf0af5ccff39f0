//! One table of requests over every transport, and errors, which are one table too.

use reach_schemas::{ErrorCode, TaskId, Timestamp, Traceparent};
use serde_json::{Value, json};

use super::must;
use crate::engine::{Act, Findings, Stop};
use crate::exchange::short;
use crate::gateway::peer::Peer;
use crate::gateway::stage::Gateway;
use crate::json::spelled;
use crate::schema;

/// Methods with their params, one after another. `NS` stands for a namespace of the transport's own, `TASK` for the
/// task that was named last.
const TABLE: &[(&str, &str, &str)] = &[
    (
        "agent/register",
        r#"{"agent_id":"echo@NS","endpoints":[{"protocol":"queue"}],"capabilities":[{"name":"echo_NS","description":"Repeats.","effect":"read","input_schema":{"type":"object","required":["say"]}}]}"#,
        "Registered",
    ),
    ("agent/register", r#"{"agent_id":"Echo@NS","capabilities":[]}"#, ""),
    ("agent/heartbeat", r#"{"agent_id":"echo@NS","current_load":1}"#, "HeartbeatAnswer"),
    ("agent/heartbeat", r#"{"agent_id":"nobody@NS"}"#, ""),
    ("agent/get", r#"{"agent_id":"echo@NS"}"#, "AgentView"),
    ("agent/list", r#"{"namespace":"NS"}"#, "Agents"),
    ("capability/find", r#"{"namespace":"NS"}"#, "Capabilities"),
    ("resolve", r#"{"namespace":"NS","capability":"echo_NS","params":{"say":1}}"#, "Resolved"),
    ("task/submit", "{}", ""),
    ("task/submit", r#"{"namespace":"NS","capability":"no_such"}"#, ""),
    ("task/submit", r#"{"namespace":"NS","capability":"echo_NS","params":{"sya":1}}"#, ""),
    (
        "task/submit",
        r#"{"namespace":"NS","capability":"echo_NS","params":{"say": 1.10},"idempotency_key":"NS","mode":"queue"}"#,
        "TaskView",
    ),
    (
        "task/submit",
        r#"{"namespace":"NS","capability":"echo_NS","params":{"say": 1.10},"idempotency_key":"NS","mode":"queue"}"#,
        "TaskView",
    ),
    ("task/get", r#"{"task_id":"TASK"}"#, "TaskView"),
    ("task/get", r#"{"task_id":"no"}"#, ""),
    ("task/get", r#"{"task_id":"01890a5d-ac96-774b-bcce-b302099a8057"}"#, ""),
    ("task/wait", r#"{"task_id":"TASK","wait":"10ms"}"#, "TaskView"),
    ("task/claim", r#"{"agent_id":"echo@NS"}"#, "Claimed"),
    ("task/accept", r#"{"task_id":"TASK","token":1}"#, "Noted"),
    ("task/progress", r#"{"task_id":"TASK","token":1,"progress":{"at": 0.50}}"#, "Noted"),
    ("task/complete", r#"{"task_id":"TASK","token":0}"#, ""),
    ("task/complete", r#"{"task_id":"TASK","token":1,"result":{"said": 1.10}}"#, "Noted"),
    ("task/wait", r#"{"task_id":"TASK"}"#, "TaskView"),
    ("task/explain", r#"{"task_id":"TASK"}"#, "Explanation"),
    ("task/cancel", r#"{"task_id":"TASK"}"#, ""),
    ("agent/drain", r#"{"agent_id":"echo@NS"}"#, "Drained"),
    ("agent/deregister", r#"{"agent_id":"echo@NS"}"#, "Drained"),
];

/// Sends the table over every transport, and compares.
pub(crate) async fn alike(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    if gateway.peers.len() < 2 {
        return Err(Stop("there is one transport only".to_owned()));
    }
    let names: Vec<String> = (0..gateway.peers.len()).map(|number| gateway.namespace(&format!("t{number}"))).collect();
    let mut tasks = vec![String::new(); gateway.peers.len()];
    for (method, params, schema) in TABLE {
        findings.begin(false);
        let mut first: Option<String> = None;
        for (number, peer) in gateway.peers.iter_mut().enumerate() {
            let params = params.replace("NS", &names[number]).replace("TASK", &tasks[number]);
            let (answer, text) = peer.call_raw(method, &params).await.map_err(Stop)?;
            if let Some(task) = task_of(&answer) {
                tasks[number] = task;
            }
            judge_form(findings, method, schema, &answer);
            let told = comparable(&text, &names[number]);
            match &first {
                None => first = Some(told),
                Some(first) if *first == told => findings.pass("gw-alike"),
                Some(first) => {
                    let found = format!("{}: {}, and over HTTP: {}", peer.name, short(&told), short(first));
                    findings.fail("gw-alike", format!("the same answer to {method} over every transport"), found);
                }
            }
        }
    }
    Ok(())
}

/// Results fit their published schemas; whether something is a result or an error is the table's too.
fn judge_form(findings: &mut Findings<'_>, method: &str, schema: &str, answer: &Result<Value, Value>) {
    let published = TABLE.iter().map(|(.., name)| *name).find(|name| *name == schema && !name.is_empty());
    let found = match (answer, published) {
        (Ok(result), Some(name)) => schema::fits(name, result),
        (Err(_), None) => Ok(()),
        (Ok(result), None) => Err(format!("the result {}", short(&result.to_string()))),
        (Err(error), Some(_)) => Err(format!("the error {}", short(&error.to_string()))),
    };
    let expected =
        if schema.is_empty() { format!("{method} is refused") } else { format!("{method} answers a {schema}") };
    findings.judge("gw-results-fit", &expected, found);
}

/// An answer in one spelling, without what differs from one run to the next: ids, instants, and how long something took.
fn comparable(answer: &str, namespace: &str) -> String {
    let (mut kept, mut is_duration) = (String::new(), false);
    for (at, part) in spelled(answer).split('"').enumerate() {
        kept.push_str(if at > 0 { "\"" } else { "" });
        let is_instant = part.parse::<Timestamp>().is_ok();
        let is_id = part.parse::<TaskId>().is_ok() || part.parse::<Traceparent>().is_ok() || part.starts_with("call-");
        let part = if is_duration { part.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit()) } else { part };
        kept.push_str(if is_instant || is_id { "-" } else { part });
        is_duration = matches!(part, "latency_ms" | "took_us" | "took_ms");
    }
    // Who registers over a connection has one.
    kept.replace("\"connected\":true", "\"connected\":false").replace(namespace, "NS")
}

/// The task that an answer is about.
fn task_of(answer: &Result<Value, Value>) -> Option<String> {
    let result = answer.as_ref().ok()?;
    let named = result["task_id"].as_str().or_else(|| result["tasks"][0]["task_id"].as_str());
    named.map(str::to_owned)
}

/// Errors say what the table of errors says, over JSON-RPC and over plain HTTP.
pub(crate) async fn errors(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    let url = gateway.options.url.clone();
    let client = gateway.client.clone();
    for peer in &mut gateway.peers {
        findings.begin(false);
        let found = of_rpc(peer).await;
        findings.judge("gw-error-data", "error numbers and data as the table of errors has them", found);
    }
    findings.begin(false);
    let found = of_http(&client, &url, gateway).await;
    findings.judge("gw-rest-problems", "problem bodies with the status of the table of errors", found);
    Ok(())
}

async fn of_rpc(peer: &mut Peer) -> Result<(), String> {
    let refused = [
        ("agent/get", json!({ "agent_id": "nobody@nowhere" }), ErrorCode::AgentNotFound),
        ("task/get", json!({ "task_id": "01890a5d-ac96-774b-bcce-b302099a8057" }), ErrorCode::TaskNotFound),
        ("task/submit", json!({ "capability": "no_such_capability_at_all" }), ErrorCode::NoCandidate),
        ("task/submit", json!({}), ErrorCode::InvalidParams),
    ];
    for (method, params, code) in refused {
        match peer.call(method, &params).await? {
            Ok(result) => return Err(format!("{}: {method} gave {}", peer.name, short(&result.to_string()))),
            Err(error) => {
                let is_right = error["code"] == code.number() && error["data"]["code"] == code.name();
                if !is_right {
                    return Err(format!(
                        "{}: {method} gave {error}, and not {} {}",
                        peer.name,
                        code.number(),
                        code.name()
                    ));
                }
                schema::fits("ErrorData", &error["data"])
                    .map_err(|why| format!("{}: {method}: data {why}", peer.name))?;
            }
        }
    }
    Ok(())
}

async fn of_http(client: &reqwest::Client, url: &str, gateway: &Gateway) -> Result<(), String> {
    let (get, post) = (reqwest::Method::GET, reqwest::Method::POST);
    let refused = [
        (&get, "/agents/nobody@nowhere", "", ErrorCode::AgentNotFound),
        (&get, "/tasks/01890a5d-ac96-774b-bcce-b302099a8057", "", ErrorCode::TaskNotFound),
        (&post, "/tasks", r#"{"capability":"no_such_capability_at_all"}"#, ErrorCode::NoCandidate),
        (&post, "/tasks", "{}", ErrorCode::InvalidParams),
    ];
    for (method, path, body, code) in refused {
        gateway.exchange.add(crate::exchange::Way::Out, &format!("{method} {path} {body}"));
        let request = client.request(method.clone(), format!("{url}{path}")).header("content-type", "application/json");
        let answer = request.body(body).timeout(gateway.options.timeout).send().await;
        let response = answer.map_err(|error| format!("{method} {path}: {error}"))?;
        let status = response.status().as_u16();
        let text = response.text().await.unwrap_or_default();
        gateway.exchange.add(crate::exchange::Way::In, &format!("{status} {text}"));
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        if status != code.http_status() || problem["code"] != code.name() || problem["status"] != status {
            return Err(format!(
                "{method} {path}: {status} {}, and not {} {}",
                short(&text),
                code.http_status(),
                code.name()
            ));
        }
    }
    Ok(())
}

/// Registers an agent for an act that needs no more of it than to be there.
pub(crate) async fn present(peer: &mut Peer, agent: &str, capability: &str) -> Result<(), Stop> {
    must(peer, "agent/register", &super::card(agent, capability, "read")).await.map(drop)
}
