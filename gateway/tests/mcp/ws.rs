//! MCP over WebSocket: one message a frame, both eras on one connection.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::world::{alone, echo, initialize};
use crate::common::peer::Socket;
use crate::common::start;

async fn hear(socket: &mut Socket) -> Value {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(text.as_str()).unwrap(),
            Message::Ping(_) | Message::Pong(_) => {}
            other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => panic!("{other:?}"),
        }
    }
}

async fn ask(socket: &mut Socket, text: String) -> Value {
    socket.send(Message::text(text)).await.unwrap();
    hear(socket).await
}

#[tokio::test]
async fn both_eras_are_spoken_on_one_connection_and_changes_are_told() {
    let running = start().await;
    let mut request = format!("ws://{}/mcp/ws", running.address).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
    let (mut socket, response) = connect_async(request).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "mcp");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    assert_eq!(ask(&mut socket, list.clone()).await["error"]["code"], -32600);
    let (_, discover) = alone(2, "server/discover", json!({}));
    assert_eq!(ask(&mut socket, discover).await["result"]["resultType"], "complete");
    let opened = ask(&mut socket, initialize("2025-03-26")).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-03-26");
    let batch = format!("[{list},{}]", json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }));
    assert_eq!(ask(&mut socket, batch).await.as_array().unwrap().len(), 2);
    let (_, listen) = alone(4, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    assert_eq!(ask(&mut socket, listen).await["method"], "notifications/subscriptions/acknowledged");
    let _agent = echo(&running, "e@x", &[json!({ "name": "new" })]).await;
    // Once for the session, and once for the request that listens.
    let told = [hear(&mut socket).await, hear(&mut socket).await];
    assert!(told.iter().all(|told| told["method"] == "notifications/tools/list_changed"), "{told:?}");
    assert_eq!(told.iter().filter(|told| told["params"]["_meta"].is_object()).count(), 1, "{told:?}");
    let off = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 4 } });
    socket.send(Message::text(off.to_string())).await.unwrap();
    assert_eq!(ask(&mut socket, list).await["result"]["tools"][0]["name"], "new");
}

#[tokio::test]
async fn a_page_of_a_foreign_origin_opens_no_connection() {
    let running = start().await;
    let mut request = format!("ws://{}/mcp/ws", running.address).into_client_request().unwrap();
    request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    assert!(connect_async(request).await.is_err());
}
