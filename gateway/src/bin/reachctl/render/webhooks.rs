//! Webhooks: the table, one of them whole, and what became of those that were to be sent again.

use agent_reach_sdk::schemas::call::{Webhooks, WebhooksRetried};
use agent_reach_sdk::schemas::{WebhookHold, WebhookState, WebhookTry, WebhookView};

use super::text::{clean, count, when};
use super::{Grid, Look, Shape, Tone, sheet};

fn tone(state: WebhookState) -> Tone {
    match state {
        WebhookState::Waiting => Tone::Plain,
        WebhookState::Delivered => Tone::Good,
        WebhookState::Failed => Tone::Bad,
        WebhookState::Gone => Tone::Warn,
    }
}

/// The table of webhooks; `limit` is how many were asked for.
pub(crate) fn table(answer: &Webhooks, limit: u32, look: &Look) -> String {
    let mut text = if answer.webhooks.is_empty() { "no webhooks\n".to_owned() } else { rows(&answer.webhooks, look) };
    if answer.webhooks.len() >= limit as usize && !answer.webhooks.is_empty() {
        text.push_str(&format!("the newest {limit}; more with --limit\n"));
    }
    text.push_str(&clean(&format!("the secret that signs them is in {}\n", answer.secret_from)));
    text
}

fn rows(webhooks: &[WebhookView], look: &Look) -> String {
    let columns = [("WEBHOOK, WHAT", Shape::Fixed), ("STATE", Shape::Fixed), ("TO WHOM, WHY NOT", Shape::Text)];
    let mut grid = Grid::new(&columns);
    for webhook in webhooks {
        let what = format!("{} {}", webhook.kind.as_str(), when(webhook.created_at, look.now));
        let tries = count(webhook.tries as usize, "try", "tries");
        let mut state = vec![webhook.state.as_str().to_owned(), tries];
        state.extend(webhook.due_at.filter(|_| webhook.tries > 0).map(|at| format!("next {}", when(at, look.now))));
        let mut whom = vec![webhook.url.as_str()];
        whom.extend(told(webhook.last_try.as_ref()));
        let held = webhook.held.as_ref().map(|held| said(held, look));
        whom.extend(held.as_deref());
        let row = [format!("{}\n{what}", webhook.webhook_id), state.join("\n"), whom.join("\n")];
        grid.row(tone(webhook.state), row);
    }
    grid.render(look)
}

/// A rest, as it is told.
fn said(held: &WebhookHold, look: &Look) -> String {
    format!("held, over {}: {}", when(held.until, look.now), held.reason)
}

fn told(last: Option<&WebhookTry>) -> Option<&str> {
    last.and_then(|last| last.error.as_deref())
}

/// What is compared from look to look.
pub(crate) fn line(webhook: &WebhookView) -> (String, String) {
    let mut parts = vec![webhook.state.as_str(), webhook.kind.as_str(), &webhook.url];
    let tries = count(webhook.tries as usize, "try", "tries");
    parts.push(&tries);
    parts.extend(told(webhook.last_try.as_ref()));
    (webhook.webhook_id.to_string(), parts.join(" "))
}

/// One webhook with its body.
pub(crate) fn whole(webhook: &WebhookView, look: &Look) -> String {
    let last = webhook.last_try.as_ref().map(|last| {
        let said = match (last.status, &last.error) {
            (_, Some(error)) => error.clone(),
            (Some(status), None) => format!("the receiver answered {status}"),
            (None, None) => String::new(),
        };
        format!("{}: {said}", when(last.at, look.now))
    });
    let bad = if webhook.state == WebhookState::Delivered { Tone::Plain } else { Tone::Warn };
    let rows = [
        ("webhook", Tone::Head, webhook.webhook_id.to_string()),
        ("state", tone(webhook.state), webhook.state.as_str().to_owned()),
        ("type", Tone::Plain, webhook.kind.as_str().to_owned()),
        ("to", Tone::Plain, webhook.url.clone()),
        ("for", Tone::Plain, webhook.agent_id.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("task", Tone::Plain, webhook.task_id.to_string()),
        ("made", Tone::Plain, when(webhook.created_at, look.now)),
        ("tries", Tone::Plain, webhook.tries.to_string()),
        ("next try", Tone::Plain, webhook.due_at.map(|at| when(at, look.now)).unwrap_or_default()),
        ("held", Tone::Warn, webhook.held.as_ref().map(|held| said(held, look)).unwrap_or_default()),
        ("last try", bad, last.unwrap_or_default()),
    ];
    let mut text = sheet(rows, look);
    if let Some(body) = &webhook.body {
        text.push_str(&format!("\n{}\n", clean(body.get())));
    }
    if webhook.state != WebhookState::Delivered {
        text.push_str(&format!("\nto send it again now: reachctl webhooks retry {}\n", webhook.webhook_id));
    }
    text
}

/// What became of webhooks that were to be sent again.
pub(crate) fn retried(answer: &WebhooksRetried, look: &Look) -> String {
    let mut text = String::new();
    for webhook in &answer.retried {
        text.push_str(&format!("{webhook} is sent again\n"));
    }
    for webhook in &answer.not_found {
        text.push_str(&look.paint(Tone::Bad, &format!("{webhook} is not known")));
        text.push('\n');
    }
    if text.is_empty() {
        text.push_str("no webhooks to send\n");
    }
    text
}
