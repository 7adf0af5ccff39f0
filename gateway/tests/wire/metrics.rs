//! What is counted, as operators and monitoring systems see it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::peer::{Over, Peer};
use crate::common::web::{Puller, Web};
use crate::common::{Running, python, start};

/// One task that completes, one that fails, one request that nobody fits, and one that says nothing.
async fn worked() -> (Running, Web) {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    for is_done in [true, false] {
        let taken = web.post("/tasks", &json!({ "capability": "work" })).await;
        assert_eq!(taken.status, 202, "{taken:?}");
        let task = agent.pull().await;
        if is_done { agent.complete(&task, "1").await } else { agent.fail(&task, "no").await }
    }
    web.post("/tasks", &json!({ "capability": "nobody" })).await.problem(503, "no_candidate");
    web.post("/tasks", &json!({})).await.problem(422, "invalid_params");
    (running, web)
}

fn parser() -> PathBuf {
    python::with("prometheus-parser", &python::PROMETHEUS)
}

/// What Prometheus's own parser makes of a text.
fn parsed(form: &str, text: &str) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire/read_metrics.py");
    serde_json::from_str(&python::run(Command::new(parser()).args([script, form]), text).unwrap()).unwrap()
}

/// The value of the one sample with this name and these labels.
#[track_caller]
fn value(families: &Value, name: &str, labels: &[(&str, &str)]) -> f64 {
    let samples = families.as_array().unwrap().iter().flat_map(|family| family["samples"].as_array().unwrap());
    let fits = |sample: &&Value| sample[0] == name && labels.iter().all(|(label, value)| sample[1][label] == **value);
    let found: Vec<_> = samples.filter(fits).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
    found[0][2].as_f64().unwrap()
}

#[tokio::test]
async fn what_is_measured_is_understood_by_prometheus_itself_in_both_forms() {
    // Made first: a connection does not wait as long as that may take.
    parser();
    let (_running, web) = worked().await;
    let open = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let forms = [
        ("text", "*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("openmetrics", open, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ];
    for (form, accept, content_type) in forms {
        let reply = web.ask(Method::GET, "/metrics", &[("accept", accept)], None).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, content_type));
        let families = parsed(form, &reply.text);
        for family in families.as_array().unwrap() {
            assert!(family["name"].as_str().unwrap().starts_with("reach_"), "{family}");
            assert!(family["type"] != "unknown" && family["help"].as_str().unwrap().len() > 10, "{family}");
        }
        let at = |name: &str, labels: &[(&str, &str)]| value(&families, name, labels);
        let of_work = [("capability", "work")];
        let ended = |outcome| at("reach_tasks_ended_total", &[("capability", "work"), ("outcome", outcome)]);
        assert_eq!((ended("REACH_OK"), ended("REACH_FAILED")), (1.0, 1.0));
        assert_eq!((at("reach_tasks_answered_total", &of_work), at("reach_tasks_hit_total", &of_work)), (2.0, 2.0));
        let worker = [("agent", "worker@n"), ("capability", "work")];
        assert_eq!(at("reach_target_seconds_count", &worker), 2.0);
        assert_eq!(at("reach_target_seconds_bucket", &[worker[0], worker[1], ("le", "+Inf")]), 2.0);
        assert_eq!(at("reach_attempts_total", &[worker[0], worker[1], ("ending", "answered")]), 2.0);
        assert_eq!(at("reach_refusals_total", &[("reason", "no_candidate")]), 1.0);
        assert_eq!(at("reach_refusals_total", &[("reason", "invalid_params")]), 1.0);
        assert_eq!((at("reach_success_ratio", &[]), at("reach_completion_ratio", &[])), (2.0 / 3.0, 1.0 / 3.0));
        assert_eq!(at("reach_agent_success_ratio", &[("agent", "worker@n")]), 1.0);
        assert_eq!(at("reach_agents", &[("state", "alive")]), 1.0);
        assert_eq!(at("reach_tasks_open", &[("phase", "submitted")]), 0.0);
        assert!(at("reach_store_commit_seconds_count", &[]) >= 4.0 && at("reach_store_batch_size_count", &[]) >= 4.0);
        assert_eq!((at("reach_webhooks_waiting", &[]), at("reach_webhooks_oldest_waiting_seconds", &[])), (0.0, 0.0));
        assert_eq!(at("reach_webhooks_total", &[("state", "delivered")]), 0.0);
        assert_eq!(at("reach_webhooks_undelivered", &[("state", "gone")]), 0.0);
        assert!(at("reach_connections", &[]) >= 1.0);
        // An agent this near may take less than the millisecond that times are told in.
        let p99 = at("reach_latency_seconds", &[("of", "target"), ("quantile", "0.99")]);
        assert!((0.0..30.0).contains(&p99), "{p99}");
        assert!(at("reach_router_seconds_count", &of_work) >= 2.0);
    }
}

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("reach_")).collect()
}

