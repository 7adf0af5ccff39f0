//! Servers as they are, at addresses of their own.

use reqwest::Response;
use serde_json::{Value, json};

use crate::world::{Gateway, Peer, heard, script, state};

/// A client of the handshake era that speaks for itself.
pub(crate) struct Client {
    web: reqwest::Client,
    url: String,
    session: Option<String>,
    ids: u64,
}

impl Client {
    fn new(url: String) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { web: reqwest::Client::builder().no_proxy().build().unwrap(), url, session: None, ids: 0 }
    }

    pub(crate) async fn post(&self, body: String) -> Response {
        let request = self.web.post(&self.url).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = match &self.session {
            Some(session) => request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-06-18"),
            None => request,
        };
        request.body(body).send().await.unwrap()
    }

    /// Opens a session.
    pub(crate) async fn open(url: String) -> Self {
        let mut client = Self::new(url);
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params });
        let response = client.post(body.to_string()).await;
        client.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        let told = response.text().await.unwrap();
        assert!(told.contains("2025-06-18"), "{told}");
        let ready = client.post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
        assert_eq!(ready.status(), 202);
        client
    }

    /// Calls a tool, and gives the answer as it came.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &str) -> (u16, String) {
        self.ids += 1;
        let id = self.ids;
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":"t{id}"}}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let response = self.post(body).await;
        let status = response.status().as_u16();
        (status, response.text().await.unwrap())
    }
}

/// A gateway with one server over HTTP and one that is a process.
fn world(folder: &std::path::Path, era: &str) -> (Gateway, Peer, String) {
    let peer = Peer::start(state(folder, "h"), &["--era", era]);
    let state = state(folder, "p");
    let config = format!(
        "[[mcp_servers]]\nname = \"h\"\nurl = {:?}\n[[mcp_servers]]\nname = \"p\"\ncommand = \"python3\"\nargs = [{:?}, \"stdio\", {state:?}, \"--era\", \"{era}\"]\n",
        peer.url(),
        script(),
    );
    (Gateway::start(folder, &config), peer, state)
}

pub(crate) fn at(gateway: &Gateway, name: &str) -> String {
    format!("{}/servers/{name}/mcp", gateway.url)
}

