//! Sends what is in the outbox: woken by the bell, by a place that comes free, or by the time of the next message. Of each
//! namespace only so many messages are on their way to a host at once, so that one that is slow, or much asked, holds up no
//! other; and where all places are taken, whoever has the fewest gets the next, so that nobody waits longer for the
//! receivers of others than one of them may take to answer. A
//! message counts as sent only once that is noted in the store; a gateway that dies before sends it again, under its id.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use reach_core::turns::in_turn;
use reach_core::webhook::{Answer, Next};
use reach_schemas::{Span, Timestamp, WebhookHold, WebhookId, WebhookState, WebhookTry};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::gateway::{Gateway, Settings};
use crate::store::outbox::owner_of;
use crate::store::{Command, Error, Message, OutboxAsk, OutboxQuery, OutboxRow, Sending, Stage};
use crate::webhook::client::{Client, Tried};

/// How many messages are on their way at once.
const AT_ONCE: usize = 256;
/// How long to wait if the store cannot be read or written.
const STORE_RETRY: Span = Span::from_secs(1);
/// How long messages that are on their way may take when the gateway is told to stop; then they are cut off, and sent
/// again after the next start.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How many messages are read at a time after a start, to learn who is gone.
const PAGE: u32 = 500;

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    remember_gone(&gateway).await;
    let mut sender = Sender::new(Arc::clone(&gateway));
    loop {
        let rung = gateway.outbox.bell.notified();
        let wake_at = sender.start_due().await;
        let asleep = async {
            match wake_at {
                Some(at) => gateway.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = rung => {}
            () = asleep => {}
            Some(ended) = sender.sending.join_next_with_id() => sender.ended(ended),
        }
        while let Some(ended) = sender.sending.try_join_next_with_id() {
            sender.ended(ended);
        }
    }
    let rest = async { while sender.sending.join_next().await.is_some() {} };
    // Those that are not done by then are cut off with the set.
    let _ = tokio::time::timeout(STOP_GRACE, rest).await;
}

/// Reads back which receivers of agents are gone, from the messages that found it out.
async fn remember_gone(gateway: &Gateway) {
    let mut query = OutboxQuery { state: Some(WebhookState::Gone), limit: PAGE, ..OutboxQuery::default() };
    loop {
        let page = match gateway.store.outbox_list(query.clone()).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read; receivers that are gone are found out anew");
                return;
            }
        };
        for row in &page {
            if let Some(agent) = &row.message.agent_id {
                gateway.outbox.receiver_gone(agent, &row.message);
            }
        }
        let Some(last) = page.last() else { return };
        query.before = Some(last.message.id);
    }
}

/// The messages that are on their way.
struct Sender {
    gateway: Arc<Gateway>,
    client: Arc<Client>,
    /// What the client goes by.
    settings: Arc<Settings>,
    sending: JoinSet<Option<WebhookHold>>,
    which: HashMap<Id, (WebhookId, String)>,
    on_their_way: HashSet<WebhookId>,
    /// How many are on their way in which lane.
    busy: BTreeMap<String, u32>,
}

impl Sender {
    fn new(gateway: Arc<Gateway>) -> Self {
        let settings = gateway.settings.load_full();
        let client = Arc::new(Client::new(&settings.webhooks));
        Self {
            gateway,
            client,
            settings,
            sending: JoinSet::new(),
            which: HashMap::new(),
            on_their_way: HashSet::new(),
            busy: BTreeMap::new(),
        }
    }

