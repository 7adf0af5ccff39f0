//! Traces: what a caller began goes on through the gateway to the agent, in what they are given, in what an OpenTelemetry
//! receiver is sent, and in the log.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "traces/agent.rs"]
mod agent;
#[path = "traces/receiver.rs"]
mod receiver;
mod victim;

use std::path::Path;
use std::time::{Duration, Instant};

use agent::Agent;
use receiver::{Habit, Receiver};
use serde_json::{Value, json};
use victim::Victim;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-11111111111111111111111111111111-2222222222222222-00";

/// A gateway process whose spans go to a receiver.
async fn gateway(folder: &Path, receiver: &Receiver) -> Victim {
    let telemetry =
        format!("[telemetry]\nlog_format = \"json\"\notlp = \"{}\"\nservice_name = \"under-test\"\n", receiver.url);
    Victim::start(folder, &telemetry).await
}

/// Posts to a path of the gateway, under a trace if one is given.
async fn post(victim: &Victim, path: &str, traceparent: Option<&str>, body: &Value) -> Value {
    // A second call finds it done.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(format!("{}{path}", victim.url())).header("content-type", "application/json");
    let request = traceparent.into_iter().fold(request, |request, value| request.header("traceparent", value));
    let response = request.body(body.to_string()).send().await.unwrap();
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

async fn register(victim: &Victim, card: &Value) {
    let answer = post(victim, "/agent/register", None, card).await;
    assert_eq!(answer["agent_id"], card["agent_id"], "{answer}");
}

async fn reach(victim: &Victim, traceparent: Option<&str>) -> String {
    let task = post(victim, "/reach", traceparent, &json!({ "capability": "work" })).await;
    assert_eq!(task["phase"], "completed", "{task}");
    task["task_id"].as_str().unwrap().to_owned()
}

/// The lines of the log, each an object.
fn log(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("gateway.log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

fn span_of(traceparent: &str) -> &str {
    &traceparent[36..52]
}

#[tokio::test]
async fn what_a_caller_began_goes_on_to_the_agent_and_to_the_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, agent) = (Receiver::start(Habit::Takes).await, Agent::start(200).await);
    let victim = gateway(folder.path(), &receiver).await;
    register(&victim, &agent.card("a", 50)).await;
    let task_id = reach(&victim, Some(CALLER)).await;

    let request = receiver.span(TRACE, "POST /reach").await;
    assert_eq!(
        (request.parent.as_str(), request.kind, request.service.as_str()),
        ("b7ad6b7169203331", 2, "under-test")
    );
    assert_eq!((request.attribute("network.transport"), request.attribute("reach_id")), ("http", task_id.as_str()));
    let task = receiver.span(TRACE, "task work").await;
    assert_eq!((&task.parent, task.attribute("agent_reach.status_code")), (&request.id, "REACH_OK"));
    let attempt = receiver.span(TRACE, "attempt work").await;
    assert_eq!((&attempt.parent, attempt.kind, &attempt.error), (&task.id, 3, &None));
    assert_eq!(
        (attempt.attribute("reach_id"), attempt.attribute("agent_reach.to_agent")),
        (task_id.as_str(), "a@traces")
    );
    let given = format!("00-{TRACE}-{}-01", attempt.id);
    assert_eq!(agent.asked(), [(given.clone(), given)], "header and body name the attempt's span");

    let route = receiver.span(TRACE, "route").await;
    assert_eq!((&route.parent, route.attribute("agent_reach.stage")), (&task.id, "exact"));
    let took: u64 = route.attribute("agent_reach.took_us").parse().unwrap();
    assert_eq!((route.ended - route.began) / 1000, took);
    assert_eq!(receiver.span(TRACE, "step assign").await.parent, attempt.id);
    assert_eq!(receiver.span(TRACE, "step complete").await.parent, attempt.id);
    assert!(receiver.spans().iter().all(|span| span.trace == TRACE && span.began <= span.ended), "and nothing else");
}

#[tokio::test]
async fn each_attempt_is_a_span_of_its_own_and_says_why_it_failed() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(Habit::Takes).await;
    let (sick, twin) = (Agent::start(503).await, Agent::start(200).await);
    let victim = gateway(folder.path(), &receiver).await;
    register(&victim, &sick.card("sick", 100)).await;
    register(&victim, &twin.card("twin", 1)).await;
    // Two are drawn at random and the better one is taken: with two agents, that is the heavier.
    reach(&victim, Some(CALLER)).await;
    let task = receiver.span(TRACE, "task work").await;
    let attempts: Vec<_> = receiver.spans().into_iter().filter(|span| span.name == "attempt work").collect();
    let told: Vec<_> = attempts
        .iter()
        .map(|span| (span.attribute("agent_reach.to_agent"), span.error.is_some(), &span.parent))
        .collect();
    assert_eq!(told, [("sick@traces", true, &task.id), ("twin@traces", false, &task.id)]);
    assert_eq!(span_of(&sick.asked()[0].0), attempts[0].id);
    assert_eq!(span_of(&twin.asked()[0].0), attempts[1].id);
    assert_ne!(attempts[0].id, attempts[1].id);
}

