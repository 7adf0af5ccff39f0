//! Someone who speaks plain HTTP with a gateway, and the agent that does what is asked.

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::Running;
use super::peer::{Over, Peer, client};

/// One who asks over REST.
pub(crate) struct Web {
    client: reqwest::Client,
    base: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Web {
    pub(crate) fn new(running: &Running) -> Self {
        Self { client: client(), base: running.url("") }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, path, &[], None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_with(path, &[], body).await
    }

    pub(crate) async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        self.ask(
            Method::POST,
            path,
            &[headers, &[("content-type", "application/json")]].concat(),
            Some(body.to_string()),
        )
        .await
    }

    pub(crate) async fn ask(&self, verb: Method, path: &str, headers: &[(&str, &str)], body: Option<String>) -> Reply {
        let mut request = self.client.request(verb, format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.unwrap_or_default()).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply { status, headers, text: response.text().await.unwrap() }
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Holds the reply to be a problem of this status and error, and gives its body.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], status, "{body}");
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["type"], format!("/errors/{code}"), "{body}");
        for member in ["title", "detail", "fault", "retry"] {
            assert!(body[member].is_string(), "{member}: {body}");
        }
        body
    }
}

/// An agent that pulls its work.
pub(crate) struct Puller(Peer);

impl Puller {
    /// Registers `worker@n`, which offers `work`.
    pub(crate) async fn start(running: &Running) -> Self {
        let mut peer = Peer::connect(running, Over::Http).await;
        let card = json!({ "agent_id": "worker@n", "capabilities": [{
            "name": "work", "description": "Does the work.", "input_schema": { "type": "object" },
        }] });
        let answer = peer.call(1, "agent/register", &card).await;
        assert_eq!(answer["result"]["agent_id"], "worker@n", "{answer}");
        Self(peer)
    }

    /// Waits for a task.
    pub(crate) async fn pull(&mut self) -> Value {
        let answer = self.0.call(2, "task/claim", &json!({ "agent_id": "worker@n", "wait": "30s" })).await;
        answer["result"]["tasks"][0].clone()
    }

    /// Completes a task; the result is JSON text.
    pub(crate) async fn complete(&mut self, task: &Value, result: &str) {
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"task/complete","params":{{"task_id":{},"token":{},"result":{result}}}}}"#,
            task["task_id"], task["token"]
        );
        let answer = self.0.send(frame.as_bytes()).await.unwrap();
        assert!(answer.contains(r#""phase":"completed""#), "{answer}");
    }

    /// Fails a task for good.
    pub(crate) async fn fail(&mut self, task: &Value, message: &str) {
        let params =
            json!({ "task_id": task["task_id"], "token": task["token"], "message": message, "data": { "line": 7 } });
        let answer = self.0.call(4, "task/fail", &params).await;
        assert!(answer["result"]["phase"].is_string(), "{answer}");
    }
}
