//! What every store promises of its audit log, one claim a test.

use reach_core::audit::{Checkpoint, Event, Flaw, Hash, Mark, Verifier};
use reach_gateway::store::{AuditQuery, Command, Outcome, Stage, Store};
use reach_schemas::PhaseName::{Completed, DeadLettered};
use reach_schemas::{AuditKind, AuditRow, ErrorCode};

use crate::contract::every_store;
use crate::make::{agent, at, commit, finish, id, insert, insert_keyed, key, stepped, task, tell, tell_all};
use crate::outbox::{message, sending, webhook};

every_store! {
    rows_are_added_in_their_order_and_chained
    a_change_and_what_is_written_down_of_it_are_one
    what_comes_to_nothing_is_not_written_down
    rows_are_found_by_every_field
    a_list_keeps_to_its_range_its_order_and_its_limit
    a_verification_goes_on_where_it_ended
    checkpoints_are_kept_in_their_order_and_never_replaced
    rows_of_two_callers_at_once_are_one_chain
}

/// Event `n`, with every field.
pub(crate) fn event(n: u64) -> Event {
    let kinds = AuditKind::ALL;
    let event = Event::new(at(n), kinds[n as usize % kinds.len()], format!("actor-{}@ns", n % 3));
    let event = event.on(format!("target-{}", n % 5)).because(format!("reason {n} é")).about(id(n));
    if n.is_multiple_of(2) { event.failed(ErrorCode::Forbidden).with_payload(&n.to_be_bytes()) } else { event }
}

pub(crate) async fn rows(store: &dyn Store) -> Vec<AuditRow> {
    store.audit_list(AuditQuery { limit: 1000, ..AuditQuery::default() }).await.unwrap()
}

fn reasons(rows: &[AuditRow]) -> Vec<u64> {
    let number = |row: &AuditRow| row.reason.as_deref()?.split(' ').nth(1)?.parse().ok();
    rows.iter().filter_map(number).collect()
}

/// Everything that can be read of the audit log, as text.
pub(crate) async fn everything(store: &dyn Store) -> Vec<String> {
    let head = store.audit_head().await.unwrap();
    let all = AuditQuery { limit: 1000, ..AuditQuery::default() };
    let queries = [
        all.clone(),
        AuditQuery { is_newest_first: true, limit: 2, ..all.clone() },
        AuditQuery { after: 1, before: Some(4), ..all.clone() },
        AuditQuery { actor: Some("actor-1*".to_owned()), ..all.clone() },
        AuditQuery { code: Some(ErrorCode::Forbidden), until: Some(at(5)), ..all.clone() },
    ];
    let mut said = vec![format!("head {head:?}"), format!("{:?}", store.audit_checkpoints(0, 100).await.unwrap())];
    for query in queries {
        said.push(format!("{query:?}: {:?}", store.audit_list(query.clone()).await.unwrap()));
    }
    let (verifier, is_end) = store.audit_check(Verifier::new(Mark::origin(), []), 1000).await.unwrap();
    said.push(format!("{:?} {} {:?} {is_end}", verifier.finding(), verifier.rows(), verifier.good()));
    assert_eq!((verifier.finding(), verifier.good()), (None, head));
    said
}

async fn rows_are_added_in_their_order_and_chained(store: &dyn Store) {
    assert_eq!(store.audit_head().await.unwrap(), Mark::origin());
    assert_eq!(tell(store, Command::Audit(vec![event(1), event(2)])).await, Outcome::Done);
    assert_eq!(tell(store, Command::Audit(vec![event(3)])).await, Outcome::Done);
    let rows = rows(store).await;
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(reasons(&rows), [1, 2, 3]);
    let mut mark = Mark::origin();
    for (n, row) in (1..).zip(&rows) {
        mark = mark.next(&event(n).cells());
        assert_eq!(row.hash, mark.hash.to_string());
    }
    assert_eq!(store.audit_head().await.unwrap(), mark);
    let second = &rows[1];
    assert_eq!((second.outcome.as_str(), second.code.as_deref()), ("REJECT_ACL", Some("forbidden")));
    assert_eq!((second.task_id, second.digest.as_ref().map(String::len)), (Some(id(2)), Some(64)));
}

async fn a_change_and_what_is_written_down_of_it_are_one(store: &dyn Store) {
    let batch = vec![
        insert(task(1)).audited(vec![event(1)]),
        commit(stepped(&task(1), DeadLettered, 5)).audited(vec![event(2), event(3)]),
        Command::PutAgent(agent("a@ns", 1)).audited(vec![event(4)]),
        Command::RemoveAgent("a@ns".parse().unwrap()).audited(vec![event(5)]),
        Command::Forget(id(1)).audited(vec![event(6)]),
        Command::Forget(id(1)).audited(Vec::new()),
    ];
    let outcomes = tell_all(store, batch).await;
    assert_eq!(outcomes[..2], [Outcome::Inserted, Outcome::Committed]);
    assert_eq!(outcomes[2..], [Outcome::Done, Outcome::Done, Outcome::Done, Outcome::Done]);
    assert_eq!(reasons(&rows(store).await), [1, 2, 3, 4, 5, 6]);
}

