//! Reads the configuration again while the gateway runs: when an operator asks for it, and on SIGHUP. All of the file is
//! checked before any of it is taken on; a file that is wrong, or that changes what only a restart can change, leaves all as
//! it is. One reading at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use reach_schemas::call::{
    ConfigApplies, ConfigChange, ConfigKey, ConfigOrigin, ConfigRefused, ConfigReloaded, ConfigView,
};
use reach_schemas::{ErrorCode, Failure, RawJson, Timestamp};
use serde_json::Value;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::boot::{Running, webhook_secrets};
use crate::config::keys::{KEYS, applies};
use crate::config::{self, Config, Flags, Mistakes, in_force};
use crate::gateway::{Gateway, Settings};
use crate::ops::configuration::Asked;
use crate::ops::reconfigure::{NotChanged, Wanted};
use crate::transport::HttpSettings;

/// Where the configuration comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file. None: there is none.
    pub path: Option<PathBuf>,
    /// What the command line says; it goes before the file.
    pub flags: Flags,
}

impl Source {
    /// Reads and checks it.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn load(&self) -> Result<Config, Mistakes> {
        config::load(self.path.as_deref(), self.flags.clone())
    }
}

/// Listens for those who ask for the configuration, and for hangups, until the gateway stops.
pub fn start(running: &Running, source: Source, config: Config, hangups: Option<Signal>) {
    let Some(asked) = running.gateway.configuration().listen() else { return };
    let gateway = Arc::clone(&running.gateway);
    let reader = Reader { since: gateway.now(), gateway, source, config };
    running.workers.spawn(run(reader, asked, hangups, running.stop.clone()));
}

