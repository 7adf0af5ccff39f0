//! What every store promises of its outbox, one claim a test; and that an older file gets one.

use std::collections::BTreeSet;

use reach_gateway::store::{
    Command, Message, OutboxAsk, OutboxCounts, OutboxDue, OutboxQuery, OutboxRow, Outcome, Sending, Stage, Store,
};
use reach_schemas::PhaseName::{Completed, DeadLettered, Failed, Submitted};
use reach_schemas::{EventType, RawJson, TaskId, WebhookId, WebhookState, WebhookTry};
use rusqlite::Connection;

use crate::contract::every_store;
use crate::make::{self, at, id, insert, insert_keyed, key, purge, stepped, task, tell, tell_all};

every_store! {
    a_step_and_what_is_told_of_it_are_one
    a_task_that_is_born_finished_is_told_of
    a_step_that_is_refused_is_told_to_nobody
    a_message_is_taken_in_once
    what_is_due_comes_in_the_order_of_its_time_and_then_of_its_making
    no_lane_takes_more_than_its_share
    an_owner_with_much_to_be_sent_leaves_places_to_others
    a_note_moves_a_message_on
    a_note_on_a_message_that_is_gone_is_passed_over
    a_list_of_messages_is_newest_first_and_holds_only_what_is_asked_for
    what_has_not_reached_its_receiver_is_counted
    messages_outlive_their_tasks_and_are_purged_by_their_own_end
}

pub(crate) fn webhook(n: u64) -> WebhookId {
    WebhookId::from_parts(n, u128::from(n))
}

