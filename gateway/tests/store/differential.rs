//! Random batches on the memory store and on SQLite: the same outcomes, and the same answers to every read.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use reach_core::audit::{Checkpoint, Event, Hash, Mark};
use reach_core::task::Task;
use reach_gateway::store::{Command, OutboxRow, Outcome, Query, Stage, Store};
use reach_schemas::{ErrorCode, PhaseName};

use crate::audit;
use crate::make::{self, agent, asked_by, at, failing, id, key, phase_at, purge, scoped, task, tried};
use crate::outbox::{self, message, sending, webhook};

const TASKS: u64 = 6;
const KEYS: [&str; 3] = ["k0", "k1", "k2"];
const SCOPES: [&str; 2] = ["alice", "bob"];
const AGENTS: [&str; 2] = ["a@ns", "b@ns"];
/// Who asks for a task, and why it fails if it does: by its number.
const CALLERS: [&str; 3] = ["x@ns", "y@ns", "x@other"];
const REASONS: [ErrorCode; 2] = [ErrorCode::Timeout, ErrorCode::AgentFailed];
const TIME_MAX: u64 = 12;
const MESSAGES: u64 = 5;
const HOSTS: [&str; 3] = ["h0", "h1", "n h1"];

/// A command before it is known how the stored task stands.
#[derive(Debug, Clone)]
enum Wish {
    Insert {
        n: u64,
        phase: PhaseName,
        at: u64,
        scope: usize,
        agent: Option<usize>,
        key: Option<(usize, u8)>,
        expires: u64,
        told: Vec<Told>,
    },
    /// `ahead` is 1 for a commit on the version that stands; `honest` says whether it knows if that is final.
    Commit {
        n: u64,
        phase: PhaseName,
        at: u64,
        agent: Option<usize>,
        ahead: u64,
        honest: bool,
        expires: Option<u64>,
        told: Vec<Told>,
    },
    Note {
        n: u64,
        stage: usize,
        at: u64,
        tries: u32,
    },
    Purge {
        finished: u64,
        keys: u64,
        limit: u32,
    },
    PutAgent {
        agent: usize,
        generation: u64,
    },
    RemoveAgent {
        agent: usize,
    },
    Forget {
        n: u64,
    },
    Audit {
        n: u64,
        count: usize,
    },
    Pin {
        seq: u64,
    },
    /// A command and what is written down of it.
    Audited {
        wish: Box<Wish>,
        n: u64,
        count: usize,
    },
}

/// A message: its number, its host, and when it is due.
type Told = (u64, usize, u64);

fn told() -> impl Strategy<Value = Vec<Told>> {
    prop::collection::vec((0..MESSAGES, 0..HOSTS.len(), 0..TIME_MAX), 0..3)
}

fn rows(task: u64, told: &[Told]) -> Vec<OutboxRow> {
    told.iter().map(|(n, host, due)| message(*n, task, HOSTS[*host], *due)).collect()
}

fn stage(number: usize, now: u64) -> Stage {
    let at = at(now);
    [Stage::Waiting { due_at: at }, Stage::Delivered { at }, Stage::Failed { at }, Stage::Gone { at }][number]
}

fn phase() -> impl Strategy<Value = PhaseName> {
    prop::sample::select(&PhaseName::ALL[..])
}

