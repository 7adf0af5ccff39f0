//! People who take what no agent could do: look, take, answer, refuse, put back.

use agent_reach_sdk::schemas::FencingToken;
use agent_reach_sdk::schemas::call::{HumanAnswer, HumanList, HumanRefuse, HumanReturn, HumanTake, HumanWork, Tasks};
use agent_reach_sdk::{Method, TaskId, TaskView};

use crate::args::{Held, Human};
use crate::exit::{Exit, Stop};
use crate::input;
use crate::render::{people, tasks};
use crate::session::{Session, read};
use crate::watch::{View, present};

pub(crate) async fn run(command: Human, session: &Session) -> Result<Exit, Stop> {
    match command {
        Human::List { queue, limit, watch } => {
            let params = HumanList { queue, limit: Some(limit) };
            let view = View::<Tasks> {
                render: Box::new(move |answer, look| people::table(&answer.tasks, limit, look)),
                lines: |answer| answer.tasks.iter().map(people::line).collect(),
                is_over: |_| false,
            };
            present(session, Method::HumanList, &params, &watch, view).await
        }
        Human::Take { task, queue, lease, person } => {
            let params = HumanTake { task_id: task, queue, by: person.into_name(), lease };
            session.show::<HumanWork>(Method::HumanTake, &params, people::work).await
        }
        Human::Answer { task, result, held } => {
            // Read first: what cannot be read takes nothing.
            let result = input::json_argument("--result", &result)?;
            let token = token(task, held, session).await?;
            let params = HumanAnswer { task_id: task, token, result };
            session.show(Method::HumanAnswer, &params, |task: &TaskView, _| said(task)).await
        }
        Human::Refuse { task, reason, nothing_happened, held } => {
            let token = token(task, held, session).await?;
            let params = HumanRefuse { task_id: task, token, reason, nothing_happened };
            session.show(Method::HumanRefuse, &params, |task: &TaskView, _| said(task)).await
        }
        Human::Return { task, held } => {
            let token = token(task, held, session).await?;
            let params = HumanReturn { task_id: task, token };
            session.show(Method::HumanReturn, &params, |task: &TaskView, _| said(task)).await
        }
    }
}

/// The token under which this person has the task: as they say, or by taking it, which for one that is theirs already
/// gives the same token again.
async fn token(task: TaskId, held: Held, session: &Session) -> Result<FencingToken, Stop> {
    if let Some(token) = held.token {
        return Ok(token);
    }
    let params = HumanTake { task_id: Some(task), queue: None, by: held.person.into_name(), lease: None };
    let answer = session.ask(Method::HumanTake, &params).await?;
    Ok(read::<HumanWork>(Method::HumanTake, &answer)?.token)
}

fn said(task: &TaskView) -> String {
    format!("{} {}\n", task.task_id, tasks::how(task))
}
