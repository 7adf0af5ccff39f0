//! The method table at work: each method's params are read, the caller is granted what the method needs, and the use
//! case answers. The same for HTTP, WebSocket and stdio.

use std::net::IpAddr;
use std::sync::Arc;

use reach_core::access::Grant;
use reach_schemas::call::{
    CapabilityFind, ErrorData, Heartbeat, HeartbeatAnswer, Nothing, PolicyPut, ProofWanted, Submit, Subscribe, TaskRef,
};
use reach_schemas::{AgentId, ErrorCode, Failure, Method, Traceparent};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::card::decode_policy;
use super::enrol;
use super::near::no_method;
use super::params::text_of;
use super::{Call, ErrorObjectOwned, Outcome, decode_params, error_of, refusal};
use crate::gateway::Gateway;
use crate::identity::Pass;
use crate::sessions::{Sender, SessionId};
use crate::spans::Asked;

/// What a transport knows of the connection that a call came over.
#[derive(Clone)]
pub struct Context {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// By whom it is.
    pub pass: Pass,
    /// By which name the gateway was called, where it was by one: a host, with its port.
    pub host: Option<Arc<str>>,
    /// The connection, if it is one over which the gateway can speak first.
    pub connection: Option<Connection>,
    /// The trace that the call belongs to, by its transport: for a task that is handed in without one.
    pub traceparent: Option<Traceparent>,
    /// Cancelled once the caller is known to be gone: what it would be given then is given to nobody.
    pub gone: CancellationToken,
    /// Over what it came: `http`, `websocket` or `stdio`.
    pub transport: &'static str,
    /// The address that it came from, where there is one.
    pub from: Option<IpAddr>,
}

/// A connection over which the gateway can speak first.
#[derive(Clone)]
pub struct Connection {
    /// Its number.
    pub session: SessionId,
    /// The way to send on it.
    pub sender: Sender,
}

impl Context {
    /// A task to take on, as the params have it; the trace is the transport's if they have none.
    fn submit(&self, call: &Call<'_>) -> Result<Submit, ErrorObjectOwned> {
        let submit: Submit = decode_params(call.params)?;
        let traceparent = submit.traceparent.or(self.traceparent);
        Ok(Submit { traceparent, ..submit })
    }

    /// What a caller is granted.
    ///
    /// # Errors
    /// It has not shown who it is, may not do what the method does, or asks too fast.
    pub fn grant(&self, method: Method, from_agent: Option<&AgentId>) -> Result<Grant, Failure> {
        self.gateway.grant(&self.pass, from_agent, method)
    }

    /// As [`Context::grant`], with the refusal as it is answered.
    fn granted(&self, method: Method, from_agent: Option<&AgentId>) -> Result<Grant, ErrorObjectOwned> {
        self.grant(method, from_agent).map_err(|failure| error_of(failure, None))
    }

    /// An agent is still here. The answer has its next token, if it is time for that.
    ///
    /// # Errors
    /// As [`Gateway::heartbeat`]; or the caller was revoked, or another copy has come, while it was worked on.
    pub async fn heartbeat(&self, beat: Heartbeat) -> Result<HeartbeatAnswer, Failure> {
        let answer = self.gateway.heartbeat(self.grant(Method::AgentHeartbeat, None)?, beat).await?;
        Ok(HeartbeatAnswer { token: self.gateway.next_token(&self.pass)?, ..answer })
    }

    /// Refuses a call before it is begun, for who it is by, or for how much that one asks.
    pub fn refuse(&self, method: &str, failure: Failure) -> ErrorObjectOwned {
        // What is not in the table has no name of the caller's in the audit log.
        let what = Method::by_name(method).map_or("(another method)", Method::name);
        error_of(self.gateway.refuse(&self.pass, what, failure), None)
    }

    /// Writes down that a call was refused. What is taken on as a task is written down where it is refused.
    pub fn refused(&self, what: &str, code: ErrorCode, message: &str) {
        self.gateway.refused(self.pass.to_string(), what, code, message);
    }
}

pub(super) fn answer<T: Serialize>(result: Result<T, Failure>) -> Outcome {
    let value = result.map_err(|failure| error_of(failure, None))?;
    serde_json::value::to_raw_value(&value)
        .map_err(|error| refusal(ErrorCode::Internal, format!("the answer cannot be written: {error}")))
}