#[tokio::test]
async fn dashboard_and_alerts_ask_in_good_queries_for_what_is_served() {
    let (_running, web) = worked().await;
    let served = web.get("/metrics").await.text;
    let samples: Vec<&str> = served.lines().filter(|line| !line.starts_with('#')).collect();
    let samples = samples.join("\n");
    let served: BTreeSet<&str> = samples.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let ops = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire/read_queries.py");
    let files = [ops.join("grafana/agent-reach.json"), ops.join("prometheus/alerts.yml")];
    let queries = python::run(Command::new(parser()).arg(script).args(&files), "").unwrap();
    let queries: Vec<(String, String)> = serde_json::from_str(&queries).unwrap();
    assert!(queries.len() > 25, "all were read: {queries:?}");
    for (place, query) in &queries {
        let unknown: Vec<_> = names(query).difference(&served).copied().collect();
        assert!(unknown.is_empty() && !names(query).is_empty(), "{place}: {unknown:?} in {query}");
    }
    let alerts: BTreeSet<&str> = queries.iter().map(|(place, _)| place.as_str()).collect();
    for alert in ["ReachSuccessLow", "ReachAgentSuccessLow", "ReachSlow", "ReachWebhooksStuck", "ReachWebhooksGivenUp"]
    {
        assert!(alerts.contains(alert), "{alerts:?}");
    }
}

#[tokio::test]
async fn the_overview_tells_the_same_to_whoever_operates() {
    let (running, web) = worked().await;
    let mut peer = Peer::connect(&running, Over::Http).await;
    let answer = peer.call(1, "metrics/overview", &json!({})).await;
    for overview in [answer["result"].clone(), web.get("/overview").await.json()] {
        let total = &overview["total"];
        assert_eq!((&total["asked"], &total["refused"], &total["cancelled"]), (&json!(3), &json!(1), &json!(0)));
        assert_eq!((total["success_rate"].as_f64(), total["hit_rate"].as_f64()), (Some(2.0 / 3.0), Some(1.0)));
        assert_eq!(overview["refused"], json!({ "invalid_params": 1, "no_candidate": 1 }));
        assert_eq!(overview["latest_refusals"][0]["code"], "invalid_params");
        assert_eq!(overview["latest_refusals"][1]["capability"], "nobody");
        let agent = &overview["agents"][0];
        assert_eq!(
            (&agent["agent_id"], &agent["state"], &agent["queue"]),
            (&json!("worker@n"), &json!("alive"), &json!(0))
        );
        assert_eq!(agent["capabilities"]["work"]["answered"], 2);
        assert_eq!(agent["total"]["target"]["count"], 2);
        let work = overview["capabilities"].as_array().unwrap().iter().find(|one| one["capability"] == "work").unwrap();
        assert_eq!((&work["asked"], work["completion_rate"].as_f64()), (&json!(2), Some(0.5)));
        assert_eq!(overview["window"], "15m");
    }
}

#[tokio::test]
async fn what_waits_and_what_is_under_way_is_counted_while_it_does() {
    let running = start().await;
    let (web, mut agent) = (Web::new(&running), Puller::start(&running).await);
    for _ in 0..3 {
        assert_eq!(web.post("/tasks", &json!({ "capability": "work", "mode": "queue" })).await.status, 202);
    }
    let task = agent.pull().await;
    let overview = web.get("/overview").await.json();
    assert_eq!(overview["open"], json!({ "submitted": 2, "delivered": 1 }));
    assert_eq!(overview["waiting"]["normal"], 2);
    assert_eq!((&overview["agents"][0]["in_flight"], &overview["agents"][0]["queue"]), (&json!(1), &json!(2)));
    agent.complete(&task, "1").await;
    let overview = web.get("/overview").await.json();
    assert_eq!(overview["open"], json!({ "submitted": 2 }));
}
