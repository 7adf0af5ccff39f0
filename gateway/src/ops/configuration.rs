//! The configuration, for operators: what is in force, and reading it again. Where it comes from only assembly knows; it
//! listens here, and answers one call after another.

use std::sync::{Arc, OnceLock};

use arc_swap::Guard as InForce;
use reach_core::access::Grant;
use reach_schemas::call::{ConfigReload, ConfigReloaded, ConfigView, Nothing};
use reach_schemas::{AuditKind, ErrorCode, Failure, Span};
use tokio::sync::{mpsc, oneshot};

use crate::envelope::TextLimits;
use crate::gateway::{Gateway, Settings};

/// How many calls may wait for the one before them.
const WAITING_MAX: usize = 32;

/// What whoever reads the configuration is asked.
#[derive(Debug)]
pub enum Asked {
    /// What is in force.
    Show(oneshot::Sender<ConfigView>),
    /// To read it again.
    Reload {
        /// Whether only to check it.
        dry_run: bool,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<ConfigReloaded, Failure>>,
    },
}

/// The way to whoever reads the configuration.
#[derive(Debug, Default)]
pub struct Configuration {
    way: OnceLock<mpsc::Sender<Asked>>,
    /// Held while what the gateway goes by, or who belongs to it, is changed.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

impl Configuration {
    /// Where the calls are heard. None: somebody listens already.
    pub fn listen(&self) -> Option<mpsc::Receiver<Asked>> {
        let (way, heard) = mpsc::channel(WAITING_MAX);
        self.way.set(way).ok().map(|()| heard)
    }

    async fn ask<T>(&self, asked: impl FnOnce(oneshot::Sender<T>) -> Asked) -> Result<T, Failure> {
        let nobody = || Failure::new(ErrorCode::InvalidConfig, "this gateway was not made from a configuration");
        let (answer, answered) = oneshot::channel();
        self.way.get().ok_or_else(nobody)?.try_send(asked(answer)).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => {
                let message = "the configuration is being read, and others wait for it";
                let failure = Failure::new(ErrorCode::Overloaded, message);
                Failure { retry_after: Some(Span::from_secs(1)), ..failure }
            }
            mpsc::error::TrySendError::Closed(_) => stopping(),
        })?;
        answered.await.map_err(|_| stopping())
    }
}

fn stopping() -> Failure {
    Failure::new(ErrorCode::ShuttingDown, "the gateway is about to stop")
}

impl Gateway {
    /// What the gateway goes by now. To be asked anew for each thing that is done: it changes while the gateway runs.
    pub(crate) fn settings(&self) -> InForce<Arc<Settings>> {
        self.settings.load()
    }

    /// What one text may hold now.
    #[must_use]
    pub fn texts(&self) -> TextLimits {
        self.settings().texts
    }

    /// The way to whoever reads the configuration.
    #[must_use]
    pub const fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// What is in force, and where each value came from.
    ///
    /// # Errors
    /// The gateway was not made from a configuration, or is about to stop.
    pub async fn config_show(&self, _grant: Grant, _: Nothing) -> Result<ConfigView, Failure> {
        self.configuration.ask(Asked::Show).await
    }

    /// Reads the configuration again, checks all of it, and goes by it from then on: by all of it, or by nothing new.
    ///
    /// # Errors
    /// What is wrong with it, all at once, or what only a restart can change: then nothing is changed.
    pub async fn config_reload(&self, grant: Grant, request: ConfigReload) -> Result<ConfigReloaded, Failure> {
        let dry_run = request.dry_run;
        let done = self.configuration.ask(|answer| Asked::Reload { dry_run, answer }).await??;
        self.note_reload(&grant.caller().to_string(), &done);
        Ok(done)
    }

    /// Writes down that the configuration was taken on: which keys are otherwise than they were, and the digest of the whole.
    pub(crate) fn note_reload(&self, actor: &str, done: &ConfigReloaded) {
        if done.dry_run {
            return;
        }
        let keys: Vec<&str> = done.changes.iter().map(|change| change.key.as_str()).collect();
        let told = serde_json::to_vec(done).unwrap_or_default();
        let event = self.audit_event(AuditKind::ConfigReloaded, actor).on(&done.file).with_payload(&told);
        self.audit.note(event.because(format!("changed: {}", keys.join(", "))));
    }
}