    /// Starts what is due and has a place, and says when to look again at the latest. None: when something changes.
    async fn start_due(&mut self) -> Option<Timestamp> {
        let now = self.gateway.now();
        self.keep_to_settings();
        if self.sending.len() >= AT_ONCE {
            return None;
        }
        let per_lane = self.settings.webhooks.at_once_per_host;
        let held = self.gateway.outbox.holds.all(now);
        let full = self.busy.iter().filter(|(_, busy)| **busy >= per_lane).map(|(lane, _)| lane);
        let except = full.chain(held.iter().map(|(lane, _)| lane)).cloned().collect();
        // Those on their way are due as well, until it is noted how they went; so as many are asked for as may be on
        // their way in all.
        let ask = OutboxAsk { by: now, except, per_lane, limit: u32::try_from(AT_ONCE).unwrap_or(u32::MAX) };
        let due = match self.gateway.store.outbox_due(ask).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read");
                return Some(now + STORE_RETRY);
            }
        };
        for (id, lane) in self.in_turn(due.due) {
            let is_full = self.busy.get(&lane).is_some_and(|busy| *busy >= per_lane);
            if !is_full && self.sending.len() < AT_ONCE {
                self.start(id, lane);
            }
        }
        due.next_at.into_iter().chain(held.into_iter().map(|(_, until)| until)).min()
    }

    /// What is sent from now on is sent as the settings of now have it.
    fn keep_to_settings(&mut self) {
        let now = self.gateway.settings.load_full();
        if !Arc::ptr_eq(&now, &self.settings) {
            self.client = Arc::new(Client::new(&now.webhooks));
            self.settings = now;
        }
    }

    /// Those that are not on their way yet, in the order in which they get places.
    fn in_turn(&self, due: Vec<(WebhookId, String)>) -> Vec<(WebhookId, String)> {
        let mut has: BTreeMap<&str, u32> = BTreeMap::new();
        for (lane, busy) in &self.busy {
            *has.entry(owner_of(lane)).or_default() += busy;
        }
        let waiting = due.into_iter().filter(|(id, _)| !self.on_their_way.contains(id));
        let owned = waiting.map(|one| (owner_of(&one.1).to_owned(), one)).collect();
        in_turn(owned, |owner| has.get(owner.as_str()).copied().unwrap_or(0))
    }

    fn start(&mut self, id: WebhookId, lane: String) {
        *self.busy.entry(lane.clone()).or_default() += 1;
        let (gateway, client) = (Arc::clone(&self.gateway), Arc::clone(&self.client));
        let task = self.sending.spawn(async move { gateway.send(id, &client).await });
        self.on_their_way.insert(id);
        self.which.insert(task.id(), (id, lane));
    }

    /// Gives the place of a message back.
    fn ended(&mut self, ended: Result<(Id, Option<WebhookHold>), JoinError>) {
        let task = match &ended {
            Ok((task, _)) => *task,
            Err(error) => error.id(),
        };
        let Some((id, lane)) = self.which.remove(&task) else { return };
        self.on_their_way.remove(&id);
        if let Some(busy) = self.busy.get_mut(&lane) {
            *busy -= 1;
            if *busy == 0 {
                self.busy.remove(&lane);
            }
        }
        let hold = match ended {
            Ok((_, hold)) => hold,
            Err(error) => {
                tracing::error!(%error, "sending a webhook panicked");
                // It is still due. Its lane rests, or it would be sent again at once.
                Some(self.gateway.pause(id, "the gateway failed while it sent it"))
            }
        };
        if let Some(hold) = hold {
            self.gateway.outbox.holds.hold(lane, hold);
        }
    }
}

impl Gateway {
    /// Sends a message once and notes how that went. Answers for how long its lane is to be left alone, if so.
    async fn send(&self, id: WebhookId, client: &Client) -> Option<WebhookHold> {
        let (row, is_gone) = match self.to_be_sent(id).await {
            Ok(Some(found)) => found,
            Ok(None) => return None,
            Err(error) => {
                tracing::warn!(webhook = %id, %error, "a message of the outbox cannot be read");
                return Some(self.pause(id, "it cannot be read just now"));
            }
        };
        let OutboxRow { message, sending } = row;
        if is_gone {
            let error = Some("not sent: this receiver has said that it is gone for good".to_owned());
            let last = Some(WebhookTry { at: self.now(), status: None, error });
            let stage = Stage::Gone { at: self.now() };
            self.outbox.told.note(stage);
            self.note(id, Sending { stage, last, ..sending }).await;
            return None;
        }
        let tried = client.send(id, &message.url, &message.body).await;
        let sending = self.after(&message, sending.tries + 1, &tried);
        self.outbox.told.note(sending.stage);
        self.note(id, sending).await;
        self.asked_for(&message, tried.answer)
    }

