//! What is told to the world of tasks that end or wait for a person: made here for the commit in which they do, and the bell
//! that wakes the sender; and how the telling goes, counted. Which receivers of agents are gone is known in memory, and read back from the messages that found it out.

mod holds;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reach_core::task::Task;
use reach_core::webhook::{Announcement, body};
use reach_schemas::{AgentCard, AgentId, Callback, ErrorCode, Failure, Timestamp, WebhookId};
use tokio::sync::Notify;

use crate::gateway::Gateway;
use crate::outbound::Guard;
use crate::outbound::address::host_of;
use crate::store::{Message, OutboxRow, Stage};

pub(crate) use holds::Holds;

/// What is known in memory of the outbox.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Rings when there is something to be sent that was not there before.
    pub bell: Notify,
    /// How the sending went since the start.
    pub told: Told,
    pub(crate) holds: Holds,
    gone: Mutex<Gone>,
}

/// How the sending went since the start.
#[derive(Debug, Default)]
pub struct Told {
    delivered: AtomicU64,
    given_up: AtomicU64,
    gone: AtomicU64,
    tries_failed: AtomicU64,
}

/// The same, to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToldCounts {
    /// Messages that their receivers took.
    pub delivered: u64,
    /// Messages of which every try failed.
    pub given_up: u64,
    /// Messages whose receivers said that they are gone for good, or had said so before.
    pub gone: u64,
    /// Tries that failed, whether others came after them or not.
    pub tries_failed: u64,
}

impl Told {
    /// Counts how a message stands after a try, or after its receiver was found to be gone.
    pub(crate) fn note(&self, stage: Stage) {
        let counts: &[&AtomicU64] = match stage {
            Stage::Waiting { .. } => &[&self.tries_failed],
            Stage::Delivered { .. } => &[&self.delivered],
            Stage::Failed { .. } => &[&self.tries_failed, &self.given_up],
            Stage::Gone { .. } => &[&self.gone],
        };
        for count in counts {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> ToldCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ToldCounts {
            delivered: read(&self.delivered),
            given_up: read(&self.given_up),
            gone: read(&self.gone),
            tries_failed: read(&self.tries_failed),
        }
    }
}

#[derive(Debug, Default)]
struct Gone {
    /// Receivers on the cards of agents that said that they are gone for good.
    receivers: BTreeSet<(AgentId, String)>,
    /// When each card was last changed. What was found out before is not held against the new card.
    changed_at: BTreeMap<AgentId, Timestamp>,
}

impl Outbox {
    fn gone(&self) -> MutexGuard<'_, Gone> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The card of an agent was changed: all its receivers are told again.
    pub(crate) fn card_changed(&self, agent: &AgentId, at: Timestamp) {
        let mut gone = self.gone();
        gone.receivers.retain(|(of, _)| of != agent);
        gone.changed_at.insert(agent.clone(), at);
    }

    /// When the card of an agent was last changed, as far as it is known.
    pub(crate) fn card_changed_at(&self, agent: &AgentId) -> Timestamp {
        self.gone().changed_at.get(agent).copied().unwrap_or_default()
    }

    /// A receiver on the card of an agent said that it is gone for good. True: that is news.
    pub(crate) fn receiver_gone(&self, agent: &AgentId, message: &Message) -> bool {
        let mut gone = self.gone();
        let is_of_this_card = gone.changed_at.get(agent).is_none_or(|changed_at| message.created_at >= *changed_at);
        is_of_this_card && gone.receivers.insert((agent.clone(), message.url.clone()))
    }

    /// A receiver on the card of an agent is there again.
    pub(crate) fn receiver_back(&self, agent: &AgentId, url: &str) {
        self.gone().receivers.remove(&(agent.clone(), url.to_owned()));
    }

    /// Whether a receiver on the card of an agent said that it is gone for good.
    pub(crate) fn is_gone(&self, agent: &AgentId, url: &str) -> bool {
        self.gone().receivers.contains(&(agent.clone(), url.to_owned()))
    }
}

impl Gateway {
    /// What is to be told of a task as it is about to be stored: nothing unless this very step ended it, or put it before
    /// people. For the commit of that step, and no other.
    pub(crate) fn announce(&self, before: &Task, task: &Task) -> Vec<OutboxRow> {
        let announced = if task.state.phase.name().is_final() {
            let fleet = self.fleet();
            task.announcements(|agent| {
                fleet.node(agent).map(|node| node.card.on_failure_callbacks.clone()).unwrap_or_default()
            })
        } else if task.comes_before_people(before) {
            let queue = task.state.human.as_ref().map(|human| &human.queue);
            task.calls_to_people(&queue.map(|queue| self.settings().webhooks.people.of(queue)).unwrap_or_default())
        } else {
            return Vec::new();
        };
        announced.into_iter().filter_map(|announcement| self.message(task, announcement)).map(OutboxRow::new).collect()
    }

    fn message(&self, task: &Task, announcement: Announcement) -> Option<Message> {
        let Announcement { url, owner, event } = announcement;
        // It was checked when it was named. One that is no address any more, after an upgrade, is told of in the log.
        let host = match url.parse() {
            Ok(parsed) => host_of(&parsed),
            Err(error) => {
                tracing::error!(reach_id = %task.id(), %error, "a receiver that was taken on is no address");
                return None;
            }
        };
        let random = self.rng().u128(..);
        Some(Message {
            id: WebhookId::from_parts(self.now().as_ms(), random),
            kind: event.kind,
            task_id: task.id(),
            agent_id: event.agent_id.clone(),
            url,
            owner,
            host,
            created_at: event.timestamp,
            body: body(event),
        })
    }

    /// Checks the receivers that a task names.
    pub(crate) fn check_callbacks(&self, callbacks: &[Callback]) -> Result<(), Failure> {
        let settings = self.settings();
        for (at, callback) in callbacks.iter().enumerate() {
            settings.webhooks.guard.check(&callback.url).map_err(|refused| {
                let message = format!("`callbacks[{at}].url` {refused}");
                Failure::new(ErrorCode::InvalidParams, message)
            })?;
        }
        Ok(())
    }

    /// Checks whether the receivers that a card names may be told. That they are addresses is checked already.
    pub(crate) fn check_failure_callbacks(guard: &Guard, card: &AgentCard) -> Result<(), Failure> {
        let wrong = |message: String| Failure::new(ErrorCode::InvalidCard, message);
        for (at, url) in card.on_failure_callbacks.iter().enumerate() {
            let checked = guard.check(url);
            checked.map_err(|refused| wrong(format!("on_failure_callbacks[{at}]: {refused}")))?;
        }
        Ok(())
    }
}