fn wish() -> impl Strategy<Value = Wish> {
    let time = || 0..TIME_MAX;
    let agent = || prop::option::of(0..AGENTS.len());
    let named = prop::option::of((0..KEYS.len(), 0..2_u8));
    let insert = (0..TASKS, phase(), time(), 0..SCOPES.len(), agent(), named, time(), told()).prop_map(
        |(n, phase, at, scope, agent, key, expires, told)| Wish::Insert {
            n,
            phase,
            at,
            scope,
            agent,
            key,
            expires,
            told,
        },
    );
    let ahead = prop::sample::select(&[1, 1, 1, 1, 1, 1, 0, 2][..]);
    let commit =
        (0..TASKS, phase(), time(), agent(), ahead, prop::bool::weighted(0.9), prop::option::of(time()), told())
            .prop_map(|(n, phase, at, agent, ahead, honest, expires, told)| Wish::Commit {
                n,
                phase,
                at,
                agent,
                ahead,
                honest,
                expires,
                told,
            });
    let note = (0..MESSAGES, 0..4_usize, time(), 0..2_u32).prop_map(|(n, stage, at, tries)| Wish::Note {
        n,
        stage,
        at,
        tries,
    });
    let purge = (time(), time(), 0..3_u32).prop_map(|(finished, keys, limit)| Wish::Purge { finished, keys, limit });
    let put = (0..AGENTS.len(), 0..3_u64).prop_map(|(agent, generation)| Wish::PutAgent { agent, generation });
    let remove = (0..AGENTS.len()).prop_map(|agent| Wish::RemoveAgent { agent });
    let forget = (0..TASKS).prop_map(|n| Wish::Forget { n });
    let audit = (0..TIME_MAX, 0..3_usize).prop_map(|(n, count)| Wish::Audit { n, count });
    let pin = (0..TIME_MAX).prop_map(|seq| Wish::Pin { seq });
    let change = prop_oneof![6 => insert, 10 => commit, 3 => note, 2 => purge, 1 => put, 1 => remove, 1 => forget];
    let told = prop::option::of((0..TIME_MAX, 1..3_usize));
    let change = (change, told).prop_map(|(wish, told)| match told {
        Some((n, count)) => Wish::Audited { wish: Box::new(wish), n, count },
        None => wish,
    });
    prop_oneof![25 => change, 1 => audit, 1 => pin]
}

fn with_agent(task: Task, agent: Option<usize>) -> Task {
    match agent {
        Some(agent) => tried(task, AGENTS[agent]),
        None => task,
    }
}

/// Every other task is asked for by an agent, and some by a capability's name.
fn asked(n: u64, mut task: Task) -> Task {
    if n.is_multiple_of(3) {
        task.state.target.capability = Some("wish".parse().unwrap());
    }
    if n.is_multiple_of(2) { asked_by(CALLERS[(n / 2) as usize % CALLERS.len()], task) } else { task }
}

fn events(n: u64, count: usize) -> Vec<Event> {
    (n..).take(count).map(audit::event).collect()
}

async fn command(model: &dyn Store, wish: &Wish) -> Command {
    match *wish {
        Wish::Insert { n, phase, at: now, scope, agent, key: named, expires, ref told } => {
            let mut born = with_agent(scoped(SCOPES[scope], asked(n, task(n))), agent);
            born.state.phase = phase_at(phase, now);
            born.state.finished_at = phase.is_final().then(|| at(now));
            let born = failing(born, REASONS[now as usize % 2]);
            let key = named.map(|(name, fingerprint)| {
                let mut key = key(KEYS[name], fingerprint);
                key.scope = SCOPES[scope].to_owned();
                key.expires_at = phase.is_final().then(|| at(expires));
                key
            });
            Command::Insert { task: born, key, now: at(now), outbox: rows(n, told) }
        }
        Wish::Commit { n, phase, at: now, agent, ahead, honest, expires, ref told } => {
            let stored = model.load(id(n)).await.unwrap();
            let was_final = stored.as_ref().is_some_and(|task| task.state.phase.name().is_final());
            let mut next = with_agent(stored.unwrap_or_else(|| task(n)), agent);
            next.version += ahead;
            next.state.phase = phase_at(phase, now);
            next.state.finished_at = phase.is_final().then(|| at(now));
            let next = failing(next, REASONS[now as usize % 2]);
            let (was_final, key_expires_at) = (was_final == honest, expires.map(at));
            Command::Commit { task: next, was_final, key_expires_at, outbox: rows(n, told) }
        }
        Wish::Note { n, stage: number, at: now, tries } => {
            Command::NoteSending { id: webhook(n), sending: sending(stage(number, now), tries) }
        }
        Wish::Purge { finished, keys, limit } => purge(finished, keys, limit),
        Wish::PutAgent { agent: name, generation } => Command::PutAgent(agent(AGENTS[name], generation)),
        Wish::RemoveAgent { agent } => Command::RemoveAgent(AGENTS[agent].parse().unwrap()),
        Wish::Forget { n } => Command::Forget(id(n)),
        Wish::Audit { n, count } => Command::Audit(events(n, count)),
        Wish::Pin { seq } => Command::PinAudit(Checkpoint {
            mark: Mark { seq, hash: Hash([1; 32]) },
            at: at(seq),
            key: [2; 32],
            signature: [3; 64],
        }),
        Wish::Audited { ref wish, n, count } => Box::pin(command(model, wish)).await.audited(events(n, count)),
    }
}