async fn run(mut reader: Reader, mut asked: mpsc::Receiver<Asked>, hangups: Option<Signal>, stop: CancellationToken) {
    let mut hangups = hangups;
    loop {
        let hangup = async {
            match &mut hangups {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        // Whoever asked has gone if it is not there to be answered; what it asked for was done all the same.
        tokio::select! {
            () = stop.cancelled() => return,
            Some(asked) = asked.recv() => match asked {
                Asked::Show(answer) => drop(answer.send(reader.view())),
                Asked::Reload { dry_run, answer } => drop(answer.send(reader.reload(dry_run).await)),
            },
            Some(()) = hangup => {
                if let Ok(done) = reader.reload(false).await {
                    reader.gateway.note_reload("signal", &done);
                }
            }
        }
    }
}

/// What is in force, and where it came from.
struct Reader {
    gateway: Arc<Gateway>,
    source: Source,
    config: Config,
    since: Timestamp,
}

impl Reader {
    fn file(&self) -> Option<String> {
        let path = self.source.path.as_ref()?;
        Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string())
    }

    fn view(&self) -> ConfigView {
        let values = in_force::of(&self.config);
        let keys = values.iter().filter_map(|(key, value)| {
            let from = match (self.config.said.by_flags(key), self.config.said.of(key)) {
                (true, _) => ConfigOrigin::CommandLine,
                (false, Some(_)) => ConfigOrigin::File,
                (false, None) => ConfigOrigin::Default,
            };
            let value = raw(&in_force::shown(key, value));
            Some(ConfigKey { applies: applies(key)?, key: key.clone(), value, from })
        });
        ConfigView { file: self.file(), since: self.since, keys: keys.collect() }
    }

    /// Reads the file again and takes it on, and tells the log how it went.
    async fn reload(&mut self, dry_run: bool) -> Result<ConfigReloaded, Failure> {
        let done = self.take_on(dry_run).await;
        match &done {
            Ok(done) if !dry_run => {
                let changes: Vec<&str> = done.changes.iter().map(|change| change.key.as_str()).collect();
                let (agents, mcp_servers) = (&done.agents, &done.mcp_servers);
                tracing::info!(file = done.file, ?changes, ?agents, ?mcp_servers, "the configuration was taken on");
            }
            Ok(_) => {}
            Err(failure) => {
                let all = failure.data.as_ref().map_or_else(String::new, |data| data.get().to_owned());
                tracing::error!(dry_run, why = %failure.message, all, "the configuration stays as it was");
            }
        }
        done
    }

    async fn take_on(&mut self, dry_run: bool) -> Result<ConfigReloaded, Failure> {
        let Some(file) = self.file() else {
            let message =
                "the gateway was started without a configuration file: name one with --config at the next start";
            return Err(refusal(message.to_owned(), ConfigRefused::default()));
        };
        let wrong = |mistakes: Vec<String>| {
            let message = format!("{file} was not taken on: {}", config::told(&mistakes));
            refusal(message, ConfigRefused { mistakes, ..ConfigRefused::default() })
        };
        let source = self.source.clone();
        // Many schemas take their time to be made ready.
        let config = tokio::task::spawn_blocking(move || source.load()).await;
        let broken = |error| Failure::new(ErrorCode::Internal, format!("reading the configuration broke off: {error}"));
        let config = config.map_err(broken)?.map_err(|Mistakes(mistakes)| wrong(mistakes))?;
        let changes = self.changes(&config);
        let is_live = |change: &ConfigChange| applies(&change.key) == Some(ConfigApplies::Live);
        let (changes, needs_restart): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_live);
        if !needs_restart.is_empty() {
            let keys: Vec<&str> = needs_restart.iter().map(|change| change.key.as_str()).collect();
            let message = format!("{file} was not taken on: only a restart can change {}", keys.join(", "));
            return Err(refusal(message, ConfigRefused { needs_restart, ..ConfigRefused::default() }));
        }
        let wanted = self.wanted(&config).map_err(|error| wrong(vec![format!("webhooks: {error:#}")]))?;
        let moved = self.gateway.reconfigure(wanted, dry_run).await.map_err(|why| match why {
            NotChanged::Mistakes(mistakes) => wrong(mistakes),
            NotChanged::Store(error) => error.into(),
        })?;
        if !dry_run {
            // The port goes on with its own, which reads its files again: they were read just now, and were right.
            let tls = self.config.http.tls.clone();
            if let Some(Err(error)) = tls.as_ref().map(|tls| tls.reload()) {
                tracing::error!(%error, "the port's certificate stays as it was");
            }
            let http = HttpSettings { tls, ..config.http };
            (self.config, self.since) = (Config { http, ..config }, self.gateway.now());
        }
        Ok(ConfigReloaded { file, dry_run, changes, agents: moved.agents, mcp_servers: moved.servers })
    }

    fn wanted(&self, config: &Config) -> anyhow::Result<Wanted> {
        // What was made at the start, and stands in no file.
        let (proof, audit) = {
            let in_force = self.gateway.settings();
            (in_force.proof.clone(), in_force.audit.clone())
        };
        let mut settings = Settings { proof, audit, ..config.settings.clone() };
        settings.webhooks.secrets = webhook_secrets(config)?;
        Ok(Wanted { settings, agents: config.agents.clone(), servers: config.servers.clone() })
    }

    /// What is to be otherwise than it is, in the order of the table. Who comes and who goes is told apart.
    fn changes(&self, config: &Config) -> Vec<ConfigChange> {
        let (was, is): (BTreeMap<_, _>, BTreeMap<_, _>) = (in_force::of(&self.config), in_force::of(config));
        let keys =
            KEYS.iter().filter(|(key, _)| !matches!(*key, "agents" | "mcp_servers") && was.get(*key) != is.get(*key));
        let told = |key: &str, values: &BTreeMap<String, Value>| raw(&in_force::shown(key, &values[key]));
        keys.map(|(key, _)| ConfigChange { key: (*key).to_owned(), was: told(key, &was), is: told(key, &is) }).collect()
    }
}

fn raw(value: &Value) -> RawJson {
    RawJson::of(value).expect("a JSON value can be written")
}

fn refusal(message: String, refused: ConfigRefused) -> Failure {
    Failure { data: RawJson::of(&refused).ok(), ..Failure::new(ErrorCode::InvalidConfig, message) }
}
