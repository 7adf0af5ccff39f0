//! A gateway over HTTP that plays a script: answers, refuses, breaks connections, and writes down what it was asked.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// What the gateway does with one request.
pub(crate) enum Step {
    /// Answers with this result.
    Answer(Value),
    /// Answers with this error object.
    Error(Value),
    /// Answers with a bare HTTP status and perhaps a `Retry-After`.
    Status(u16, Option<&'static str>),
    /// Takes the request and breaks the connection.
    Reset,
    /// Answers with this result, so much later.
    Late(std::time::Duration, Value),
    /// Never answers.
    Silence,
}

/// One request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) authorization: Option<String>,
}

type Script = Arc<dyn Fn(usize, &Asked) -> Step + Send + Sync>;

pub(crate) struct HttpGateway {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Asked>>>,
    accepting: JoinHandle<()>,
}

impl HttpGateway {
    /// Starts on a free port; the script gets the number of the request, from 0, and the request.
    pub(crate) async fn start(script: impl Fn(usize, &Asked) -> Step + Send + Sync + 'static) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), script)
    }

    pub(crate) fn start_on(
        listener: TcpListener,
        script: impl Fn(usize, &Asked) -> Step + Send + Sync + 'static,
    ) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, Arc::new(script), log.clone()));
        Self { address, log, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }

    /// Stops listening and breaks every connection.
    pub(crate) async fn stop(self) {
        self.accepting.abort();
        let _cancelled = self.accepting.await;
    }
}

async fn accept(listener: TcpListener, script: Script, log: Arc<Mutex<Vec<Asked>>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (script, log) = (script.clone(), log.clone());
        connections.spawn(async move {
            let service = service_fn(|request| play(request, script.clone(), log.clone()));
            let _broken =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn play(
    request: Request<Incoming>,
    script: Script,
    log: Arc<Mutex<Vec<Asked>>>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    assert_eq!(request.uri().path(), "/rpc");
    let authorization = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
    let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
    let frame: Value = serde_json::from_slice(&body).unwrap();
    let asked =
        Asked { method: frame["method"].as_str().unwrap().to_owned(), params: frame["params"].clone(), authorization };
    let step = {
        let mut log = log.lock().unwrap();
        log.push(asked.clone());
        script(log.len() - 1, &asked)
    };
    let id = &frame["id"];
    let body = match step {
        Step::Answer(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Step::Late(late, result) => {
            tokio::time::sleep(late).await;
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        }
        Step::Error(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        Step::Status(status, retry_after) => {
            let mut response = Response::builder().status(status);
            if let Some(retry_after) = retry_after {
                response = response.header("retry-after", retry_after);
            }
            return Ok(response.body(Full::default()).unwrap());
        }
        Step::Reset => return Err(std::io::Error::other("as the script says")),
        Step::Silence => match std::future::pending::<Infallible>().await {},
    };
    Ok(Response::new(Full::from(body.to_string())))
}
