//! Tasks that were given up on, looked at. How they are sent again: `redrive`.

use reach_core::access::Grant;
use reach_core::task::Task;
use reach_schemas::call::{TaskList, TaskRef, Tasks};
use reach_schemas::{ErrorCode, Explanation, Failure, PhaseName};

use super::bounds;
use crate::gateway::{Gateway, task_not_found};
use crate::store::Query;

/// How many are listed if the caller does not say.
const LIST: u32 = 50;

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
            before: request.before,
            limit,
            ..Query::default()
        };
        let (tasks, more) = self.list_within(query).await?;
        Ok(Tasks { tasks: tasks.iter().map(Task::view).collect(), more })
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
}
