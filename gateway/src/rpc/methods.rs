//! The method table at work: each method's params are read, the caller is granted what the method needs, and the use
//! case answers. The same for HTTP, WebSocket and stdio.

use std::pin::Pin;
use std::sync::Arc;

use reach_core::access::{Caller, Grant, authorize};
use reach_schemas::call::{CapabilityFind, Nothing, Submit, Subscribe, TaskRef};
use reach_schemas::{AgentId, ErrorCode, Failure, Method, Traceparent};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::card::card_of;
use super::near::no_method;
use super::{Call, ErrorObjectOwned, Outcome, decode_params, error_of, refusal};
use crate::gateway::Gateway;
use crate::sessions::{Sender, SessionId};
use crate::spans::Asked;

/// What a transport knows of the connection that a call came over.
#[derive(Clone)]
pub struct Context {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// The connection, if it is one over which the gateway can speak first.
    pub connection: Option<Connection>,
    /// The trace that the call belongs to, by its transport: for a task that is handed in without one.
    pub traceparent: Option<Traceparent>,
    /// Cancelled once the caller is known to be gone: what it would be given then is given to nobody.
    pub gone: CancellationToken,
    /// Over what it came: `http`, `websocket` or `stdio`.
    pub transport: &'static str,
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

    /// What a caller is granted. Until tokens are asked for, whoever reaches this port is the operator, or the agent
    /// that it says it is: an agent's namespace walls hold for it in either case.
    ///
    /// # Errors
    /// The caller may not do what the method does, or asks too fast.
    pub fn grant(&self, method: Method, from_agent: Option<&AgentId>) -> Result<Grant, Failure> {
        let caller = from_agent.map_or(Caller::Operator, |agent| self.gateway.caller_named(agent));
        self.gateway.rates.admit(&caller, &self.gateway.settings().rates, self.gateway.now())?;
        authorize(caller, method.permission()).map_err(|denial| Failure::new(ErrorCode::Forbidden, denial.to_string()))
    }
}

fn answer<T: Serialize>(result: Result<T, Failure>) -> Outcome {
    let value = result.map_err(|failure| error_of(failure, None))?;
    serde_json::value::to_raw_value(&value)
        .map_err(|error| refusal(ErrorCode::Internal, format!("the answer cannot be written: {error}")))
}

/// What answers, in a place of its own.
fn boxed<'a, T: Serialize>(
    asked: impl Future<Output = Result<T, Failure>> + Send + 'a,
) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>> {
    Box::pin(async move { answer(asked.await) })
}

/// Answers one call.
///
/// # Errors
/// The error object of whatever went wrong.
pub async fn dispatch(context: &Context, call: Call<'_>) -> Outcome {
    let Some(method) = Method::by_name(&call.method) else {
        return Err(refusal(ErrorCode::MethodNotFound, no_method(&call.method)));
    };
    let asked = Asked { transport: context.transport, parent: context.traceparent };
    let flaw = |outcome: &Outcome| outcome.as_ref().err().map(|error| error.message().to_owned());
    asked.answer(context.gateway.spans(), || method.name().into(), carry_out(context, method, call), flaw).await
}

