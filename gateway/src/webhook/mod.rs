//! Webhooks on the wire, in the form of Standard Webhooks 1.0 (<https://www.standardwebhooks.com>): with what they are signed,
//! and one request. Who is told what and when is decided in the core; where they may go, by `outbound`.

pub mod client;
pub mod secret;

use std::collections::BTreeMap;

use reach_core::webhook::schedule::RETRIES;
use reach_schemas::{QueueName, Span};

use crate::outbound::Guard;

pub use client::Client;
pub use secret::Secrets;
pub(crate) use secret::{secret_text, write_secret, write_whole};

/// How webhooks are sent.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What signs them.
    pub secrets: Secrets,
    /// Which addresses may be told.
    pub guard: Guard,
    /// The waits between tries, after the first one, which comes at once.
    pub retries: Vec<Span>,
    /// How long a receiver may take to answer.
    pub timeout: Span,
    /// How many messages may be on their way to one host at once.
    pub at_once_per_host: u32,
    /// Who is told when a task comes before people.
    pub people: People,
}

/// Who is told when a task comes before people, beside the receivers that the task names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct People {
    /// Of every queue.
    pub of_all: Vec<String>,
    /// Of one.
    pub of_queue: BTreeMap<QueueName, Vec<String>>,
}

impl People {
    /// Who looks after a queue.
    #[must_use]
    pub fn of(&self, queue: &QueueName) -> Vec<String> {
        self.of_all.iter().chain(self.of_queue.get(queue).into_iter().flatten()).cloned().collect()
    }
}

impl Default for Settings {
    /// As usual, with a secret that nobody else knows.
    fn default() -> Self {
        Self {
            secrets: Secrets::made(),
            guard: Guard::default(),
            retries: RETRIES.into(),
            timeout: Span::from_secs(15),
            at_once_per_host: 8,
            people: People::default(),
        }
    }
}
