//! One cell of the matrix: who asks, made anew with all that it asks about; how it is asked; and what the audit log has of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use reach_core::access::{Caller, authorize};
use reach_schemas::{ErrorCode, Permission};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::matrix::{Row, json_of};
use super::oauth::{JWT_BEARER, assertion};
use super::world::{Agent, OPERATOR_KEY, Said, World};
use crate::common::{Running, start};

/// Stands on the card of what is asked about, and nowhere else: who may not know of it must not read it.
pub(crate) const MARK: &str = "marked_thing";
/// How long the audit log may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// An MCP server to be added: another gateway, with one agent.
pub(crate) struct Upstream(Running);

impl Upstream {
    pub(crate) async fn start() -> Self {
        let running = start().await;
        let card = card("tool@up", &json!({}));
        let grant = authorize(Caller::OPERATOR, Permission::Serve).unwrap();
        running.gateway.register(grant, serde_json::from_value(card).unwrap(), None).await.unwrap();
        Self(running)
    }

    fn url(&self) -> String {
        self.0.url("/mcp")
    }
}

fn card(id: &str, access: &Value) -> Value {
    let work = json!({ "name": "work", "description": "Does the work.", "effect": "read", "tags": [MARK] });
    let judge =
        json!({ "name": "judge", "description": "Judges.", "effect": "read", "fallback": [{ "human": "bench" }] });
    json!({ "agent_id": id, "heartbeat_interval": "1h", "capabilities": [work, judge], "access": access })
}

/// Has the operator's policy hide those who live in the namespaces of column `barred`.
pub(crate) async fn bar(world: &World) {
    let version = admin(world, "policy/get", json!({})).await["version"].clone();
    let rule = json!({ "ruling": "deny", "subject": "*@n*", "actions": ["list"], "object": "*@b*" });
    admin(world, "policy/put", json!({ "version": version, "across": "cards", "rules": [rule] })).await;
}

async fn admin(world: &World, method: &str, params: Value) -> Value {
    world.call(Some(OPERATOR_KEY), method, params).await.result().clone()
}

/// An agent that is known by its key, and is registered.
async fn agent(world: &World, id: &str, access: &Value) -> Agent {
    let agent = Agent::new(id);
    admin(world, "token/trust_key", json!({ "agent_id": id, "x": agent.key.x() })).await;
    let token = agent.shows_key(world, None).await.result()["token"].as_str().unwrap().to_owned();
    admin(world, "agent/register", card(id, access)).await;
    Agent { token, ..agent }
}

/// A caller, and what it asks about.
pub(crate) struct Cell<'a> {
    world: &'a World,
    token: Option<String>,
    /// What the audit log calls it.
    pub(crate) actor: String,
    object: String,
    /// What stands for itself in the table, and what it stands for here.
    names: Vec<(&'static str, String)>,
}

impl<'a> Cell<'a> {
    pub(crate) async fn new(world: &'a World, upstream: &Upstream, row: &Row, (column, number): (&str, usize)) -> Self {
        let (own, foreign, hidden) = (format!("n{number}"), format!("o{number}"), format!("b{number}"));
        let both = |list: &str| json!({ list: [format!("*@{own}"), format!("*@{foreign}"), format!("*@{hidden}")] });
        let (home, access) = match column {
            "open" => (&foreign, both("callable_by")),
            "barred" => (&hidden, both("callable_by")),
            "closed" => (&foreign, json!({})),
            _ => (&own, json!({})),
        };
        let object = agent(world, &format!("object@{home}"), &access).await;
        let (actor, token) = match column {
            "none" => ("nobody".to_owned(), None),
            "self" => (object.id.clone(), Some(object.token.clone())),
            "peer" | "open" | "closed" | "barred" => {
                let caller = agent(world, &format!("caller@{own}"), &both("may_call")).await;
                (caller.id, Some(caller.token))
            }
            role => {
                let role = if role == "view" {
                    "viewer"
                } else if role == "oper" {
                    "operator"
                } else {
                    role
                };
                let name = format!("{role}{number}");
                (format!("operator:{name}"), Some(world.operator(&name, role).await))
            }
        };
        let text = format!("{} {}", row.what, row.sent);
        let mut names = named(world, upstream, (&object, &access), &text).await;
        names.push(("NAMESPACE", home.clone()));
        names.push(("OTHER", format!("other@x{number}")));
        // A longer name first: another may be a part of it.
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self { world, token, actor, object: object.id, names }
    }

