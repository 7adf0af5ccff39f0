//! Looking at tasks, calling them off, and following them.

use std::sync::Arc;

use futures_util::future::join_all;
use reach_core::access::{Caller, Grant};
use reach_core::task::{Event, Refusal, Task};
use reach_schemas::call::{TaskList, TaskRef, Tasks};
use reach_schemas::method::push;
use reach_schemas::{Explanation, Failure, TaskId, TaskView};

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
        Ok(self.visible(&grant, request.task_id).await?.view())
    }

    /// Every decision that was taken for a task.
    ///
    /// # Errors
    /// There is none that the caller may see.
    pub async fn explain(&self, grant: Grant, request: TaskRef) -> Result<Explanation, Failure> {
        Ok(self.visible(&grant, request.task_id).await?.explanation())
    }

    /// Tasks, newest first.
    ///
    /// # Errors
    /// More are asked for than one list holds, or the store cannot be read.
    pub async fn list(&self, grant: Grant, request: TaskList) -> Result<Tasks, Failure> {
        let own = match grant.caller() {
            Caller::Operator => None,
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
        Ok(Tasks { tasks: promised.into_iter().flatten().map(|task| task.view()).collect(), more })
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
            Ok(task) => Ok(task.view()),
            Err(NotApplied::Refused(Refusal::Already)) => Ok(task.view()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends `task/changed` over a connection whenever the task changes, until it ends or the connection does.
    ///
    /// # Errors
    /// There is no such task that the caller may see.
    pub async fn subscribe(&self, grant: Grant, request: TaskRef, connection: Sender) -> Result<TaskView, Failure> {
        let mut waiter = self.waiters.register(request.task_id);
        let task = self.visible(&grant, request.task_id).await?;
        if !task.state.phase.name().is_final() {
            tokio::spawn(async move {
                while let Some(task) = waiter.changed().await {
                    if !connection.notify(push::CHANGED, &task.view()) || task.state.phase.name().is_final() {
                        return;
                    }
                }
            });
        }
        Ok(task.view())
    }
}
