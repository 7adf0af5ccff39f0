//! A task that moves from memory into the durable store is one task all the time: no step is lost, whoever takes steps
//! meanwhile, and whoever gives up on the move.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use reach_core::task::{Plan, Task};
use reach_gateway::store::{Committer, Outcome, Query, Store};
use reach_gateway::stores::{Stores, Told};
use reach_schemas::PhaseName::{Accepted, Completed, DeadLettered, Routed};
use reach_schemas::{Effect, Span, Tier};

use crate::audit;
use crate::make::{Kept, at, id, memory, phase_at, sqlite, stepped, task, tried};
use crate::outbox::{message, webhook};

/// Both stores, with a task in memory.
struct World {
    stores: Arc<Stores>,
    memory: Kept,
    durable: Kept,
}

fn plan(effect: Effect) -> Plan {
    let attempt_timeout = Span::from_secs(1);
    Plan {
        effect,
        tier: Tier::Normal,
        attempt_timeout,
        lateral: None,
        cancellable: false,
        fallback: Vec::new(),
        human_wait: Span::from_hours(1),
    }
}

fn born(n: u64) -> Task {
    let mut task = tried(task(n), "a@ns");
    task.state.plan = Some(plan(Effect::Read));
    task.state.phase = phase_at(Routed, n);
    task
}

impl World {
    async fn new() -> Self {
        let (memory, durable) = (memory(), sqlite());
        let committer = Committer::new(Arc::clone(&durable.store));
        let stores = Stores::new(Arc::clone(&durable.store), committer, Arc::clone(&memory.store));
        let world = Self { stores: Arc::new(stores), memory, durable };
        world.take_on(born(1)).await;
        world
    }

    async fn take_on(&self, task: Task) {
        assert_eq!(self.stores.insert(task, None, at(0), true).await.unwrap(), Outcome::Inserted);
    }

    async fn commit(&self, next: &Task) -> Outcome {
        let turn = self.stores.turn(next.id()).await;
        self.stores.commit(&turn, next, false, None, at(9), Told::default()).await.unwrap()
    }

    /// The versions of task 1 in memory and on disk.
    async fn versions(&self) -> (Option<u64>, Option<u64>) {
        let version = async |store: &dyn Store| store.load(id(1)).await.unwrap().map(|task| task.version);
        (version(&*self.memory.store).await, version(&*self.durable.store).await)
    }
}

