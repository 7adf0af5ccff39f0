//! Tasks that were given up on: listed, shown, sent again.

use agent_reach_sdk::schemas::call::{Redrive, Redriven, TaskList, TaskRef};
use agent_reach_sdk::{Explanation, Method};

use crate::args::{DeadLetters, Which};
use crate::exit::{Exit, Stop};
use crate::render::{explanation, tasks};
use crate::session::Session;
use crate::watch::present;

pub(crate) async fn run(command: DeadLetters, session: &Session) -> Result<Exit, Stop> {
    match command {
        DeadLetters::List { agent, limit, watch } => {
            let params = TaskList { phase: None, agent_id: agent, limit: Some(limit), before: None };
            present(session, Method::DeadLetterList, &params, &watch, super::get::task_list(limit)).await
        }
        DeadLetters::Show { task } => {
            session.show::<Explanation>(Method::DeadLetterGet, &TaskRef { task_id: task }, explanation::whole).await
        }
        DeadLetters::Redrive { which: Which { tasks, agent, all: _ }, limit, deadline } => {
            // No task and no agent named is the wire's way to say all.
            redrive(&Redrive { task_ids: tasks, agent_id: agent, limit, deadline }, session).await
        }
    }
}

/// One that is not sent again does not keep back the others, and is told of at the end.
async fn redrive(which: &Redrive, session: &Session) -> Result<Exit, Stop> {
    let judge = |told: &Redriven| if told.refused.is_empty() { Exit::Done } else { Exit::Refused };
    session.show_and_judge(Method::DeadLetterRedrive, which, tasks::redriven, judge).await
}
