//! A gateway that asks its callers who they are, that can be started anew and whose time can be moved on; an operator with the
//! key of its folder; and agents that speak plain JSON-RPC.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reach_gateway::audit;
use reach_gateway::clock::Clock;
use reach_gateway::gateway::{Gateway, Settings};
use reach_gateway::identity::{self, KeyHome, Mode};
use reach_gateway::rates::RateLimits;
use reach_gateway::store::memory::MemoryStore;
use reach_gateway::store::{IdentityRow, Store};
use reach_gateway::transport::{HttpSettings, serve};
use reach_gateway::worker::{self, recovery};
use reach_schemas::{ErrorCode, Secret, Timestamp};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::signer::Signer;
use crate::common::{gateway_over, peer};

pub(crate) const OPERATOR_KEY: &str = "the-key-of-the-folder";
pub(crate) const SECRET: &str = "a-secret-of-the-namespace-desk";

/// The gateway, and what outlives it.
pub(crate) struct World {
    pub(crate) gateway: Arc<Gateway>,
    store: Arc<dyn Store>,
    folder: TempDir,
    pub(crate) address: String,
    port: u16,
    stop: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
    client: reqwest::Client,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) json: Value,
}

impl Said {
    /// The result of a call that went well.
    #[track_caller]
    pub(crate) fn result(&self) -> &Value {
        assert!(self.json.get("result").is_some(), "{self:?}");
        &self.json["result"]
    }

    /// Holds it to be a refusal of this name.
    #[track_caller]
    pub(crate) fn refused(&self, code: &str) {
        let told =
            if self.json["error"].is_object() { &self.json["error"]["data"]["code"] } else { &self.json["code"] };
        assert_eq!(told, code, "{self:?}");
        let is_unknown = matches!(code, "unauthenticated" | "token_expired" | "token_revoked" | "superseded");
        assert_eq!(self.status == 401, is_unknown, "{self:?}");
        if is_unknown {
            let challenge = self.headers["www-authenticate"].to_str().unwrap();
            assert!(challenge.starts_with("Bearer ") && challenge.contains("resource_metadata="), "{challenge}");
        }
    }
}

