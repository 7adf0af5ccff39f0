//! A gateway, agents that offer things, and a client that speaks plain HTTP with `/mcp`.

use std::time::Duration;

use agent_reach_sdk::{Agent, AgentCard, AgentHandle, Capability, Client, Context, HandlerError, Task, card};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::common::Running;
use crate::common::peer::client;

/// An agent under construction.
pub(crate) fn agent(url: &str, name: &str) -> agent_reach_sdk::AgentBuilder {
    agent_with(url, card(name).unwrap())
}

/// The same, with a card of its own.
pub(crate) fn agent_with(url: &str, card: AgentCard) -> agent_reach_sdk::AgentBuilder {
    Agent::builder(card).connection(Client::builder().url(url))
}

/// A capability as JSON has it.
pub(crate) fn capability(json: &Value) -> Capability {
    serde_json::from_value(json.clone()).unwrap()
}

/// An agent whose capabilities all answer with their own parameters.
pub(crate) async fn echo(running: &Running, name: &str, capabilities: &[Value]) -> AgentHandle {
    let builder = capabilities.iter().fold(agent(&running.url(""), name), |builder, json| {
        builder.capability(capability(json), |task: Task, _: Context| async move { task.params::<Value>() })
    });
    builder.start().await.unwrap()
}

/// A tool of an MCP server, as an agent's card has it.
fn tool(name: &str, description: &str) -> Capability {
    let raw = json!({ "name": name, "description": description, "inputSchema": { "type": "object" } });
    capability(&json!({ "name": name, "tool": raw, "effect": "read" }))
}

/// Work that always answers with this content.
fn says(content: Value) -> impl agent_reach_sdk::Handler {
    move |_: Task, _: Context| {
        let content = content.clone();
        async move { Ok::<_, HandlerError>(json!({ "content": content })) }
    }
}

/// The tools that the conformance suite calls, done by one agent. Each says its part as a tool of an MCP server would.
pub(crate) async fn conforming(url: &str) -> AgentHandle {
    let text = || json!([{ "type": "text", "text": "This is a simple text response for testing." }]);
    let image = json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" });
    let audio = json!({ "type": "audio", "data": SILENCE, "mimeType": "audio/wav" });
    let resource = |uri: &str, kind: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } });
    let embedded = resource("test://embedded-resource", "text/plain", "This is an embedded resource content.");
    let data = resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
    let mixed = json!([{ "type": "text", "text": "Multiple content types test:" }, image, data]);
    let schema = json!({ "name": "json_schema_2020_12_tool", "tool": schema_tool(), "effect": "read" });
    let mirrored = json!({ "name": "test_mirrored", "effect": "read", "description": "Wants an argument in a header",
        "input_schema": { "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } } });
    let builder = agent(url, "everything@conformance")
        .capability(tool("test_simple_text", "Answers with a text"), says(text()))
        .capability(tool("test_image_content", "Answers with an image"), says(json!([image])))
        .capability(tool("test_audio_content", "Answers with a sound"), says(json!([audio])))
        .capability(tool("test_embedded_resource", "Answers with a resource"), says(json!([embedded])))
        .capability(tool("test_multiple_content_types", "Answers with several things"), says(mixed))
        .capability(tool("test_error_handling", "Fails"), failing)
        .capability(tool("test_tool_with_progress", "Tells how far it is"), progressing)
        .capability(tool("test_logging_tool", "Logs nothing unasked"), says(text()))
        .capability(tool("test_streaming_elicitation", "Asks for nothing"), says(text()))
        .capability(capability(&schema), says(text()))
        .capability(capability(&mirrored), says(text()));
    with_long_work(builder).start().await.unwrap()
}

/// The tools that the scenarios of the tasks extension call.
fn with_long_work(builder: agent_reach_sdk::AgentBuilder) -> agent_reach_sdk::AgentBuilder {
    let long = |name: &str| {
        let card =
            json!({ "name": name, "description": "Long work", "tier": "long", "effect": "read", "cancellable": true });
        capability(&card)
    };
    builder
        .capability(tool("greet", "Greets"), greeting)
        .capability(long("slow_compute"), |task: Task, context: Context| async move {
            let asked: Value = task.params()?;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(asked["seconds"].as_u64().unwrap_or(0))) => {}
                () = context.cancelled() => return Err(HandlerError::failed("stopped")),
            }
            Ok("computed".to_owned())
        })
        .capability(long("confirm_delete"), |_: Task, _: Context| async { Ok("deleted without asking".to_owned()) })
        .capability(long("failing_job"), |_: Task, _: Context| async {
            Err::<Value, _>(HandlerError::failed("this job always fails"))
        })
}

