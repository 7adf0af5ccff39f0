//! Taking on a task: routed and durable before its id is given out, and once only for each idempotency key. One that is
//! waited for on the connection may be in memory until then.

use std::sync::Arc;

use reach_core::access::{Caller, Grant};
use reach_core::admission::Class;
use reach_core::bulkhead::{Place, Seat};
use reach_core::digest::{Fingerprint, fingerprint};
use reach_core::fleet::{Unroutable, Yields};
use reach_core::idempotency::{self, Verdict};
use reach_core::task::{Birth, Event, Refusal, Step, TRIES_MAX, Task, Wanted, step};
use reach_schemas::card::limits::CALLBACKS_MAX;
use reach_schemas::{
    AgentId, CapabilityName, ErrorCode, Failure, FencingToken, IdempotencyKey, PhaseName, Span, Submit, TaskId,
    TaskView, Tier, Timestamp,
};

use super::bounds;
use crate::gateway::Gateway;
use crate::open_tasks::{self, Parking, Reserved};
use crate::spans::{Scope, Stepping};
use crate::store::{Key, Outcome};

/// How often an insert is tried again when its key's task vanished meanwhile.
const KEY_RACES_MAX: u32 = 3;

/// A task that was routed in memory and is not stored yet.
struct Prepared {
    /// Held until the task is among the open ones, and counted itself.
    place: Reserved,
    task: Task,
    step: Step,
    stepping: Stepping,
    /// What it waits for, if it was deferred.
    parking: Option<Parking>,
    /// Whether its caller waits for its end on the connection.
    is_waited_for: bool,
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::InvalidParams, message)
}

/// Checks what the form of the type cannot.
pub(super) fn check(submit: &Submit) -> Result<(), Failure> {
    if submit.to_agent.is_none() && submit.capability.is_none() && submit.intent.is_none() {
        return Err(invalid("say what is wanted: at least one of `to_agent`, `capability` and `intent`"));
    }
    bounds::intent(submit.intent.as_deref())?;
    if submit.priority.is_some_and(|priority| priority > 9) {
        return Err(invalid("`priority` is 0 to 9"));
    }
    if submit.tries.is_some_and(|tries| tries == 0 || tries > TRIES_MAX) {
        return Err(invalid(format!("`tries` is 1 to {TRIES_MAX}")));
    }
    if submit.callbacks.len() > CALLBACKS_MAX {
        return Err(invalid(format!(
            "`callbacks` has {} entries, at most {CALLBACKS_MAX} are taken",
            submit.callbacks.len()
        )));
    }
    bounds::work("attempt_timeout", submit.attempt_timeout)?;
    bounds::work("deadline", submit.deadline)?;
    bounds::wait(submit.wait, Span::ZERO).map(|_| ())
}

/// Whose keys a caller's keys are among.
pub(crate) fn scope(caller: &Caller) -> String {
    caller.to_string()
}

impl Gateway {
    /// Takes on a task.
    ///
    /// # Errors
    /// It is malformed, nobody will ever fit, its key was used for another request, or the gateway is full.
    pub async fn submit(&self, grant: Grant, submit: Submit) -> Result<TaskView, Failure> {
        let id = self.new_task_id();
        let view = self.submit_as(id, &grant, submit, false).await?;
        // Whoever is told of a task may come back for it.
        self.interest.keep(view.task_id);
        Ok(view)
    }

