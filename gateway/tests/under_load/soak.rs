//! A soak in chaos: agents and the gateway are killed and started again at random under mixed load. Every submit that
//! was answered ends, no write is done twice, no breaker stays open against an agent that is well, and memory is flat.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agent_reach_sdk::{
    Agent, AgentId, Client, Context, Effect, HandlerError, Mode, PhaseName, Task, TaskId, capability,
};

use crate::figures::usage;
use crate::victim::{Ledger, Victim, from_env, lively, patient};

const CALLERS: usize = 24;
const PATIENCE: Duration = Duration::from_secs(120);
/// How soon after the last kill all must be well again.
const HEALED_WITHIN: Duration = Duration::from_secs(30);
/// Each agent: what it is called, and how it is reached.
const AGENTS: [(&str, &str); 4] =
    [("http1@soak", "http"), ("http2@soak", "http"), ("socket@soak", "websocket"), ("puller@soak", "queue")];
/// What every agent offers, and what that does to the world.
const OFFERS: [(&str, Effect); 3] =
    [("look_up", Effect::Read), ("put", Effect::IdempotentWrite), ("send", Effect::Write)];

/// One agent as a process of its own: this test binary, started again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the soak as one of its agents, and killed by it"]
async fn child_that_is_an_agent() {
    let var = |name: &str| std::env::var(name).unwrap();
    let ledger = Ledger::at(PathBuf::from(var("SOAK_LEDGER")));
    let mut agent =
        Agent::builder(lively(&var("SOAK_AGENT"))).connection(Client::builder().url(var("SOAK_URL")).retry(patient()));
    agent = match var("SOAK_KIND").as_str() {
        "http" => agent.http("127.0.0.1:0".parse().unwrap()),
        "queue" => agent.pull(),
        _ => agent,
    };
    for (name, effect) in OFFERS {
        let ledger = ledger.clone();
        let work = move |task: Task, _: Context| {
            let ledger = ledger.clone();
            async move {
                if effect == Effect::Write {
                    ledger.add(task.id());
                }
                tokio::time::sleep(Duration::from_millis(5 + u64::from(task.id().as_bytes()[15]) % 40)).await;
                Ok::<_, HandlerError>(task.id())
            }
        };
        agent = agent.capability(agent_reach_sdk::Capability { effect, ..capability(name).unwrap() }, work);
    }
    agent.start().await.unwrap().ended().await;
}

/// An agent's process.
struct Hand {
    name: &'static str,
    kind: &'static str,
    child: Option<Child>,
}