/// Only a wait lives long: what it is must be small, so that thousands of them may wait. Everything else has a place of its
/// own for as long as it takes.
async fn carry_out(context: &Context, method: Method, call: Call<'_>) -> Outcome {
    let gateway = &context.gateway;
    let grant = |agent: Option<&AgentId>| context.grant(method, agent).map_err(|failure| error_of(failure, None));
    match method {
        Method::AgentRegister => {
            let session = context.connection.as_ref().map(|connection| connection.session);
            answer(Box::pin(gateway.register(grant(None)?, card_of(call.params)?, session)).await)
        }
        Method::AgentHeartbeat => answer(Box::pin(gateway.heartbeat(grant(None)?, decode_params(call.params)?)).await),
        Method::AgentDrain => answer(Box::pin(gateway.drain(grant(None)?, decode_params(call.params)?)).await),
        Method::AgentDeregister => boxed(gateway.deregister(grant(None)?, decode_params(call.params)?)).await,
        Method::AgentGet => answer(gateway.agent(grant(None)?, &decode_params(call.params)?)),
        Method::AgentList => answer(gateway.agents(grant(None)?, &decode_params(call.params)?)),
        Method::CapabilityFind => {
            let request: CapabilityFind = decode_params(call.params)?;
            answer(gateway.find(grant(request.from_agent.as_ref())?, &request))
        }
        Method::Reach => {
            let submit = context.submit(&call)?;
            answer(Box::pin(gateway.reach(grant(submit.from_agent.as_ref())?, submit)).await)
        }
        Method::Resolve => {
            let submit: Submit = decode_params(call.params)?;
            answer(gateway.resolve(grant(submit.from_agent.as_ref())?, &submit))
        }
        Method::TaskSubmit => {
            let submit = context.submit(&call)?;
            answer(Box::pin(gateway.submit(grant(submit.from_agent.as_ref())?, submit)).await)
        }
        Method::TaskWait => answer(gateway.wait(grant(None)?, decode_params(call.params)?).await),
        Method::TaskGet => answer(Box::pin(gateway.get(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskList => answer(Box::pin(gateway.list(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskCancel => answer(Box::pin(gateway.cancel(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskExplain => answer(Box::pin(gateway.explain(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskClaim => {
            answer(Box::pin(gateway.claim(grant(None)?, decode_params(call.params)?, &context.gone)).await)
        }
        Method::TaskAccept => answer(Box::pin(gateway.accept(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskProgress => answer(Box::pin(gateway.progress(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskComplete => answer(Box::pin(gateway.complete(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskFail => answer(Box::pin(gateway.fail(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskRelease => answer(Box::pin(gateway.release(grant(None)?, decode_params(call.params)?)).await),
        Method::TaskSubscribe => subscribe(context, grant(None)?, call).await,
        Method::MetricsOverview => answer(Ok(gateway.overview(grant(None)?, &decode_params(call.params)?))),
        Method::HumanList => answer(Box::pin(gateway.human_list(grant(None)?, decode_params(call.params)?)).await),
        Method::HumanTake => answer(Box::pin(gateway.human_take(grant(None)?, decode_params(call.params)?)).await),
        Method::HumanAnswer => answer(Box::pin(gateway.human_answer(grant(None)?, decode_params(call.params)?)).await),
        Method::HumanRefuse => answer(Box::pin(gateway.human_refuse(grant(None)?, decode_params(call.params)?)).await),
        Method::HumanReturn => answer(Box::pin(gateway.human_return(grant(None)?, decode_params(call.params)?)).await),
        Method::DeadLetterList => boxed(gateway.dead_letters(grant(None)?, decode_params(call.params)?)).await,
        Method::DeadLetterGet => answer(Box::pin(gateway.dead_letter(grant(None)?, decode_params(call.params)?)).await),
        Method::DeadLetterRedrive => answer(Box::pin(gateway.redrive(grant(None)?, decode_params(call.params)?)).await),
        Method::WebhookList => answer(Box::pin(gateway.webhooks(grant(None)?, decode_params(call.params)?)).await),
        Method::WebhookGet => answer(Box::pin(gateway.webhook(grant(None)?, decode_params(call.params)?)).await),
        Method::ServerAdd => answer(Box::pin(gateway.add_server(grant(None)?, decode_params(call.params)?)).await),
        Method::ServerRemove => boxed(gateway.remove_server(grant(None)?, decode_params(call.params)?)).await,
        Method::ServerList => {
            decode_params(call.params).and_then(|Nothing {}| answer(Ok(gateway.servers(grant(None)?))))
        }
        Method::ConfigShow => boxed(gateway.config_show(grant(None)?, decode_params(call.params)?)).await,
        Method::ConfigReload => boxed(gateway.config_reload(grant(None)?, decode_params(call.params)?)).await,
        Method::PolicyGet => boxed(gateway.policy(grant(None)?, decode_params(call.params)?)).await,
        Method::PolicyPut => boxed(gateway.put_policy(grant(None)?, decode_params(call.params)?)).await,
        Method::PolicyTest => boxed(gateway.test_policy(grant(None)?, decode_params(call.params)?)).await,
        Method::WebhookRetry => boxed(gateway.retry_webhooks(grant(None)?, decode_params(call.params)?)).await,
    }
}

async fn subscribe(context: &Context, grant: Grant, call: Call<'_>) -> Outcome {
    let Subscribe { task_id } = decode_params(call.params)?;
    let Some(connection) = &context.connection else {
        let message = "task/subscribe needs a connection that stays open: use WebSocket or stdio, or task/wait here";
        return Err(refusal(ErrorCode::InvalidRequest, message));
    };
    answer(context.gateway.subscribe(grant, TaskRef { task_id }, connection.sender.clone()).await)
}