    /// Takes on a task under an id. One that is waited for may be in memory only: it is for the caller of this to see to
    /// it that its id is not given out before it is durable or finished.
    pub(crate) async fn submit_as(
        &self,
        id: TaskId,
        grant: &Grant,
        submit: Submit,
        is_waited_for: bool,
    ) -> Result<TaskView, Failure> {
        let traceparent = Some(Scope::adopt(id, submit.traceparent, self.settings().trace_share));
        // An agent asks for itself, whether it says so or not.
        let from_agent = grant.caller().agent_id().cloned().or(submit.from_agent);
        let submit = Submit { traceparent, from_agent, ..submit };
        let taken_on = self.take_on(id, grant, &submit, is_waited_for).await;
        match &taken_on {
            Ok(view) => Scope::is_about(view.task_id),
            Err(refusal) => {
                self.metrics.refused(&submit, refusal.code, self.now());
                let asked = submit.to_agent.as_ref().map(AgentId::as_str);
                let target = asked.or(submit.capability.as_ref().map(CapabilityName::as_str)).unwrap_or("reach");
                self.refused(grant.caller().to_string(), target, refusal.code, &refusal.message);
            }
        }
        taken_on
    }

    async fn take_on(
        &self,
        id: TaskId,
        grant: &Grant,
        submit: &Submit,
        is_waited_for: bool,
    ) -> Result<TaskView, Failure> {
        check(submit)?;
        self.check_callbacks(&submit.callbacks)?;
        let scope = scope(grant.caller());
        let print = submit.idempotency_key.as_ref().map(|_| fingerprint(submit));
        for _ in 0..KEY_RACES_MAX {
            let place = self.place_for(id);
            let prepare = |place| self.prepare(place, &scope, grant, submit.clone(), is_waited_for);
            let prepared = match place.and_then(prepare) {
                Ok(prepared) => prepared,
                Err(refusal) => return self.refuse_unless_known(&scope, submit, print, refusal).await,
            };
            let key = submit.idempotency_key.clone().zip(print).map(|(key, print)| Key {
                scope: scope.clone(),
                key,
                fingerprint: print.0,
                expires_at: None,
            });
            if let Some(view) = self.insert(prepared, key, submit, print).await? {
                return Ok(view);
            }
        }
        Err(Failure::new(ErrorCode::Internal, "the idempotency key's task kept vanishing; send the request again"))
    }

    /// Routes in memory: birth and first assignment become one commit.
    fn prepare(
        &self,
        place: Reserved,
        scope: &str,
        grant: &Grant,
        submit: Submit,
        is_waited_for: bool,
    ) -> Result<Prepared, Failure> {
        let (id, now) = (place.id(), self.now());
        let birth = Birth { id, scope: scope.to_owned(), has_scoped_key: true, submit, created_at: now };
        let seat = Seat { task_id: id, token: FencingToken(1) };
        let mut task = Task::new(birth, self.settings().deadline);
        let yields = |place: &Place| self.open.is_queued_at(place, &task, now);
        let (event, tier, parking, queue) = match self.route(&task, grant.caller(), seat, Some(Yields(&yields)), now) {
            Ok(routed) => {
                let (tier, queue) = (routed.tier(), routed.queue());
                (routed.into_event(), tier, None, queue)
            }
            Err(Unroutable::NotNow { opens_at: Some(at), failure, wanted, .. })
                if self.is_in_vain(&task, at, &wanted, now) =>
            {
                return Err(failure);
            }
            Err(Unroutable::NotNow { until, waiting_for: agents, wanted, takes, for_seat, decision, .. }) => {
                let (capability, tier) = (wanted.capability.clone(), wanted.plan.tier);
                let parking = Parking { agents, for_seat, capability, tier, takes };
                let event = Event::Defer { until, wanted: Some(*wanted), decision };
                (event, tier, Some(parking.clone()), Some(parking))
            }
            Err(Unroutable::Never { failure, .. }) => return Err(failure),
        };
        task.state.deadline_at = now + self.deadline(&task, tier);
        if let Some((class, queue)) = queue.and_then(|queue| Some((open_tasks::class_of(&task, &queue)?, queue))) {
            let begin_by = task.state.deadline_at - queue.takes;
            self.admit_to_wait(&place, class, queue.for_seat.then_some(begin_by), now)?;
        }
        let stepping = Stepping { event: event.name(), began: self.spans.begin(&task.span()) };
        let step = step(&task, event, now, &mut self.rng()).map_err(|refusal: Refusal| {
            Failure::new(ErrorCode::Internal, format!("a new task refused its first step: {refusal}"))
        })?;
        Ok(Prepared { place, task, step, stepping, parking, is_waited_for })
    }