impl Hand {
    fn start(&mut self, url: &str, folder: &Path) {
        let log = std::fs::File::options().create(true).append(true).open(folder.join("agents.log")).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["soak::child_that_is_an_agent", "--exact", "--ignored", "--nocapture"])
            .envs([("SOAK_URL", url), ("SOAK_AGENT", self.name), ("SOAK_KIND", self.kind)])
            .env("SOAK_LEDGER", folder.join("ledger"))
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Submits this and that until told to stop. Every submit that was answered.
async fn submit_on(client: Client, number: usize, stop: Arc<AtomicBool>) -> Vec<TaskId> {
    let (mut answered, mut round) = (Vec::new(), number);
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let (name, _) = OFFERS[round % OFFERS.len()];
        let mode = if round.is_multiple_of(7) { Mode::Broadcast } else { Mode::Direct };
        let request = client.task(name).mode(mode).timeout(Duration::from_secs(60));
        match request.attempt_timeout(Duration::from_secs(3)).submit().await {
            Ok(task) => {
                answered.push(task.id());
                if round.is_multiple_of(2) {
                    let _ = task.wait_for(Duration::from_secs(5)).await;
                }
            }
            // Nobody may fit for a moment, or too much may wait: that is an answer, and nothing was taken on.
            Err(error) => assert!(error.code().is_some(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    answered
}

/// Waits until each agent does what it is asked, with all its breakers closed.
async fn all_are_well(client: &Client) {
    let began = Instant::now();
    for (name, _) in AGENTS {
        let id: AgentId = name.parse().unwrap();
        for (does, _) in OFFERS {
            loop {
                let done = client.task(does).to_agent(name).timeout(Duration::from_secs(10)).reach().await;
                let view = client.agent(&id).await.unwrap();
                if done.is_ok() && !view.breakers.keys().any(|name| name.as_str() == does) {
                    break;
                }
                assert!(began.elapsed() < HEALED_WITHIN, "{name} does not {does}: {done:?}, {:?}", view.breakers);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
    println!("every agent was well {:.1} s after the last kill", began.elapsed().as_secs_f64());
}

/// That every task has an end, and no write was done twice. How they ended.
async fn check_ends(client: &Client, answered: &[TaskId], ledger: &Ledger) -> BTreeMap<PhaseName, usize> {
    let mut ends: BTreeMap<PhaseName, usize> = BTreeMap::new();
    let mut last = Vec::new();
    for id in answered {
        let view = client.wait_for_end(*id, PATIENCE).await.unwrap_or_else(|error| panic!("{id} has no end: {error}"));
        *ends.entry(view.phase).or_default() += 1;
        last.push((*id, view.phase, view.capability));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let counts = ledger.counts();
    for (id, phase, capability) in last {
        let times = counts.get(&id).copied().unwrap_or(0);
        assert!(times <= 1, "the write {id} was done {times} times");
        let was_write = capability.is_some_and(|name| name.as_str() == "send");
        assert!(!was_write || phase != PhaseName::Completed || times == 1, "{id} is completed and was never done");
    }
    ends
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_chaos_every_task_ends_no_write_is_doubled_and_all_heals() {
    let secs = from_env("REACH_SOAK_SECS", 60);
    let mut rng = fastrand::Rng::with_seed(from_env("REACH_SOAK_SEED", 1));
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut victim = Victim::start(folder.path(), "").await;
    let mut hands: Vec<Hand> = AGENTS.iter().map(|(name, kind)| Hand { name, kind, child: None }).collect();
    for hand in &mut hands {
        hand.start(&victim.url(), folder.path());
    }
    let client = victim.client().await;
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> =
        (0..CALLERS).map(|number| tokio::spawn(submit_on(client.clone(), number, stop.clone()))).collect();

    // In the first half the gateway is killed too; in the second half it lives on, and its memory is looked at.
    let (began, half, whole) = (Instant::now(), Duration::from_secs(secs / 2), Duration::from_secs(secs));
    let (mut kills, mut settled_kib) = ((0, 0), 0);
    while began.elapsed() < whole {
        tokio::time::sleep(Duration::from_millis(rng.u64(300..2_500))).await;
        let is_first_half = began.elapsed() < half;
        if is_first_half && rng.u8(0..3) == 0 {
            victim.kill_and_restart().await;
            kills.0 += 1;
            continue;
        }
        let at = rng.usize(0..hands.len());
        if hands[at].child.is_some() {
            hands[at].kill();
            kills.1 += 1;
        } else {
            hands[at].start(&victim.url(), folder.path());
        }
        if !is_first_half && settled_kib == 0 && began.elapsed() > half + half / 4 {
            settled_kib = usage(victim.pid()).1;
        }
    }
    let end_kib = usage(victim.pid()).1;
    for hand in &mut hands {
        if hand.child.is_none() {
            hand.start(&victim.url(), folder.path());
        }
    }
    all_are_well(&client).await;
    stop.store(true, Ordering::Relaxed);

    let mut answered = Vec::new();
    for caller in callers {
        answered.extend(tokio::time::timeout(PATIENCE, caller).await.expect("a caller hangs").unwrap());
    }
    let ends = check_ends(&client, &answered, &ledger).await;
    println!(
        "{secs} s, the gateway killed {} times and agents {} times; {} submits answered, ended {ends:?}; memory {} KiB \
         after the gateway's last start, {} KiB at the end",
        kills.0,
        kills.1,
        answered.len(),
        settled_kib,
        end_kib
    );
    let completed = ends.get(&PhaseName::Completed).copied().unwrap_or(0);
    assert!(completed * 2 > answered.len(), "fewer than half were completed: {ends:?}");
    // Caches fill; a leak of the load's size would be far more. The long form tells it finely.
    assert!(end_kib < settled_kib * 3 / 2 + 16 * 1024, "memory grew from {settled_kib} to {end_kib} KiB");
}
