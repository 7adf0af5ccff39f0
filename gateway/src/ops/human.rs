//! Tasks that no agent could do, and the people who take them: listed, taken under a lease, answered, refused, put back.

use std::sync::Arc;

use reach_core::access::{Caller, Grant, may_call};
use reach_core::fleet::Fleet;
use reach_core::task::event::Word;
use reach_core::task::{Event, Refusal, Task};
use reach_schemas::call::{
    HUMAN_LEASE, HUMAN_LEASE_MAX, HumanAnswer, HumanList, HumanRefuse, HumanReturn, HumanTake, HumanWork, LEASE_MIN,
    PERSON_MAX, REASON_MAX, Tasks,
};
use reach_schemas::{ErrorCode, Failure, FencingToken, QueueName, RawJson, Span, TaskId, TaskView};

use super::bounds;
use crate::gateway::{Gateway, NotApplied, task_not_found};

/// How many are listed if the caller does not say.
const LIST: u32 = 50;

fn invalid(message: String) -> Failure {
    Failure::new(ErrorCode::InvalidParams, message)
}

/// What was asked for first, as its agent declares it: the one that was tried, or any that offers it.
fn output_schema(fleet: &Fleet, task: &Task) -> Option<RawJson> {
    first_asked(fleet, task, |node, offer| node.capability(offer).output_schema.clone())?
}

fn first_asked<T>(
    fleet: &Fleet,
    task: &Task,
    look: impl Fn(&reach_core::fleet::Node, &reach_core::fleet::Offer) -> T,
) -> Option<T> {
    let capability = task.state.fallback_from.as_ref()?;
    let tried = task.state.attempts.iter().filter(|attempt| attempt.capability == *capability);
    let tried = tried.filter_map(|attempt| fleet.node(&attempt.agent_id));
    // What another namespace calls by the same name is another thing.
    let caller = task.birth.submit.from_agent.as_ref().map_or(Caller::OPERATOR, |agent| fleet.caller(agent));
    let namespace = task.state.target.namespace.as_ref();
    let others = fleet.nodes().filter(|node| {
        let id = &node.card.agent_id;
        namespace.is_none_or(|own| id.namespace() == *own) && may_call(&caller, id, &node.card.access, capability)
    });
    tried.chain(others).find_map(|node| node.offer(capability).map(|offer| look(node, offer)))
}

impl Gateway {
    /// Tasks that wait for a person, or are with one: high priority first, then those that were taken on first.
    ///
    /// # Errors
    /// More are asked for than one list holds, or the store cannot be read.
    pub async fn human_list(&self, _grant: Grant, request: HumanList) -> Result<Tasks, Failure> {
        let limit = bounds::limit(request.limit, LIST)? as usize;
        let mut tasks = Vec::new();
        for id in self.open.before_people() {
            if let Some(task) = self.waiting_in(id, request.queue.as_ref()).await? {
                tasks.push(task.view());
            }
            if tasks.len() >= limit {
                break;
            }
        }
        Ok(Tasks { tasks, more: false })
    }

    /// The task, if it is before people, in this queue.
    async fn waiting_in(&self, id: TaskId, queue: Option<&QueueName>) -> Result<Option<Arc<Task>>, Failure> {
        let is_in = |task: &Arc<Task>| {
            let human = task.state.human.as_ref().filter(|_| task.state.phase.human_lease().is_some());
            human.is_some_and(|human| queue.is_none_or(|queue| human.queue == *queue))
        };
        Ok(self.load(id).await?.filter(is_in))
    }

    /// A person takes a task. One that is theirs already stays theirs, for another lease.
    ///
    /// # Errors
    /// Another person has it, it does not wait for one, or nothing waits in the queue.
    pub async fn human_take(&self, grant: Grant, request: HumanTake) -> Result<HumanWork, Failure> {
        let lease = bounds::span("lease", request.lease.unwrap_or(HUMAN_LEASE), LEASE_MIN, HUMAN_LEASE_MAX)?;
        bounds::text("by", &request.by, PERSON_MAX)?;
        let Some(task_id) = request.task_id else {
            return self.take_next(&grant, request.queue.as_ref(), &request.by, lease).await;
        };
        if request.queue.is_some() {
            return Err(invalid("name a task or a queue, not both".to_owned()));
        }
        self.take_one(&grant, task_id, &request.by, lease).await
    }