    /// Whether it is known that nobody can take a new task before its deadline, and nothing stands in for the work.
    fn is_in_vain(&self, task: &Task, opens_at: Timestamp, wanted: &Wanted, now: Timestamp) -> bool {
        wanted.plan.fallback.is_empty() && opens_at >= now + self.deadline(task, wanted.plan.tier)
    }

    /// The refusal of everything new, if as many tasks are open as may be.
    pub(super) fn is_full(&self) -> Option<Failure> {
        (self.open.len() >= self.settings().open_max).then(|| self.full())
    }

    fn full(&self) -> Failure {
        let message = format!("{} tasks are open, as many as may be; nothing was taken on", self.settings().open_max);
        Failure { retry_after: Some(Span::from_secs(1)), ..Failure::new(ErrorCode::Overloaded, message) }
    }

    /// A place for a task among those that are open.
    fn place_for(&self, id: TaskId) -> Result<Reserved, Failure> {
        self.open.reserve(id, self.settings().open_max).ok_or_else(|| self.full())
    }

    /// Whether a task that has to wait may be taken on: full is said before anything is stored.
    fn admit_to_wait(
        &self,
        place: &Reserved,
        class: Class,
        deadline_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        place.admit(class, &self.settings().waiting, deadline_at, now).map_err(|crowded| {
            let message = format!("{crowded}; nothing was taken on");
            let failure = Failure::new(ErrorCode::Overloaded, message);
            Failure { retry_after: Some(crowded.retry_after()), ..failure }
        })
    }

    /// Has less urgent work that can be stopped make way for a task that waits for nothing but a seat.
    pub(crate) async fn make_way(&self, task: &Task, parking: &Parking) {
        let priority = task.birth.priority();
        let victim = if parking.for_seat { self.open.victim(&parking.agents, priority) } else { None };
        let Some((id, token)) = victim else { return };
        tracing::info!(reach_id = %id, made_way_for = %task.id(), priority, "stopped for more urgent work");
        // If it has ended meanwhile, its seat is free all the same.
        let _ = self.apply(id, Event::Preempt { token, priority }).await;
    }

    fn deadline(&self, task: &Task, tier: Tier) -> Span {
        let usual = match tier {
            Tier::Long => self.settings().deadline_long,
            Tier::Fast | Tier::Normal => self.settings().deadline,
        };
        task.birth.submit.deadline.unwrap_or(usual)
    }

    /// Stores a prepared task with its key. None: the key's task vanished meanwhile, try again.
    async fn insert(
        &self,
        prepared: Prepared,
        key: Option<Key>,
        submit: &Submit,
        print: Option<Fingerprint>,
    ) -> Result<Option<TaskView>, Failure> {
        let Prepared { place, task, step, stepping, parking, is_waited_for } = prepared;
        let task = Arc::new(Task { state: step.state, ..task });
        let turn = self.stores.turn(task.id()).await;
        match self.stores.insert((*task).clone(), key, self.now(), is_waited_for).await {
            Ok(Outcome::Inserted) => {
                let view = task.view();
                self.carry_out(&task, step.effects, stepping);
                let Some(parking) = parking else { return Ok(Some(view)) };
                self.open.park(&task, parking.clone());
                // What makes way takes its own turn.
                drop(turn);
                self.make_way(&task, &parking).await;
                Ok(Some(view))
            }
            Ok(Outcome::KeyTaken { task_id, fingerprint }) => {
                self.abandon(&task);
                drop(place);
                let print = print.unwrap_or(Fingerprint([0; 32]));
                self.replay(task_id, Fingerprint(fingerprint), submit, print).await
            }
            Ok(Outcome::Conflict { .. } | Outcome::Committed | Outcome::Done | Outcome::Purged { .. }) => {
                self.abandon(&task);
                Ok(None)
            }
            Err(error) => {
                self.abandon(&task);
                Err(error.into())
            }
        }
    }

