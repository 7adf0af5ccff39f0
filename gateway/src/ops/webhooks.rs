//! What the operator does with webhooks: looks at them, and has them sent again.

use reach_core::access::Grant;
use reach_core::audit::Event;
use reach_schemas::call::{WebhookList, WebhookRef, WebhookRetry, Webhooks, WebhooksRetried};
use reach_schemas::{AuditKind, ErrorCode, Failure, WebhookId, WebhookState, WebhookView};

use super::bounds;
use crate::gateway::Gateway;
use crate::store::{Command, OutboxQuery, OutboxRow, Sending, Stage};

/// How many are listed or sent again if the caller does not say.
const LIST: u32 = 50;
const RETRY: u32 = 100;

impl Gateway {
    /// Webhooks, newest first, without their bodies.
    ///
    /// # Errors
    /// More are asked for than one list holds, or the store cannot be read.
    pub async fn webhooks(&self, _grant: Grant, request: WebhookList) -> Result<Webhooks, Failure> {
        let WebhookList { state, task_id, limit, before } = request;
        let query = OutboxQuery { state, task_id, before, limit: bounds::limit(limit, LIST)? };
        let rows = self.store.outbox_list(query).await?;
        let secret_from = self.settings().webhooks.secrets.from().to_owned();
        Ok(Webhooks { webhooks: rows.iter().map(|row| self.webhook_view(row)).collect(), secret_from })
    }

    /// The row as the operator sees it, with the rest that its lane has.
    fn webhook_view(&self, row: &OutboxRow) -> WebhookView {
        let due_at = row.sending.stage.due_at();
        let hold = due_at.and_then(|_| self.outbox.holds.of(&row.message.lane(), self.now()));
        WebhookView { held: hold.filter(|hold| due_at.is_some_and(|due_at| hold.until >= due_at)), ..row.view() }
    }

    /// One webhook with its body.
    ///
    /// # Errors
    /// There is no such webhook.
    pub async fn webhook(&self, _grant: Grant, request: WebhookRef) -> Result<WebhookView, Failure> {
        let id = request.webhook_id;
        let row = self.store.outbox_row(id).await?.ok_or_else(|| {
            let message = format!("no webhook {id} is known; they are kept as long as finished tasks");
            Failure::new(ErrorCode::WebhookNotFound, message)
        })?;
        Ok(WebhookView { body: Some(row.message.body.clone()), ..self.webhook_view(&row) })
    }

    /// Sends webhooks again now, under their own ids and with the whole schedule before them; a receiver that was gone is
    /// taken to be there again, and a rest that its host asked for is over.
    ///
    /// # Errors
    /// More are asked for than may be at once, or the store cannot be read or written: then some may be on their way.
    pub async fn retry_webhooks(&self, grant: Grant, request: WebhookRetry) -> Result<WebhooksRetried, Failure> {
        let limit = bounds::named("webhook_ids", request.webhook_ids.len(), request.limit, RETRY)?;
        let ids: Vec<WebhookId> = if request.webhook_ids.is_empty() {
            let query = OutboxQuery { state: Some(WebhookState::Failed), limit, ..OutboxQuery::default() };
            self.store.outbox_list(query).await?.iter().map(|row| row.message.id).collect()
        } else {
            request.webhook_ids
        };
        let mut answer = WebhooksRetried { retried: Vec::new(), not_found: Vec::new() };
        for id in ids.into_iter().take(limit as usize) {
            match self.store.outbox_row(id).await? {
                Some(row) => {
                    self.retry(row).await?;
                    answer.retried.push(id);
                }
                None => answer.not_found.push(id),
            }
        }
        let event = self.audit_event(AuditKind::WebhooksRetried, grant.caller().to_string());
        self.audit.note(Event { count: answer.retried.len() as u64, ..event });
        self.outbox.bell.notify_one();
        Ok(answer)
    }

    async fn retry(&self, row: OutboxRow) -> Result<(), Failure> {
        let OutboxRow { message, sending } = row;
        if let Some(agent) = &message.agent_id {
            self.outbox.receiver_back(agent, &message.url);
        }
        let sending = Sending { stage: Stage::Waiting { due_at: self.now() }, tries: 0, ..sending };
        self.committer.submit(Command::NoteSending { id: message.id, sending }).await?;
        self.outbox.holds.lift(&message.lane());
        Ok(())
    }
}