/// The messages of an answer: one, or the events of a stream.
fn messages(text: &str) -> Vec<Value> {
    if text.starts_with('{') {
        return vec![serde_json::from_str(text).unwrap()];
    }
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

const ECHO: &str = r#""result":{"content":[{"type":"text","text":"heard","vendor":1}],"structuredContent":{"n":1.10},"vendor":{"k":[1,2]}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_a_server_is_not_noticed_by_its_clients_nor_by_others() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, mut peer, state_of_p) = world(folder.path(), "handshake");
    let (mut first, mut second) = (Client::open(at(&gateway, "h")).await, Client::open(at(&gateway, "h")).await);
    let (mut mine, mut others) = (Client::open(at(&gateway, "p")).await, Client::open(at(&gateway, "p")).await);
    for client in [&mut first, &mut second, &mut mine, &mut others] {
        let (status, text) = client.call("echo", r#"{"n": 1.10}"#).await;
        assert!(status == 200 && text.contains(ECHO), "{status} {text}");
    }
    assert!(
        heard(&peer.state).contains(r#""arguments":{"n": 1.10}"#)
            && heard(&state_of_p).contains(r#""arguments":{"n": 1.10}"#)
    );
    let (session, pid) = (first.session.clone(), heard(&peer.state));
    peer.restart();
    for client in [&mut first, &mut second] {
        let (status, text) = client.call("echo", "{}").await;
        assert!(status == 200 && text.contains(ECHO), "{status} {text}");
    }
    assert_eq!(first.session, session, "its client's session is the same");
    assert!(
        heard(&peer.state).matches("notifications/initialized").count()
            > pid.matches("notifications/initialized").count()
    );

    // The process of one client ends; the other's knows nothing of it.
    let (_, text) = mine.call("die", "{}").await;
    assert!(text.contains("may have been done"), "{text}");
    let begun = heard(&state_of_p).matches("\"initialize\"").count();
    for client in [&mut others, &mut mine] {
        let (status, text) = client.call("echo", "{}").await;
        assert!(status == 200 && text.contains(ECHO), "{status} {text}");
    }
    assert_eq!(heard(&state_of_p).matches("\"initialize\"").count(), begun + 1, "one was started again");

    let url = at(&gateway, "h");
    let gateway = gateway.restart();
    let mut old = Client { url: url.replace(&url[..url.find("/servers").unwrap()], &gateway.url), ..first };
    assert_eq!(old.call("echo", "{}").await.0, 404, "a client of the gateway before begins a new session");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_asks_its_client_and_tells_it_of_progress() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, peer, state_of_p) = world(folder.path(), "handshake");
    for (name, state) in [("h", &peer.state), ("p", &state_of_p)] {
        let mut client = Client::open(at(&gateway, name)).await;
        std::fs::write(std::path::Path::new(state).join("go"), "").unwrap();
        let (_, text) = client.call("progress", "{}").await;
        let told = messages(&text);
        assert_eq!(told.len(), 3, "{text}");
        assert_eq!(told[1]["params"]["progressToken"], "t1", "the client's own token");

        let asked =
            Client { web: client.web.clone(), url: client.url.clone(), session: client.session.clone(), ids: 50 };
        let call = tokio::spawn(async move {
            let mut asked = asked;
            let body = json!({ "jsonrpc": "2.0", "id": 60, "method": "tools/call", "params": { "name": "ask", "arguments": {} } });
            asked.ids += 1;
            asked.post(body.to_string()).await
        });
        let mut response = call.await.unwrap();
        let mut text = String::new();
        while !text.contains("sampling/createMessage") {
            text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
        }
        let answer = json!({ "jsonrpc": "2.0", "id": "q1", "result": { "role": "assistant", "said": 7 } });
        assert_eq!(client.post(answer.to_string()).await.status(), 202);
        while let Some(chunk) = response.chunk().await.unwrap() {
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        let last = messages(&text).pop().unwrap();
        assert!(last["id"] == 60 && last["result"]["content"][0]["text"].as_str().unwrap().contains("said"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_stateless_era_share_a_process_and_keep_their_own_names() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, peer, state_of_p) = world(folder.path(), "stateless");
    for state in [&peer.state, &state_of_p] {
        std::fs::write(std::path::Path::new(state).join("go"), "").unwrap();
    }
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"mine","x/y":[1.10]}"#;
    for name in ["h", "p"] {
        let client = Client::new(at(&gateway, name));
        let calls = (0..8).map(|_| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{{"name":"progress","arguments":{{}},{meta}}}}}"#);
            let request = client.web.post(&client.url).header("content-type", "application/json").body(body);
            let request = request.header("accept", "application/json, text/event-stream");
            request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call").header("mcp-name", "progress").send()
        });
        for response in futures_util::future::join_all(calls).await {
            let text = response.unwrap().text().await.unwrap();
            let told = messages(&text);
            assert_eq!(told.len(), 3, "{name} {text}");
            assert!(told[..2].iter().all(|notice| notice["params"]["progressToken"] == "mine"), "{text}");
            assert!(told[2]["id"] == "same" && text.contains(ECHO), "{text}");
        }
    }
    assert!(heard(&state_of_p).contains(r#""x/y":[1.10]"#));
    assert_eq!(heard(&state_of_p).matches("server/discover").count(), 1, "one process for all");
    let refused = Client::new(at(&gateway, "p"));
    let request = refused.web.post(&refused.url).header("content-type", "application/json");
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/list");
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo",{meta}}}}}"#);
    let response = request.body(body).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("-32020"));
}

/// To a client the place where it was answered is the gateway: a way to `/rpc` would be a way to the gateway's own `/rpc`.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_sends_nobody_elsewhere_on_the_gateway() {
    for status in [200, 302, 307] {
        let folder = tempfile::tempdir().unwrap();
        let peer = Peer::start(state(folder.path(), "h"), &["--era", "handshake", "--then", &status.to_string()]);
        let config = format!("[[mcp_servers]]\nname = \"h\"\nurl = {:?}\n", peer.url());
        let gateway = Gateway::start(folder.path(), &config);
        let client = Client::open(at(&gateway, "h")).await;
        let body = r#"{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"count","arguments":{}}}"#;
        let response = client.post(body.to_owned()).await;
        assert_eq!(response.url().path(), "/servers/h/mcp", "nobody was sent anywhere");
        for away in ["location", "refresh", "x-accel-redirect", "access-control-allow-origin", "x-kept-by-nobody"] {
            assert!(!response.headers().contains_key(away), "{status} {away}");
        }
        assert_eq!(response.status(), if status == 200 { 200 } else { 502 });
        let text = response.text().await.unwrap();
        assert!(status == 200 || text.contains("mine") && text.contains(&format!("HTTP {status}")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, _peer, _) = world(folder.path(), "handshake");
    let client = Client::new(at(&gateway, "nobody"));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert_eq!(client.post(ping.clone()).await.status(), 404);
    for name in ["h", "p"] {
        let client = Client { session: Some("made-up".to_owned()), ..Client::new(at(&gateway, name)) };
        assert_eq!(client.post(ping.clone()).await.status(), 404, "{name}");
        let foreign = client.web.post(&client.url).header("origin", "https://evil.example").body(ping.clone());
        assert_eq!(foreign.send().await.unwrap().status(), 403, "{name}");
    }
}