async fn what_comes_to_nothing_is_not_written_down(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    let stale = stepped(&stepped(&task(1), Completed, 5), Completed, 6);
    let note = Command::NoteSending { id: webhook(1), sending: sending(Stage::Delivered { at: at(9) }, 1) };
    let batch = vec![
        insert_keyed(task(2), key("k", 2), 0).audited(vec![event(1)]),
        insert(task(1)).audited(vec![event(2)]),
        finish(stale, 9).audited(vec![event(3)]),
        Command::RemoveAgent("nobody@ns".parse().unwrap()).audited(vec![event(4)]),
        Command::Forget(id(7)).audited(vec![event(5)]),
        note.audited(vec![event(6)]),
    ];
    tell_all(store, batch).await;
    assert_eq!(rows(store).await, []);
    // The same note on a message that is there.
    let told = Command::Insert { task: task(3), key: None, now: at(0), outbox: vec![message(1, 3, "a.example", 5)] };
    let note = Command::NoteSending { id: webhook(1), sending: sending(Stage::Delivered { at: at(9) }, 1) };
    tell_all(store, vec![told, note.audited(vec![event(6)])]).await;
    assert_eq!(reasons(&rows(store).await), [6]);
}

async fn rows_are_found_by_every_field(store: &dyn Store) {
    tell(store, Command::Audit((1..=60).map(event).collect())).await;
    let all = AuditQuery { limit: 1000, ..AuditQuery::default() };
    let found = async |query: AuditQuery| reasons(&store.audit_list(query).await.unwrap());
    let kind = AuditKind::ALL[3];
    let of = |fits: fn(u64) -> bool| (1..=60).filter(|n| fits(*n)).collect::<Vec<u64>>();
    assert_eq!(
        found(AuditQuery { kind: Some(kind.as_str()), ..all.clone() }).await,
        of(|n| n as usize % AuditKind::ALL.len() == 3)
    );
    assert_eq!(found(AuditQuery { actor: Some("actor-1@ns".to_owned()), ..all.clone() }).await, of(|n| n % 3 == 1));
    assert_eq!(found(AuditQuery { actor: Some("actor-1".to_owned()), ..all.clone() }).await, [] as [u64; 0]);
    assert_eq!(found(AuditQuery { target: Some("target-*".to_owned()), ..all.clone() }).await, of(|_| true));
    assert_eq!(found(AuditQuery { target: Some("target-4".to_owned()), ..all.clone() }).await, of(|n| n % 5 == 4));
    assert_eq!(found(AuditQuery { outcome: Some("OK".to_owned()), ..all.clone() }).await, of(|n| n % 2 == 1));
    assert_eq!(found(AuditQuery { code: Some(ErrorCode::Forbidden), ..all.clone() }).await, of(|n| n % 2 == 0));
    assert_eq!(found(AuditQuery { task_id: Some(id(9)), ..all.clone() }).await, [9]);
    let times = AuditQuery { since: Some(at(10)), until: Some(at(12)), ..all };
    assert_eq!(found(times).await, [10, 11]);
}

async fn a_list_keeps_to_its_range_its_order_and_its_limit(store: &dyn Store) {
    tell(store, Command::Audit((1..=10).map(event).collect())).await;
    let found = async |query: AuditQuery| reasons(&store.audit_list(query).await.unwrap());
    let range = AuditQuery { after: 2, before: Some(7), limit: 3, ..AuditQuery::default() };
    assert_eq!(found(range.clone()).await, [3, 4, 5]);
    assert_eq!(found(AuditQuery { is_newest_first: true, ..range }).await, [6, 5, 4]);
    let odd = AuditQuery { outcome: Some("OK".to_owned()), limit: 2, is_newest_first: true, ..AuditQuery::default() };
    assert_eq!(found(odd).await, [9, 7]);
}

async fn a_verification_goes_on_where_it_ended(store: &dyn Store) {
    tell(store, Command::Audit((1..=10).map(event).collect())).await;
    let fresh = || Verifier::new(Mark::origin(), []);
    let (verifier, is_end) = store.audit_check(fresh(), 4).await.unwrap();
    assert_eq!((verifier.rows(), verifier.good().seq, is_end), (4, 4, false));
    let (verifier, is_end) = store.audit_check(verifier, 100).await.unwrap();
    assert_eq!((verifier.rows(), verifier.finding(), is_end), (10, None, true));
    assert_eq!(verifier.good(), store.audit_head().await.unwrap());
    // Somebody signed more than there is.
    let pin = Mark { seq: 12, hash: Hash([1; 32]) };
    let (verifier, _) = store.audit_check(Verifier::new(Mark::origin(), [pin]), 100).await.unwrap();
    assert_eq!(
        verifier.finding().map(|found| (found.seq, found.flaw, found.other)),
        Some((11, Flaw::TailCut, Some(12)))
    );
}

async fn checkpoints_are_kept_in_their_order_and_never_replaced(store: &dyn Store) {
    let checkpoint = |seq, byte| Checkpoint {
        mark: Mark { seq, hash: Hash([byte; 32]) },
        at: at(seq),
        key: [byte; 32],
        signature: [byte; 64],
    };
    assert_eq!(store.audit_checkpoint().await.unwrap(), None);
    for (seq, byte) in [(2, 1), (5, 1), (5, 2), (3, 3), (9, 1)] {
        assert_eq!(tell(store, Command::PinAudit(checkpoint(seq, byte))).await, Outcome::Done);
    }
    assert_eq!(store.audit_checkpoint().await.unwrap(), Some(checkpoint(9, 1)));
    let kept = store.audit_checkpoints(0, 10).await.unwrap();
    assert_eq!(kept, [checkpoint(2, 1), checkpoint(5, 1), checkpoint(9, 1)]);
    assert_eq!(store.audit_checkpoints(2, 1).await.unwrap(), [checkpoint(5, 1)]);
}

async fn rows_of_two_callers_at_once_are_one_chain(store: &dyn Store) {
    let batch = |first: u64| (first..first + 20).map(|n| insert(task(n)).audited(vec![event(n)])).collect();
    let (one, two) = futures_util::join!(store.apply(batch(1)), store.apply(batch(100)));
    assert_eq!((one.unwrap().len(), two.unwrap().len()), (20, 20));
    everything(store).await;
    assert_eq!(store.audit_head().await.unwrap().seq, 40);
}
