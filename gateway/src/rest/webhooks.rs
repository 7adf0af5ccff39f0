//! Routes about webhooks: how their sending goes, and sending them again.

use reach_schemas::Method;
use reach_schemas::call::{WebhookList, WebhookRef};

use super::{Answer, Request, ok};
use crate::rpc::methods::Context;

pub(super) async fn list(context: &Context, request: &Request) -> Answer {
    let wanted: WebhookList = request.query()?;
    ok(&context.gateway.webhooks(context.grant(Method::WebhookList, None)?, wanted).await?)
}

pub(super) async fn get(context: &Context, request: &Request) -> Answer {
    let wanted = WebhookRef { webhook_id: request.id()? };
    ok(&context.gateway.webhook(context.grant(Method::WebhookGet, None)?, wanted).await?)
}

pub(super) async fn retry(context: &Context, request: &Request) -> Answer {
    ok(&context.gateway.retry_webhooks(context.grant(Method::WebhookRetry, None)?, request.read()?).await?)
}
