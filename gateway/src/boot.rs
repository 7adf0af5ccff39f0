//! Assembly: the only place, with the command line, that names concrete stores, buses and adapters.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use reach_core::audit::Mark;
use reach_schemas::{Protocol, Secret};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::adapter::Adapter;
use crate::adapter::http::HttpAdapter;
use crate::adapter::mcp::McpAdapter;
use crate::adapter::process::ProcessAdapter;
use crate::adapter::session::SessionAdapter;
use crate::audit::{self, Beside, Signer};
use crate::bus::local::Local;
use crate::clock::Clock;
use crate::config::Config;
use crate::gateway::{Gateway, Ports};
use crate::identity::KeyHome;
use crate::ops::reconfigure::Wanted;
use crate::ops::servers::Proof;
use crate::sessions::Sessions;
use crate::store::Store;
use crate::store::memory::MemoryStore;
use crate::store::sqlite::{SqliteConfig, SqliteStore};
use crate::telemetry::otlp::{self, Export};
use crate::upstream::Upstreams;
use crate::webhook::Secrets;
use crate::worker::{self, recovery};

/// The database's file within the data folder.
pub const DATABASE: &str = "reach.db";
/// The file within the data folder with what signs webhooks, unless the configuration names another place.
pub const WEBHOOK_SECRET: &str = "webhook-secret";

/// The file within the data folder with the keys that sign agents' tokens.
pub const SIGNING_KEYS: &str = "signing-keys";

/// The file within the data folder whose content proves that a caller may start commands, and that it may do everything else.
pub const OPERATOR_KEY: &str = "operator-key";

/// How long work that is under way may take to end once the gateway was told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// How long spans that are left may take to be sent then.
const FLUSH: Duration = Duration::from_secs(5);

/// A gateway that runs.
pub struct Running {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// Stops it.
    pub stop: CancellationToken,
    /// Its workers; empty once all have stopped.
    pub workers: TaskTracker,
    /// Its spans on their way out. None: nobody has them.
    pub export: Option<Export>,
    /// What the start found.
    pub recovered: recovery::Recovered,
}

/// Opens the database in a folder, which is made if it is not there.
///
/// # Errors
/// The folder or the file cannot be used: which, why, and what to do.
pub fn open_store(data: &Path) -> anyhow::Result<Arc<dyn Store>> {
    std::fs::create_dir_all(data)
        .with_context(|| format!("the data folder {} cannot be made; name another with --data", data.display()))?;
    Ok(Arc::new(SqliteStore::open(SqliteConfig { path: data.join(DATABASE), bytes_max: None })?))
}

/// What signs webhooks: as the configuration says, else the file in the data folder.
pub(crate) fn webhook_secrets(config: &Config) -> anyhow::Result<Secrets> {
    if let Some(secrets) = &config.webhook_secrets {
        return Ok(secrets.clone());
    }
    let path = config.data.join(WEBHOOK_SECRET);
    Secrets::of_file(&path)
        .with_context(|| format!("the file {} with what signs webhooks cannot be used", path.display()))
}

/// What signs checkpoints of the audit log, and what is told of it.
async fn audit_signer(config: &Config, store: &dyn Store) -> anyhow::Result<(Signer, Beside)> {
    let has_rows = store.audit_head().await? != Mark::origin();
    Beside::open(&config.data, has_rows).with_context(|| {
        format!("the file {} with what signs the audit log cannot be used", config.data.join(audit::KEY).display())
    })
}

/// What proves that a caller may start commands: the content of a file in the data folder, made at each start for its
/// owner's eyes only.
fn proof(config: &Config) -> anyhow::Result<Proof> {
    let folder = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
    let file = folder.join(OPERATOR_KEY);
    let key = crate::webhook::secret_text();
    let written = crate::webhook::write_secret(&file, &key);
    written.with_context(|| {
        format!("the file {}, by which reachctl proves who it is, cannot be written", file.display())
    })?;
    Ok(Proof { file, key })
}

/// Puts a gateway together over a store, picks up what is open, and starts its workers.
///
/// # Errors
/// The store cannot be read, or an agent of the configuration is refused.
pub async fn start(config: &Config, store: Arc<dyn Store>) -> anyhow::Result<Running> {
    let sessions = Arc::new(Sessions::default());
    let clock = Clock::start();
    let mut adapters: BTreeMap<Protocol, Arc<dyn Adapter>> = BTreeMap::new();
    adapters.insert(Protocol::Http, Arc::new(HttpAdapter::new(clock, config.settings.endpoints.clone())));
    adapters.insert(Protocol::Process, Arc::new(ProcessAdapter::new(clock)));
    let upstreams = Arc::new(Upstreams::new(clock, config.settings.endpoints.clone()));
    for server in &config.servers {
        upstreams.put(server.clone(), true);
    }
    adapters.insert(Protocol::Mcp, Arc::new(McpAdapter::new(clock, Arc::clone(&upstreams))));
    adapters.insert(Protocol::Websocket, Arc::new(SessionAdapter::new(Arc::clone(&sessions), clock)));
    let (signer, beside) = audit_signer(config, &*store).await?;
    let ports = Ports {
        store,
        memory: Arc::new(MemoryStore::new()),
        bus: Arc::new(Local::default()),
        adapters,
        sessions,
        upstreams,
        clock,
        rng: fastrand::Rng::new(),
    };
    let mut settings = config.settings.clone();
    settings.webhooks.secrets = webhook_secrets(config)?;
    let proof = proof(config)?;
    settings.identity.operator_key = Some(Secret::from(proof.key.clone()));
    settings.identity.keys = KeyHome::File(config.data.join(SIGNING_KEYS));
    settings.proof = Some(proof);
    settings.audit.signer = Some(Arc::new(signer));
    settings.audit.beside = Some(Arc::new(beside));
    let gateway = Gateway::new(ports, settings.clone());
    gateway.identity().open_keys(gateway.now()).context("the keys that sign agents' tokens cannot be used")?;
    let export = config.telemetry.otlp.as_ref().map(|receiver| otlp::start(gateway.spans(), receiver)).transpose();
    let export = export.context("traces cannot be exported")?;
    gateway.open_audit().await?;
    let policy = gateway.recover_policy().await;
    policy.map_err(|failure| anyhow::anyhow!("{}", failure.message))?;
    let recovered = recovery::recover(&gateway).await?;
    let wanted = Wanted { settings, agents: config.agents.clone(), servers: config.servers.clone() };
    gateway.reconfigure(wanted, false).await.context("the configuration cannot be taken on")?;
    let stop = CancellationToken::new();
    let workers = worker::start(&gateway, &stop);
    Ok(Running { gateway, stop, workers, export, recovered })
}

/// Lets what is under way end, then closes the store.
pub async fn end(running: Running) {
    let ended = async {
        running.workers.wait().await;
        running.gateway.delivered().await;
        running.gateway.upstreams().close().await;
    };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("some work did not end in time; it is taken up at the next start");
    }
    match tokio::time::timeout(GRACE, running.gateway.write_all()).await {
        Ok(Ok(())) => tracing::info!("stopped; every task is in the store"),
        Ok(Err(error)) => tracing::warn!(%error, "stopped; reads that were in memory only could not be written"),
        Err(_) => tracing::warn!("stopped; reads that were in memory only could not be written in time"),
    }
    match tokio::time::timeout(GRACE, running.gateway.close_audit()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the end of the audit log could not be written and signed"),
        Err(_) => tracing::warn!("the end of the audit log could not be written and signed in time"),
    }
    if let Some(export) = running.export {
        export.finish(FLUSH).await;
    }
}