    async fn take_next(
        &self,
        grant: &Grant,
        queue: Option<&QueueName>,
        by: &str,
        lease: Span,
    ) -> Result<HumanWork, Failure> {
        for id in self.open.before_people() {
            let waiting = self.waiting_in(id, queue).await?;
            if waiting.is_none_or(|task| task.state.taken_by(self.now()).is_some()) {
                continue;
            }
            match self.take_one(grant, id, by, lease).await {
                // Somebody was quicker; there may be another.
                Err(failure) if failure.code == ErrorCode::ClaimLost || failure.code == ErrorCode::WrongPhase => {}
                taken => return taken,
            }
        }
        let place = queue.map_or_else(|| "any queue".to_owned(), |queue| format!("the queue {queue}"));
        Err(Failure::new(ErrorCode::TaskNotFound, format!("nothing waits in {place}")))
    }

    async fn take_one(&self, grant: &Grant, id: TaskId, by: &str, lease: Span) -> Result<HumanWork, Failure> {
        let event = Event::Take { by: by.to_owned(), lease };
        let task = match self.apply_for(Some(grant.caller()), id, event).await {
            Ok(task) => task,
            Err(error) => return Err(self.not_taken(id, error).await),
        };
        let lease_until = task.state.phase.human_lease().flatten().unwrap_or(task.state.deadline_at);
        Ok(HumanWork {
            token: task.state.token,
            lease_until,
            params: task.birth.submit.params.clone(),
            output_schema: output_schema(&self.fleet(), &task),
            task: task.view(),
        })
    }

    /// Why a task cannot be taken, with the name of who has it.
    async fn not_taken(&self, id: TaskId, error: NotApplied) -> Failure {
        let failure = match &error {
            NotApplied::Refused(Refusal::NotOffered) => {
                return Failure::new(ErrorCode::WrongPhase, "the deadline of the task has passed");
            }
            NotApplied::Refused(_) | NotApplied::NotFound | NotApplied::Store(_) => Failure::from(error),
        };
        if failure.code != ErrorCode::ClaimLost {
            return failure;
        }
        let task = self.load(id).await.ok().flatten();
        let holder = task.as_ref().and_then(|task| {
            let take = task.state.taken_by(self.now())?;
            Some(format!("{} has it until {}", take.by, task.state.phase.human_lease().flatten()?))
        });
        holder.map_or(failure, |message| Failure::new(ErrorCode::ClaimLost, message))
    }

    /// A person answers a task that they took. Saying so twice does no harm.
    ///
    /// # Errors
    /// The result does not fit the output schema of what was asked first, and then the person has the task still; or the
    /// token is stale, or the lease has run out.
    pub async fn human_answer(&self, grant: Grant, request: HumanAnswer) -> Result<TaskView, Failure> {
        let task = self.load(request.task_id).await?.ok_or_else(task_not_found)?;
        let misfit = first_asked(&self.fleet(), &task, |_, offer| offer.result_violations(&request.result));
        if let Some(violations) = misfit.filter(|violations| !violations.is_empty()) {
            let asked = task.state.fallback_from.as_ref().map(ToString::to_string).unwrap_or_default();
            let why = violations.join("; ");
            return Err(invalid(format!("`result` does not fit the output schema of {asked}: {why}")));
        }
        self.human_says(&grant, request.task_id, request.token, Word::Answer { result: request.result }).await
    }

    /// A person refuses a task that they took.
    ///
    /// # Errors
    /// The token is stale, or the lease has run out.
    pub async fn human_refuse(&self, grant: Grant, request: HumanRefuse) -> Result<TaskView, Failure> {
        bounds::text("reason", &request.reason, REASON_MAX)?;
        let task = self.load(request.task_id).await?.ok_or_else(task_not_found)?;
        let last = task.state.human.as_ref().and_then(|human| human.takes.last());
        let who = last.map_or("a person", |take| take.by.as_str());
        let failure = Failure::new(ErrorCode::HumanRefused, format!("{who} refused it: {}", request.reason));
        let word = Word::Refuse { failure, nothing_happened: request.nothing_happened };
        self.human_says(&grant, request.task_id, request.token, word).await
    }

    /// A person puts a task back that they took.
    ///
    /// # Errors
    /// The token is stale, or the lease has run out.
    pub async fn human_return(&self, grant: Grant, request: HumanReturn) -> Result<TaskView, Failure> {
        self.human_says(&grant, request.task_id, request.token, Word::Return).await
    }

    async fn human_says(
        &self,
        grant: &Grant,
        id: TaskId,
        token: FencingToken,
        word: Word,
    ) -> Result<TaskView, Failure> {
        match self.apply_for(Some(grant.caller()), id, Event::Person { token, word }).await {
            Ok(task) => Ok(task.view()),
            Err(NotApplied::Refused(Refusal::Already)) => Ok(self.load(id).await?.ok_or_else(task_not_found)?.view()),
            Err(error) => Err(error.into()),
        }
    }
}
