//! An agent over HTTP that remembers under which trace it was asked, in the header and in the body.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What it was asked under: the header's and the body's.
pub(crate) type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// An agent that answers with this status.
pub(crate) struct Agent {
    pub(crate) asked: Asked,
    url: String,
}

impl Agent {
    pub(crate) async fn start(status: u16) -> Self {
        let asked = Asked::default();
        let own = Arc::clone(&asked);
        let work = async move |headers: HeaderMap, body: String| {
            let body: Value = serde_json::from_str(&body).unwrap();
            let header = headers["traceparent"].to_str().unwrap().to_owned();
            own.lock().unwrap().push((header, body["traceparent"].as_str().unwrap().to_owned()));
            (axum::http::StatusCode::from_u16(status).unwrap(), "{\"said\":true}")
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/work", listener.local_addr().unwrap());
        let router = Router::new().route("/work", post(work)).route("/healthz", axum::routing::get(async || "{}"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { asked, url }
    }

    /// Its card; the heavier one is asked first.
    pub(crate) fn card(&self, name: &str, weight: u8) -> Value {
        json!({
            "agent_id": format!("{name}@traces"), "endpoints": [{ "protocol": "http", "address": self.url }],
            "capabilities": [{ "name": "work", "effect": "read", "routing_weight": weight }],
        })
    }

    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}
