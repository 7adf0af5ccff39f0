//! An agent that answers at once with what it was given.

use agent_reach_sdk::ClientBuilder;
use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::wire::Reader;

/// Starts the agent, registers it over this connection with this `access`, and keeps its heartbeat up.
///
/// # Errors
/// No port is free, or the gateway refuses the card.
pub async fn serve(connection: ClientBuilder, access: Value) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/work", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection));
        }
    });
    let client = connection.connect().await?;
    let card = json!({
        "agent_id": "echo@bench",
        "max_concurrency": 4096,
        "access": access,
        "endpoints": [{ "protocol": "http", "address": address }],
        "capabilities": [
            { "name": "echo", "effect": "idempotent_write", "tier": "normal" },
            { "name": "look", "effect": "read", "tier": "normal" },
        ],
    });
    let _: Value = client.call("agent/register", &card).await?;
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            let beat: Result<Value, _> = client.call("agent/heartbeat", &json!({ "agent_id": "echo@bench" })).await;
            if beat.is_err() {
                return;
            }
        }
    });
    Ok(())
}

async fn answer(connection: TcpStream) -> Result<()> {
    connection.set_nodelay(true)?;
    let (from, mut to) = connection.into_split();
    let mut reader = Reader::new(from);
    while let Some(request) = reader.next().await? {
        let body = if request.head.starts_with("GET") { "{}" } else { r#"{"echo":true}"# };
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        to.write_all(format!("{head}{body}").as_bytes()).await?;
    }
    Ok(())
}
