//! How the hand-made agent calls its gateway, and reports until it is heard or refused.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::socket::Link;
use super::{Agent, BEAT, Fault};

/// A way to the gateway.
#[derive(Clone)]
pub(crate) enum Caller {
    Http { client: reqwest::Client, gateway: String, agent: Arc<Agent> },
    Socket(Arc<Link>),
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

impl Caller {
    /// Calls a method. `Err`: the number of the error; 0: there was no answer.
    pub(crate) async fn call(&self, method: &str, params: &str) -> Result<Value, i64> {
        let answer = match self {
            Self::Http { client, gateway, agent } => {
                let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
                loop {
                    let papers = &agent.papers;
                    if papers.is_over() {
                        return std::future::pending().await;
                    }
                    let token = papers.token();
                    let mut request = client.post(format!("{gateway}/rpc")).header("content-type", "application/json");
                    let is_shown = !(agent.has(Fault::ForgetsToken) && method == "agent/heartbeat");
                    if let Some(token) = token.as_ref().filter(|_| is_shown) {
                        request = request.header("authorization", format!("Bearer {token}"));
                    }
                    let response = request.body(frame.clone()).send().await.map_err(|_| 0)?;
                    let text = response.text().await.map_err(|_| 0)?;
                    let answer: Value = serde_json::from_str(&text).map_err(|_| 0)?;
                    let code = answer["error"]["code"].as_i64().filter(|code| (1020..=1023).contains(code));
                    match code {
                        Some(code)
                            if (is_shown || code == 1023) && papers.heed(gateway, token.as_deref(), code).await => {}
                        Some(_) | None => break answer,
                    }
                }
            }
            Self::Socket(link) => link.call(method, params).await.ok_or(0)?,
        };
        match answer["error"]["code"].as_i64() {
            Some(code) => Err(code),
            None => Ok(answer["result"].clone()),
        }
    }
}

impl Agent {
    /// Says how an attempt ended. `result` is JSON.
    pub(crate) async fn report(&self, caller: &Caller, delivery: &Value, result: Result<&str, &str>) {
        let (task_id, token) = (&delivery["task_id"], &delivery["token"]);
        if self.has(Fault::ReportsUnknownToken) {
            let wrong = json!({ "task_id": task_id, "token": 1000 }).to_string();
            let _ = caller.call("task/progress", &wrong).await;
        }
        let (method, params) = match result {
            Ok(result) => ("task/complete", format!(r#"{{"task_id":{task_id},"token":{token},"result":{result}}}"#)),
            Err(why) => ("task/fail", json!({ "task_id": task_id, "token": token, "message": why }).to_string()),
        };
        for _ in 0..100 {
            match caller.call(method, &params).await {
                Err(3000..) if !self.has(Fault::ReportsOnce) => {}
                Err(0) if !self.has(Fault::ForgetsResults) => {}
                Err(1009) if self.has(Fault::ReportsStaleForever) => {}
                Err(1009) if self.has(Fault::ReportsStaleEachSecond) => {
                    tokio::time::sleep(Duration::from_millis(900)).await;
                }
                _ => return,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Beats until the gateway is gone.
    pub(crate) async fn beat(self: Arc<Self>, caller: Caller, address: String) {
        if self.has(Fault::NeverBeats) {
            return;
        }
        let pause = if self.has(Fault::BeatsTooOften) { Duration::from_millis(12) } else { BEAT };
        loop {
            tokio::time::sleep(pause).await;
            match caller.call("agent/heartbeat", &self.heartbeat().to_string()).await {
                Ok(answer) => {
                    self.papers.take(&answer);
                    for stop in answer["stop"].as_array().into_iter().flatten() {
                        self.call_off(stop["task_id"].as_str().unwrap(), stop["token"].as_u64().unwrap());
                    }
                    if self.has(Fault::ChokesOnUnknownAnswer) && answer.get("x_from_a_newer_gateway").is_some() {
                        return;
                    }
                }
                Err(1004) if !self.has(Fault::NeverRegistersAgain) => {
                    let card = self.card_again(&address).to_string();
                    let _ = caller.call("agent/register", &card).await;
                }
                Err(_) => {}
            }
        }
    }
}