    /// Gives back what routing took for an attempt that came to nothing.
    pub(crate) fn abandon(&self, task: &Task) {
        let Some(attempt) = task.live_attempt() else { return };
        let seat = Seat { task_id: task.id(), token: attempt.token };
        let now = self.now();
        let mut rng = self.rng();
        self.fleet().abandon(seat, &attempt.agent_id, &attempt.capability, now, &mut rng);
    }

    /// A request that nobody fits may still be a repeat of one that somebody did.
    async fn refuse_unless_known(
        &self,
        scope: &str,
        submit: &Submit,
        print: Option<Fingerprint>,
        refusal: Failure,
    ) -> Result<TaskView, Failure> {
        let Some((key, print)) = submit.idempotency_key.as_ref().zip(print) else { return Err(refusal) };
        match self.known_key(scope, key).await? {
            Some((task_id, earlier)) => self.replay(task_id, earlier, submit, print).await?.ok_or(refusal),
            None => Err(refusal),
        }
    }

    async fn known_key(&self, scope: &str, key: &IdempotencyKey) -> Result<Option<(TaskId, Fingerprint)>, Failure> {
        let row = self.store.load_by_key(scope, key).await?;
        let now = self.now();
        let held = row.filter(|row| row.expires_at.is_none_or(|at| at > now));
        Ok(held.map(|row| (row.task_id, Fingerprint(row.fingerprint))))
    }

    /// Answers a request whose key names an earlier task. None: that task is gone.
    async fn replay(
        &self,
        task_id: TaskId,
        earlier: Fingerprint,
        submit: &Submit,
        print: Fingerprint,
    ) -> Result<Option<TaskView>, Failure> {
        let Some(task) = self.load(task_id).await? else { return Ok(None) };
        let task = match idempotency::judge(earlier, task.state.phase.name(), submit, print) {
            Verdict::Replay => task,
            Verdict::Retry => self.send_again(task_id, submit.deadline).await?,
            Verdict::InFlight => {
                let message = "the first request with this idempotency key is not finished; wait for it or join it";
                return Err(Failure::new(ErrorCode::IdempotencyInFlight, message));
            }
            Verdict::Reused => {
                let message = "this idempotency key was used for another request; use a new key for a new request";
                return Err(Failure::new(ErrorCode::IdempotencyKeyReused, message));
            }
        };
        Ok(Some(TaskView { replayed: true, ..task.view() }))
    }

    /// Sends a task that ended badly again, under its own id. Two who ask at once send it once.
    async fn send_again(&self, id: TaskId, deadline: Option<Span>) -> Result<Arc<Task>, Failure> {
        let task = self.load(id).await?.ok_or_else(crate::gateway::task_not_found)?;
        let not_before = self.now();
        let _place = self.place_for(id)?;
        let deadline_at = not_before + deadline.unwrap_or_else(|| self.usual_deadline(&task));
        match self.apply(id, Event::Redrive { not_before, deadline_at }).await {
            Ok(task) => Ok(task),
            Err(error) => match self.load(id).await? {
                Some(task)
                    if !task.state.phase.name().is_final() || task.state.phase.name() == PhaseName::Completed =>
                {
                    Ok(task)
                }
                Some(_) | None => Err(error.into()),
            },
        }
    }

    /// How long a task that is sent again may take, if nobody says otherwise.
    pub(super) fn usual_deadline(&self, task: &Task) -> Span {
        self.deadline(task, task.state.plan.as_ref().map_or(Tier::Normal, |plan| plan.tier))
    }
}
