//! Bodies that are refused before they have come whole: whoever is still writing hears why, whichever way it writes.

use std::process::Command;

use reach_gateway::transport::HttpSettings;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{Running, python, start_with};

/// Far more than fits between two sockets, and less than is thrown away.
const LARGE: usize = 24 * 1024 * 1024;

async fn small() -> Running {
    start_with(Default::default(), HttpSettings { body_max: 1000, ..HttpSettings::default() }).await
}

fn head(path: &str, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\r\n")
}

/// Reads one answer: its status, and its body as JSON.
async fn answer(stream: &mut TcpStream) -> (u16, Value) {
    let mut text = Vec::new();
    loop {
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if length.is_none_or(|length: usize| body.len() >= length) {
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                return (status, serde_json::from_str(body).unwrap_or_default());
            }
        }
        let mut more = [0; 4096];
        let count = stream.read(&mut more).await.unwrap();
        assert!(count > 0, "the answer was cut off: {whole:?}");
        text.extend_from_slice(&more[..count]);
    }
}

#[tokio::test]
async fn whoever_writes_all_of_it_before_reading_hears_that_it_is_too_large_and_may_go_on() {
    let running = small().await;
    let zeros = vec![b'0'; LARGE];
    let told = format!("content-length: {LARGE}\r\n");
    let untold = "transfer-encoding: chunked\r\n";
    for (path, more) in
        [("/rpc", told.as_str()), ("/reach", &told), ("/mcp", &told), ("/rpc", untold), ("/reach", untold)]
    {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(head(path, more).as_bytes()).await.unwrap();
        if more == untold {
            for chunk in zeros.chunks(1 << 20) {
                stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await.unwrap();
                stream.write_all(chunk).await.unwrap();
                stream.write_all(b"\r\n").await.unwrap();
            }
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        } else {
            stream.write_all(&zeros).await.unwrap();
        }
        let (status, body) = answer(&mut stream).await;
        assert_eq!(status, 413, "{path} {more}: {body}");
        assert!(body.to_string().contains("1000 bytes"), "{body}");
        // All of it was taken off the connection, which is as good as new.
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        assert_eq!(answer(&mut stream).await.0, 200, "{path} {more}");
    }
}

#[tokio::test]
async fn whatever_else_is_refused_early_is_heard_as_well() {
    let running = small().await;
    let zeros = vec![b'0'; LARGE];
    let long = format!("content-length: {LARGE}\r\n");
    let refused = [
        ("/nowhere", String::new(), 404),
        ("/healthz", String::new(), 405),
        ("/rpc", "origin: https://evil.example\r\n".to_owned(), 403),
        ("/mcp", "accept: text/plain\r\n".to_owned(), 406),
    ];
    for (path, more, status) in refused {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(head(path, &format!("{more}{long}")).as_bytes()).await.unwrap();
        stream.write_all(&zeros).await.unwrap();
        assert_eq!(answer(&mut stream).await.0, status, "{path}");
    }
}

#[tokio::test]
async fn who_asks_before_sending_is_told_without_having_to_send() {
    let running = small().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let more = format!("content-length: {LARGE}\r\nexpect: 100-continue\r\n");
    stream.write_all(head("/rpc", &more).as_bytes()).await.unwrap();
    // The first that comes is the answer, and no leave to send.
    assert_eq!(answer(&mut stream).await.0, 413);
}

#[tokio::test]
async fn who_sends_without_end_is_cut_off() {
    let running = small().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(head("/rpc", "transfer-encoding: chunked\r\n").as_bytes()).await.unwrap();
    let chunk = [b"100000\r\n".as_slice(), &vec![b'0'; 1 << 20], b"\r\n"].concat();
    let mut sent = 0;
    while stream.write_all(&chunk).await.is_ok() {
        sent += 1;
        assert!(sent < 512, "{sent} MiB were taken, and no end");
    }
    assert!(sent >= 32, "cut off after {sent} MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pythons_own_client_gets_the_413_and_not_a_broken_pipe() {
    let running = small().await;
    let script = format!(
        "import http.client, sys\n\
         c = http.client.HTTPConnection(sys.argv[1], timeout=60)\n\
         c.request('POST', '/rpc', b'0' * {LARGE}, {{'Content-Type': 'application/json'}})\n\
         a = c.getresponse()\n\
         print(a.status, a.read().decode())\n"
    );
    let mut python = Command::new("python3");
    python.args(["-c", &script, &running.address.to_string()]);
    let said = tokio::task::spawn_blocking(move || python::run(&mut python, "")).await.unwrap().unwrap();
    assert!(said.starts_with("413 ") && said.contains("1000 bytes"), "{said}");
}
