//! What an agent is told before it serves.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reach_schemas::call::Registered;
use reach_schemas::{AgentCard, Capability, CapabilityName, Endpoint, Method, Protocol, RawJson};
use tokio::sync::{mpsc, watch};

use super::attempts::Attempts;
use super::handler::{AnyHandler, Handler, erase};
use super::health::Record;
use super::running::{AgentHandle, Stops};
use super::worker::Worker;
use super::{heartbeat, listen, pull, socket};
use crate::client::{Client, ClientBuilder};
use crate::error::{Error, Result};
use crate::transport::Call;
use crate::transport::ws::{Ears, Greeting};

/// How many messages of the gateway may wait until the agent has looked at them.
const EVENTS_MAX: usize = 256;

/// The way to an agent that serves: [`Agent::builder`].
#[derive(Debug)]
pub struct Agent;

impl Agent {
    /// What an agent is told before it serves.
    pub fn builder(card: AgentCard) -> AgentBuilder {
        AgentBuilder {
            card,
            handlers: HashMap::new(),
            client: ClientBuilder::default(),
            way: Way::Socket,
            answer_within: Duration::from_secs(1),
        }
    }
}

/// By which way work comes.
enum Way {
    Socket,
    Pull,
    Http { listen: Option<SocketAddr>, public_url: Option<String> },
}

/// What an agent is told before it serves; from [`Agent::builder`].
#[must_use = "a builder does nothing until it is started"]
pub struct AgentBuilder {
    card: AgentCard,
    handlers: HashMap<CapabilityName, AnyHandler>,
    client: ClientBuilder,
    way: Way,
    answer_within: Duration,
}

impl AgentBuilder {
    /// Offers a capability, and says who does its work.
    pub fn capability(mut self, capability: Capability, handler: impl Handler) -> Self {
        self.handlers.insert(capability.name.clone(), erase(handler));
        self.card.capabilities.retain(|other| other.name != capability.name);
        self.card.capabilities.push(capability);
        self
    }

