//! The one door through which a task changes: load, step, commit, effects.

use std::sync::Arc;

use reach_core::access::Caller;
use reach_core::audit::steps::{Deed, of_step};
use reach_core::task::{Event, Task, step};
use reach_schemas::TaskId;

use super::{Gateway, NotApplied};
use crate::spans::Stepping;
use crate::store::{self, Outcome};
use crate::stores::Told;
use crate::turns::Turn;

/// How often a step is tried again when another commit was first.
const CONFLICTS_MAX: u32 = 8;

impl Gateway {
    /// Has something happen to a task: load, step, commit, then effects. There is no other way for a task to change.
    ///
    /// # Errors
    /// The task refuses, is not there, or cannot be stored.
    pub async fn apply(&self, id: TaskId, event: Event) -> Result<Arc<Task>, NotApplied> {
        self.apply_for(None, id, event).await
    }

    /// As [`Gateway::apply`], where somebody else than the task's own caller has it happen.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn apply_for(
        &self,
        by: Option<&Caller>,
        id: TaskId,
        event: Event,
    ) -> Result<Arc<Task>, NotApplied> {
        let turn = self.stores.turn(id).await;
        for _ in 0..CONFLICTS_MAX {
            let copy = self.open.get(id);
            let is_copy = copy.is_some();
            let task = match copy {
                Some(copy) => copy,
                None => self.load(id).await.map_err(NotApplied::Store)?.ok_or(NotApplied::NotFound)?,
            };
            match self.take_step(&turn, &task, event.clone(), by).await {
                Ok(Some(next)) => return Ok(next),
                Ok(None) => self.open.forget(id),
                Err(NotApplied::Refused(_)) if is_copy && !self.is_current(&task).await => self.open.forget(id),
                Err(error) => return Err(error),
            }
        }
        Err(NotApplied::Store(store::Error::Busy { waiting_max: CONFLICTS_MAX as usize }))
    }

    /// Whether a refusal was given by the task as it is, and not by an old copy: another gateway may have moved on.
    async fn is_current(&self, task: &Task) -> bool {
        match self.stores.load(task.id()).await {
            Ok(Some(stored)) => stored.version == task.version,
            Ok(None) | Err(_) => true,
        }
    }

    /// One step from a task as it was read. None: another commit was first.
    ///
    /// # Errors
    /// The task refuses, or cannot be stored.
    pub(crate) async fn apply_to(&self, task: &Arc<Task>, event: Event) -> Result<Option<Arc<Task>>, NotApplied> {
        self.apply_to_for(None, task, event).await
    }

    /// As [`Gateway::apply_to`], where somebody else than the task's own caller has it happen.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn apply_to_for(
        &self,
        by: Option<&Caller>,
        task: &Arc<Task>,
        event: Event,
    ) -> Result<Option<Arc<Task>>, NotApplied> {
        let turn = self.stores.turn(task.id()).await;
        self.take_step(&turn, task, event, by).await
    }

    /// Takes a step, and carries out what follows from it before the turn is over: effects come in the order of commits.
    async fn take_step(
        &self,
        turn: &Turn,
        task: &Arc<Task>,
        event: Event,
        by: Option<&Caller>,
    ) -> Result<Option<Arc<Task>>, NotApplied> {
        let (now, deed) = (self.now(), Deed::of(&event));
        let stepping = Stepping { event: event.name(), began: self.spans.begin(&task.span()) };
        let step = step(task, event, now, &mut self.rng()).map_err(NotApplied::Refused)?;
        let next = Arc::new(Task { birth: Arc::clone(&task.birth), version: task.version + 1, state: step.state });
        let was_final = task.state.phase.name().is_final();
        let key_expires_at = next.state.finished_at.map(|at| at + self.settings().keys_kept_for);
        let audit = of_step(task, &next, &deed, by.map(ToString::to_string).as_deref(), now);
        let told = Told { outbox: self.announce(task, &next), audit };
        let is_told = !told.outbox.is_empty();
        let committed = self.stores.commit(turn, &next, was_final, key_expires_at, now, told).await;
        match committed.map_err(NotApplied::Store)? {
            Outcome::Committed => {
                if is_told {
                    self.outbox.bell.notify_one();
                }
                self.carry_out(&next, step.effects, stepping);
                Ok(Some(next))
            }
            Outcome::Conflict { .. }
            | Outcome::Inserted
            | Outcome::KeyTaken { .. }
            | Outcome::Done
            | Outcome::Purged { .. } => Ok(None),
        }
    }
}
