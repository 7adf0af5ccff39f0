//! Whose a server and a session with it are: what cards and the policy close, what is another's, and how much one may take.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::world::{Gateway, PATIENCE, Peer, script, state};

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) status: u16,
    session: Option<String>,
    again: Option<String>,
    pub(crate) text: String,
}

/// Someone who calls as an agent.
pub(crate) struct Who<'a> {
    gateway: &'a Gateway,
    agent: &'static str,
    web: reqwest::Client,
}

impl<'a> Who<'a> {
    pub(crate) fn new(gateway: &'a Gateway, agent: &'static str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { gateway, agent, web: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    pub(crate) fn request(&self, verb: Method, path: &str, session: Option<&str>) -> reqwest::RequestBuilder {
        let request = self.web.request(verb, format!("{}{path}", self.gateway.url));
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("content-type", "application/json");
        let request = if self.agent.is_empty() { request } else { request.header("reach-agent", self.agent) };
        match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }

    pub(crate) async fn ask(&self, verb: Method, path: &str, session: Option<&str>, body: &str) -> Said {
        let response = self.request(verb, path, session).body(body.to_owned()).send().await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (status, session, again) = (response.status().as_u16(), header("mcp-session-id"), header("retry-after"));
        Said { status, session, again, text: response.text().await.unwrap() }
    }

    pub(crate) async fn post(&self, path: &str, session: Option<&str>, method: &str, params: Value) -> Said {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.ask(Method::POST, path, session, &body.to_string()).await
    }

    async fn initialize(&self, path: &str) -> Said {
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        self.post(path, None, "initialize", params).await
    }

    /// Opens a session, and gives its id.
    #[track_caller]
    pub(crate) fn opens(&self, path: &str) -> impl Future<Output = String> {
        let place = std::panic::Location::caller();
        let opening = self.initialize(path);
        async move {
            let said = opening.await;
            assert_eq!(said.status, 200, "{place}: {said:?}");
            said.session.unwrap()
        }
    }

    async fn echo(&self, path: &str, session: &str) -> Said {
        self.post(path, Some(session), "tools/call", json!({ "name": "echo", "arguments": {} })).await
    }
}

/// The configuration of servers that are processes.
fn processes(folder: &Path, servers: &[(&str, &str)]) -> String {
    let server = |(name, more): &(&str, &str)| {
        let (flags, card) = more.split_once('|').unwrap_or((more, ""));
        let flags: String = flags.split_whitespace().map(|flag| format!(", {flag:?}")).collect();
        let (script, state) = (script(), state(folder, name));
        format!(
            "[[mcp_servers]]\nname = {name:?}\nnamespace = \"blue\"\ncommand = \"python3\"\n\
             args = [{script:?}, \"stdio\", {state:?}{flags}]\n{card}\n"
        )
    };
    servers.iter().map(server).collect()
}

fn deny(gateway: &Gateway, version: u64, rules: &Value) {
    gateway.call("policy/put", &json!({ "version": version, "across": "cards", "rules": rules }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_closed_to_a_caller_is_answered_as_one_that_is_not_there_whether_it_has_tools_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let closed = "[mcp_servers.card]\naccess = { callable_by = [] }\n";
    let hidden = "[mcp_servers.card]\ncapabilities = [{ name = \"count\", hidden = true }]\n";
    let config = processes(
        folder.path(),
        &[
            ("locked", &format!("--bare|{closed}")),
            ("shut", &format!("|{closed}")),
            ("docs", "--bare"),
            ("tools", ""),
            ("hid", &format!("|{hidden}")),
        ],
    );
    let gateway = Gateway::start(folder.path(), &config);
    let (own, stranger, operator) =
        (Who::new(&gateway, "own@blue"), Who::new(&gateway, "mole@red"), Who::new(&gateway, ""));
    let at = |name: &str| format!("/servers/{name}/mcp");
    let is_hidden = async |who: &Who<'_>, name: &str| {
        let (real, none) = (who.initialize(&at(name)).await, who.initialize(&at("nothere")).await);
        real == Said { text: none.text.replace("nothere", name), ..none }
    };
    for name in ["locked", "shut"] {
        assert!(is_hidden(&own, name).await, "{name}: its card names nobody");
        assert_eq!(operator.initialize(&at(name)).await.status, 200);
    }
    for name in ["docs", "tools", "hid"] {
        assert!(!is_hidden(&own, name).await && is_hidden(&stranger, name).await, "{name}");
    }
    let rule = |object: &str, capability: Option<&str>| json!([{ "ruling": "deny", "subject": "own@*", "actions": ["call"], "object": object, "capability": capability }]);
    deny(&gateway, 0, &rule("*@blue", None));
    assert!(is_hidden(&own, "docs").await && is_hidden(&own, "tools").await);
    // What is denied may be a tool that is hidden, or that comes yet.
    deny(&gateway, 1, &rule("*@blue", Some("co*")));
    for name in ["docs", "tools", "hid"] {
        assert!(is_hidden(&own, name).await, "{name}");
    }
    deny(&gateway, 2, &rule("tools@blue", None));
    assert!(!is_hidden(&own, "docs").await && !is_hidden(&own, "hid").await && is_hidden(&own, "tools").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_another_is_answered_as_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start(state(folder.path(), "h"), &[]);
    let config = format!("[[mcp_servers]]\nname = \"h\"\nnamespace = \"blue\"\nurl = {:?}\n", peer.url());
    let gateway = Gateway::start(folder.path(), &(config + &processes(folder.path(), &[("p", "")])));
    let (own, other, operator) =
        (Who::new(&gateway, "own@blue"), Who::new(&gateway, "other@blue"), Who::new(&gateway, ""));
    for path in ["/servers/h/mcp", "/servers/p/mcp"] {
        let session = own.opens(path).await;
        for who in [&other, &operator] {
            for verb in [Method::POST, Method::GET, Method::DELETE] {
                let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
                let stolen = who.ask(verb.clone(), path, Some(&session), body).await;
                let unknown = who.ask(verb.clone(), path, Some("no-such-session"), body).await;
                assert_eq!((stolen.status, &stolen), (404, &unknown), "{path} {verb}");
            }
        }
        assert_eq!(own.echo(path, &session).await.status, 200, "{path}: nobody has ended it");
        assert_eq!(own.ask(Method::DELETE, path, Some(&session), "").await.status / 100, 2);
        assert_eq!(own.echo(path, &session).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_and_its_session_end_once_the_policy_closes_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start(state(folder.path(), "h"), &[]);
    let config = format!("[[mcp_servers]]\nname = \"h\"\nnamespace = \"blue\"\nurl = {:?}\n", peer.url());
    let gateway = Gateway::start(folder.path(), &(config + &processes(folder.path(), &[("p", "")])));
    let (own, other) = (Who::new(&gateway, "own@blue"), Who::new(&gateway, "other@blue"));
    let paths = ["/servers/h/mcp", "/servers/p/mcp"];
    let mut open = Vec::new();
    for who in [&own, &other] {
        for path in paths {
            let session = who.opens(path).await;
            let stream = who.request(Method::GET, path, Some(&session)).send().await.unwrap();
            assert_eq!(stream.status(), 200);
            open.push((who, path, session, stream));
        }
    }
    let rule = json!({ "ruling": "deny", "subject": "own@blue", "actions": ["call"], "object": "*@blue" });
    deny(&gateway, 0, &json!([rule]));
    for (who, path, session, stream) in open {
        let ended =
            tokio::time::timeout(if who.agent == "own@blue" { PATIENCE } else { Duration::from_secs(1) }, async {
                let mut stream = stream;
                while let Ok(Some(_)) = stream.chunk().await {}
            });
        let has_ended = ended.await.is_ok();
        assert_eq!(has_ended, who.agent == "own@blue", "{} {path}", who.agent);
        if !has_ended {
            assert_eq!(who.echo(path, &session).await.status, 200, "{path}");
        }
    }
    // The session is over, and does not come back with the right to have one.
    deny(&gateway, 1, &json!([]));
    for path in paths {
        assert_eq!(own.initialize(path).await.status, 200);
    }
    let pids = std::fs::read_to_string(folder.path().join("p/pids")).unwrap();
    let alive = || pids.lines().filter(|pid| Path::new("/proc").join(pid).exists()).count();
    let began = std::time::Instant::now();
    // The gateway's own, the other's, and the new one: the old one's process has ended.
    while alive() > 3 {
        assert!(began.elapsed() < PATIENCE, "{pids}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_and_one_namespace_take_no_more_than_their_share_of_processes() {
    let folder = tempfile::tempdir().unwrap();
    let limits = "[limits]\nprocesses_per_caller_max = 2\nprocesses_per_namespace_max = 3\nprocesses_max = 5\n";
    let open = "[mcp_servers.card]\naccess = { callable_by = [\"*@*\"] }\n";
    let config = limits.to_owned() + &processes(folder.path(), &[("p", &format!("|{open}"))]);
    let gateway = Gateway::start(folder.path(), &config);
    for agent in ["c@green", "d@green"] {
        let access = json!({ "may_call": ["*@*"] });
        gateway
            .call("agent/register", &json!({ "agent_id": agent, "access": access, "capabilities": [{ "name": "x" }] }));
    }
    let path = "/servers/p/mcp";
    let (greedy, near, third) =
        (Who::new(&gateway, "a@blue"), Who::new(&gateway, "b@blue"), Who::new(&gateway, "e@blue"));
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(greedy.opens(path).await);
    }
    let mut statuses = Vec::new();
    for session in &sessions {
        statuses.push(greedy.echo(path, session).await.status);
    }
    assert_eq!(statuses, [404, 404, 200, 200], "its own that were idle longest have made way");
    // A stream keeps each of them in use.
    let mut streams = Vec::new();
    for session in &sessions[2..] {
        streams.push(greedy.request(Method::GET, path, Some(session)).send().await.unwrap());
    }
    let refused = greedy.initialize(path).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(
        refused.again.is_some() && refused.text.contains("a@blue has 2") && refused.text.contains("DELETE"),
        "{refused:?}"
    );
    let nears = near.opens(path).await;
    let refused = third.initialize(path).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.text.contains("the agents of blue have 3"), "{refused:?}");
    assert_eq!(near.echo(path, &nears).await.status, 200, "who has no more than the newcomer keeps it");
    // Another namespace has its places all the same.
    let greens = [Who::new(&gateway, "c@green"), Who::new(&gateway, "d@green")];
    for green in &greens {
        green.opens(path).await;
    }
    drop(streams);
    let begun = std::time::Instant::now();
    let session = loop {
        let said = third.initialize(path).await;
        if said.status == 200 {
            break said.session.unwrap();
        }
        assert!(begun.elapsed() < PATIENCE, "{said:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(third.echo(path, &session).await.status, 200, "who has more than its share makes way for it");
    assert_eq!(near.echo(path, &nears).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_too_fast_over_mcp_is_told_so_on_every_road() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        "[limits]\ncaller_rate = { per_second = 1, burst = 5 }\n".to_owned() + &processes(folder.path(), &[("p", "")]);
    let gateway = Gateway::start(folder.path(), &config);
    let agents = ["a@blue", "b@blue", "c@blue", "d@blue", "e@blue", "f@blue", "g@blue"];
    let whos: Vec<Who<'_>> = agents.iter().map(|agent| Who::new(&gateway, agent)).collect();
    let limited = |said: &[Said]| {
        let (passed, refused): (Vec<&Said>, Vec<&Said>) = said.iter().partition(|said| said.status != 429);
        let is_told =
            |said: &&&Said| said.again.as_deref() == Some("1") && said.text.contains(r#""code":"overloaded""#);
        assert!(refused.len() > 10, "{} passed", passed.len());
        assert_eq!(refused.iter().filter(is_told).count(), refused.len(), "{refused:?}");
    };
    let unknown = json!({ "name": "no_such_tool", "arguments": {} });
    for (who, method, params) in
        [(&whos[0], "ping", json!({})), (&whos[1], "tools/list", json!({})), (&whos[2], "tools/call", unknown)]
    {
        let session = who.opens("/mcp").await;
        limited(&join_all((0..30).map(|_| who.post("/mcp", Some(&session), method, params.clone()))).await);
    }
    limited(&join_all((0..30).map(|_| whos[3].initialize("/mcp"))).await);
    let (who, path) = (&whos[4], "/servers/p/mcp");
    let session = who.opens(path).await;
    limited(&join_all((0..30).map(|_| who.post(path, Some(&session), "ping", json!({})))).await);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let batch = Value::Array(vec![ping; 20]).to_string();
    let session = whos[5].opens("/servers/p/mcp").await;
    let said = whos[5].ask(Method::POST, "/servers/p/mcp", Some(&session), &batch).await;
    assert_eq!((said.status, said.again.is_some()), (429, true), "each message of a batch counts: {said:?}");
    over_a_connection(&gateway.url, agents[6]).await;
}

/// On a connection, the refusal is an error under the id of what was asked.
async fn over_a_connection(url: &str, agent: &str) {
    let mut request = format!("{}/mcp/ws", url.replace("http", "ws")).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
    request.headers_mut().insert("reach-agent", agent.parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let mut refused = Vec::new();
    for id in 0..40 {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" } });
        let (method, params) = if id % 2 == 0 { ("ping", json!({})) } else { ("tools/list", json!({ "_meta": meta })) };
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        socket.send(Message::text(frame.to_string())).await.unwrap();
        let answer: Value = loop {
            if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
                break serde_json::from_str(text.as_str()).unwrap();
            }
        };
        assert_eq!(answer["id"], id);
        if answer["error"]["data"]["code"] == "overloaded" {
            assert!(answer["error"]["data"]["retry_after"].is_string(), "{answer}");
            refused.push(method);
        }
    }
    assert!(refused.len() > 25 && refused.contains(&"ping") && refused.contains(&"tools/list"), "{refused:?}");
}
