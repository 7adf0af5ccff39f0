//! A gateway that answers by script: JSON-RPC over HTTP on a port of its own, and a page of health.

use std::net::TcpListener as StdListener;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use reach_schemas::ErrorCode;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What a call is answered: a result, or an error object.
pub(crate) type Answer = Result<Value, Value>;

type Script = Box<dyn Fn(usize, &str, &str) -> Answer + Send + Sync>;

/// How long a test waits for a call.
const PATIENCE: Duration = Duration::from_secs(20);
/// A wait that finds the task unfinished takes so long, as a gateway's would take longer.
const WAIT: Duration = Duration::from_millis(50);

struct Stage {
    script: Script,
    /// Texts that are put in place of others in each answer, for what a JSON value cannot hold.
    replaced: Vec<(String, String)>,
    /// Methods and parameters, as they came.
    calls: Mutex<Vec<(String, String)>>,
    called: Condvar,
}

/// A running server; its thread ends with the process.
pub(crate) struct Server {
    pub(crate) url: String,
    stage: Arc<Stage>,
}

impl Server {
    pub(crate) fn start(script: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_raw(script, &[])
    }

    pub(crate) fn start_raw(
        script: impl Fn(&str, &str) -> Answer + Send + Sync + 'static,
        replaced: &[(&str, &str)],
    ) -> Self {
        let replaced = replaced.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Self::serve(Box::new(move |_, method, params| script(method, params)), replaced)
    }

    /// The script is told how many calls came before.
    pub(crate) fn start_counting(script: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(Box::new(move |call, _, _| script(call)), Vec::new())
    }

    fn serve(script: Script, replaced: Vec<(String, String)>) -> Self {
        let stage = Arc::new(Stage { script, replaced, calls: Mutex::default(), called: Condvar::new() });
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new()
            .route("/rpc", post(answer))
            .route("/healthz", get(async || r#"{"name":"scripted"}"#))
            .with_state(stage.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap();
            });
        });
        Self { url, stage }
    }

    /// The calls so far: methods and parameters, as they came.
    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        self.stage.calls.lock().unwrap().clone()
    }

    /// Waits until there were so many calls.
    pub(crate) fn until_called(&self, times: usize) {
        let calls = self.stage.calls.lock().unwrap();
        let (calls, over) = self.stage.called.wait_timeout_while(calls, PATIENCE, |calls| calls.len() < times).unwrap();
        assert!(!over.timed_out(), "only {} calls came", calls.len());
    }
}

#[derive(serde::Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: String,
    #[serde(borrow)]
    params: &'a RawValue,
}

async fn answer(State(stage): State<Arc<Stage>>, body: String) -> String {
    let request: Request<'_> = serde_json::from_str(&body).unwrap();
    let before = {
        let mut calls = stage.calls.lock().unwrap();
        calls.push((request.method.clone(), request.params.get().to_owned()));
        stage.called.notify_all();
        calls.len() - 1
    };
    let answer = (stage.script)(before, &request.method, request.params.get());
    if request.method == "task/wait" {
        tokio::time::sleep(WAIT).await;
    }
    let (member, value) = match answer {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let mut text = value.to_string();
    for (given, put) in &stage.replaced {
        text = text.replace(given, put);
    }
    format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{text}}}"#, request.id.get())
}

/// A task in a phase, with no more than it must have.
pub(crate) fn task(id: &str, phase: &str) -> Value {
    json!({
        "task_id": id, "phase": phase, "mode": "direct", "priority": 5, "token": 0, "attempts": [],
        "created_at": "2026-11-30T08:00:00.000Z", "deadline_at": "2026-11-30T08:05:00.000Z",
    })
}

/// The error object of a refusal.
pub(crate) fn refusal(name: &str, message: &str) -> Value {
    let code = ErrorCode::by_name(name).unwrap();
    json!({
        "code": code.number(), "message": message,
        "data": {"code": name, "fault": code.fault(), "retry": code.retry()},
    })
}
