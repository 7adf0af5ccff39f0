//! Routes about agents and what they offer.

use reach_schemas::Method;
use reach_schemas::call::{AgentList, AgentRef, CapabilityFind, Heartbeat};

use super::{Answer, Request, ok};
use crate::rpc::enrol::Registering;
use crate::rpc::methods::Context;

pub(super) async fn register(context: &Context, request: &Request) -> Answer {
    ok(&Registering::read(request.read_text()?, "the body")?.carry_out(context).await?)
}

pub(super) async fn heartbeat(context: &Context, request: &Request) -> Answer {
    let beat: Heartbeat = request.read()?;
    ok(&context.heartbeat(beat).await?)
}

pub(super) fn list(context: &Context, request: &Request) -> Answer {
    let wanted: AgentList = request.query()?;
    ok(&context.gateway.agents(context.grant(Method::AgentList, None)?, &wanted)?)
}

pub(super) fn get(context: &Context, request: &Request) -> Answer {
    let wanted = AgentRef { agent_id: request.id()? };
    ok(&context.gateway.agent(context.grant(Method::AgentGet, None)?, &wanted)?)
}

pub(super) fn find(context: &Context, request: &Request) -> Answer {
    let wanted: CapabilityFind = request.query()?;
    let grant = context.grant(Method::CapabilityFind, wanted.from_agent.as_ref())?;
    ok(&context.gateway.find(grant, &wanted)?)
}