    /// The rest that a receiver asked for.
    fn asked_for(&self, message: &Message, answer: Answer) -> Option<WebhookHold> {
        let (Answer::Status { status, .. }, Some(rest)) = (answer, answer.hold()) else { return None };
        let Message { id, host, owner, .. } = message;
        let whose = owner.as_ref().map_or_else(|| "the operator".to_owned(), |owner| format!("the namespace {owner}"));
        let reason =
            format!("{host} answered {status} with `Retry-After`, for {rest}; it holds what {whose} sends there");
        Some(WebhookHold { until: self.now() + rest, reason, webhook_id: *id })
    }

    /// A rest because something is wrong here.
    fn pause(&self, id: WebhookId, why: &str) -> WebhookHold {
        WebhookHold { until: self.now() + STORE_RETRY, reason: why.to_owned(), webhook_id: id }
    }

    /// The message, if it is still to be sent now, and whether its receiver is gone.
    async fn to_be_sent(&self, id: WebhookId) -> Result<Option<(OutboxRow, bool)>, Error> {
        let now = self.now();
        let row = self.store.outbox_row(id).await?;
        let is_due = |row: &OutboxRow| row.sending.stage.due_at().is_some_and(|at| at <= now);
        let Some(row) = row.filter(is_due) else { return Ok(None) };
        let is_gone = match &row.message.agent_id {
            Some(agent) => self.outbox.is_gone(agent, &row.message.url),
            // One that was tried before, or that the operator sends again, may find out for itself.
            None => row.sending.last.is_none() && self.is_gone_for_task(&row.message).await?,
        };
        Ok(Some((row, is_gone)))
    }

    /// Whether a receiver that a task names said so when it was told of an earlier end of the task.
    async fn is_gone_for_task(&self, message: &Message) -> Result<bool, Error> {
        let (state, task_id) = (Some(WebhookState::Gone), Some(message.task_id));
        let gone =
            self.store.outbox_list(OutboxQuery { state, task_id, before: Some(message.id), limit: PAGE }).await?;
        Ok(gone.iter().any(|row| row.message.agent_id.is_none() && row.message.url == message.url))
    }

    /// How the sending stands after a try.
    fn after(&self, message: &Message, tries: u32, tried: &Tried) -> Sending {
        let now = self.now();
        let next = tried.answer.next(tries, &self.settings().webhooks.retries, now, &mut self.rng());
        // The path of an address is often a secret of its own.
        let (id, host, task) = (message.id, &message.host, message.task_id);
        let error = tried.error.as_deref().unwrap_or_default();
        let stage = match next {
            Next::Delivered => {
                tracing::debug!(webhook = %id, %host, reach_id = %task, tries, "a webhook was delivered");
                Stage::Delivered { at: now }
            }
            Next::Again { due_at } => {
                tracing::info!(webhook = %id, %host, reach_id = %task, tries, %due_at, error, "a webhook will be sent again");
                Stage::Waiting { due_at }
            }
            Next::Failed => {
                tracing::warn!(webhook = %id, %host, reach_id = %task, tries, error, "a webhook was given up on; webhook/retry sends it again");
                Stage::Failed { at: now }
            }
            Next::Gone => {
                self.gone(message);
                Stage::Gone { at: now }
            }
        };
        let status = match tried.answer {
            Answer::Status { status, .. } => Some(status),
            Answer::Silence => None,
        };
        Sending { stage, tries, last: Some(WebhookTry { at: now, status, error: tried.error.clone() }) }
    }

    fn gone(&self, message: &Message) {
        let (host, task) = (&message.host, message.task_id);
        match &message.agent_id {
            Some(agent) if self.outbox.receiver_gone(agent, message) => {
                tracing::warn!(%host, %agent, "a receiver on an agent's card answered 410: it is told nothing more until the card changes");
            }
            Some(_) => {}
            None => {
                tracing::warn!(%host, reach_id = %task, "a task's receiver answered 410: it is told nothing more of this task")
            }
        }
    }

    /// Notes how the sending of a message goes, however long the store takes: what was sent is not to be sent again.
    async fn note(&self, id: WebhookId, sending: Sending) {
        while let Err(error) = self.committer.submit(Command::NoteSending { id, sending: sending.clone() }).await {
            tracing::warn!(webhook = %id, %error, "it cannot be noted yet how a webhook went");
            tokio::time::sleep(STORE_RETRY.into()).await;
        }
    }
}
