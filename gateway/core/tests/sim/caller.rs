//! Callers: they ask, ask again when they hear nothing, ask for something else under the same key, call off, and look.

use std::sync::Arc;

use reach_core::task::Task;
use reach_schemas::{AgentId, RawJson, Submit, TaskId};

use crate::world::{Happening, World};

/// How often a caller asks for the same thing.
const ASKS_MAX: u32 = 10;

pub(crate) struct Caller {
    pub(crate) id: AgentId,
    pub(crate) wishes: Vec<Wish>,
}

/// Something that a caller wants.
pub(crate) struct Wish {
    pub(crate) submit: Submit,
    /// The task that it is, once the caller has heard of it.
    pub(crate) task: Option<TaskId>,
    pub(crate) asks: u32,
    /// Asked for after the storm: it must be done.
    pub(crate) is_in_fine_weather: bool,
}

/// What a gateway says to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Task { id: TaskId, is_other: bool },
    Reused { is_other: bool },
    Refused,
}

impl Answer {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Task { is_other: false, .. } => "taken on",
            Self::Task { is_other: true, .. } => "the other is taken on",
            Self::Reused { .. } => "key reused",
            Self::Refused => "refused",
        }
    }
}

impl Wish {
    /// The request, or another one under the same key.
    pub(crate) fn request(&self, is_other: bool) -> Submit {
        let params = is_other.then(|| RawJson::parse("{\"other\":true}").expect("an object is JSON"));
        Submit { params: params.or_else(|| self.submit.params.clone()), ..self.submit.clone() }
    }
}

impl World {
    pub(crate) fn ask(&mut self, caller: usize, wish: usize) {
        let it = &mut self.callers[caller].wishes[wish];
        if it.task.is_some() || it.asks >= ASKS_MAX {
            return;
        }
        it.asks += 1;
        let (is_first, has_key) = (it.asks == 1, it.submit.idempotency_key.is_some());
        let gateway = self.any_gateway();
        self.send(|| Happening::Submit { gateway, caller, wish, is_other: false });
        if !has_key {
            return;
        }
        let ms = self.between(400, 1_200);
        self.after(ms, Happening::Ask { caller, wish });
        if is_first && self.mishap(0.1) {
            let (gateway, ms) = (self.any_gateway(), self.between(0, 2_000));
            self.after(ms, Happening::Submit { gateway, caller, wish, is_other: true });
        }
        if is_first && self.mishap(0.3) {
            // It asks again though it may know.
            let (gateway, ms) = (self.any_gateway(), self.between(0, 9_000));
            self.after(ms, Happening::Submit { gateway, caller, wish, is_other: false });
        }
    }

    pub(crate) fn answered(&mut self, caller: usize, wish: usize, answer: Answer) {
        let key = self.callers[caller].wishes[wish].submit.idempotency_key.clone();
        match answer {
            Answer::Task { id, is_other } => {
                if let Some(key) = key {
                    self.check_key(caller, &key, id, is_other);
                }
                if is_other || self.callers[caller].wishes[wish].task.is_some() {
                    return;
                }
                self.callers[caller].wishes[wish].task = Some(id);
                self.after(2_000, Happening::Look { caller, wish });
                if self.mishap(0.15) {
                    let (gateway, ms) = (self.any_gateway(), self.between(0, 2_500));
                    self.after(ms, Happening::Cancel { gateway, task: id });
                }
            }
            Answer::Reused { is_other: false } => self.callers[caller].wishes[wish].asks = ASKS_MAX,
            Answer::Reused { is_other: true } | Answer::Refused => {}
        }
    }

    pub(crate) fn look(&mut self, caller: usize, wish: usize) {
        let task = self.callers[caller].wishes[wish].task.and_then(|id| self.store.tasks.get(&id)).cloned();
        if let Some(task) = task {
            self.check_result(&task);
            if !task.state.phase.name().is_final() {
                self.after(2_000, Happening::Look { caller, wish });
            }
        }
    }

    /// Whoever waits for a task hears that it has changed.
    pub(crate) fn tell_caller(&mut self, task: &Arc<Task>) {
        self.check_result(task);
    }

    /// An operator sends something again that did not end well.
    pub(crate) fn operate(&mut self) {
        if !self.is_stormy() {
            return;
        }
        let ms = self.between(1_000, 4_000);
        self.after(ms, Happening::Operator);
        let ended: Vec<TaskId> =
            self.store.tasks.values().filter(|task| task.state.phase.name().is_final()).map(|task| task.id()).collect();
        if !ended.is_empty() {
            let (task, gateway) = (ended[self.rng.usize(0..ended.len())], self.any_gateway());
            self.send(|| Happening::Redrive { gateway, task });
        }
    }
}
