//! Wakes by the doorbell or at the earliest `due_at`, and takes each due task a step on: routed if it waits for an
//! agent, timed out if its attempt gave no sign.

use std::sync::Arc;

use reach_core::access::Caller;
use reach_core::bulkhead::Seat;
use reach_core::fleet::Unroutable;
use reach_core::task::{Event, Phase, Task};
use reach_schemas::{Failure, FencingToken, Span, TaskId, Timestamp};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::effects::Stage;
use crate::gateway::{Gateway, NotApplied};
use crate::open_tasks::Parking;
use crate::spans::Scope;

/// How many due tasks are worked on at once.
const AT_ONCE: usize = 256;
/// How many are taken out of the queue at a time.
const PAGE: usize = 64;
/// How long a due task waits if the store cannot take its step.
const STORE_RETRY: Span = Span::from_secs(1);
/// How long after the end of an attempt's time its delivery may take to say what came of it.
const LAST_WORD: Span = Span::from_ms(250);
/// The longest that the wait of a deferred task grows to; a change at an agent that it waits for ends it sooner.
const DEFER_MAX: Span = Span::from_secs(15);

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let rung = gateway.open.due.notified();
        let (due, next) = gateway.open.take_due(gateway.now(), PAGE);
        if due.is_empty() {
            let asleep = async {
                match next {
                    Some(at) => gateway.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = rung => {}
                () = asleep => {}
            }
            continue;
        }
        for id in due {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let gateway = Arc::clone(&gateway);
            tokio::spawn(async move {
                gateway.look_at(id).await;
                drop(place);
            });
        }
    }
}

/// Whether nobody can take the task before its deadline, by what is known now, and something stands in for the work.
fn is_hopeless(task: &Task, refusal: &Failure, now: Timestamp) -> bool {
    let opens_in = refusal.retry_after.unwrap_or(Span::ZERO);
    now + opens_in >= task.state.deadline_at && task.has_fallback()
}

impl Gateway {
    /// Takes a due task a step on.
    pub(crate) async fn look_at(&self, id: TaskId) {
        let task = match self.load(id).await {
            Ok(Some(task)) => task,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(reach_id = %id, %error, "a due task cannot be read");
                self.open.schedule(id, self.now() + STORE_RETRY);
                return;
            }
        };
        Scope::of_task(&task).within(self.take_on_from(&task)).await;
    }

    async fn take_on_from(&self, task: &Arc<Task>) {
        let (id, now) = (task.id(), self.now());
        let Some(due_at) = task.due_at() else { return };
        let is_waiting = matches!(&task.state.phase, Phase::Submitted { offered, .. } if offered.is_empty());
        if is_waiting && now < task.state.deadline_at {
            self.dispatch(task, now).await;
        } else if due_at <= now {
            match self.last_word_by(task, due_at).await {
                Some(at) => self.open.schedule(id, at),
                None => drop(self.step_or_look_again(task, Event::Due).await),
            }
        } else {
            // Its copy may have been forgotten because it was old.
            self.open.put(task);
            self.open.schedule(id, due_at);
        }
    }

    /// Until when whoever delivers an attempt whose time is over has the last word on it: they know if nothing was sent,
    /// and an adapter tells it by the end of that time. None: nobody is about to say anything.
    async fn last_word_by(&self, task: &Task, due_at: Timestamp) -> Option<Timestamp> {
        let key = (task.id(), task.live_attempt()?.token);
        // A delivery begins within the turn of the step that it follows from.
        drop(self.stores.turn(task.id()).await);
        let now = self.now();
        match self.deliveries.stage(key)? {
            Stage::Unsent | Stage::Known => Some(now + LAST_WORD),
            Stage::WithAdapter => Some(due_at + LAST_WORD).filter(|by| *by > now),
        }
    }

    async fn step_or_look_again(&self, task: &Arc<Task>, event: Event) -> bool {
        match self.apply_to(task, event).await {
            Ok(Some(_)) => true,
            Ok(None) => {
                // Another commit was first: look at what it made of the task.
                self.open.forget(task.id());
                self.open.schedule(task.id(), self.now());
                false
            }
            Err(NotApplied::Store(error)) => {
                tracing::warn!(%error, "a step cannot be stored yet");
                self.open.schedule(task.id(), self.now() + STORE_RETRY);
                false
            }
            Err(NotApplied::Refused(refusal)) => {
                tracing::debug!(%refusal, "a due task had nothing to do");
                if let Some(at) = task.due_at() {
                    self.open.schedule(task.id(), at.max(self.now() + Span::from_ms(10)));
                }
                false
            }
            Err(NotApplied::NotFound) => false,
        }
    }

    /// Routes a waiting task.
    async fn dispatch(&self, task: &Arc<Task>, now: Timestamp) {
        let caller = self.caller_of(task);
        let seat = Seat { task_id: task.id(), token: FencingToken(task.state.token.0 + 1) };
        match self.route(task, &caller, seat, None, now) {
            Ok(routed) => {
                let taken = routed.taken();
                let is_done = self.step_or_look_again(task, routed.into_event()).await;
                if let (false, Some((agent, capability))) = (is_done, taken) {
                    let mut rng = self.rng();
                    self.fleet().abandon(seat, &agent, &capability, now, &mut rng);
                }
            }
            Err(Unroutable::NotNow { failure, decision, .. }) if is_hopeless(task, &failure, now) => {
                self.step_or_look_again(task, Event::GiveUp { failure, decision }).await;
            }
            Err(Unroutable::NotNow { until, waiting_for: agents, wanted, takes, for_seat, decision, .. }) => {
                let until = until.max(now + self.patience(task, now));
                let (capability, tier) = (wanted.capability.clone(), wanted.plan.tier);
                if self.step_or_look_again(task, Event::Defer { until, wanted: Some(*wanted), decision }).await
                    && let Some(task) = self.open.get(task.id())
                {
                    let parking = Parking { agents, for_seat, capability, tier, takes };
                    self.make_way(&task, &parking).await;
                    self.open.park(&task, parking);
                }
            }
            Err(Unroutable::Never { failure, decision }) => {
                self.step_or_look_again(task, Event::GiveUp { failure, decision }).await;
            }
        }
    }

    /// A task that has waited long is looked at less often.
    fn patience(&self, task: &Task, now: Timestamp) -> Span {
        let waited = now.since(task.birth.created_at).as_ms();
        Span::from_ms(waited / 4).min(DEFER_MAX)
    }

    /// Who asked for a task, with the access rules that hold now.
    pub(crate) fn caller_of(&self, task: &Task) -> Caller {
        match &task.birth.submit.from_agent {
            Some(agent) => self.fleet().caller(agent),
            None => Caller::OPERATOR,
        }
    }
}
