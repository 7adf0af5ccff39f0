//! `get`: agents, tasks and capabilities, once or watched.

use agent_reach_sdk::schemas::call::{
    AgentList, AgentRef, AgentView, Agents, Capabilities, CapabilityFind, LIST_MAX, TaskList, TaskRef, Tasks,
};
use agent_reach_sdk::{Method, TaskView};

use crate::args::Get;
use crate::exit::{Exit, Stop};
use crate::render::{agents, capabilities, tasks};
use crate::session::Session;
use crate::watch::{View, present};

/// How many capabilities are searched for by words.
const FOUND: u32 = 5;

pub(crate) async fn run(get: Get, session: &Session) -> Result<Exit, Stop> {
    match get {
        Get::Agents { namespace, limit, watch } => {
            let params = AgentList { namespace, limit: Some(limit), after: None };
            let view = View::<Agents> {
                render: Box::new(move |answer, look| agents::table(&answer.agents, limit, look)),
                lines: |answer| answer.agents.iter().map(agents::line).collect(),
                is_over: |_| false,
            };
            present(session, Method::AgentList, &params, &watch, view).await
        }
        Get::Agent { agent, watch } => {
            let view = View::<AgentView> {
                render: Box::new(agents::sheet_of),
                lines: |agent| vec![agents::line(agent)],
                is_over: |_| false,
            };
            present(session, Method::AgentGet, &AgentRef { agent_id: agent }, &watch, view).await
        }
        Get::Tasks { phase, agent, limit, watch } => {
            let params = TaskList { phase, agent_id: agent, limit: Some(limit), before: None };
            present(session, Method::TaskList, &params, &watch, task_list("no tasks", limit)).await
        }
        Get::Task { task, watch } => {
            let view = View::<TaskView> {
                render: Box::new(tasks::whole),
                lines: |task| vec![tasks::line(task)],
                is_over: |task| task.phase.is_final(),
            };
            present(session, Method::TaskGet, &TaskRef { task_id: task }, &watch, view).await
        }
        Get::Servers { watch } => super::servers::list(watch, session).await,
        Get::Capabilities { intent, namespace, from, limit, watch } => {
            let limit = limit.unwrap_or(if intent.is_some() { FOUND } else { LIST_MAX });
            let params = CapabilityFind { intent, namespace, from_agent: from, limit: Some(limit) };
            let view = View::<Capabilities> {
                render: Box::new(|answer, look| capabilities::table(&answer.capabilities, look)),
                lines: |answer| answer.capabilities.iter().map(capabilities::line).collect(),
                is_over: |_| false,
            };
            present(session, Method::CapabilityFind, &params, &watch, view).await
        }
    }
}

/// How a list of tasks is shown and followed; `none` is what is said of an empty one.
pub(crate) fn task_list(none: &'static str, limit: u32) -> View<Tasks> {
    View {
        render: Box::new(move |answer, look| match answer.tasks.is_empty() {
            true => format!("{none}\n"),
            false => tasks::table(&answer.tasks, limit, look),
        }),
        lines: |answer| answer.tasks.iter().map(tasks::line).collect(),
        is_over: |_| false,
    }
}
