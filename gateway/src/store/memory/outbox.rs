//! The outbox in memory.

use std::collections::{BTreeMap, BTreeSet};

use reach_schemas::{Timestamp, WebhookId, WebhookState};

use crate::store::outbox::shared_out;
use crate::store::{OutboxAsk, OutboxCounts, OutboxDue, OutboxQuery, OutboxRow, Sending};

/// Messages in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    made: u64,
    rows: BTreeMap<u64, OutboxRow>,
    number: BTreeMap<WebhookId, u64>,
    due: BTreeMap<String, BTreeSet<(Timestamp, u64)>>,
    ended: BTreeSet<(Timestamp, u64)>,
}

impl Outbox {
    /// Takes a message in; one that is here already stays as it is.
    pub(super) fn put(&mut self, row: OutboxRow) {
        if self.number.contains_key(&row.message.id) {
            return;
        }
        self.made += 1;
        self.number.insert(row.message.id, self.made);
        self.index(self.made, &row);
        self.rows.insert(self.made, row);
    }

    pub(super) fn note(&mut self, id: WebhookId, sending: Sending) {
        let Some((number, row)) = self.take(id) else { return };
        let row = OutboxRow { sending, ..row };
        self.number.insert(id, number);
        self.index(number, &row);
        self.rows.insert(number, row);
    }

    pub(super) fn due(&self, ask: &OutboxAsk) -> OutboxDue {
        let mut due: Vec<(Timestamp, u64)> = Vec::new();
        for (_, times) in self.due.iter().filter(|(lane, _)| !ask.except.contains(*lane)) {
            due.extend(times.iter().take_while(|(at, _)| *at <= ask.by).take(ask.per_lane as usize));
        }
        due.sort_unstable();
        let named = due.iter().map(|(_, number)| &self.rows[number].message);
        let named = named.map(|message| (message.id, message.lane())).collect();
        let later = |times: &BTreeSet<(Timestamp, u64)>| times.iter().map(|(at, _)| *at).find(|at| *at > ask.by);
        OutboxDue { due: shared_out(named, ask.limit), next_at: self.due.values().filter_map(later).min() }
    }

    pub(super) fn row(&self, id: WebhookId) -> Option<OutboxRow> {
        self.number.get(&id).map(|number| self.rows[number].clone())
    }

    pub(super) fn list(&self, query: &OutboxQuery) -> Vec<OutboxRow> {
        let fits = |row: &&OutboxRow| {
            query.state.is_none_or(|state| row.sending.stage.state() == state)
                && query.task_id.is_none_or(|task| row.message.task_id == task)
                && query.before.is_none_or(|before| row.message.id < before)
        };
        let newest = self.number.values().rev().map(|number| &self.rows[number]);
        newest.filter(fits).take(query.limit as usize).cloned().collect()
    }

    pub(super) fn counts(&self) -> OutboxCounts {
        let mut counts = OutboxCounts::default();
        for row in self.number.values().map(|number| &self.rows[number]) {
            match row.sending.stage.state() {
                WebhookState::Waiting => {
                    counts.waiting += 1;
                    counts.waiting_since.get_or_insert(row.message.created_at);
                }
                WebhookState::Delivered => {}
                WebhookState::Failed => counts.failed += 1,
                WebhookState::Gone => counts.gone += 1,
            }
        }
        counts
    }

    /// Forgets messages whose sending ended before a time, the oldest first, and says how many.
    pub(super) fn purge(&mut self, before: Timestamp, limit: usize) -> usize {
        let old = self.ended.iter().take_while(|(at, _)| *at < before).take(limit);
        let ids: Vec<WebhookId> = old.map(|(_, number)| self.rows[number].message.id).collect();
        for id in &ids {
            self.take(*id);
        }
        ids.len()
    }

    fn index(&mut self, number: u64, row: &OutboxRow) {
        let stage = row.sending.stage;
        if let Some(at) = stage.due_at() {
            self.due.entry(row.message.lane()).or_default().insert((at, number));
        }
        self.ended.extend(stage.ended_at().map(|at| (at, number)));
    }

    fn take(&mut self, id: WebhookId) -> Option<(u64, OutboxRow)> {
        let number = self.number.remove(&id)?;
        let row = self.rows.remove(&number)?;
        let lane = row.message.lane();
        if let (Some(at), Some(times)) = (row.sending.stage.due_at(), self.due.get_mut(&lane)) {
            times.remove(&(at, number));
            if times.is_empty() {
                self.due.remove(&lane);
            }
        }
        if let Some(at) = row.sending.stage.ended_at() {
            self.ended.remove(&(at, number));
        }
        Some((number, row))
    }
}