/// Message `n` in a lane, `host` or `owner host`, about task `task`, due at `due`.
pub(crate) fn message(n: u64, task: u64, lane: &str, due: u64) -> OutboxRow {
    let (owner, host) = lane.split_once(' ').map_or((None, lane), |(owner, host)| (owner.parse().ok(), host));
    OutboxRow::new(Message {
        id: webhook(n),
        kind: EventType::Completed,
        task_id: id(task),
        agent_id: (n % 2 == 1).then(|| "a@ns".parse().unwrap()),
        url: format!("https://{host}/hook?n={n}"),
        owner,
        host: host.to_owned(),
        created_at: at(due),
        body: RawJson::parse(r#"{"big":123456789012345678901234567890,"é": [1.10]}"#).unwrap(),
    })
}

pub(crate) fn sending(stage: Stage, tries: u32) -> Sending {
    let last = (tries > 0).then(|| WebhookTry { at: at(3), status: Some(503), error: Some("it said no".to_owned()) });
    Sending { stage, tries, last }
}

fn finish(task: reach_core::task::Task, outbox: Vec<OutboxRow>) -> Command {
    Command::Commit { task, was_final: false, key_expires_at: Some(at(100)), outbox }
}

fn note(n: u64, stage: Stage) -> Command {
    Command::NoteSending { id: webhook(n), sending: sending(stage, 1) }
}

/// A task for each message, ended with it.
async fn ended_with(store: &dyn Store, messages: Vec<OutboxRow>) {
    for (n, row) in (1..).zip(messages) {
        let done = stepped(&task(n), Completed, 5);
        assert_eq!(
            tell_all(store, vec![insert(task(n)), finish(done, vec![row])]).await,
            [Outcome::Inserted, Outcome::Committed]
        );
    }
}

async fn due(store: &dyn Store, by: u64) -> OutboxDue {
    store.outbox_due(OutboxAsk { by: at(by), except: BTreeSet::new(), per_lane: 9, limit: 9 }).await.unwrap()
}

fn named(due: &OutboxDue) -> Vec<WebhookId> {
    due.due.iter().map(|(id, _)| *id).collect()
}

async fn a_step_and_what_is_told_of_it_are_one(store: &dyn Store) {
    tell(store, insert(task(1))).await;
    let rows = vec![message(1, 1, "a.example", 5), message(2, 1, "b.example:8443", 5)];
    assert_eq!(tell(store, finish(stepped(&task(1), Completed, 5), rows.clone())).await, Outcome::Committed);
    let expected = OutboxDue {
        due: vec![(webhook(1), "a.example".to_owned()), (webhook(2), "b.example:8443".to_owned())],
        next_at: None,
    };
    assert_eq!(due(store, 5).await, expected);
    for row in rows {
        assert_eq!(store.outbox_row(row.message.id).await.unwrap(), Some(row));
    }
    assert_eq!(store.outbox_row(webhook(3)).await.unwrap(), None);
}

async fn a_task_that_is_born_finished_is_told_of(store: &dyn Store) {
    let mut born = stepped(&task(1), Failed, 5);
    born.version = 0;
    let row = message(1, 1, "a.example", 5);
    let command = |task| Command::Insert { task, key: None, now: at(5), outbox: vec![row.clone()] };
    assert_eq!(tell(store, command(born)).await, Outcome::Inserted);
    assert_eq!(named(&due(store, 5).await), [webhook(1)]);
}

async fn a_step_that_is_refused_is_told_to_nobody(store: &dyn Store) {
    tell(store, insert_keyed(task(1), key("k", 1), 0)).await;
    let late = stepped(&stepped(&task(1), Submitted, 4), Completed, 5);
    let refused = finish(late, vec![message(1, 1, "a.example", 5)]);
    assert_eq!(tell(store, refused).await, Outcome::Conflict { current: Some(0) });
    let mut born = stepped(&task(2), Failed, 5);
    born.version = 0;
    let repeated =
        Command::Insert { task: born, key: Some(key("k", 1)), now: at(0), outbox: vec![message(2, 2, "a.example", 5)] };
    assert!(matches!(tell(store, repeated).await, Outcome::KeyTaken { .. }));
    assert_eq!(due(store, 99).await, OutboxDue::default());
    assert_eq!(store.outbox_row(webhook(1)).await.unwrap(), None);
}

async fn a_message_is_taken_in_once(store: &dyn Store) {
    let twice = vec![message(1, 1, "a.example", 5), message(1, 1, "other.example", 6)];
    tell_all(store, vec![insert(task(1)), finish(stepped(&task(1), Completed, 5), twice)]).await;
    assert_eq!(store.outbox_row(webhook(1)).await.unwrap(), Some(message(1, 1, "a.example", 5)));
    assert_eq!(named(&due(store, 9).await), [webhook(1)]);
}

async fn what_is_due_comes_in_the_order_of_its_time_and_then_of_its_making(store: &dyn Store) {
    // Made in the order 4, 3, 2, 1: the number in the id says nothing.
    let rows = [(4, "b", 7), (3, "a", 7), (2, "a", 9), (1, "b", 6)];
    ended_with(store, rows.map(|(n, host, at)| message(n, n, host, at)).into()).await;
    let now = due(store, 7).await;
    assert_eq!((named(&now), now.next_at), ([1, 4, 3].map(webhook).into(), Some(at(9))));
    let early = due(store, 5).await;
    assert_eq!((named(&early), early.next_at), (Vec::new(), Some(at(6))));
    assert_eq!(due(store, 9).await.next_at, None);
}

async fn no_lane_takes_more_than_its_share(store: &dyn Store) {
    let rows = [(1, "a", 1), (2, "a", 2), (3, "a", 3), (4, "b", 4), (5, "c", 5)];
    ended_with(store, rows.map(|(n, host, at)| message(n, n, host, at)).into()).await;
    let ask = OutboxAsk { by: at(9), except: BTreeSet::new(), per_lane: 2, limit: 9 };
    let asked = async |ask: OutboxAsk| named(&store.outbox_due(ask).await.unwrap());
    assert_eq!(asked(ask.clone()).await, [1, 2, 4, 5].map(webhook));
    assert_eq!(asked(OutboxAsk { limit: 3, ..ask.clone() }).await, [1, 2, 4].map(webhook));
    let except = ["a".to_owned(), "c".to_owned()].into();
    assert_eq!(asked(OutboxAsk { except, ..ask }).await, [webhook(4)]);
}

async fn an_owner_with_much_to_be_sent_leaves_places_to_others(store: &dyn Store) {
    let rows = [(1, "n a", 1), (2, "n a", 2), (3, "n b", 3), (4, "m a", 9), (5, "a", 9), (6, "m a", 9)];
    ended_with(store, rows.map(|(n, lane, at)| message(n, n, lane, at)).into()).await;
    let ask = OutboxAsk { by: at(9), except: BTreeSet::new(), per_lane: 9, limit: 3 };
    let asked = async |ask: OutboxAsk| store.outbox_due(ask).await.unwrap();
    assert_eq!(named(&asked(ask.clone()).await), [1, 4, 5].map(webhook));
    let all = asked(OutboxAsk { limit: 9, ..ask.clone() }).await;
    assert_eq!(named(&all), [1, 4, 5, 2, 6, 3].map(webhook));
    assert_eq!(all.due[1].1, "m a");
    let others = asked(OutboxAsk { except: ["n a".to_owned()].into(), limit: 9, ..ask }).await;
    assert_eq!(named(&others), [3, 4, 5, 6].map(webhook), "the same host of another owner is another lane");
}

async fn a_note_moves_a_message_on(store: &dyn Store) {
    ended_with(store, vec![message(1, 1, "a", 5)]).await;
    let stages = [
        Stage::Waiting { due_at: at(40) },
        Stage::Failed { at: at(50) },
        Stage::Waiting { due_at: at(60) },
        Stage::Gone { at: at(61) },
        Stage::Delivered { at: at(70) },
    ];
    for stage in stages {
        assert_eq!(tell(store, note(1, stage)).await, Outcome::Done);
        let row = OutboxRow { sending: sending(stage, 1), ..message(1, 1, "a", 5) };
        assert_eq!(store.outbox_row(webhook(1)).await.unwrap(), Some(row));
        let expected = stage.due_at().map(|_| webhook(1));
        assert_eq!(named(&due(store, 99).await), Vec::from_iter(expected), "{stage:?}");
        assert_eq!(due(store, 39).await.next_at, stage.due_at(), "{stage:?}");
    }
}

async fn a_note_on_a_message_that_is_gone_is_passed_over(store: &dyn Store) {
    assert_eq!(tell(store, note(1, Stage::Delivered { at: at(1) })).await, Outcome::Done);
    assert_eq!(store.outbox_row(webhook(1)).await.unwrap(), None);
    assert_eq!(tell(store, purge(99, 99, 9)).await, Outcome::Purged { tasks: 0, keys: 0, messages: 0 });
}

async fn a_list_of_messages_is_newest_first_and_holds_only_what_is_asked_for(store: &dyn Store) {
    ended_with(store, (1..=4).map(|n| message(n, if n == 4 { 1 } else { n }, "a", n)).collect()).await;
    tell_all(store, vec![note(2, Stage::Failed { at: at(9) }), note(3, Stage::Delivered { at: at(9) })]).await;
    let all = OutboxQuery { limit: 9, ..OutboxQuery::default() };
    let listed = async |query: OutboxQuery| -> Vec<WebhookId> {
        store.outbox_list(query).await.unwrap().iter().map(|row| row.message.id).collect()
    };
    let of_state = |state| OutboxQuery { state: Some(state), ..all.clone() };
    assert_eq!(listed(all.clone()).await, [4, 3, 2, 1].map(webhook));
    assert_eq!(listed(OutboxQuery { limit: 2, ..all.clone() }).await, [4, 3].map(webhook));
    assert_eq!(listed(OutboxQuery { before: Some(webhook(3)), ..all.clone() }).await, [2, 1].map(webhook));
    assert_eq!(listed(of_state(WebhookState::Waiting)).await, [4, 1].map(webhook));
    assert_eq!(listed(of_state(WebhookState::Failed)).await, [webhook(2)]);
    assert_eq!(listed(of_state(WebhookState::Delivered)).await, [webhook(3)]);
    assert_eq!(listed(of_state(WebhookState::Gone)).await, []);
    let of_task = OutboxQuery { task_id: Some(id(1)), ..all.clone() };
    assert_eq!(listed(of_task.clone()).await, [4, 1].map(webhook));
    assert_eq!(listed(OutboxQuery { state: Some(WebhookState::Failed), ..of_task }).await, []);
}

async fn what_has_not_reached_its_receiver_is_counted(store: &dyn Store) {
    assert_eq!(store.outbox_counts().await.unwrap(), OutboxCounts::default());
    // Made in another order than that of their times.
    let rows = [(1, 40), (2, 10), (3, 20), (4, 30), (5, 5), (6, 50)].map(|(n, due)| message(n, n, "a", due));
    ended_with(store, rows.into()).await;
    let moved = [
        note(1, Stage::Delivered { at: at(60) }),
        note(3, Stage::Failed { at: at(60) }),
        note(4, Stage::Gone { at: at(60) }),
        note(6, Stage::Gone { at: at(60) }),
    ];
    tell_all(store, moved.into()).await;
    let expected = OutboxCounts { waiting: 2, waiting_since: Some(at(10)), failed: 1, gone: 2 };
    assert_eq!(store.outbox_counts().await.unwrap(), expected);
    tell(store, note(2, Stage::Waiting { due_at: at(90) })).await;
    assert_eq!(store.outbox_counts().await.unwrap(), expected, "when it is tried again is no matter");
}

async fn messages_outlive_their_tasks_and_are_purged_by_their_own_end(store: &dyn Store) {
    ended_with(store, (1..=3).map(|n| message(n, n, "a", n)).collect()).await;
    tell_all(store, vec![note(1, Stage::Delivered { at: at(20) }), note(2, Stage::Gone { at: at(30) })]).await;
    assert_eq!(tell(store, purge(20, 0, 9)).await, Outcome::Purged { tasks: 3, keys: 0, messages: 0 });
    assert_eq!(tell(store, purge(31, 0, 1)).await, Outcome::Purged { tasks: 0, keys: 0, messages: 1 });
    assert_eq!(store.outbox_row(webhook(1)).await.unwrap(), None, "the one that ended first goes first");
    assert_eq!(tell(store, purge(99, 99, 9)).await, Outcome::Purged { tasks: 0, keys: 0, messages: 1 });
    assert_eq!(named(&due(store, 99).await), [webhook(3)], "what waits is never purged");
}

#[tokio::test]
async fn a_file_of_the_first_layout_keeps_its_tasks_and_gets_an_outbox() {
    let directory = make::directory();
    let path = directory.path().join("reach.db");
    let store = make::open(&path);
    let dead = stepped(&task(1), DeadLettered, 5);
    tell_all(&store, vec![insert(task(1)), finish(dead.clone(), Vec::new())]).await;
    drop(store);
    // Back to what the first layout was.
    let file = Connection::open(&path).unwrap();
    let first = Connection::open_in_memory().unwrap();
    first.execute_batch(include_str!("../../src/store/sqlite/layout_1.sql")).unwrap();
    let (known, newest) = (tables(&first), tables(&file));
    for sql in newest.iter().filter(|sql| sql.starts_with("CREATE TABLE ") && !known.contains(sql)) {
        let name = sql.split_whitespace().nth(2).unwrap();
        file.execute_batch(&format!("DROP TABLE {name}")).unwrap();
    }
    for sql in known.iter().filter(|sql| !newest.contains(sql)) {
        let name = sql.split_whitespace().nth(2).unwrap();
        file.execute_batch(&format!("DROP INDEX {name}; {sql}")).unwrap();
    }
    file.pragma_update(None, "user_version", 1).unwrap();
    assert_eq!(tables(&file), known);

    let store = make::open(&path);
    assert_eq!(tables(&file), newest);
    drop(file);
    assert_eq!(store.load(id(1)).await.unwrap(), Some(dead.clone()));
    let again = Command::Commit {
        task: stepped(&dead, Submitted, 6),
        was_final: true,
        key_expires_at: None,
        outbox: vec![message(1, 1, "a", 5)],
    };
    assert_eq!(tell(&store, again).await, Outcome::Committed);
    assert_eq!(named(&due(&store, 5).await), [webhook(1)]);
}

fn tables(file: &Connection) -> Vec<String> {
    let mut statement = file
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name")
        .unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// What can be read of the outbox, as text, over `messages` messages and the tasks that they are of.
pub(crate) async fn everything(
    store: &dyn Store,
    messages: u64,
    tasks: impl IntoIterator<Item = TaskId>,
) -> Vec<String> {
    let mut said = Vec::new();
    for n in 0..messages {
        said.push(format!("message {n}: {:?}", store.outbox_row(webhook(n)).await.unwrap()));
    }
    let asks = [(0, 9, 9, ""), (4, 1, 9, ""), (9, 2, 3, "h0"), (99, 9, 4, "")];
    for (by, per_lane, limit, except) in asks {
        let ask = OutboxAsk { by: at(by), except: [except.to_owned()].into(), per_lane, limit };
        said.push(format!("{ask:?}: {:?}", store.outbox_due(ask.clone()).await.unwrap()));
    }
    let all = OutboxQuery { limit: 9, ..OutboxQuery::default() };
    let mut queries = vec![all.clone(), OutboxQuery { before: Some(webhook(3)), limit: 2, ..all.clone() }];
    queries.extend(WebhookState::ALL.map(|state| OutboxQuery { state: Some(state), ..all.clone() }));
    queries.extend(tasks.into_iter().map(|task| OutboxQuery { task_id: Some(task), ..all.clone() }));
    said.push(format!("{:?}", store.outbox_counts().await.unwrap()));
    for query in queries {
        said.push(format!("{query:?}: {:?}", store.outbox_list(query.clone()).await.unwrap()));
    }
    said
}
