//! Looking at tasks, calling them off, and following them.

use std::sync::Arc;

use futures_util::future::join_all;
use reach_core::access::{Caller, Grant, allows};
use reach_core::task::{Event, Refusal, Task};
use reach_schemas::call::{TaskList, TaskRef, Tasks};
use reach_schemas::method::push;
use reach_schemas::{Action, AgentId, CapabilityName, ErrorCode, Explanation, Failure, TaskId, TaskView};

use super::bounds;
use super::submit::scope;
use crate::gateway::{Gateway, NotApplied, task_not_found};
use crate::sessions::Sender;
use crate::store::Query;

/// How many entries a list has if its caller does not say.
const LIST: u32 = 50;
/// How much the tasks of one list may carry, in bytes, before it is cut.
const LIST_BYTES_MAX: usize = 16 << 20;
/// How many tasks are read at a time where they are large, and where they are small.
const LIST_STEP_MIN: u32 = 8;
const LIST_STEP_MAX: u32 = 256;

impl Gateway {
    /// A task that the caller may see, finished or durable. Another's is not found.
    pub(crate) async fn visible(&self, grant: &Grant, id: TaskId) -> Result<Arc<Task>, Failure> {
        let task = self.load(id).await?.ok_or_else(task_not_found)?;
        if !grant.owns(task.birth.submit.from_agent.as_ref()) {
            return Err(task_not_found());
        }
        Ok(self.promised(task).await?)
    }

    /// A task as it is now.
    ///
    /// # Errors
    /// There is none that the caller may see.
    pub async fn get(&self, grant: Grant, request: TaskRef) -> Result<TaskView, Failure> {
        let view = self.visible(&grant, request.task_id).await?.view();
        Ok(self.seen_by(&grant, view))
    }

    /// A task as the caller may see it now.
    pub(crate) fn seen_by(&self, grant: &Grant, view: TaskView) -> TaskView {
        self.fleet().task_seen_by(grant.caller(), view)
    }

    /// Every decision that was taken for a task.
    ///
    /// # Errors
    /// There is none that the caller may see.
    pub async fn explain(&self, grant: Grant, request: TaskRef) -> Result<Explanation, Failure> {
        let explanation = self.visible(&grant, request.task_id).await?.explanation();
        Ok(self.fleet().explanation_seen_by(grant.caller(), explanation))
    }

    /// Tasks, newest first.
    ///
    /// # Errors
    /// More are asked for than one list holds, or the store cannot be read.
    pub async fn list(&self, grant: Grant, request: TaskList) -> Result<Tasks, Failure> {
        let own = match grant.caller() {
            Caller::Operator(_) => None,
            Caller::Agent { .. } => Some(scope(grant.caller())),
        };
        let query = Query {
            phases: request.phase.into_iter().collect(),
            agent: request.agent_id,
            scope: own,
            before: request.before,
            limit: bounds::limit(request.limit, LIST)?,
            ..Query::default()
        };
        let (tasks, more) = self.list_within(query).await?;
        let promised = join_all(tasks.into_iter().map(|task| self.promised(Arc::new(task)))).await;
        // What cannot be made durable just now is not named.
        let views = promised.into_iter().flatten().map(|task| self.seen_by(&grant, task.view()));
        Ok(Tasks { tasks: views.collect(), more })
    }

    /// Tasks, newest first, until their results are more than one list holds; and whether there may be more of them. They
    /// are read a few at a time, so that large ones are not all in memory first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn list_within(&self, query: Query) -> Result<(Vec<Task>, bool), Failure> {
        let (mut listed, mut bytes, mut at_once) = (Vec::<Task>::new(), 0, LIST_STEP_MIN);
        loop {
            let left = query.limit - u32::try_from(listed.len()).unwrap_or(query.limit);
            let before = listed.last().map(Task::id).or(query.before);
            let part = self.stores.list(Query { before, limit: left.min(at_once), ..query.clone() }).await?;
            let is_last = part.len() < left.min(at_once) as usize;
            let of_part: usize = part.iter().map(Task::carried).sum();
            bytes += of_part;
            listed.extend(part);
            if is_last || listed.len() >= query.limit as usize {
                return Ok((listed, false));
            }
            if bytes >= LIST_BYTES_MAX {
                return Ok((listed, true));
            }
            // Small ones, which most are, are read many at once.
            at_once = if of_part < LIST_BYTES_MAX / 64 { LIST_STEP_MAX } else { LIST_STEP_MIN };
        }
    }

    /// Calls a task off. One that is cancelled already is answered as it is.
    ///
    /// # Errors
    /// There is none that the caller may see, or it has ended otherwise.
    pub async fn cancel(&self, grant: Grant, request: TaskRef) -> Result<TaskView, Failure> {
        let task = self.visible(&grant, request.task_id).await?;
        match self.apply(request.task_id, Event::Cancel).await {
            Ok(task) => Ok(self.seen_by(&grant, task.view())),
            Err(NotApplied::Refused(Refusal::Already)) => Ok(self.seen_by(&grant, task.view())),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends `task/changed` over a connection whenever the task changes, until it ends or the connection does.
    ///
    /// # Errors
    /// There is no such task that the caller may see, or the policy does not let it be told of this one's changes.
    pub async fn subscribe(&self, grant: Grant, request: TaskRef, connection: Sender) -> Result<TaskView, Failure> {
        let follower = self.waiters.follow(request.task_id);
        let task = self.visible(&grant, request.task_id).await?;
        self.may_follow(grant.caller(), &task)?;
        let mut follower = follower.after(&task);
        if !task.state.phase.name().is_final() {
            let (gateway, who) = (self.me.clone(), grant.caller().clone());
            tokio::spawn(async move {
                loop {
                    let task = follower.changed().await;
                    let Some(gateway) = gateway.upgrade() else { return };
                    // The policy may have changed since.
                    let caller = who.agent_id().map_or_else(|| who.clone(), |agent| gateway.caller_named(agent));
                    if gateway.may_follow(&caller, &task).is_err() {
                        return;
                    }
                    let view = gateway.fleet().task_seen_by(&caller, task.view());
                    drop(gateway);
                    if !connection.notify(push::CHANGED, &view).await || task.state.phase.name().is_final() {
                        return;
                    }
                }
            });
        }
        Ok(self.seen_by(&grant, task.view()))
    }

    /// Whether the caller may be told of the changes of a task: whoever has it, or is named by it, must be one that it may
    /// subscribe to.
    ///
    /// # Errors
    /// The policy says no.
    pub(crate) fn may_follow(&self, caller: &Caller, task: &Task) -> Result<(), Failure> {
        let (target, attempt) = (&task.state.target, task.state.attempts.last());
        let agent = attempt.map(|attempt| &attempt.agent_id).or(target.to_agent.as_ref());
        let capability = attempt.map(|attempt| &attempt.capability).or(target.capability.as_ref());
        self.may_be_told(caller, agent, capability)
    }

    /// Whether the caller may be told of the changes of what an agent does. Nobody has it yet: it may.
    ///
    /// # Errors
    /// The policy says no.
    pub(crate) fn may_be_told(
        &self,
        caller: &Caller,
        agent: Option<&AgentId>,
        capability: Option<&CapabilityName>,
    ) -> Result<(), Failure> {
        let Some(agent) = agent else { return Ok(()) };
        let fleet = self.fleet();
        let access = fleet.node(agent).map(|node| node.card.access.clone()).unwrap_or_default();
        let said = allows(caller, Action::Subscribe, agent, &access, capability);
        said.map_err(|denial| Failure::new(ErrorCode::Forbidden, denial.to_string()))
    }
}