/// Answers one call.
///
/// # Errors
/// The error object of whatever went wrong.
pub async fn dispatch(context: &Context, call: Call<'_>) -> Outcome {
    if let Err(too_fast) = context.gateway.count(&context.pass) {
        return Err(context.refuse(&call.method, too_fast));
    }
    let Some(method) = Method::by_name(&call.method) else {
        return Err(refusal(ErrorCode::MethodNotFound, no_method(&call.method)));
    };
    let asked = Asked { transport: context.transport, parent: context.traceparent };
    let flaw = |outcome: &Outcome| outcome.as_ref().err().map(|error| error.message().to_owned());
    let work = while_known(context, method, call);
    asked.answer(context.gateway.spans(), || method.name().into(), work, flaw).await
}

/// Carries a call out, and writes down that it was refused. What is taken on as a task is written down where that is.
async fn written_down(context: &Context, gone: &CancellationToken, method: Method, call: Call<'_>) -> Outcome {
    let outcome = carry_out(context, gone, method, call).await;
    if let Err(error) = &outcome
        && !matches!(method, Method::Reach | Method::TaskSubmit)
        && !asks_for_proof(error)
        && let Some(code) = ErrorCode::by_number(error.code())
    {
        context.refused(method.name(), code, error.message());
    }
    outcome
}

/// Has what may wait end when its caller is not known any more. What does not wait has its answer: by some of it the caller
/// ends its own token.
async fn while_known(context: &Context, method: Method, call: Call<'_>) -> Outcome {
    let may_wait = matches!(method, Method::Reach | Method::TaskWait | Method::TaskClaim);
    if !(may_wait && context.pass.can_end()) {
        return written_down(context, &context.gone, method, call).await;
    }
    let gone = context.gone.child_token();
    let work = Box::pin(written_down(context, &gone, method, call));
    let done = Box::pin(context.gateway.while_known((&context.pass, method.name()), &gone, work)).await;
    done.unwrap_or_else(|failure| Err(error_of(failure, None)))
}

/// Whether a caller is only asked to prove something. It is refused, and that is written down, once it fails to.
fn asks_for_proof(error: &ErrorObjectOwned) -> bool {
    let data = error.data().and_then(|data| serde_json::from_str::<ErrorData>(data.get()).ok());
    data.and_then(|data| data.details).is_some_and(|details| details.read::<ProofWanted>().is_ok())
}

/// The policy that is put, or all that is wrong with its form.
fn policy_of(params: Option<&RawValue>) -> Result<PolicyPut, ErrorObjectOwned> {
    decode_policy(text_of(params)?, "params").map_err(|failure| error_of(failure, None))
}

