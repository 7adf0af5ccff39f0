//! The canned MCP server over Streamable HTTP, as a process of its own. It prints its address, and ends with its input.

use std::convert::Infallible;

use anyhow::Result;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use reach_examples::canned::{Said, answer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// The one session that there is.
const SESSION: &str = "any";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    tokio::select! {
        served = serve(listener) => served,
        () = input_ends() => Ok(()),
    }
}

async fn serve(listener: TcpListener) -> Result<()> {
    loop {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        let serving = http1::Builder::new().serve_connection(TokioIo::new(connection), service_fn(respond));
        tokio::spawn(async move {
            // A client that goes away is no business of the others.
            let _ = serving.await;
        });
    }
}

/// Is done once whoever started this process is gone.
async fn input_ends() {
    let mut byte = [0];
    let mut input = tokio::io::stdin();
    while matches!(input.read(&mut byte).await, Ok(1..)) {}
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let method = request.method().clone();
    if request.headers().get("mcp-session-id").is_some_and(|id| id != SESSION) {
        return Ok(empty(StatusCode::NOT_FOUND));
    }
    // It remembers nothing, and so has no session to end and no stream to open.
    if method != Method::POST {
        return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Ok(body) = request.into_body().collect().await else { return Ok(empty(StatusCode::BAD_REQUEST)) };
    let Said::Answer { text, opens, status } = answer(&body.to_bytes()) else {
        return Ok(empty(StatusCode::ACCEPTED));
    };
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    if opens {
        response = response.header("mcp-session-id", SESSION);
    }
    Ok(response.body(Full::from(text)).unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR)))
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