fn schema_tool() -> Value {
    json!({ "name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": { "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "$defs": { "address": { "$anchor": "addressDef", "type": "object", "properties": {
                "street": { "type": "string" }, "city": { "type": "string" } } } },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" }, "email": { "type": "string" } },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] }, "else": { "required": ["email"] },
            "additionalProperties": false } })
}

async fn greeting(task: Task, _: Context) -> Result<Value, HandlerError> {
    let asked: Value = task.params()?;
    let text = format!("Hello, {}!", asked["name"].as_str().unwrap_or("World"));
    Ok(json!({ "content": [{ "type": "text", "text": text }] }))
}

async fn failing(_: Task, _: Context) -> Result<Value, HandlerError> {
    let content = json!([{ "type": "text", "text": "This tool intentionally returns an error for testing" }]);
    Err(HandlerError::failed("the tool says no").data(&json!({ "content": content, "isError": true })))
}

async fn progressing(_: Task, context: Context) -> Result<Value, HandlerError> {
    for progress in [0, 50, 100] {
        context.progress(&json!({ "progress": progress, "total": 100 })).await.map_err(HandlerError::failed)?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(json!({ "content": [{ "type": "text", "text": "done" }] }))
}

/// One red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound without a sample.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// One who speaks with `/mcp`.
pub(crate) struct Host {
    pub(crate) http: reqwest::Client,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The messages of a stream of events.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert!(self.header("content-type").starts_with("text/event-stream"), "{self:?}");
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// Its one message, or the last of its stream.
    pub(crate) fn last(&self) -> Value {
        if self.header("content-type").starts_with("text/event-stream") {
            self.events().pop().unwrap_or_else(|| panic!("{self:?}"))
        } else {
            self.json()
        }
    }
}

impl Host {
    pub(crate) fn new(url: String) -> Self {
        Self { http: client(), url, headers: Vec::new() }
    }

    pub(crate) fn of(running: &Running) -> Self {
        Self::new(running.url("/mcp"))
    }

    /// The same in the name of an agent.
    pub(crate) fn named(mut self, agent: &str) -> Self {
        self.headers.push(("reach-agent".to_owned(), agent.to_owned()));
        self
    }

    pub(crate) fn request(&self, verb: reqwest::Method, headers: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        own.chain(headers.iter().copied())
            .fold(self.http.request(verb, &self.url), |request, (name, value)| request.header(name, value))
    }

    /// Posts a body with the usual headers and these.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: String) -> Reply {
        let usual = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        let said = |name: &str| headers.iter().any(|(other, _)| *other == name);
        let usual: Vec<_> = usual.into_iter().filter(|(name, _)| !said(name)).collect();
        let headers: Vec<_> =
            usual.into_iter().chain(headers.iter().copied()).filter(|(_, value)| !value.is_empty()).collect();
        let request = self.request(reqwest::Method::POST, &headers).body(body);
        read(request.send().await.unwrap()).await
    }

    /// Opens a session, and gives a host that speaks in it.
    pub(crate) async fn session(&self, version: &str) -> Self {
        let opened = self.post(&[], initialize(version)).await;
        assert_eq!(opened.status, 200, "{opened:?}");
        let mut host = Self { http: self.http.clone(), url: self.url.clone(), headers: self.headers.clone() };
        host.headers.push(("mcp-session-id".to_owned(), opened.header("mcp-session-id").to_owned()));
        host.headers.push(("mcp-protocol-version".to_owned(), version.to_owned()));
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(host.post(&[], initialized.to_string()).await.status, 202);
        host
    }

    /// Asks within a session.
    pub(crate) async fn ask(&self, id: u64, method: &str, params: Value) -> Reply {
        self.post(&[], json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()).await
    }

    /// Asks as the stateless era does.
    pub(crate) async fn ask_alone(&self, id: u64, method: &str, params: Value) -> Reply {
        let (headers, body) = alone(id, method, params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.post(&headers, body).await
    }
}

pub(crate) async fn read(response: reqwest::Response) -> Reply {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Reply { status, headers, text: response.text().await.unwrap() }
}

pub(crate) fn initialize(version: &str) -> String {
    let params =
        json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

/// The headers and the body of a request of the stateless era.
pub(crate) fn alone(id: u64, method: &str, mut params: Value) -> (Vec<(&'static str, String)>, String) {
    let own = params["_meta"].take();
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in own.as_object().into_iter().flatten() {
        meta[key] = value.clone();
    }
    params["_meta"] = meta;
    let mut headers = vec![("mcp-protocol-version", "2026-07-28".to_owned()), ("mcp-method", method.to_owned())];
    headers.extend(params["name"].as_str().or(params["taskId"].as_str()).map(|name| ("mcp-name", name.to_owned())));
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    (headers, body.to_string())
}
