//! A gateway in this process over the memory store, with its port on a real socket, for tests.

#![allow(dead_code, reason = "each of the tests that share this module uses a part of it")]

pub(crate) mod node;
pub(crate) mod peer;
pub(crate) mod python;
pub(crate) mod vectors;
pub(crate) mod web;

use std::net::SocketAddr;
use std::sync::Arc;

use fastrand::Rng;
use reach_gateway::adapter::session::SessionAdapter;
use reach_gateway::adapter::{Adapter, Adapters};
use reach_gateway::bus::local::Local;
use reach_gateway::clock::Clock;
use reach_gateway::gateway::{Gateway, Ports, Settings};
use reach_gateway::outbound::Guard;
use reach_gateway::sessions::Sessions;
use reach_gateway::store::Store;
use reach_gateway::store::memory::MemoryStore;
use reach_gateway::transport::{HttpSettings, serve};
use reach_gateway::upstream::Upstreams;
use reach_gateway::worker;
use reach_schemas::Protocol;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A gateway and its port.
pub(crate) struct Running {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) served: JoinHandle<std::io::Result<()>>,
    _stopped_when_dropped: DropGuard,
}

/// A gateway that works, without a port.
pub(crate) fn gateway(settings: Settings, stop: &CancellationToken) -> Arc<Gateway> {
    let gateway = gateway_over(settings, Arc::new(MemoryStore::new()), Clock::start());
    drop(worker::start(&gateway, stop));
    gateway
}

/// A gateway over a store and by a clock, of which nothing runs yet.
pub(crate) fn gateway_over(settings: Settings, store: Arc<dyn Store>, clock: Clock) -> Arc<Gateway> {
    let sessions = Arc::new(Sessions::default());
    let ports = Ports {
        store,
        memory: Arc::new(MemoryStore::new()),
        bus: Arc::new(Local::default()),
        adapters: adapters(&sessions, clock),
        sessions,
        upstreams: Arc::new(Upstreams::new(clock, Guard::of_endpoints(Guard::loopback()))),
        clock,
        rng: Rng::with_seed(7),
    };
    Gateway::new(ports, settings)
}

fn adapters(sessions: &Arc<Sessions>, clock: Clock) -> Adapters {
    let session: Arc<dyn Adapter> = Arc::new(SessionAdapter::new(Arc::clone(sessions), clock));
    Adapters::from([(Protocol::Websocket, session)])
}

/// A gateway with its port.
pub(crate) async fn start() -> Running {
    start_with(Settings::default(), HttpSettings::default()).await
}

/// A gateway with its port, set otherwise than usual.
pub(crate) async fn start_with(own: Settings, settings: HttpSettings) -> Running {
    let stop = CancellationToken::new();
    let gateway = gateway(own, &stop);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(serve(Arc::clone(&gateway), listener, settings, stop.clone()));
    Running { gateway, address, served, _stopped_when_dropped: stop.clone().drop_guard(), stop }
}

impl Running {
    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}
