//! What every store promises, one claim a test.

use reach_gateway::store::{Command, Document, KeyRow, Outcome, Query, Store};
use reach_schemas::PhaseName::{Accepted, Completed, DeadLettered, Failed, Submitted};
use reach_schemas::{AgentId, ErrorCode, TaskId};

use crate::make::{
    agent, asked_by, at, commit, failing, finish, id, insert, insert_keyed, key, purge, redrive, scoped, stepped, task,
    tell, tell_all, tried,
};

macro_rules! every_store {
    ($($claim:ident)*) => {
        mod memory { $(#[tokio::test] async fn $claim() { super::$claim(&*crate::make::memory().store).await; })* }
        mod sqlite { $(#[tokio::test] async fn $claim() { super::$claim(&*crate::make::sqlite().store).await; })* }
    };
}
pub(crate) use every_store;

every_store! {
    a_task_comes_back_as_it_went_in
    one_key_leads_to_one_task_even_within_a_batch
    the_same_key_of_another_caller_is_another_key
    a_key_is_held_as_long_as_its_task_is_open
    a_finished_tasks_key_is_free_once_it_expires
    a_task_born_finished_brings_the_time_its_key_expires
    a_redriven_task_holds_its_key_again
    a_key_that_went_to_another_task_is_left_alone_by_the_first
    an_id_is_taken_once
    a_commit_on_an_older_version_is_refused
    a_commit_that_is_wrong_about_the_end_is_refused
    a_refused_command_leaves_the_rest_of_its_batch_alone
    commands_see_what_those_before_them_did
    due_work_comes_earliest_first
    finished_work_is_never_due
    open_work_is_paged_by_id
    a_list_is_newest_first_over_open_and_finished_work
    a_list_holds_only_what_is_asked_for
    what_ended_is_found_by_its_end_and_by_who_asked
    agents_are_kept_replaced_and_forgotten
    a_document_is_replaced_only_by_the_version_after_it
    what_is_old_is_purged_oldest_first
    a_key_that_stands_keeps_its_task
    a_forgotten_task_takes_its_key_along
    what_there_is_is_counted
    a_check_writes_and_changes_nothing
}

async fn a_task_comes_back_as_it_went_in(store: &dyn Store) {
    let born = tried(task(1), "a@ns");
    tell(store, insert(born.clone())).await;
    assert_eq!(store.load(id(1)).await.unwrap(), Some(born.clone()));

    let accepted = stepped(&born, Accepted, 5);
    tell(store, commit(accepted.clone())).await;
    assert_eq!(store.load(id(1)).await.unwrap(), Some(accepted.clone()));

    let completed = stepped(&accepted, Completed, 6);
    tell(store, finish(completed.clone(), 100)).await;
    assert_eq!(store.load(id(1)).await.unwrap(), Some(completed));
    assert_eq!(store.load(id(2)).await.unwrap(), None);
}

async fn one_key_leads_to_one_task_even_within_a_batch(store: &dyn Store) {
    let taken = Outcome::KeyTaken { task_id: id(1), fingerprint: [7; 32] };
    let batch = vec![insert_keyed(task(1), key("k", 7), 0), insert_keyed(task(2), key("k", 8), 0)];
    assert_eq!(tell_all(store, batch).await, [Outcome::Inserted, taken.clone()]);
    assert_eq!(tell(store, insert_keyed(task(3), key("k", 7), 0)).await, taken);
    // The very same command once more, as after a lost answer, finds its own key.
    assert_eq!(tell(store, insert_keyed(task(1), key("k", 7), 0)).await, taken);
    assert_eq!(store.load(id(2)).await.unwrap(), None);
    let row = KeyRow { task_id: id(1), fingerprint: [7; 32], expires_at: None };
    assert_eq!(key_row(store, "k").await, Some(row));
}

async fn the_same_key_of_another_caller_is_another_key(store: &dyn Store) {
    let mut other = key("k", 2);
    other.scope = "bob".to_owned();
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    assert_eq!(tell(store, insert_keyed(scoped("bob", task(2)), other, 0)).await, Outcome::Inserted);
    assert_eq!(key_row(store, "k").await.unwrap().task_id, id(1));
}

async fn a_key_is_held_as_long_as_its_task_is_open(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    tell(store, commit(stepped(&task(1), Accepted, 5))).await;
    let taken = Outcome::KeyTaken { task_id: id(1), fingerprint: [1; 32] };
    assert_eq!(tell(store, insert_keyed(task(2), key("k", 1), 1_000_000)).await, taken);
}

async fn a_finished_tasks_key_is_free_once_it_expires(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    tell(store, finish(stepped(&task(1), Completed, 5), 100)).await;
    assert_eq!(key_row(store, "k").await.unwrap().expires_at, Some(at(100)));
    let taken = Outcome::KeyTaken { task_id: id(1), fingerprint: [1; 32] };
    assert_eq!(tell(store, insert_keyed(task(2), key("k", 2), 99)).await, taken);
    assert_eq!(tell(store, insert_keyed(task(2), key("k", 2), 100)).await, Outcome::Inserted);
    let row = KeyRow { task_id: id(2), fingerprint: [2; 32], expires_at: None };
    assert_eq!(key_row(store, "k").await, Some(row));
}

async fn a_task_born_finished_brings_the_time_its_key_expires(store: &dyn Store) {
    let mut born = stepped(&task(1), Completed, 5);
    born.version = 0;
    let mut expiring = key("k", 1);
    expiring.expires_at = Some(at(50));
    assert_eq!(tell(store, insert_keyed(born.clone(), expiring, 0)).await, Outcome::Inserted);
    assert_eq!(store.load(id(1)).await.unwrap(), Some(born));
    assert_eq!(key_row(store, "k").await.unwrap().expires_at, Some(at(50)));
    assert_eq!(store.counts().await.unwrap().done[&Completed], 1);
}

async fn a_redriven_task_holds_its_key_again(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    let dead = stepped(&task(1), DeadLettered, 5);
    tell(store, finish(dead.clone(), 100)).await;
    let again = stepped(&dead, Submitted, 50);
    assert_eq!(tell(store, redrive(again.clone())).await, Outcome::Committed);
    assert_eq!(key_row(store, "k").await.unwrap().expires_at, None);
    assert_eq!(store.load(id(1)).await.unwrap(), Some(again.clone()));
    assert_eq!(store.due(at(50), 9).await.unwrap(), [(at(50), id(1))]);
    assert_eq!(tell(store, finish(stepped(&again, Completed, 60), 200)).await, Outcome::Committed);
    assert_eq!(key_row(store, "k").await.unwrap().expires_at, Some(at(200)));
}

async fn a_key_that_went_to_another_task_is_left_alone_by_the_first(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    let dead = stepped(&task(1), DeadLettered, 5);
    tell(store, finish(dead.clone(), 10)).await;
    tell(store, insert_keyed(task(2), key("k", 2), 10)).await;
    let again = stepped(&dead, Submitted, 20);
    tell(store, redrive(again.clone())).await;
    tell(store, finish(stepped(&again, Completed, 30), 40)).await;
    let row = KeyRow { task_id: id(2), fingerprint: [2; 32], expires_at: None };
    assert_eq!(key_row(store, "k").await, Some(row));
}

async fn an_id_is_taken_once(store: &dyn Store) {
    tell(store, insert(task(1))).await;
    let accepted = stepped(&task(1), Accepted, 5);
    tell(store, commit(accepted.clone())).await;
    let refused = Outcome::Conflict { current: Some(1) };
    assert_eq!(tell(store, insert_keyed(task(1), key("k", 1), 0)).await, refused);
    assert_eq!(key_row(store, "k").await, None);
    tell(store, finish(stepped(&accepted, Completed, 6), 100)).await;
    assert_eq!(tell(store, insert(task(1))).await, Outcome::Conflict { current: Some(2) });
}

async fn a_commit_on_an_older_version_is_refused(store: &dyn Store) {
    let accepted = stepped(&task(1), Accepted, 5);
    assert_eq!(tell(store, commit(accepted.clone())).await, Outcome::Conflict { current: None });
    tell(store, insert(task(1))).await;
    assert_eq!(tell(store, commit(task(1))).await, Outcome::Conflict { current: Some(0) });
    assert_eq!(tell(store, commit(accepted.clone())).await, Outcome::Committed);
    let late = stepped(&task(1), Completed, 6);
    assert_eq!(tell(store, finish(late, 100)).await, Outcome::Conflict { current: Some(1) });
    assert_eq!(store.load(id(1)).await.unwrap(), Some(accepted));
}

async fn a_commit_that_is_wrong_about_the_end_is_refused(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    assert_eq!(tell(store, redrive(stepped(&task(1), Accepted, 5))).await, Outcome::Conflict { current: Some(0) });
    let failed = stepped(&task(1), Failed, 5);
    tell(store, finish(failed.clone(), 100)).await;
    assert_eq!(tell(store, commit(stepped(&failed, Accepted, 6))).await, Outcome::Conflict { current: Some(1) });
    assert_eq!(key_row(store, "k").await.unwrap().expires_at, Some(at(100)));
}

async fn a_refused_command_leaves_the_rest_of_its_batch_alone(store: &dyn Store) {
    let batch = vec![insert(task(1)), commit(stepped(&task(9), Accepted, 5)), insert(task(1)), insert(task(2))];
    let outcomes = tell_all(store, batch).await;
    let refused = |current| Outcome::Conflict { current };
    assert_eq!(outcomes, [Outcome::Inserted, refused(None), refused(Some(0)), Outcome::Inserted]);
    assert_eq!(listed(store, &Query::default()).await, [id(2), id(1)]);
}

async fn commands_see_what_those_before_them_did(store: &dyn Store) {
    assert_eq!(tell_all(store, Vec::new()).await, []);
    let accepted = stepped(&task(1), Accepted, 5);
    let completed = stepped(&accepted, Completed, 6);
    let batch = vec![insert(task(1)), commit(accepted), finish(completed.clone(), 100), purge(7, 0, 9)];
    let purged = Outcome::Purged { tasks: 1, keys: 0, messages: 0 };
    assert_eq!(tell_all(store, batch).await, [Outcome::Inserted, Outcome::Committed, Outcome::Committed, purged]);
    assert_eq!(store.load(id(1)).await.unwrap(), None);
}

async fn due_work_comes_earliest_first(store: &dyn Store) {
    tell_all(store, vec![insert(task(30)), insert(task(10)), insert(task(20))]).await;
    assert_eq!(store.due(at(20), 9).await.unwrap(), [(at(10), id(10)), (at(20), id(20))]);
    assert_eq!(store.due(at(9), 9).await.unwrap(), []);
    assert_eq!(store.due(at(99), 1).await.unwrap(), [(at(10), id(10))]);
    tell(store, commit(stepped(&task(10), Submitted, 25))).await;
    let now = [(at(20), id(20)), (at(25), id(10)), (at(30), id(30))];
    assert_eq!(store.due(at(99), 9).await.unwrap(), now);
}

async fn finished_work_is_never_due(store: &dyn Store) {
    tell(store, insert(task(1))).await;
    tell(store, finish(stepped(&task(1), Failed, 5), 100)).await;
    assert_eq!(store.due(at(1_000_000), 9).await.unwrap(), []);
    assert_eq!(store.open_after(None, 9).await.unwrap(), []);
}

async fn open_work_is_paged_by_id(store: &dyn Store) {
    tell_all(store, [3, 1, 4, 2].map(|n| insert(task(n))).into()).await;
    tell(store, finish(stepped(&task(2), Failed, 5), 100)).await;
    assert_eq!(store.open_after(None, 2).await.unwrap(), [task(1), task(3)]);
    assert_eq!(store.open_after(Some(id(3)), 2).await.unwrap(), [task(4)]);
    assert_eq!(store.open_after(Some(id(4)), 2).await.unwrap(), []);
}

async fn a_list_is_newest_first_over_open_and_finished_work(store: &dyn Store) {
    tell_all(store, [2, 1, 5, 3, 4].map(|n| insert(task(n))).into()).await;
    tell(store, finish(stepped(&task(2), Failed, 5), 100)).await;
    tell(store, finish(stepped(&task(4), Completed, 6), 100)).await;
    let all = Query { limit: 9, ..Query::default() };
    assert_eq!(listed(store, &all).await, [5, 4, 3, 2, 1].map(id));
    let page = Query { limit: 2, before: Some(id(4)), ..Query::default() };
    assert_eq!(listed(store, &page).await, [3, 2].map(id));
}

async fn a_list_holds_only_what_is_asked_for(store: &dyn Store) {
    let mut named = tried(task(1), "a@ns");
    named.state.target.to_agent = Some("b@ns".parse().unwrap());
    let mut wished = task(2);
    wished.state.target.to_agent = Some("b@ns".parse().unwrap());
    let others = scoped("bob", tried(task(3), "b@ns"));
    tell_all(store, vec![insert(named.clone()), insert(wished), insert(others.clone()), insert(task(4))]).await;
    tell(store, finish(stepped(&named, Completed, 5), 100)).await;
    tell(store, finish(stepped(&others, DeadLettered, 5), 100)).await;
    tell(store, commit(stepped(&task(4), Accepted, 5))).await;

    let any = Query { limit: 9, ..Query::default() };
    let phases = |phases: &[_]| Query { phases: phases.to_vec(), ..any.clone() };
    assert_eq!(listed(store, &phases(&[DeadLettered])).await, [id(3)]);
    assert_eq!(listed(store, &phases(&[DeadLettered, Failed])).await, [id(3)]);
    assert_eq!(listed(store, &phases(&[Completed, DeadLettered, Accepted])).await, [4, 3, 1].map(id));
    assert_eq!(listed(store, &phases(&[Submitted, Accepted])).await, [4, 2].map(id));
    let of = |name: &str| Query { agent: Some(name.parse::<AgentId>().unwrap()), ..any.clone() };
    assert_eq!(listed(store, &of("a@ns")).await, [id(1)]);
    assert_eq!(listed(store, &of("b@ns")).await, [3, 2].map(id));
    assert_eq!(listed(store, &Query { phases: vec![DeadLettered], ..of("b@ns") }).await, [id(3)]);
    assert_eq!(listed(store, &Query { scope: Some("bob".to_owned()), ..any.clone() }).await, [id(3)]);
    assert_eq!(listed(store, &Query { scope: Some("alice".to_owned()), ..of("b@ns") }).await, [id(2)]);
}

async fn what_ended_is_found_by_its_end_and_by_who_asked(store: &dyn Store) {
    let wished = |n: u64, from: &str| {
        let mut wished = asked_by(from, task(n));
        wished.state.target.capability = Some("wish".parse().unwrap());
        wished
    };
    let (mut first, last) = (tried(asked_by("x@ns", task(1)), "a@ns"), wished(4, "y@other"));
    // A fallback was tried last: that is what it is listed as.
    first.state.attempts.last_mut().unwrap().capability = "other".parse().unwrap();
    let born = [first, tried(wished(2, "x@ns"), "a@ns"), tried(asked_by("y@ns", task(3)), "b@ns"), last];
    tell_all(store, born.iter().cloned().map(insert).collect()).await;
    for (born, (phase, code, ended)) in born.iter().zip([
        (DeadLettered, ErrorCode::Timeout, 10),
        (DeadLettered, ErrorCode::OutcomeUnknown, 20),
        (Failed, ErrorCode::Timeout, 30),
        (DeadLettered, ErrorCode::Timeout, 40),
    ]) {
        tell(store, finish(failing(stepped(born, phase, ended), code), 100)).await;
    }
    tell(store, insert(asked_by("x@ns", task(5)))).await;

    let any = Query { limit: 9, ..Query::default() };
    let letters = Query { phases: vec![DeadLettered], ..any.clone() };
    let of = |code| Query { code: Some(code), ..any.clone() };
    let from = |agent: &str| Query { from_agent: Some(agent.parse().unwrap()), ..any.clone() };
    let within = |namespace: &str| Query { from_namespace: Some(namespace.parse().unwrap()), ..any.clone() };
    let as_what = |name: &str| Query { capability: Some(name.parse().unwrap()), ..any.clone() };
    for (query, found) in [
        (letters.clone(), vec![4, 2, 1]),
        (of(ErrorCode::Timeout), vec![4, 3, 1]),
        (of(ErrorCode::OutcomeUnknown), vec![2]),
        (of(ErrorCode::Expired), vec![]),
        (Query { phases: vec![DeadLettered], ..of(ErrorCode::Timeout) }, vec![4, 1]),
        (from("x@ns"), vec![5, 2, 1]),
        (from("x@n"), vec![]),
        (within("ns"), vec![5, 3, 2, 1]),
        (within("other"), vec![4]),
        (within("n"), vec![]),
        (as_what("other"), vec![1]),
        (as_what("do"), vec![3, 2]),
        (as_what("wish"), vec![4]),
        (Query { ended_after: Some(at(20)), ..any.clone() }, vec![4, 3, 2]),
        (Query { ended_before: Some(at(20)), ..any.clone() }, vec![1]),
        (Query { ended_after: Some(at(10)), ended_before: Some(at(40)), ..letters.clone() }, vec![2, 1]),
        (Query { agent: Some("a@ns".parse().unwrap()), ..of(ErrorCode::Timeout) }, vec![1]),
        (Query { before: Some(id(4)), ..of(ErrorCode::Timeout) }, vec![3, 1]),
    ] {
        assert_eq!(store.count(query.clone()).await.unwrap(), found.len() as u64, "{query:?}");
        assert_eq!(listed(store, &query).await, found.into_iter().map(id).collect::<Vec<_>>(), "{query:?}");
    }
    assert_eq!(store.count(Query { limit: 2, ..any }).await.unwrap(), 2, "it is counted up to the limit");
}

async fn agents_are_kept_replaced_and_forgotten(store: &dyn Store) {
    let mut draining = agent("b@ns", 2);
    draining.draining = true;
    let puts = [agent("b@ns", 1), agent("a@ns", 1), draining.clone()].map(Command::PutAgent);
    assert_eq!(tell_all(store, puts.into()).await, [Outcome::Done, Outcome::Done, Outcome::Done]);
    assert_eq!(store.agents().await.unwrap(), [agent("a@ns", 1), draining.clone()]);
    let forget = Command::RemoveAgent("a@ns".parse().unwrap());
    assert_eq!(tell_all(store, vec![forget.clone(), forget]).await, [Outcome::Done, Outcome::Done]);
    assert_eq!(store.agents().await.unwrap(), [draining]);
}

async fn a_document_is_replaced_only_by_the_version_after_it(store: &dyn Store) {
    let document = |name: &str, version, content: &str| {
        let (name, content) = (name.to_owned(), content.to_owned());
        Command::PutDocument(Document { name, version, content })
    };
    assert_eq!(store.document("policy").await.unwrap(), None);
    let puts = vec![
        document("policy", 2, "too early"),
        document("policy", 1, "first"),
        document("policy", 1, "again"),
        document("other", 1, "another"),
        document("policy", 2, "second"),
    ];
    let conflict = |current| Outcome::Conflict { current };
    let outcomes = [conflict(None), Outcome::Committed, conflict(Some(1)), Outcome::Committed, Outcome::Committed];
    assert_eq!(tell_all(store, puts).await, outcomes);
    let stands = store.document("policy").await.unwrap().unwrap();
    assert_eq!((stands.name.as_str(), stands.version, stands.content.as_str()), ("policy", 2, "second"));
    assert_eq!(store.document("other").await.unwrap().unwrap().content, "another");
}

async fn what_is_old_is_purged_oldest_first(store: &dyn Store) {
    for n in 1..=4 {
        tell(store, insert_keyed(task(n), key(&format!("k{n}"), 1), 0)).await;
    }
    for (n, finished) in [(1, 30), (2, 10), (3, 20)] {
        tell(store, finish(stepped(&task(n), Completed, finished), finished + 1)).await;
    }
    assert_eq!(tell(store, purge(30, 100, 2)).await, Outcome::Purged { tasks: 2, keys: 2, messages: 0 });
    assert_eq!(listed(store, &Query { limit: 9, ..Query::default() }).await, [4, 1].map(id));
    assert_eq!((key_row(store, "k2").await, key_row(store, "k3").await), (None, None));
    assert_eq!(tell(store, purge(30, 31, 9)).await, Outcome::Purged { tasks: 0, keys: 0, messages: 0 });
    assert_eq!(tell(store, purge(31, 32, 9)).await, Outcome::Purged { tasks: 1, keys: 1, messages: 0 });
    assert_eq!(listed(store, &Query { limit: 9, ..Query::default() }).await, [id(4)]);
}

async fn a_key_that_stands_keeps_its_task(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    tell(store, finish(stepped(&task(1), Completed, 5), 100)).await;
    assert_eq!(tell(store, purge(50, 50, 9)).await, Outcome::Purged { tasks: 0, keys: 0, messages: 0 });
    assert!(store.load(id(1)).await.unwrap().is_some());
    assert_eq!(tell(store, purge(50, 101, 9)).await, Outcome::Purged { tasks: 1, keys: 1, messages: 0 });
    assert_eq!(store.load(id(1)).await.unwrap(), None);
}

async fn a_forgotten_task_takes_its_key_along(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    tell(store, insert_keyed(task(2), key("l", 1), 0)).await;
    tell(store, finish(stepped(&task(2), Completed, 5), 100)).await;
    let forget = [1, 2, 3].map(|n| Command::Forget(id(n)));
    assert_eq!(tell_all(store, forget.into()).await, [Outcome::Done, Outcome::Done, Outcome::Done]);
    assert_eq!((store.load(id(1)).await.unwrap(), store.load(id(2)).await.unwrap()), (None, None));
    assert_eq!((key_row(store, "k").await, key_row(store, "l").await), (None, None));
    assert_eq!(store.due(at(9), 9).await.unwrap(), []);
    assert_eq!(tell(store, insert_keyed(task(1), key("k", 2), 0)).await, Outcome::Inserted);
}

async fn what_there_is_is_counted(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    tell_all(store, [2, 3, 4, 5].map(|n| insert(task(n))).into()).await;
    for (n, phase) in [(2, Completed), (3, Completed), (4, Failed)] {
        tell(store, finish(stepped(&task(n), phase, 5), 100)).await;
    }
    let counts = store.counts().await.unwrap();
    assert_eq!((counts.open, counts.keys), (2, 1));
    assert_eq!(counts.done.into_iter().collect::<Vec<_>>(), [(Completed, 2), (Failed, 1)]);
}

async fn a_check_writes_and_changes_nothing(store: &dyn Store) {
    tell(store, insert(task(1))).await;
    store.check().await.unwrap();
    assert_eq!(store.open_after(None, 9).await.unwrap(), [task(1)]);
}

async fn key_row(store: &dyn Store, name: &str) -> Option<KeyRow> {
    store.load_by_key("alice", &name.parse().unwrap()).await.unwrap()
}

async fn listed(store: &dyn Store, query: &Query) -> Vec<TaskId> {
    let query = if query.limit == 0 { Query { limit: 9, ..query.clone() } } else { query.clone() };
    store.list(query).await.unwrap().iter().map(reach_core::task::Task::id).collect()
}