fn queries() -> Vec<Query> {
    let all = Query { limit: 100, ..Query::default() };
    let mut queries =
        vec![all.clone(), Query { limit: 2, ..all.clone() }, Query { before: Some(id(3)), ..all.clone() }];
    queries.extend(PhaseName::ALL.map(|phase| Query { phases: vec![phase], ..all.clone() }));
    let badly = vec![PhaseName::Failed, PhaseName::Expired, PhaseName::DeadLettered];
    queries.push(Query { phases: badly.clone(), limit: 2, ..all.clone() });
    queries.push(Query { phases: vec![PhaseName::Completed, PhaseName::Failed, PhaseName::Routed], ..all.clone() });
    queries.extend(SCOPES.map(|scope| Query { scope: Some(scope.to_owned()), ..all.clone() }));
    let of = |name: &str| Query { agent: Some(name.parse().unwrap()), ..all.clone() };
    queries.extend(AGENTS.map(of));
    queries.extend(REASONS.map(|code| Query { code: Some(code), ..all.clone() }));
    queries.extend(["do", "wish"].map(|name| Query { capability: name.parse().ok(), ..all.clone() }));
    queries.extend(CALLERS.map(|name| Query { from_agent: name.parse().ok(), ..all.clone() }));
    queries.extend(["ns", "other"].map(|name| Query { from_namespace: name.parse().ok(), ..all.clone() }));
    queries.extend([3, 7].map(|time| Query { ended_after: Some(at(time)), ..all.clone() }));
    queries.push(Query { ended_before: Some(at(5)), phases: badly.clone(), ..all.clone() });
    queries.push(Query {
        code: Some(REASONS[0]),
        from_namespace: "ns".parse().ok(),
        ended_after: Some(at(1)),
        ended_before: Some(at(9)),
        ..of("a@ns")
    });
    queries.push(Query { phases: badly, scope: Some("alice".to_owned()), before: Some(id(4)), ..of("a@ns") });
    queries
}

/// Everything that can be read, as text.
async fn everything(store: &dyn Store) -> Vec<String> {
    let mut said = Vec::new();
    for n in 0..TASKS {
        said.push(format!("task {n}: {:?}", store.load(id(n)).await.unwrap()));
    }
    for scope in SCOPES {
        for key in KEYS {
            let row = store.load_by_key(scope, &key.parse().unwrap()).await.unwrap();
            said.push(format!("key {scope} {key}: {row:?}"));
        }
    }
    for (by, limit) in [(0, 9), (TIME_MAX / 2, 9), (TIME_MAX * 9, 3)] {
        said.push(format!("due by {by}: {:?}", store.due(at(by), limit).await.unwrap()));
    }
    for (after, limit) in [(None, 9), (None, 2), (Some(id(2)), 9)] {
        said.push(format!("open after {after:?}: {:?}", store.open_after(after, limit).await.unwrap()));
    }
    for query in queries() {
        let found = store.list(query.clone()).await.unwrap();
        let count = store.count(query.clone()).await.unwrap();
        said.push(format!("{query:?}: {count}: {found:?}"));
    }
    said.extend(outbox::everything(store, MESSAGES, (0..TASKS).map(id)).await);
    said.extend(audit::everything(store).await);
    said.push(format!("{:?}", store.agents().await.unwrap()));
    let counts = store.counts().await.unwrap();
    said.push(format!("{} open, {:?}, {} keys", counts.open, counts.done, counts.keys));
    said
}

async fn compare(batches: &[Vec<Wish>]) {
    let (memory, sqlite) = (make::memory(), make::sqlite());
    for batch in batches {
        let mut commands = Vec::new();
        for wish in batch {
            commands.push(command(&*memory.store, wish).await);
        }
        let expected: Vec<Outcome> = memory.store.apply(commands.clone()).await.unwrap();
        let outcomes = sqlite.store.apply(commands.clone()).await.unwrap();
        assert_eq!(outcomes, expected, "outcomes of {commands:?}");
        for (said, expected) in everything(&*sqlite.store).await.iter().zip(everything(&*memory.store).await) {
            assert_eq!(*said, expected, "after {commands:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    #[test]
    fn sqlite_answers_as_memory_does(batches in prop::collection::vec(prop::collection::vec(wish(), 1..5), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(compare(&batches));
    }
}