    fn filled(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// What is due in the audit log if it is done.
    pub(crate) fn due(&self, row: &Row) -> BTreeSet<String> {
        let due = row.written.iter().map(|kind| match kind.split_once('@') {
            Some((kind, "AGENT")) => format!("{kind}@{}", self.object),
            Some(_) => kind.clone(),
            None => format!("{kind}@{}", self.actor),
        });
        due.collect()
    }

    /// The end of the audit log.
    pub(crate) async fn head(&self) -> u64 {
        let told = admin(self.world, "audit/tail", json!({ "limit": 1 })).await;
        told["head"]["seq"].as_u64().unwrap()
    }

    /// What the audit log has since: what was to be written before now is there before what is told it now.
    pub(crate) async fn written_since(&self, seq: u64) -> Vec<String> {
        let barrier = format!("barrier{seq}");
        self.world.gateway.refused(barrier.as_str(), "matrix", ErrorCode::Forbidden, "");
        let began = Instant::now();
        loop {
            let told = admin(self.world, "audit/export", json!({ "after": seq })).await;
            let rows = told["rows"].as_array().unwrap();
            if rows.iter().any(|row| row["actor"] == barrier.as_str()) {
                let rows = rows.iter().filter(|row| row["actor"] != barrier.as_str());
                let mut written: Vec<String> = rows.map(described).collect();
                written.sort();
                return written;
            }
            assert!(began.elapsed() < PATIENCE, "the audit log stands still");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The name of the error that is answered, empty if there is none; and all of the answer.
    pub(crate) async fn ask(&self, row: &Row) -> (String, String) {
        let sent = self.filled(&row.sent);
        match row.what.split_once(' ') {
            None if row.what == "task/subscribe" => self.ask_socket("/rpc/ws", &row.what, &sent).await,
            None => {
                let said =
                    self.world.call(self.token.as_deref(), &row.what, serde_json::from_str(&sent).unwrap()).await;
                (code_of(said.status, &said.json), said.json.to_string())
            }
            Some(("WS", path)) => match self.world.socket(path, self.token.as_deref()).await {
                Ok(_) => (String::new(), String::new()),
                Err(status) => (of_status(status).to_owned(), String::new()),
            },
            Some(("mcp", method @ ("initialize" | "ping"))) => self.ask_socket("/mcp/ws", method, &sent).await,
            Some(("mcp", method)) => self.ask_mcp(method, &sent).await,
            Some((verb, path)) => self.ask_path(verb, &self.filled(path), &sent).await,
        }
    }

    async fn ask_socket(&self, path: &str, method: &str, params: &str) -> (String, String) {
        let mut socket = match self.world.socket(path, self.token.as_deref()).await {
            Ok(socket) => socket,
            Err(status) => return (of_status(status).to_owned(), String::new()),
        };
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        socket.send(Message::text(frame)).await.unwrap();
        loop {
            let text = socket.next().await.unwrap().unwrap().into_text().unwrap();
            let json: Value = serde_json::from_str(&text).unwrap();
            if json["id"] == 1 {
                return (code_of(200, &json), text.to_string());
            }
        }
    }

    async fn ask_mcp(&self, method: &str, params: &str) -> (String, String) {
        let mut params: Value = serde_json::from_str(params).unwrap();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "matrix", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        });
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let name = ["name", "taskId"].iter().find_map(|member| params[member].as_str()).unwrap_or_default().to_owned();
        let mut headers = vec![ACCEPT, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        if method == "subscriptions/listen" {
            return self.open("POST", "/mcp", &headers, Some(&frame)).await;
        }
        let said = self.world.http("POST", "/mcp", self.token.as_deref(), &headers, Some(&frame)).await;
        let json = whole(&said);
        (code_of(said.status, &json), json.to_string())
    }

    async fn ask_path(&self, verb: &str, path: &str, sent: &str) -> (String, String) {
        let token = self.token.as_deref();
        if path.starts_with("/oauth/") {
            let form: Vec<(&str, &str)> = sent.split('&').filter_map(|one| one.split_once('=')).collect();
            let said = self.world.form(path, token, &form).await;
            return (code_of(said.status, &said.json), said.json.to_string());
        }
        let mut headers = vec![ACCEPT];
        let session;
        if path == "/mcp" && verb != "POST" && token.is_some() {
            session = self.world.mcp(token).await.headers["mcp-session-id"].to_str().unwrap().to_owned();
            headers.push(("mcp-session-id", &session));
        }
        if path == "/mcp" && verb == "GET" {
            return self.open(verb, path, &headers, None).await;
        }
        let body: Option<Value> = (!sent.is_empty()).then(|| serde_json::from_str(sent).unwrap());
        let said = self.world.http(verb, path, token, &headers, body.as_ref()).await;
        let json = whole(&said);
        (code_of(said.status, &json), json.to_string())
    }

    /// Asks for a stream, and looks at its head.
    async fn open(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> (String, String) {
        let request = self.world.request(verb, path, self.token.as_deref(), headers, body);
        let status = request.send().await.unwrap().status();
        (of_status(status.as_u16()).to_owned(), String::new())
    }
}

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Makes what a row asks about, as far as it does.
async fn named(
    world: &World,
    upstream: &Upstream,
    (object, access): (&Agent, &Value),
    text: &str,
) -> Vec<(&'static str, String)> {
    let wants = |name: &str| text.contains(name);
    let mut names = vec![("AGENT", object.id.clone()), ("UPSTREAM", upstream.url()), ("BEARER", JWT_BEARER.to_owned())];
    if wants("CARD") {
        let mut card = card(&object.id, access);
        card["version"] = json!("2");
        names.push(("CARD", card.to_string()));
    }
    names.push(("PROOF", object.proof(world)));
    names.push(("ASSERTION", assertion(world, &object.key, &object.id, &world.url("/oauth/token"))));
    names.push(("TOKEN", object.token.clone()));
    if wants("TASK") {
        names.push(("TASK", submit(world, object, "work").await));
    }
    if wants("CLAIMED") {
        let (task, token) = claimed(world, object, "work").await;
        names.push(("CLAIMED", task));
        names.push(("FENCING", token));
    }
    if wants("DEAD") {
        names.push(("DEAD", failed(world, object, "work").await));
    }
    if wants("HUMAN") {
        names.push(("HUMAN", failed(world, object, "judge").await));
    }
    if wants("HELD") {
        let task = failed(world, object, "judge").await;
        let taken = admin(world, "human/take", json!({ "task_id": task, "by": "somebody" })).await;
        names.push(("HELD", task));
        names.push(("HOLD", taken["token"].to_string()));
    }
    if wants("SERVER") {
        let home = object.id.split('@').nth(1).unwrap();
        let server = json!({ "name": format!("up{home}"), "namespace": home, "url": upstream.url() });
        admin(world, "server/add", json!({ "server": server })).await;
        names.push(("SERVER", format!("up{home}")));
    }
    names
}

/// A task that the agent asks of itself.
async fn submit(world: &World, object: &Agent, capability: &str) -> String {
    let params = json!({ "to_agent": object.id, "capability": capability, "from_agent": object.id, "tries": 1 });
    admin(world, "task/submit", params).await["task_id"].as_str().unwrap().to_owned()
}

async fn claimed(world: &World, object: &Agent, capability: &str) -> (String, String) {
    let task = submit(world, object, capability).await;
    let claimed = admin(world, "task/claim", json!({ "agent_id": object.id, "task_id": task })).await;
    let token = claimed["tasks"][0]["token"].to_string();
    (task, token)
}

async fn failed(world: &World, object: &Agent, capability: &str) -> String {
    let (task, token) = claimed(world, object, capability).await;
    let token: Value = serde_json::from_str(&token).unwrap();
    admin(world, "task/fail", json!({ "task_id": task, "token": token, "message": "no", "retryable": true })).await;
    task
}

fn described(row: &Value) -> String {
    let (kind, actor) = (row["kind"].as_str().unwrap(), row["actor"].as_str().unwrap());
    match row["code"].as_str().filter(|_| kind == "call.refused") {
        Some(code) => format!("{kind}:{code}@{actor}"),
        None => format!("{kind}@{actor}"),
    }
}

/// The text of an answer as JSON, whether it came alone or as the end of a stream.
fn whole(said: &Said) -> Value {
    said.json.as_str().map_or_else(|| said.json.clone(), json_of)
}

fn of_status(status: u16) -> &'static str {
    match status {
        200..=399 => "",
        401 => "unauthenticated",
        403 => "forbidden",
        _ => "invalid_request",
    }
}

/// The name of the error that an answer tells of, in whichever dialect.
fn code_of(status: u16, json: &Value) -> String {
    let places = [&json["error"]["data"]["code"], &json["code"], &json["result"]["_meta"]["agent-reach/error"]["code"]];
    let is_refused = status >= 400 || json["error"].is_object() || json["result"]["isError"] == true;
    let named = places.into_iter().find_map(Value::as_str).filter(|_| is_refused);
    named.unwrap_or_else(|| of_status(status)).to_owned()
}
