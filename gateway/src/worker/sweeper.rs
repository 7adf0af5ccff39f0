//! Sweeps up: takes back what dead agents had, finds due work whose doorbell was lost, recounts seats, and forgets
//! what is old.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reach_schemas::{AgentId, Span};
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::store::{Command, Outcome};

/// How often the sweeper looks.
const EVERY: Duration = Duration::from_millis(500);
/// How often seats are recounted and old rows forgotten, in rounds.
const SLOW_ROUNDS: u64 = 60;
/// How late a due task must be before the store is believed over the queue in memory.
const LATE: Span = Span::from_secs(2);
/// How old a seat must be before a recount may free it.
const SETTLED: Span = Span::from_secs(10);
/// How many rows one round takes.
const PAGE: u32 = 500;

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let mut dead = BTreeSet::new();
    let mut round = 0_u64;
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        take_back(&gateway, &mut dead).await;
        find_late(&gateway).await;
        fill_free_seats(&gateway);
        gateway.see_off().await;
        if round % SLOW_ROUNDS == SLOW_ROUNDS - 1 {
            recount(&gateway);
            forget_old(&gateway).await;
        }
        round += 1;
    }
}

async fn take_back(gateway: &Arc<Gateway>, dead: &mut BTreeSet<AgentId>) {
    let now = gateway.now();
    for agent in gateway.own.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        gateway.fleet().seen(agent, now);
    }
    let newly = gateway.fleet().newly_dead(dead, now);
    for agent in newly {
        tracing::warn!(%agent, "missed four heartbeats: out of routing, its work is taken back");
        gateway.take_back(&agent, "it missed four heartbeats").await;
    }
}

/// Seats that came free with nobody told: a card that takes more now, a recount, one that was called and did not come.
fn fill_free_seats(gateway: &Arc<Gateway>) {
    let now = gateway.now();
    for agent in gateway.open.waited_for() {
        let room = {
            let fleet = gateway.fleet();
            fleet.node(&agent).map_or(0, |node| node.card.max_concurrency.saturating_sub(fleet.in_flight(&agent)))
        };
        gateway.open.seat_free(&agent, room as usize, now);
    }
}

async fn find_late(gateway: &Arc<Gateway>) {
    let by = gateway.now() - LATE;
    match gateway.stores.due(by, PAGE).await {
        Ok(late) => {
            for (_, id) in late {
                gateway.open.forget(id);
                gateway.open.schedule(id, gateway.now());
            }
        }
        Err(error) => tracing::warn!(%error, "the store cannot be swept"),
    }
}

fn recount(gateway: &Arc<Gateway>) {
    // A seat that was taken just now may belong to an attempt whose commit is still on its way.
    let as_of = gateway.now() - SETTLED;
    let open = gateway.open.all();
    gateway.fleet().recount(open.iter().map(AsRef::as_ref), as_of);
}

async fn forget_old(gateway: &Arc<Gateway>) {
    let now = gateway.now();
    let purge = Command::Purge { finished_before: now - gateway.settings().kept_for, keys_before: now, limit: PAGE };
    match gateway.committer.submit(purge).await {
        Ok(Outcome::Purged { tasks, keys, messages }) if tasks + keys + messages > 0 => {
            tracing::debug!(tasks, keys, messages, "forgot what is old");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "old rows cannot be forgotten"),
    }
}
