//! Webhooks: listed, shown, sent again.

use agent_reach_sdk::Method;
use agent_reach_sdk::schemas::call::{WebhookList, WebhookRef, WebhookRetry, Webhooks as Listed, WebhooksRetried};

use crate::args::{Webhooks, WhichWebhooks};
use crate::exit::{Exit, Stop};
use crate::render::webhooks;
use crate::session::Session;
use crate::watch::{View, present};

pub(crate) async fn run(command: Webhooks, session: &Session) -> Result<Exit, Stop> {
    match command {
        Webhooks::List { state, task, limit, watch } => {
            let params = WebhookList { state, task_id: task, limit: Some(limit), before: None };
            let view = View::<Listed> {
                render: Box::new(move |answer, look| webhooks::table(answer, limit, look)),
                lines: |answer| answer.webhooks.iter().map(webhooks::line).collect(),
                is_over: |_| false,
            };
            present(session, Method::WebhookList, &params, &watch, view).await
        }
        Webhooks::Show { webhook } => {
            session.show(Method::WebhookGet, &WebhookRef { webhook_id: webhook }, webhooks::whole).await
        }
        Webhooks::Retry { which: WhichWebhooks { webhooks, failed: _ }, limit } => {
            // No webhook named is the wire's way to say all that failed.
            retry(&WebhookRetry { webhook_ids: webhooks, limit }, session).await
        }
    }
}

/// One that is not known does not keep back the others, and is told of at the end.
async fn retry(which: &WebhookRetry, session: &Session) -> Result<Exit, Stop> {
    let judge = |told: &WebhooksRetried| if told.not_found.is_empty() { Exit::Done } else { Exit::NotFound };
    session.show_and_judge(Method::WebhookRetry, which, webhooks::retried, judge).await
}