#[tokio::test]
async fn a_trace_that_is_not_sampled_is_carried_on_and_sent_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, agent) = (Receiver::start(Habit::Takes).await, Agent::start(200).await);
    let mut victim = gateway(folder.path(), &receiver).await;
    register(&victim, &agent.card("a", 50)).await;
    reach(&victim, Some(UNSAMPLED)).await;
    let own = reach(&victim, None).await;
    // What is left is sent before an orderly end.
    victim.stop_and_restart().await;
    let given = agent.asked();
    assert!(given[0].0.starts_with("00-11111111111111111111111111111111-") && given[0].0.ends_with("-00"), "{given:?}");
    assert_ne!(span_of(&given[0].0), "2222222222222222");
    // Without a caller's trace, one begins: it has the task's id.
    let trace = own.replace('-', "");
    assert!(given[1].0.starts_with(&format!("00-{trace}-")) && given[1].0.ends_with("-03"), "{given:?}");
    let spans = receiver.spans();
    assert!(spans.iter().all(|span| span.trace == trace), "{spans:#?}");
    let request = spans.iter().find(|span| span.name == "POST /reach").unwrap();
    assert_eq!(request.parent, "", "the trace begins with it");
    for name in ["task work", "attempt work", "route", "step assign", "step complete"] {
        assert!(spans.iter().any(|span| span.name == name), "{name}: {spans:#?}");
    }
}

#[tokio::test]
async fn a_span_outlives_the_gateway_that_began_it() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(Habit::Takes).await;
    let mut victim = gateway(folder.path(), &receiver).await;
    let card = json!({
        "agent_id": "puller@traces", "endpoints": [{ "protocol": "queue" }],
        "capabilities": [{ "name": "work", "effect": "idempotent_write", "timeout": "60s" }],
    });
    register(&victim, &card).await;
    let task = post(&victim, "/tasks", Some(CALLER), &json!({ "capability": "work" })).await;
    let task_id = task["task_id"].as_str().unwrap();
    victim.kill_and_restart().await;
    let again = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let rpc = async |method: &str, params: Value| {
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        post(&victim, "/rpc", None, &frame).await["result"].clone()
    };
    let claimed = rpc("task/claim", json!({ "agent_id": "puller@traces", "wait": "20s" })).await;
    let delivery = &claimed["tasks"][0];
    assert_eq!(delivery["task_id"], task_id, "{claimed}");
    let done = rpc("task/complete", json!({ "task_id": task_id, "token": delivery["token"], "result": 1 })).await;
    assert_eq!(done["phase"], "completed", "{done}");
    let attempt = receiver.span(TRACE, "attempt work").await;
    assert_eq!(span_of(delivery["traceparent"].as_str().unwrap()), attempt.id);
    let whole = receiver.span(TRACE, "task work").await;
    assert_eq!((&attempt.parent, attempt.kind), (&whole.id, 4));
    assert_eq!(attempt.events, ["delivered"]);
    let again = u64::try_from(again.as_nanos()).unwrap();
    assert!(whole.began < again && attempt.began < again && whole.ended > again, "{whole:?} {attempt:?}");
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_up_neither_requests_nor_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, agent) = (Receiver::start(Habit::Hangs).await, Agent::start(200).await);
    let mut victim = gateway(folder.path(), &receiver).await;
    register(&victim, &agent.card("a", 50)).await;
    let began = Instant::now();
    for _ in 0..50 {
        reach(&victim, Some(CALLER)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}, and a batch may take 10 s", began.elapsed());
    let began = Instant::now();
    victim.stop_and_restart().await;
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}: 5 s are given to the last spans", began.elapsed());
    let told = log(folder.path());
    assert!(told.iter().any(|line| line["message"] == "some spans could not be sent in time"), "{told:#?}");
}

#[tokio::test]
async fn a_command_and_its_complaints_are_under_the_span_of_its_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(Habit::Takes).await;
    let own = format!(
        "[telemetry]\nlog_format = \"json\"\notlp = \"{}\"\n[[agents]]\nagent_id = \"shell@traces\"\n\
         endpoints = [{{ protocol = \"process\", address = '''sh -c 'echo \"\\\"$TRACEPARENT\\\"\"; echo alas >&2' ''' }}]\n\
         capabilities = [{{ name = \"work\", effect = \"read\" }}]\n",
        receiver.url
    );
    let victim = Victim::start(folder.path(), &own).await;
    let task = post(&victim, "/reach", Some(CALLER), &json!({ "capability": "work" })).await;
    let given = task["result"].as_str().unwrap_or_else(|| panic!("{task}"));
    let attempt = receiver.span(TRACE, "attempt work").await;
    assert_eq!(given, format!("00-{TRACE}-{}-01", attempt.id));
    let told = log(folder.path());
    let line = told.iter().find(|line| line["message"] == "alas").unwrap_or_else(|| panic!("{told:#?}"));
    let of = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (of("reach_id"), of("trace_id"), of("span_id")),
        (task["task_id"].as_str().unwrap().to_owned(), TRACE.to_owned(), attempt.id)
    );
}
