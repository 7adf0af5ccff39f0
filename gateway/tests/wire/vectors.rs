//! Every transport is held to the JSON-RPC vectors of `schemas/vectors/jsonrpc.json`.

use crate::common::peer::{Over, Peer};
use crate::common::start;
use crate::common::vectors::vectors;

/// Names the vectors that are not met. Over stdio a frame ends with its line: one that holds a line break is two, and
/// one of white space is none.
async fn missed(over: Over) -> Vec<String> {
    let running = start().await;
    let mut peer = Peer::connect(&running, over).await;
    let mut missed = Vec::new();
    for vector in vectors() {
        let frame = vector.frame();
        if over == Over::Stdio && (frame.contains(&b'\n') || frame.trim_ascii().is_empty()) {
            continue;
        }
        let answer = peer.ask(&frame).await;
        if !vector.is_met_by(answer.as_deref()) {
            missed.push(format!("{over:?}: {}: {answer:?}", vector.name));
        }
    }
    missed
}

#[tokio::test]
async fn every_vector_is_met_over_http() {
    assert_eq!(missed(Over::Http).await, Vec::<String>::new());
}

#[tokio::test]
async fn every_vector_is_met_over_web_socket() {
    assert_eq!(missed(Over::WebSocket).await, Vec::<String>::new());
}

#[tokio::test]
async fn every_vector_is_met_over_stdio() {
    assert_eq!(missed(Over::Stdio).await, Vec::<String>::new());
}