async fn said(request: reqwest::RequestBuilder) -> Said {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    Said { status, headers, json: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
}

fn settings(folder: &TempDir) -> Settings {
    let identity = identity::Settings {
        mode: Mode::Required,
        keys: KeyHome::File(folder.path().join("signing-keys")),
        operator_key: Some(Secret::from(OPERATOR_KEY.to_owned())),
        namespace_secrets: [("desk".parse().unwrap(), Secret::from(SECRET.to_owned()))].into(),
        ..identity::Settings::default()
    };
    let signer = audit::Signer::of_seed(&[7; 32]).unwrap();
    let audit = audit::Settings { signer: Some(Arc::new(signer)), ..audit::Settings::default() };
    Settings { identity, audit, ..Settings::default() }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(RateLimits::default()).await
    }

    /// A gateway whose callers are held to these rates.
    pub(crate) async fn with(rates: RateLimits) -> Self {
        let (store, folder) = (Arc::new(MemoryStore::new()), tempfile::tempdir().unwrap());
        Self::start((store, folder, rates), Clock::start(), 0).await
    }

    async fn start((store, folder, rates): (Arc<dyn Store>, TempDir, RateLimits), clock: Clock, port: u16) -> Self {
        let stop = CancellationToken::new();
        let settings = Settings { rates, ..settings(&folder) };
        let gateway = gateway_over(settings, Arc::clone(&store), clock);
        gateway.identity().open_keys(gateway.now()).unwrap();
        recovery::recover(&gateway).await.unwrap();
        drop(worker::start(&gateway, &stop));
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let bound = listener.local_addr().unwrap();
        let served = tokio::spawn(serve(Arc::clone(&gateway), listener, HttpSettings::default(), stop.clone()));
        // A second call finds it done.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Self { gateway, store, folder, address: bound.to_string(), port: bound.port(), stop, served, client }
    }

    /// The same gateway, ended and started again, with a clock that goes wrong by so much.
    pub(crate) async fn restarted(self, ahead: i64) -> Self {
        let now = self.now().as_ms();
        let now = Timestamp::from_ms(now.checked_add_signed(ahead).unwrap());
        let (store, port) = (Arc::clone(&self.store), self.port);
        let mut old = self;
        old.stop.cancel();
        (&mut old.served).await.unwrap().unwrap();
        let folder = std::mem::replace(&mut old.folder, tempfile::tempdir().unwrap());
        drop(old);
        Self::start((store, folder, RateLimits::default()), Clock::starting_at(now), port).await
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.gateway.now()
    }

    /// All rows of calls that were refused, oldest first: by whom, what, the error and how often. To be asked once.
    pub(crate) async fn refusals(&self) -> Vec<(String, String, String, u64)> {
        // Those alike are counted for a minute.
        pass(Duration::from_secs(61)).await;
        let barrier = "barrier";
        self.gateway.refused(barrier, "", ErrorCode::Forbidden, "");
        loop {
            let params = json!({ "kind": "call.refused", "limit": 500 });
            let told = self.call(Some(OPERATOR_KEY), "audit/search", params).await;
            let rows = told.result()["rows"].as_array().unwrap();
            if rows.iter().any(|row| row["actor"] == barrier) {
                let text = |row: &Value, member: &str| row[member].as_str().unwrap_or_default().to_owned();
                let rows = rows.iter().rev().filter(|row| row["actor"] != barrier);
                let told =
                    |row| (text(row, "actor"), text(row, "target"), text(row, "code"), row["count"].as_u64().unwrap());
                return rows.map(told).collect();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Everything that is kept of who is known.
    pub(crate) async fn kept(&self) -> Vec<IdentityRow> {
        self.store.identities().await.unwrap()
    }

    pub(crate) fn keys_file(&self) -> PathBuf {
        self.folder.path().join("signing-keys")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request as it is.
    pub(crate) async fn http(
        &self,
        verb: &str,
        path: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Said {
        said(self.request(verb, path, token, headers, body)).await
    }

    /// A request that is not sent yet.
    pub(crate) fn request(
        &self,
        verb: &str,
        path: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> reqwest::RequestBuilder {
        let mut request = self.client.request(verb.parse().unwrap(), self.url(path));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        request
    }

    /// A form that is sent.
    pub(crate) async fn form(&self, path: &str, token: Option<&str>, form: &[(&str, &str)]) -> Said {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut request = self.client.post(self.url(path)).header("content-type", "application/x-www-form-urlencoded");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        said(request.body(body)).await
    }

    /// A form that is sent with other headers.
    pub(crate) async fn form_at(&self, path: &str, headers: &[(&str, &str)], form: &[(&str, &str)]) -> Said {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = self.request("POST", path, None, headers, None);
        said(request.header("content-type", "application/x-www-form-urlencoded").body(body)).await
    }

    /// A call over JSON-RPC.
    pub(crate) async fn call(&self, token: Option<&str>, method: &str, params: Value) -> Said {
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.http("POST", "/rpc", token, &[], Some(&frame)).await
    }

    /// A call of MCP that stands alone.
    pub(crate) async fn mcp(&self, token: Option<&str>) -> Said {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        self.http("POST", "/mcp", token, &[("accept", "application/json, text/event-stream")], Some(&frame)).await
    }

    /// Opens a WebSocket; or the status with which that was refused.
    pub(crate) async fn socket(&self, path: &str, token: Option<&str>) -> Result<peer::Socket, u16> {
        use tokio_tungstenite::tungstenite::Error;
        use tokio_tungstenite::tungstenite::client::IntoClientRequest;
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        if let Some(token) = token {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        match tokio_tungstenite::connect_async(request).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// A join token.
    pub(crate) async fn join(&self, agents: &str) -> String {
        let made = self.call(Some(OPERATOR_KEY), "token/create_join", json!({ "agents": agents })).await;
        made.result()["join"].as_str().unwrap().to_owned()
    }

    /// An operator's token.
    pub(crate) async fn operator(&self, name: &str, role: &str) -> String {
        let params = json!({ "name": name, "role": role });
        let made = self.call(Some(OPERATOR_KEY), "token/create_operator", params).await;
        made.result()["token"].as_str().unwrap().to_owned()
    }

    /// An agent that has joined and registered.
    pub(crate) async fn agent(&self, id: &str) -> Agent {
        let agent = Agent::new(id);
        let namespace = id.split('@').nth(1).unwrap();
        let join = self.join(&format!("*@{namespace}")).await;
        agent.register(self, Some(&join)).await
    }
}

/// An agent: its name, its key, and the token that it has.
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) key: Signer,
    pub(crate) token: String,
}

impl Agent {
    pub(crate) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), key: Signer::new(), token: String::new() }
    }

    pub(crate) fn card(&self) -> Value {
        json!({ "agent_id": self.id, "heartbeat_interval": "1h", "capabilities": [{
            "name": "work", "description": "Does the work.", "input_schema": { "type": "object" },
        }] })
    }

    pub(crate) fn proof(&self, world: &World) -> String {
        self.key.proof(&world.url("/rpc"), world.now())
    }

    /// Shows its key, with a join token or without.
    pub(crate) async fn shows_key(&self, world: &World, join: Option<&str>) -> Said {
        let params = json!({ "agent_id": self.id, "join": join, "proof": self.proof(world) });
        world.call(None, "token/issue", params).await
    }

    /// Registers by its key.
    pub(crate) async fn register(mut self, world: &World, join: Option<&str>) -> Self {
        let params = json!({ "card": self.card(), "join": join, "proof": self.proof(world) });
        let said = world.call(None, "agent/register", params).await;
        self.token = said.result()["token"]["token"].as_str().unwrap().to_owned();
        self
    }

    pub(crate) async fn call(&self, world: &World, method: &str, params: Value) -> Said {
        world.call(Some(&self.token), method, params).await
    }

    pub(crate) async fn beat(&self, world: &World) -> Said {
        self.call(world, "agent/heartbeat", json!({ "agent_id": self.id })).await
    }
}

/// Lets time go by, for everybody.
pub(crate) async fn pass(span: Duration) {
    tokio::time::pause();
    tokio::time::advance(span).await;
    tokio::time::resume();
}
