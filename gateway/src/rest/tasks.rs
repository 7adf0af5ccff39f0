//! Routes about tasks: asking for work, waiting for it, calling it off, looking at it.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use reach_core::access::Grant;
use reach_schemas::call::{Redrive, TaskList, TaskRef, TaskWait};
use reach_schemas::{AgentId, ErrorCode, Failure, Method, PhaseName, RawJson, Span, Submit, TaskView};
use serde::Deserialize;

use super::{Answer, JSON, Operation, Problem, Request, json, ok, path_of, with_body};
use crate::rpc::methods::Context;

/// Tells that the answer is for an earlier request with the same idempotency key.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// In how many seconds to look again at a task that has not ended.
const LOOK_AGAIN: HeaderValue = HeaderValue::from_static("1");

/// The query of a task's result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultQuery {
    #[serde(default)]
    wait: Span,
}

/// A task to take on, and the leave to do so. A refusal that comes before it is looked at is written down here.
fn handed_in(
    context: &Context,
    (method, what): (Method, Operation),
    read: impl FnOnce() -> Result<Submit, Problem>,
) -> Result<(Grant, Submit), Problem> {
    let read = read().and_then(|submit| {
        let grant = context.grant(method, submit.from_agent.as_ref())?;
        Ok((grant, submit))
    });
    read.inspect_err(|problem| context.refused(path_of(what), problem.code(), problem.detail()))
}

pub(super) async fn invoke(context: &Context, request: &Request) -> Answer {
    let read = || {
        let agent: AgentId = request.id()?;
        let submit = request.submit()?;
        if submit.to_agent.as_ref().is_some_and(|own| *own != agent) {
            let message = "`to_agent` is the agent of the path; leave it out";
            return Err(Failure::new(ErrorCode::InvalidParams, message).into());
        }
        Ok(Submit { to_agent: Some(agent), ..submit })
    };
    let (grant, submit) = handed_in(context, (Method::Reach, Operation::AgentInvoke), read)?;
    reached(&context.gateway.reach(grant, submit).await?)
}

pub(super) async fn reach(context: &Context, request: &Request) -> Answer {
    let (grant, submit) = handed_in(context, (Method::Reach, Operation::Reach), || request.submit())?;
    reached(&context.gateway.reach(grant, submit).await?)
}

/// A task that was waited for: the task if it completed, the problem if it did not, and the task to look at again
/// if it has not ended.
fn reached(task: &TaskView) -> Answer {
    let mut response = if task.phase == PhaseName::Completed {
        json(StatusCode::OK, task)
    } else if task.phase.is_final() {
        problem_of(task).into_response()
    } else {
        unfinished(task)
    };
    name(&mut response, task);
    Ok(response)
}

/// Adds where the task is, and whether it is an earlier one.
fn name<T>(response: &mut Response<T>, task: &TaskView) {
    let location = HeaderValue::try_from(format!("/tasks/{}", task.task_id)).expect("an id is printable");
    response.headers_mut().insert(header::LOCATION, location);
    if task.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}

fn unfinished(task: &TaskView) -> Response<bytes::Bytes> {
    let mut response = json(StatusCode::ACCEPTED, task);
    response.headers_mut().insert(header::RETRY_AFTER, LOOK_AGAIN);
    response
}

/// Why a task did not end well.
fn problem_of(task: &TaskView) -> Problem {
    let failure = task
        .failure
        .clone()
        .unwrap_or_else(|| Failure::new(task.phase.error_code(), format!("the task is {}", task.phase.as_str())));
    let failure = if task.replayed { as_stored(failure) } else { failure };
    Problem::from(failure).about(task.task_id)
}

/// A failure that was not met now, but by an earlier request.
fn as_stored(failure: Failure) -> Failure {
    let message = format!(
        "{} (this is the stored answer to an earlier request with this idempotency key; to send it anew, say \
         `on_failed: \"retry\"` or use a new key)",
        failure.message
    );
    Failure { message, ..failure }
}

/// 202 for a task that was taken on, 200 for one that is known.
pub(super) async fn submit(context: &Context, request: &Request) -> Answer {
    let (grant, submit) = handed_in(context, (Method::TaskSubmit, Operation::TaskSubmit), || request.submit())?;
    let task = context.gateway.submit(grant, submit).await?;
    let status = if task.replayed { StatusCode::OK } else { StatusCode::ACCEPTED };
    let mut response = json(status, &task);
    name(&mut response, &task);
    Ok(response)
}

pub(super) async fn list(context: &Context, request: &Request) -> Answer {
    let wanted: TaskList = request.query()?;
    ok(&context.gateway.list(context.grant(Method::TaskList, None)?, wanted).await?)
}

pub(super) async fn get(context: &Context, request: &Request) -> Answer {
    let wanted = TaskRef { task_id: request.id()? };
    ok(&context.gateway.get(context.grant(Method::TaskGet, None)?, wanted).await?)
}

/// The result as the agent wrote it; the problem if there will be none; the task while there is none yet.
pub(super) async fn result(context: &Context, request: &Request) -> Answer {
    let ResultQuery { wait } = request.query()?;
    let wanted = TaskWait { task_id: request.id()?, wait: Some(wait) };
    let task = context.gateway.wait(context.grant(Method::TaskWait, None)?, wanted).await?;
    if task.phase != PhaseName::Completed {
        return reached(&task);
    }
    let result = task.result.as_ref().map_or("null", RawJson::get).to_owned();
    Ok(with_body(StatusCode::OK, JSON, result.into()))
}

pub(super) async fn cancel(context: &Context, request: &Request) -> Answer {
    let wanted = TaskRef { task_id: request.id()? };
    ok(&context.gateway.cancel(context.grant(Method::TaskCancel, None)?, wanted).await?)
}

pub(super) async fn explain(context: &Context, request: &Request) -> Answer {
    let wanted = TaskRef { task_id: request.id()? };
    ok(&context.gateway.explain(context.grant(Method::TaskExplain, None)?, wanted).await?)
}

pub(super) async fn dead_letters(context: &Context, request: &Request) -> Answer {
    let wanted: TaskList = request.query()?;
    ok(&context.gateway.dead_letters(context.grant(Method::DeadLetterList, None)?, wanted).await?)
}

pub(super) async fn redrive(context: &Context, request: &Request) -> Answer {
    let wanted: Redrive = request.read()?;
    ok(&context.gateway.redrive(context.grant(Method::DeadLetterRedrive, None)?, wanted).await?)
}