/// Only a wait lives long: what it is must be small, so that thousands of them may wait. Everything else has a place of its
/// own for as long as it takes.
async fn carry_out(context: &Context, gone: &CancellationToken, method: Method, call: Call<'_>) -> Outcome {
    let gateway = &context.gateway;
    let grant = |agent: Option<&AgentId>| context.granted(method, agent);
    macro_rules! ask {
        ($use_case:ident) => {
            answer(Box::pin(gateway.$use_case(grant(None)?, decode_params(call.params)?)).await)
        };
    }
    match method {
        Method::AgentRegister => Box::pin(enrol::register(context, call.params)).await,
        Method::AgentHeartbeat => answer(Box::pin(context.heartbeat(decode_params(call.params)?)).await),
        Method::AgentDrain => ask!(drain),
        Method::AgentDeregister => ask!(deregister),
        Method::AgentGet => answer(gateway.agent(grant(None)?, &decode_params(call.params)?)),
        Method::AgentList => answer(gateway.agents(grant(None)?, &decode_params(call.params)?)),
        Method::CapabilityFind => find(context, method, &call),
        Method::Reach => Box::pin(reach(context, gone, call)).await,
        Method::Resolve => resolve(context, method, &call),
        Method::TaskSubmit => Box::pin(submit(context, method, call)).await,
        Method::TaskWait => answer(gateway.wait_unless(gone, grant(None)?, decode_params(call.params)?).await),
        Method::TaskGet => ask!(get),
        Method::TaskList => ask!(list),
        Method::TaskCancel => ask!(cancel),
        Method::TaskExplain => ask!(explain),
        Method::TaskClaim => answer(Box::pin(gateway.claim(grant(None)?, decode_params(call.params)?, gone)).await),
        Method::TaskAccept => ask!(accept),
        Method::TaskProgress => ask!(progress),
        Method::TaskComplete => ask!(complete),
        Method::TaskFail => ask!(fail),
        Method::TaskRelease => ask!(release),
        Method::TaskSubscribe => subscribe(context, grant(None)?, call).await,
        Method::MetricsOverview => answer(Ok(gateway.overview(grant(None)?, &decode_params(call.params)?))),
        Method::HumanList => ask!(human_list),
        Method::HumanTake => ask!(human_take),
        Method::HumanAnswer => ask!(human_answer),
        Method::HumanRefuse => ask!(human_refuse),
        Method::HumanReturn => ask!(human_return),
        Method::DeadLetterList => ask!(dead_letters),
        Method::DeadLetterGet => ask!(dead_letter),
        Method::DeadLetterRedrive => ask!(redrive),
        Method::WebhookList => ask!(webhooks),
        Method::WebhookGet => ask!(webhook),
        Method::ServerAdd => ask!(add_server),
        Method::ServerRemove => ask!(remove_server),
        Method::ServerList => {
            decode_params(call.params).and_then(|Nothing {}| answer(Ok(gateway.servers(grant(None)?))))
        }
        Method::ConfigShow => ask!(config_show),
        Method::ConfigReload => ask!(config_reload),
        Method::PolicyGet => ask!(policy),
        Method::PolicyPut => answer(Box::pin(gateway.put_policy(grant(None)?, policy_of(call.params)?)).await),
        Method::PolicyTest => ask!(test_policy),
        Method::AuditTail => ask!(audit_tail),
        Method::AuditSearch => ask!(audit_search),
        Method::AuditVerify => ask!(audit_verify),
        Method::AuditExport => ask!(audit_export),
        Method::AuditCheckpoint => ask!(audit_checkpoint),
        Method::AuditAccept => ask!(audit_accept),
        Method::WebhookRetry => ask!(retry_webhooks),
        Method::TokenIssue => answer(Box::pin(enrol::issue(context, decode_params(call.params)?)).await),
        Method::TokenCreateJoin => ask!(create_join),
        Method::TokenCreateOperator => ask!(create_operator),
        Method::TokenTrustKey => ask!(trust_key),
        Method::TokenList => answer(Ok(gateway.tokens(grant(None)?, decode_params(call.params)?))),
        Method::TokenRevoke => ask!(revoke),
    }
}

fn find(context: &Context, method: Method, call: &Call<'_>) -> Outcome {
    let request: CapabilityFind = decode_params(call.params)?;
    let grant = context.granted(method, request.from_agent.as_ref())?;
    answer(context.gateway.find(grant, &request))
}

fn resolve(context: &Context, method: Method, call: &Call<'_>) -> Outcome {
    let submit: Submit = decode_params(call.params)?;
    let grant = context.granted(method, submit.from_agent.as_ref())?;
    answer(context.gateway.resolve(grant, &submit))
}

async fn reach(context: &Context, gone: &CancellationToken, call: Call<'_>) -> Outcome {
    let (grant, submit) = handed_in(context, Method::Reach, &call)?;
    answer(context.gateway.reach_unless(gone, grant, submit).await)
}

async fn submit(context: &Context, method: Method, call: Call<'_>) -> Outcome {
    let (grant, submit) = handed_in(context, method, &call)?;
    answer(context.gateway.submit(grant, submit).await)
}

/// A task to take on, and the leave to do so. A refusal that comes before it is looked at is written down here.
fn handed_in(context: &Context, method: Method, call: &Call<'_>) -> Result<(Grant, Submit), ErrorObjectOwned> {
    let read = context.submit(call).and_then(|submit| {
        let grant = context.granted(method, submit.from_agent.as_ref())?;
        Ok((grant, submit))
    });
    read.inspect_err(|error| {
        if let Some(code) = ErrorCode::by_number(error.code()) {
            context.refused(method.name(), code, error.message());
        }
    })
}

async fn subscribe(context: &Context, grant: Grant, call: Call<'_>) -> Outcome {
    let Subscribe { task_id } = decode_params(call.params)?;
    let Some(connection) = &context.connection else {
        let message = "task/subscribe needs a connection that stays open: use WebSocket or stdio, or task/wait here";
        return Err(refusal(ErrorCode::InvalidRequest, message));
    };
    answer(context.gateway.subscribe(grant, TaskRef { task_id }, connection.sender.clone()).await)
}