    /// Where the gateway is. Unless given, `AGENT_REACH_URL`, else `http://127.0.0.1:7340`. An agent that is pushed its
    /// work goes to the WebSocket of that same address.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.client = self.client.url(url);
        self
    }

    /// The bearer token that shows who serves. Unless given, `AGENT_REACH_TOKEN`, else none.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.client = self.client.token(token);
        self
    }

    /// What lets the agent in for the first time; later it shows its key. Unless given, `AGENT_REACH_JOIN`, else none: see
    /// [`ClientBuilder::join`](crate::ClientBuilder::join).
    pub fn join(mut self, join: impl Into<String>) -> Self {
        self.client = self.client.join(join);
        self
    }

    /// The file with the agent's key: see [`ClientBuilder::key_file`](crate::ClientBuilder::key_file).
    pub fn key_file(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.client = self.client.key_file(path);
        self
    }

    /// All else about the connection to the gateway.
    pub fn connection(mut self, client: ClientBuilder) -> Self {
        self.client = client;
        self
    }

    /// Pulls work with `task/claim`, as much at a time as there is room for, instead of having it pushed.
    pub fn pull(mut self) -> Self {
        self.way = Way::Pull;
        self
    }

    /// Listens for work as HTTP requests, instead of having it pushed over a connection of its own.
    pub fn http(mut self, listen: SocketAddr) -> Self {
        self.way = Way::Http { listen: Some(listen), public_url: None };
        self
    }

    /// The address under which the gateway reaches the agent over HTTP. Without [`AgentBuilder::http`] the requests
    /// come to a server of yours, which hands them to [`AgentHandle::answer_http`].
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        let listen = match self.way {
            Way::Http { listen, .. } => listen,
            Way::Socket | Way::Pull => None,
        };
        self.way = Way::Http { listen, public_url: Some(url.into()) };
        self
    }

    /// Over HTTP: how long a request waits for the result before it is answered with "I have it". 1 s unless given.
    pub fn answer_within(mut self, answer_within: Duration) -> Self {
        self.answer_within = answer_within;
        self
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    ///
    /// # Errors
    /// As [`AgentBuilder::start`] and [`AgentHandle::run_until_signal`].
    pub async fn run(self) -> Result<()> {
        self.start().await?.run_until_signal().await
    }

    /// Registers and begins to serve. A gateway that is away is waited for.
    ///
    /// # Errors
    /// [`Error::Config`] if a setting cannot be used, and whatever the gateway refused the registration with.
    pub async fn start(mut self) -> Result<AgentHandle> {
        if let Some(orphan) = self.card.capabilities.iter().find(|offer| !self.handlers.contains_key(&offer.name)) {
            return Err(Error::Config(format!("the capability {} has no handler", orphan.name)));
        }
        self.client = self.client.or_from_agent(&self.card.agent_id);
        match std::mem::replace(&mut self.way, Way::Socket) {
            Way::Socket => self.start_socket().await,
            Way::Pull => self.start_pull().await,
            Way::Http { listen, public_url } => self.start_http(listen, public_url).await,
        }
    }

    async fn start_socket(mut self) -> Result<AgentHandle> {
        self.endpoint(Protocol::Websocket, String::new());
        let (events, heard) = mpsc::channel(EVENTS_MAX);
        let ears = Ears { greeting: Some(self.greeting()?), events: Some(events) };
        let (client, link) = self.client.clone().open_socket(ears)?;
        let (worker, stops) = self.worker(client);
        let given_up = stops.all.clone().drop_guard();
        let (standing, mut registered) = watch::channel(None);
        let serving = tokio::spawn(socket::serve(worker.clone(), link, heard, standing, stops.all.clone()));
        let answer = registered.wait_for(Option::is_some).await.map(|standing| standing.clone());
        let registered = match answer {
            Ok(Some(answer)) => answer?,
            Ok(None) | Err(_) => return Err(Error::maybe_sent("the connection was closed")),
        };
        given_up.disarm();
        Ok(self.handle(worker, stops, registered, async { serving.await.ok() }))
    }

    async fn start_pull(mut self) -> Result<AgentHandle> {
        self.endpoint(Protocol::Queue, String::new());
        let (worker, stops) = self.worker(self.client.clone().open()?);
        let registered = worker.register_patiently().await?;
        let pulling = pull::pull(worker.clone(), stops.intake.clone());
        Ok(self.handle(worker, stops, registered, pulling))
    }

    async fn start_http(mut self, address: Option<SocketAddr>, public_url: Option<String>) -> Result<AgentHandle> {
        let listener = match address {
            Some(address) => Some(listen::bind(address).await?),
            None => None,
        };
        let local = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        let url = public_url.or_else(|| local.map(|local| format!("http://{local}/"))).unwrap_or_default();
        self.endpoint(Protocol::Http, url);
        let (worker, stops) = self.worker(self.client.clone().open()?);
        let given_up = stops.all.clone().drop_guard();
        if let Some(listener) = listener {
            tokio::spawn(listen::listen(listener, worker.clone(), self.answer_within, stops.all.clone()));
        }
        let registered = worker.register_patiently().await?;
        given_up.disarm();
        Ok(self.handle(worker, stops, registered, std::future::ready(None)))
    }

    /// Says in the card how the agent is reached, unless the card says so itself.
    fn endpoint(&mut self, protocol: Protocol, address: String) {
        if self.card.endpoints.is_empty() {
            self.card.endpoints.push(Endpoint { protocol, version: "1".to_owned(), address });
        }
    }

    /// The registration, as the first call on every connection.
    fn greeting(&self) -> Result<Greeting> {
        let card = RawJson::of(&self.card).map_err(|error| Error::Config(format!("the card: {error}")))?;
        Ok(Box::new(move || Call {
            method: Method::AgentRegister.name().into(),
            params: Some(card.clone()),
            timeout: Duration::ZERO,
            is_safe: true,
        }))
    }

    fn worker(&mut self, client: Client) -> (Arc<Worker>, Stops) {
        let stops = Stops::default();
        let worker = Worker {
            card: self.card.clone(),
            handlers: std::mem::take(&mut self.handlers),
            attempts: Attempts::new(self.card.max_concurrency, stops.work.clone()),
            client,
            health: Record::new(),
            dependencies: Mutex::default(),
            is_draining: AtomicBool::new(false),
            closed: stops.all.clone(),
        };
        (Arc::new(worker), stops)
    }

    /// Beats from now on, beside what takes the work. The first of both that says why the agent can serve no more ends it.
    fn handle(
        &self,
        worker: Arc<Worker>,
        stops: Stops,
        registered: Registered,
        serving: impl Future<Output = Option<Error>> + Send + 'static,
    ) -> AgentHandle {
        let (over, ended) = watch::channel(None);
        let (of_worker, of_stops) = (worker.clone(), stops.clone());
        tokio::spawn(async move {
            let error = tokio::select! {
                Some(error) = serving => error,
                Some(error) = heartbeat::beat(of_worker.clone(), of_stops.all.clone()) => error,
                else => Error::maybe_sent("the agent was stopped"),
            };
            of_worker.give_up(&error);
            of_stops.cancel();
            over.send_replace(Some(error));
        });
        AgentHandle { worker, registered, answer_within: self.answer_within, stops, ended }
    }
}
