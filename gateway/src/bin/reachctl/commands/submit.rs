//! Asking for work: submit, reach and wait. What the agent wrote goes to standard output as it wrote it; everything
//! else goes to standard error.

use std::time::Duration;

use agent_reach_sdk::schemas::call::TaskRef;
use agent_reach_sdk::{Method, PhaseName, RawJson, Refusal, Span, TaskId, TaskView};

use super::note;
use crate::args::{ReachArgs, SubmitArgs, TaskFlags, WaitArgs, new_key};
use crate::complaint::Complaint;
use crate::exit::{Exit, Stop};
use crate::render::{people, tasks};
use crate::session::{Session, read};

/// How long after its own deadline a task's end is still waited for.
const GRACE: Span = Span::from_secs(30);
/// How soon, and how seldom at last, it is looked whether a task has come before people.
const LOOK_FIRST: Duration = Duration::from_millis(500);
const LOOK_MAX: Duration = Duration::from_secs(10);

pub(crate) async fn submit(args: SubmitArgs, session: &Session) -> Result<Exit, Stop> {
    let (answer, task) = send(args.task, session).await?;
    match args.wait {
        Some(timeout) => follow(task, timeout, session).await,
        None => {
            if session.out.is_json {
                session.out.line(answer.get())?;
            } else {
                session.out.line(&format!("{} {}", task.task_id, task.phase.as_str()))?;
                note(session, &tasks::where_it_is(&task))?;
                if task.human.is_some() && !task.phase.is_final() {
                    note(session, &people::how_to_answer(&task))?;
                }
            }
            Ok(Exit::Done)
        }
    }
}

pub(crate) async fn reach(args: ReachArgs, session: &Session) -> Result<Exit, Stop> {
    let (_, task) = send(args.task, session).await?;
    follow(task, args.wait.or(args.timeout), session).await
}

pub(crate) async fn wait(args: WaitArgs, session: &Session) -> Result<Exit, Stop> {
    // Looked at once first: a task or a gateway that is not there is told at once.
    let answer = session.ask(Method::TaskGet, &TaskRef { task_id: args.task }).await?;
    follow(read(Method::TaskGet, &answer)?, args.timeout, session).await
}

async fn send(flags: TaskFlags, session: &Session) -> Result<(RawJson, TaskView), Stop> {
    let mut submit = flags.into_submit()?;
    if submit.idempotency_key.is_none() {
        submit.idempotency_key = Some(new_key()?);
    }
    let answer = session.ask(Method::TaskSubmit, &submit).await?;
    let task = read(Method::TaskSubmit, &answer)?;
    Ok((answer, task))
}

/// Waits for the task's end and prints it.
async fn follow(task: TaskView, timeout: Option<Span>, session: &Session) -> Result<Exit, Stop> {
    if task.phase.is_final() {
        return finish(&task, session);
    }
    note(session, &format!("task {} {}", task.task_id, tasks::where_it_is(&task)))?;
    if task.human.is_some() {
        note(session, &people::how_to_answer(&task))?;
    }
    let patience = timeout.unwrap_or_else(|| task.deadline_at.since(task.created_at) + GRACE);
    let told = told_of_people(&task, session);
    let mut end = tokio::select! {
        end = end_of(task.task_id, patience.into(), session) => end?,
        Err(stop) = told => return Err(stop),
    };
    end.replayed = task.replayed;
    finish(&end, session)
}

/// Says it once the task has come before people, which its end does not: nobody would know whom to wait for. Never done
/// otherwise.
async fn told_of_people(task: &TaskView, session: &Session) -> Result<(), Stop> {
    let mut is_told = task.human.is_some() || session.out.is_json;
    let mut pause = LOOK_FIRST;
    while !is_told {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK_MAX);
        // What is wrong with the gateway is for the wait itself to find out.
        let Ok(answer) = session.ask(Method::TaskGet, &TaskRef { task_id: task.task_id }).await else { continue };
        let now: TaskView = read(Method::TaskGet, &answer)?;
        if now.human.is_some() && !now.phase.is_final() {
            note(session, &format!("task {} {}", now.task_id, tasks::where_it_is(&now)))?;
            note(session, &people::how_to_answer(&now))?;
            is_told = true;
        }
    }
    std::future::pending().await
}

async fn end_of(task: TaskId, patience: Duration, session: &Session) -> Result<TaskView, Stop> {
    tokio::select! {
        end = session.client.wait_for_end(task, patience) => end.map_err(|error| session.stopped(error)),
        // Where Ctrl-C cannot be heard it ends the program by itself.
        Ok(()) = tokio::signal::ctrl_c() => Err(Stop::Interrupted(task)),
    }
}

fn finish(task: &TaskView, session: &Session) -> Result<Exit, Stop> {
    let out = &session.out;
    let exit = if task.phase == PhaseName::Completed { Exit::Done } else { Exit::TaskFailed };
    if out.is_json {
        out.line(&serde_json::to_string(task).map_err(|error| Stop::Unreadable(error.to_string()))?)?;
        return Ok(exit);
    }
    if exit == Exit::Done {
        note(session, &format!("task {} {}", task.task_id, tasks::how_it_ended(task)))?;
        out.line(task.result.as_ref().map_or("null", RawJson::get))?;
        return Ok(exit);
    }
    note(session, &format!("task {} {}", task.task_id, tasks::how_it_ended(task)))?;
    let mut complaint = Complaint::of_refusal(&refusal(task));
    if task.replayed {
        complaint.note("this is the stored answer to an earlier request with this key".to_owned());
        complaint.note("send it anew with `--on-failed retry`, or with another --key".to_owned());
    }
    out.note(complaint.text(&out.error_look()).trim_end())?;
    Ok(exit)
}

/// The words of a task that did not end well.
fn refusal(task: &TaskView) -> Refusal {
    let Some(failure) = task.failure.clone() else {
        let code = task.phase.error_code();
        let message = format!("the task ended as {}", task.phase.as_str());
        return Refusal { task_id: Some(task.task_id), ..Refusal::new(code, message) };
    };
    Refusal {
        task_id: Some(task.task_id),
        retry_after: failure.retry_after.map(Into::into),
        suggestions: failure.suggestions,
        data: failure.data,
        ..Refusal::new(failure.code, failure.message)
    }
}
