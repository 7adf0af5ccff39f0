//! `kill -9` of the gateway at random moments under load. Every submit that was answered reaches a final phase, no
//! `write` runs twice, and nothing hangs. `REACH_CRASH_KILLS` and `REACH_CRASH_SEED` change the number of kills and the
//! moments.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agent_reach_sdk::{Agent, AgentHandle, Client, Context, Effect, HandlerError, PhaseName, Task, TaskId, capability};
use victim::{Ledger, Victim, from_env, lively, patient};

/// How many callers submit at once.
const SUBMITTERS: usize = 64;
/// The longest that the whole of it may take beyond its kills.
const PATIENCE: Duration = Duration::from_secs(90);

/// An agent that writes a line for each thing that it does, over a WebSocket or as an HTTP service.
async fn writer(name: &str, does: &str, url: &str, ledger: &Ledger, is_http: bool) -> AgentHandle {
    let ledger = ledger.clone();
    let work = move |task: Task, _: Context| {
        let ledger = ledger.clone();
        async move {
            ledger.add(task.id());
            tokio::time::sleep(Duration::from_millis(u64::from(task.id().as_bytes()[15]) % 20)).await;
            Ok::<_, HandlerError>(task.id())
        }
    };
    let offer = agent_reach_sdk::Capability { effect: Effect::Write, ..capability(does).unwrap() };
    let connection = Client::builder().url(url).retry(patient());
    let agent = Agent::builder(lively(name)).connection(connection).capability(offer, work);
    let agent = if is_http { agent.http("127.0.0.1:0".parse().unwrap()) } else { agent };
    agent.start().await.unwrap()
}

fn configuration(folder: &std::path::Path) -> String {
    let script = folder.join("append.sh");
    std::fs::write(&script, "cat > /dev/null\necho \"$AGENT_REACH_TASK_ID\" >> \"$1\"\necho '\"done\"'\n").unwrap();
    format!(
        "[[agents]]\nagent_id = \"script@crash\"\nmax_concurrency = 8\nendpoints = [{{ protocol = \"process\", address = \"sh '{}' '{}'\" }}]\n[[agents.capabilities]]\nname = \"append_by_script\"\neffect = \"write\"\n",
        script.display(),
        folder.join("ledger").display()
    )
}

struct Answered {
    id: TaskId,
    asked: &'static str,
}

/// Submits until told to stop, and remembers every submit that was answered.
async fn submit_on(client: Client, number: usize, stop: Arc<AtomicBool>) -> Vec<Answered> {
    let mut answered = Vec::new();
    let mut round = number;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let asked = match round % 8 {
            0..4 => "append_by_http",
            4..7 => "append_by_socket",
            _ => "append_by_script",
        };
        let request = client.task(asked).timeout(Duration::from_secs(40)).attempt_timeout(Duration::from_secs(3));
        let task = request.submit().await.unwrap_or_else(|error| panic!("a submit was not answered: {error}"));
        answered.push(Answered { id: task.id(), asked });
        if round.is_multiple_of(3) {
            // Some wait for the end, through restarts; the others go on at once.
            let _ = task.wait_for(Duration::from_secs(10)).await;
        } else {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateway_loses_nothing_and_runs_no_write_twice() {
    let kills = from_env("REACH_CRASH_KILLS", 20);
    let mut rng = fastrand::Rng::with_seed(from_env("REACH_CRASH_SEED", 1));
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut victim = Victim::start(folder.path(), &configuration(folder.path())).await;
    let url = victim.url();
    let http = writer("http@crash", "append_by_http", &url, &ledger, true).await;
    let socket = writer("socket@crash", "append_by_socket", &url, &ledger, false).await;

    let client = victim.client().await;
    let stop = Arc::new(AtomicBool::new(false));
    let submitters: Vec<_> =
        (0..SUBMITTERS).map(|number| tokio::spawn(submit_on(client.clone(), number, stop.clone()))).collect();
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(rng.u64(100..700))).await;
        victim.kill_and_restart().await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let mut answered = Vec::new();
    for submitter in submitters {
        answered.extend(tokio::time::timeout(PATIENCE, submitter).await.expect("a submitter hangs").unwrap());
    }

    let mut ends: BTreeMap<(&str, PhaseName), usize> = BTreeMap::new();
    let counted = answered.len();
    let began = Instant::now();
    let mut last = Vec::new();
    for Answered { id, asked } in &answered {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let view = client.wait_for_end(*id, left).await.unwrap_or_else(|error| panic!("task {id} has no end: {error}"));
        assert!(view.phase.is_final(), "task {id} is {:?}", view.phase);
        *ends.entry((asked, view.phase)).or_default() += 1;
        last.push((*id, *asked, view.phase));
    }
    // What was begun and never answered may still be at work for a moment: count once all have ended.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let counts = ledger.counts();
    for (id, asked, phase) in last {
        let times = counts.get(&id).copied().unwrap_or(0);
        assert!(times <= 1, "the write {id} ({asked}) was done {times} times");
        assert!(phase != PhaseName::Completed || times == 1, "{id} is completed and was never done");
    }
    let ids: std::collections::BTreeSet<TaskId> = answered.iter().map(|answered| answered.id).collect();
    assert_eq!(ids.len(), counted, "two submits got the same task");
    println!("{counted} submits were answered over {kills} kills; how they ended: {ends:?}");
    let completed: usize = ends.iter().filter(|((_, phase), _)| *phase == PhaseName::Completed).map(|(_, n)| n).sum();
    assert!(completed * 2 > counted, "fewer than half were completed: {ends:?}");
    http.drain(Duration::from_secs(2)).await;
    socket.drain(Duration::from_secs(2)).await;
}
