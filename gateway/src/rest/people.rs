//! Routes for those who take what no agent could do. Who takes a task and what they say of it is in the body.

use reach_schemas::Method;
use reach_schemas::call::HumanList;

use super::{Answer, Request, ok};
use crate::rpc::methods::Context;

pub(super) async fn list(context: &Context, request: &Request) -> Answer {
    let wanted: HumanList = request.query()?;
    ok(&context.gateway.human_list(context.grant(Method::HumanList, None)?, wanted).await?)
}

pub(super) async fn take(context: &Context, request: &Request) -> Answer {
    ok(&context.gateway.human_take(context.grant(Method::HumanTake, None)?, request.read()?).await?)
}

pub(super) async fn answer(context: &Context, request: &Request) -> Answer {
    ok(&context.gateway.human_answer(context.grant(Method::HumanAnswer, None)?, request.read()?).await?)
}

pub(super) async fn refuse(context: &Context, request: &Request) -> Answer {
    ok(&context.gateway.human_refuse(context.grant(Method::HumanRefuse, None)?, request.read()?).await?)
}

pub(super) async fn put_back(context: &Context, request: &Request) -> Answer {
    ok(&context.gateway.human_return(context.grant(Method::HumanReturn, None)?, request.read()?).await?)
}
