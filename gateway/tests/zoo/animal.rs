//! An agent over HTTP whose habits change while it lives. It keeps a ledger of what it was handed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_reach_sdk::TaskId;
use agent_reach_sdk::schemas::Delivery;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How an agent answers a delivery.
#[derive(Debug, Clone)]
pub(crate) enum Habit {
    /// With `{"by": NAME}`.
    Works,
    /// Well, after a while.
    Dawdles(Duration),
    /// Never.
    Hangs,
    /// "I have it", and that was that.
    Forgets,
    /// With this status, these headers and this body.
    Says(u16, Vec<(&'static str, String)>, &'static str),
    /// With 500 and well, in turns.
    Flaps,
}

/// How an agent answers a probe.
#[derive(Debug, Clone)]
pub(crate) enum Health {
    /// With this report.
    Reports(Value),
    /// Never.
    Hangs,
}

/// An agent.
#[derive(Clone)]
pub(crate) struct Animal {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    habit: Habit,
    health: Health,
    handed: Vec<Delivery>,
    probes: usize,
}

impl Animal {
    /// Opens its port. It is not registered yet.
    pub(crate) async fn born(name: &'static str, habit: Habit) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Inner { habit, health: Health::Reports(json!({})), handed: Vec::new(), probes: 0 };
        let animal = Self { name, address, inner: Arc::new(Mutex::new(inner)) };
        let router = Router::new()
            .route("/work", post(work))
            .route("/healthz", get(health))
            .fallback(async || StatusCode::NO_CONTENT)
            .with_state(animal.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        animal
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/work", self.address)
    }

    /// From now on it answers work like this.
    pub(crate) fn turns(&self, habit: Habit) {
        self.inner.lock().unwrap().habit = habit;
    }

    /// From now on it answers probes like this.
    pub(crate) fn feels(&self, health: Health) {
        self.inner.lock().unwrap().health = health;
    }

    /// What it was handed, in order.
    pub(crate) fn handed(&self) -> Vec<Delivery> {
        self.inner.lock().unwrap().handed.clone()
    }

    /// How often it was handed a task.
    pub(crate) fn times(&self, task: TaskId) -> usize {
        self.handed().iter().filter(|delivery| delivery.task_id == task).count()
    }

    /// How many probes have reached it.
    pub(crate) fn probes(&self) -> usize {
        self.inner.lock().unwrap().probes
    }
}

async fn work(State(animal): State<Animal>, body: Bytes) -> Response {
    let delivery: Delivery = serde_json::from_slice(&body).unwrap();
    let (habit, turn) = {
        let mut inner = animal.inner.lock().unwrap();
        inner.handed.push(delivery);
        (inner.habit.clone(), inner.handed.len())
    };
    let result = || axum::Json(json!({ "by": animal.name })).into_response();
    match habit {
        Habit::Works => result(),
        Habit::Dawdles(span) => {
            tokio::time::sleep(span).await;
            result()
        }
        Habit::Hangs => std::future::pending().await,
        Habit::Forgets => StatusCode::ACCEPTED.into_response(),
        Habit::Flaps if turn % 2 == 1 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Habit::Flaps => result(),
        Habit::Says(status, headers, text) => {
            let mut answer = (StatusCode::from_u16(status).unwrap(), text).into_response();
            for (name, value) in headers {
                answer.headers_mut().insert(name, value.parse().unwrap());
            }
            answer
        }
    }
}

async fn health(State(animal): State<Animal>) -> Response {
    let health = {
        let mut inner = animal.inner.lock().unwrap();
        inner.probes += 1;
        inner.health.clone()
    };
    match health {
        Health::Reports(report) => axum::Json(report).into_response(),
        Health::Hangs => std::future::pending().await,
    }
}
