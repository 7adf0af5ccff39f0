//! Tasks that were given up on: looked at, and sent again.

use reach_core::access::Grant;
use reach_core::task::Task;
use reach_schemas::call::{Redrive, Redriven, Refused, TaskList, TaskRef, Tasks};
use reach_schemas::{ErrorCode, Explanation, Failure, PhaseName, TaskId};

use super::bounds;
use crate::gateway::{Gateway, task_not_found};
use crate::store::Query;

/// How many are listed or sent again if the caller does not say.
const LIST: u32 = 50;
const REDRIVE: u32 = 100;

impl Gateway {
    /// Dead letters, newest first.
    ///
    /// # Errors
    /// More are asked for than one list holds, or the store cannot be read.
    pub async fn dead_letters(&self, _grant: Grant, request: TaskList) -> Result<Tasks, Failure> {
        if request.phase.is_some_and(|phase| phase != PhaseName::DeadLettered) {
            return Err(Failure::new(ErrorCode::InvalidParams, "`phase` of a dead letter is `dead_lettered`"));
        }
        let limit = bounds::limit(request.limit, LIST)?;
        let query = Query {
            phases: vec![PhaseName::DeadLettered],
            agent: request.agent_id,
            scope: None,
            before: request.before,
            limit,
        };
        let tasks = self.store.list(query).await?;
        Ok(Tasks { tasks: tasks.iter().map(Task::view).collect() })
    }

    /// One dead letter with its history.
    ///
    /// # Errors
    /// There is no such dead letter.
    pub async fn dead_letter(&self, _grant: Grant, request: TaskRef) -> Result<Explanation, Failure> {
        let task = self.load(request.task_id).await?.ok_or_else(task_not_found)?;
        if task.state.phase.name() == PhaseName::DeadLettered {
            return Ok(task.explanation());
        }
        let message = format!("the task is {}, not a dead letter; task/get shows it", task.state.phase.name().as_str());
        Err(Failure::new(ErrorCode::WrongPhase, message))
    }

    /// Sends dead letters again, under their own ids.
    ///
    /// # Errors
    /// More are named than one call may send, or the store cannot be read. What becomes of each is in the answer.
    pub async fn redrive(&self, _grant: Grant, request: Redrive) -> Result<Redriven, Failure> {
        let limit = bounds::named("task_ids", request.task_ids.len(), request.limit, REDRIVE)?;
        bounds::work("deadline", request.deadline)?;
        let ids = if request.task_ids.is_empty() {
            let query = Query {
                phases: vec![PhaseName::DeadLettered],
                agent: request.agent_id,
                scope: None,
                before: None,
                limit,
            };
            self.store.list(query).await?.iter().map(Task::id).collect()
        } else {
            request.task_ids
        };
        let mut answer = Redriven { redriven: Vec::new(), refused: Vec::new() };
        for task_id in ids.into_iter().take(limit as usize) {
            match self.redrive_one(task_id, request.deadline).await {
                Ok(()) => answer.redriven.push(task_id),
                Err(failure) => answer.refused.push(Refused { task_id, failure }),
            }
        }
        Ok(answer)
    }

    async fn redrive_one(&self, task_id: TaskId, deadline: Option<reach_schemas::Span>) -> Result<(), Failure> {
        let task = self.load(task_id).await?.ok_or_else(task_not_found)?;
        if task.state.phase.name() != PhaseName::DeadLettered {
            let message = format!("the task is {}, not a dead letter", task.state.phase.name().as_str());
            return Err(Failure::new(ErrorCode::WrongPhase, message));
        }
        self.send_again(task_id, deadline).await.map(|_| ())
    }
}