/// Takes steps from whatever stands, and says how many were taken.
async fn steps(stores: Arc<Stores>, times: u64) -> u64 {
    let mut taken = 0;
    for _ in 0..times {
        let turn = stores.turn(id(1)).await;
        let stands = stores.load(id(1)).await.unwrap().expect("the task is in neither store");
        let outcome =
            stores.commit(&turn, &stepped(&stands, Accepted, 5), false, None, at(5), Told::default()).await.unwrap();
        assert_eq!(outcome, Outcome::Committed);
        taken += 1;
    }
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_step_is_lost_while_a_task_moves() {
    for round in 0..40 {
        let world = World::new().await;
        let steppers: Vec<_> = (0..3).map(|_| tokio::spawn(steps(world.stores.clone(), 40))).collect();
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        world.stores.persist(id(1), at(5)).await.unwrap().expect("it was in memory");
        let mut taken = 0;
        for stepper in steppers {
            taken += stepper.await.unwrap();
        }
        assert_eq!(world.versions().await, (None, Some(taken)));
    }
}

#[tokio::test]
async fn a_move_that_nobody_waits_for_is_finished() {
    let world = World::new().await;
    assert!(world.stores.persist(id(1), at(5)).now_or_never().is_none(), "a disk is not that fast");
    assert_eq!(world.commit(&stepped(&born(1), Accepted, 5)).await, Outcome::Committed);
    assert_eq!(world.versions().await, (None, Some(1)));
}

#[tokio::test]
async fn a_step_that_may_not_be_taken_in_memory_takes_the_task_along() {
    let mut written = stepped(&born(1), Accepted, 5);
    written.state.plan = Some(plan(Effect::Write));
    for next in [written, stepped(&born(1), DeadLettered, 5)] {
        let world = World::new().await;
        assert_eq!(world.versions().await, (Some(0), None));
        assert_eq!(world.commit(&next).await, Outcome::Committed);
        assert_eq!(world.versions().await, (None, Some(1)));
        assert_eq!(world.stores.load(id(1)).await.unwrap(), Some(next));
    }
}

#[tokio::test]
async fn a_step_that_is_told_of_takes_the_task_along_with_the_message_and_the_audit_row() {
    let world = World::new().await;
    let completed = stepped(&born(1), Completed, 5);
    assert!(completed.may_stay_in_memory());
    let turn = world.stores.turn(id(1)).await;
    let rows = vec![message(1, 1, "a.example", 5)];
    let told = Told { outbox: rows.clone(), audit: vec![audit::event(1)] };
    let outcome = world.stores.commit(&turn, &completed, false, None, at(5), told).await.unwrap();
    assert_eq!((outcome, world.versions().await), (Outcome::Committed, (None, Some(1))));
    assert_eq!(world.durable.store.outbox_row(webhook(1)).await.unwrap().as_ref(), rows.first());
    assert_eq!(audit::rows(&*world.durable.store).await.len(), 1);
    assert_eq!(audit::rows(&*world.memory.store).await, []);
}

#[tokio::test]
async fn a_step_on_an_older_version_does_not_move_the_task() {
    let world = World::new().await;
    let accepted = stepped(&born(1), Accepted, 5);
    assert_eq!(world.commit(&accepted).await, Outcome::Committed);
    let late = stepped(&born(1), DeadLettered, 6);
    assert_eq!(world.commit(&late).await, Outcome::Conflict { current: Some(1) });
    assert_eq!(world.versions().await, (Some(1), None));
}

#[tokio::test]
async fn only_what_is_waited_for_is_born_in_memory() {
    let world = World::new().await;
    assert_eq!(world.stores.insert(born(2), None, at(0), false).await.unwrap(), Outcome::Inserted);
    assert!(world.durable.store.load(id(2)).await.unwrap().is_some());
    assert!(world.memory.store.load(id(2)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_list_is_newest_first_over_both_stores_and_names_each_task_once() {
    let world = World::new().await;
    world.take_on(born(2)).await;
    world.take_on(born(3)).await;
    world.stores.persist(id(2), at(5)).await.unwrap();
    // As a list finds it that is made while it moves.
    world.durable.store.apply(vec![crate::make::insert(born(3))]).await.unwrap();
    let listed = async |limit| {
        let tasks = world.stores.list(Query { limit, ..Query::default() }).await.unwrap();
        tasks.iter().map(Task::id).collect::<Vec<_>>()
    };
    assert_eq!(listed(9).await, [3, 2, 1].map(id));
    assert_eq!(listed(2).await, [3, 2].map(id));
}

#[tokio::test]
async fn completed_work_is_written_oldest_first_and_everything_at_the_end() {
    let world = World::new().await;
    for n in 2..=4 {
        world.take_on(born(n)).await;
    }
    for n in [3, 1, 2] {
        assert_eq!(world.commit(&stepped(&born(n), Completed, 5)).await, Outcome::Committed);
    }
    assert_eq!(world.stores.write_completed(2, at(9)).await.unwrap(), 2);
    let on_disk = async || {
        let tasks = world.durable.store.list(Query { limit: 9, ..Query::default() }).await.unwrap();
        tasks.iter().map(Task::id).collect::<Vec<_>>()
    };
    assert_eq!(on_disk().await, [3, 1].map(id));
    let end = world.stores.write_all(at(9));
    tokio::time::timeout(Duration::from_secs(20), end).await.expect("it does not end").unwrap();
    assert_eq!(on_disk().await, [4, 3, 2, 1].map(id));
    assert!(world.memory.store.list(Query { limit: 9, ..Query::default() }).await.unwrap().is_empty());
}
