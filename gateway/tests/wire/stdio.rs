//! Standard input and output.

use reach_gateway::gateway::{Gateway, Settings};
use reach_gateway::ops::reconfigure::Wanted;
use reach_gateway::transport::{TEXT_MAX, serve_stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::common::gateway;

const CLAIM: &str = r#"{"jsonrpc":"2.0","id":1,"method":"task/claim","params":{"agent_id":"a@n","wait":"WAIT"}}"#;
const CARD: &str = r#"{"agent_id":"a@n","capabilities":[{"name":"c"}]}"#;

/// Has an agent in the gateway's configuration.
async fn own(gateway: &Gateway) {
    let agents = vec![serde_json::from_str(CARD).unwrap()];
    let wanted = Wanted { settings: Settings::default(), agents, servers: Vec::new() };
    gateway.reconfigure(wanted, false).await.unwrap();
}

/// Gives a gateway an input to its end, and returns the lines that it wrote, in order of their ids.
async fn run(input: &[u8]) -> Vec<String> {
    let stop = CancellationToken::new();
    let gateway = gateway(Settings::default(), &stop);
    own(&gateway).await;
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let served = tokio::spawn(serve_stdio(gateway, reader, writer, stop));
    ours.write_all(input).await.unwrap();
    ours.shutdown().await.unwrap();
    let mut output = String::new();
    ours.read_to_string(&mut output).await.unwrap();
    served.await.unwrap().unwrap();
    assert!(output.is_empty() || output.ends_with('\n'), "{output:?}");
    let mut lines: Vec<String> = output.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn everything_that_was_asked_is_answered_before_the_end_of_input_ends_it() {
    let slow = CLAIM.replace("WAIT", "100ms");
    let last = r#"{"jsonrpc":"2.0","id":2,"method":"agent/list"}"#;
    let lines = run(format!("{slow}\r\n\n  \n{last}").as_bytes()).await;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains(r#""id":1,"result":{"tasks":[]}"#), "{lines:?}");
    assert!(lines[1].contains(r#""id":2"#) && lines[1].contains("a@n"), "{lines:?}");
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_the_next_is_answered() {
    let mut input = vec![b' '; TEXT_MAX + 1];
    input.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent/list\"}\n");
    let lines = run(&input).await;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains(r#""id":1,"result""#), "{lines:?}");
    assert!(lines[1].contains(r#""id":null,"error":{"code":1012"#), "{lines:?}");
}

#[tokio::test]
async fn nothing_in_nothing_out() {
    assert_eq!(run(b"").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_stop_ends_waits_with_what_is_so_and_then_the_conversation() {
    let stop = CancellationToken::new();
    let gateway = gateway(Settings::default(), &stop);
    own(&gateway).await;
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let served = tokio::spawn(serve_stdio(gateway, reader, writer, stop.clone()));
    let mark = r#"{"jsonrpc":"2.0","id":2,"method":"no/such"}"#;
    ours.write_all(format!("{}\n{mark}\n", CLAIM.replace("WAIT", "5m")).as_bytes()).await.unwrap();
    let mut output = Vec::new();
    while !String::from_utf8_lossy(&output).contains(r#""id":2"#) {
        assert!(ours.read_buf(&mut output).await.unwrap() > 0);
    }
    stop.cancel();
    ours.read_to_end(&mut output).await.unwrap();
    served.await.unwrap().unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(output.contains(r#""id":1,"result":{"tasks":[]}"#), "{output}");
}
