//! The hand-made agent as an HTTP service, and as one that pulls over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::report::{Caller, client};
use super::{Admission, Agent, Fault};

/// Serves on a port of its own. Answers the address that deliveries go to.
pub(crate) async fn serve(agent: Arc<Agent>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/jobs", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/jobs", post(deliver))
        .route("/jobs/{task}", delete(cancel))
        .route("/healthz", get(health))
        .layer(axum::extract::DefaultBodyLimit::max(16 << 20));
    tokio::spawn(async move { axum::serve(listener, router.with_state(agent)).await });
    address
}

/// Registers with a gateway, and beats from then on.
pub(crate) async fn join(agent: Arc<Agent>, gateway: String, address: String) {
    if agent.has(Fault::NeverRegisters) {
        return;
    }
    let caller = Caller::Http { client: client(), gateway, agent: agent.clone() };
    // One that shows nothing is refused.
    if caller.call("agent/register", &agent.card(&address).to_string()).await.is_ok() {
        agent.beat(caller, address).await;
    }
}

fn answer(status: u16, kind: &str, body: String) -> Response {
    (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, kind.to_owned())], body).into_response()
}

fn problem(status: u16, detail: &str) -> Response {
    answer(status, "application/problem+json", json!({ "status": status, "detail": detail }).to_string())
}

async fn deliver(State(agent): State<Arc<Agent>>, body: Bytes) -> Response {
    let text = String::from_utf8_lossy(&body).into_owned();
    let delivery: Value = serde_json::from_str(&text).unwrap_or_default();
    let result = match agent.admit(&delivery) {
        Admission::Run(called_off) => {
            let (worker, work) = (agent.clone(), text.clone());
            // Apart from the request, so that a broken connection does not end it.
            let done = tokio::spawn(async move { worker.work(&work, called_off).await }).await.unwrap();
            match done {
                Some(result) => result,
                None => return problem(409, "it was called off"),
            }
        }
        Admission::Done(result) => result,
        Admission::Running => return problem(409, "it runs already"),
        Admission::Stale => return problem(409, "another attempt has taken over"),
        Admission::Full => {
            let mut full = problem(429, "full");
            if !agent.has(Fault::NeverSaysWhen) {
                full.headers_mut().insert(header::RETRY_AFTER, 1.into());
            }
            return full;
        }
        Admission::Bad(why) => return problem(422, &why),
        Admission::Broken => return problem(500, "it fell over"),
        Admission::Odd(status) => return answer(status, "application/json", r#"{"started":false}"#.to_owned()),
        Admission::Silence => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            return problem(500, "too late");
        }
    };
    let is_count = delivery["capability"] == "count_words";
    let result = if agent.has(Fault::AnswersText) && is_count { "two words".to_owned() } else { result };
    let kind = if agent.has(Fault::AnswersPlainType) { "text/plain" } else { "application/json" };
    answer(200, kind, result)
}

async fn health(State(agent): State<Arc<Agent>>) -> Response {
    tokio::time::sleep(agent.probe_pause()).await;
    let status = if agent.has(Fault::ProbeFails) { 500 } else { 200 };
    answer(status, "application/json", agent.health().to_string())
}

#[derive(serde::Deserialize)]
struct Attempt {
    token: u64,
}

async fn cancel(State(agent): State<Arc<Agent>>, Path(task): Path<String>, Query(attempt): Query<Attempt>) -> Response {
    agent.call_off(&task, attempt.token);
    answer(if agent.has(Fault::NoDelete) { 404 } else { 200 }, "application/json", "{}".to_owned())
}

/// Registers and pulls until the gateway is gone.
pub(crate) async fn pull(agent: Arc<Agent>, gateway: String) {
    let caller = Caller::Http { client: client(), gateway, agent: agent.clone() };
    caller.call("agent/register", &agent.card("").to_string()).await.unwrap();
    tokio::spawn(agent.clone().beat(caller.clone(), String::new()));
    if agent.has(Fault::ClaimsTooMuch) {
        let _ = caller.call("task/claim", r#"{"agent_id":"hand@made","limit":1000}"#).await;
    }
    loop {
        let room = agent.room();
        let claim = match agent.fault {
            Fault::ClaimsHastily => json!({ "agent_id": "hand@made", "limit": room.max(1) }),
            _ => json!({ "agent_id": "hand@made", "limit": room.max(1), "wait": "2s", "lease": "800ms" }),
        };
        if room == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        }
        let Ok(claimed) = caller.call("task/claim", &claim.to_string()).await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        if agent.has(Fault::ClaimsHastily) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for delivery in claimed["tasks"].as_array().unwrap() {
            let (agent, caller, delivery) = (agent.clone(), caller.clone(), delivery.clone());
            // Known as running before the next claim says how much room there is.
            let admission = agent.admit(&delivery);
            tokio::spawn(async move { pulled(agent, caller, delivery, admission).await });
        }
    }
}

async fn pulled(agent: Arc<Agent>, caller: Caller, delivery: Value, admission: Admission) {
    let named = json!({ "task_id": delivery["task_id"], "token": delivery["token"] }).to_string();
    if !agent.has(Fault::NeverAccepts) {
        let _ = caller.call("task/accept", &named).await;
    }
    match admission {
        Admission::Run(called_off) => {
            if let Some(result) = agent.work(&delivery.to_string(), called_off).await {
                agent.report(&caller, &delivery, Ok(&result)).await;
            }
        }
        Admission::Done(result) => agent.report(&caller, &delivery, Ok(&result)).await,
        Admission::Bad(why) => agent.report(&caller, &delivery, Err(&why)).await,
        Admission::Stale => agent.report(&caller, &delivery, Err("another attempt has taken over")).await,
        Admission::Full | Admission::Broken => drop(caller.call("task/release", &named).await),
        Admission::Running | Admission::Odd(_) | Admission::Silence => {}
    }
}
