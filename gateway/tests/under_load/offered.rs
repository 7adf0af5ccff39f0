//! Three agents that take 10 tasks a second each are offered 50 a second. Nothing is lost and nothing is done twice; who
//! can wait is served later, and who cannot is told so at once.

use std::time::{Duration, Instant};

use agent_reach_sdk::{
    Agent, AgentCard, AgentHandle, Client, Context, Effect, ErrorCode, HandlerError, PhaseName, RetryPolicy, Task,
    TaskId, TaskView, capability,
};

use crate::figures::Times;
use crate::victim::{Ledger, Victim, from_env, lively, patient};

/// How long one task takes an agent, and how many it works on at once: ten a second.
const WORK: Duration = Duration::from_millis(400);
const AT_ONCE: u32 = 4;
/// How many tasks are offered a second.
const OFFERED: u64 = 50;
/// How long those can wait who cannot wait.
const HURRY: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(600);

async fn paced(name: &str, url: &str, ledger: &Ledger, is_http: bool) -> AgentHandle {
    let ledger = ledger.clone();
    let work = move |task: Task, _: Context| {
        let ledger = ledger.clone();
        async move {
            ledger.add(task.id());
            tokio::time::sleep(WORK).await;
            Ok::<_, HandlerError>(task.id())
        }
    };
    let offer = agent_reach_sdk::Capability { effect: Effect::Write, ..capability("work").unwrap() };
    let card = AgentCard { max_concurrency: AT_ONCE, ..lively(name) };
    let agent = Agent::builder(card).connection(Client::builder().url(url).retry(patient())).capability(offer, work);
    let agent = if is_http { agent.http("127.0.0.1:0".parse().unwrap()) } else { agent };
    agent.start().await.unwrap()
}

/// What became of one offer.
enum Fate {
    /// Not taken on, with the time after which to come back.
    Refused(Duration),
    /// Taken on, and how long its caller waited from asking to the end.
    Ended(Box<TaskView>, Duration),
}

async fn offer(client: Client, is_patient: bool) -> Fate {
    let timeout = if is_patient { PATIENCE } else { HURRY };
    let began = Instant::now();
    match client.task("work").timeout(timeout).submit().await {
        Ok(task) => {
            let view = client.wait_for_end(task.id(), PATIENCE).await.unwrap();
            Fate::Ended(Box::new(view), began.elapsed())
        }
        Err(error) if error.code() == Some(ErrorCode::Overloaded) => {
            Fate::Refused(error.retry_after().expect("who is turned away is told when to come back"))
        }
        Err(error) => panic!("an offer was neither taken on nor refused: {error}"),
    }
}

#[derive(Default)]
struct Sum {
    offered: usize,
    refused: usize,
    completed: usize,
    late: usize,
    reach: Times,
    /// What the gateway adds to the work and to the wait for a seat.
    added: Times,
    ids: Vec<(TaskId, PhaseName)>,
}

impl Sum {
    fn add(&mut self, fate: Fate) {
        self.offered += 1;
        let Fate::Ended(view, waited) = fate else {
            let Fate::Refused(after) = fate else { return };
            assert!(after >= Duration::from_secs(1) && after <= Duration::from_secs(60), "{after:?}");
            self.refused += 1;
            return;
        };
        self.ids.push((view.task_id, view.phase));
        if view.phase != PhaseName::Completed {
            self.late += 1;
            return;
        }
        self.completed += 1;
        self.reach.0.push(waited);
        let queued = view.attempts.last().unwrap().started_at.since(view.created_at);
        self.added.0.push(waited.saturating_sub(queued.into()).saturating_sub(WORK));
    }

    fn taken(&self) -> usize {
        self.offered - self.refused
    }

    fn print(&self, who: &str) {
        let share = |part: usize| 100.0 * part as f64 / self.taken().max(1) as f64;
        println!(
            "{who:<12} offered {:>5}  refused early {:>5}  taken on {:>5}  success {:>6.2} %  completion {:>6.2} %  reach \
             mean {:>7.1} ms, p50 {:>7.1}, p99 {:>8.1}  the gateway's part: mean {:>5.1} ms, p99 {:>6.1}",
            self.offered,
            self.refused,
            self.taken(),
            share(self.completed),
            share(self.ids.len()),
            self.reach.mean_ms(),
            self.reach.quantile_ms(0.5),
            self.reach.quantile_ms(0.99),
            self.added.mean_ms(),
            self.added.quantile_ms(0.99),
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_more_work_than_agents_nothing_is_lost_and_the_surplus_is_refused_early_or_done_later() {
    let secs = from_env("REACH_LOAD_SECS", 20);
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("ledger"));
    let victim = Victim::start(folder.path(), "").await;
    let url = victim.url();
    let mut agents = Vec::new();
    for (number, is_http) in [true, false, true].into_iter().enumerate() {
        agents.push(paced(&format!("paced{number}@load"), &url, &ledger, is_http).await);
    }
    let client = Client::builder().url(url.as_str()).retry(RetryPolicy::never()).connect().await.unwrap();

    let began = Instant::now();
    let mut offers = Vec::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(1000 / OFFERED));
    for number in 0..OFFERED * secs {
        ticks.tick().await;
        let is_patient = number.is_multiple_of(2);
        offers.push((is_patient, tokio::spawn(offer(client.clone(), is_patient))));
    }
    let offered_for = began.elapsed();
    let (mut can_wait, mut in_a_hurry) = (Sum::default(), Sum::default());
    for (is_patient, fate) in offers {
        let fate = tokio::time::timeout(PATIENCE, fate).await.expect("a caller hangs").unwrap();
        if is_patient { can_wait.add(fate) } else { in_a_hurry.add(fate) }
    }

    println!(
        "3 agents of 10 tasks/s, {:.1} tasks/s offered for {:.0} s, all ended after {:.0} s",
        (OFFERED * secs) as f64 / offered_for.as_secs_f64(),
        offered_for.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    can_wait.print("can wait");
    in_a_hurry.print("in a hurry");
    println!("published elsewhere for such a layer: success 99.5 %, mean reach time 132 ms (without a queue)");

    let counts = ledger.counts();
    for (id, phase) in can_wait.ids.iter().chain(&in_a_hurry.ids) {
        let times = counts.get(id).copied().unwrap_or(0);
        assert!(times <= 1, "{id} was done {times} times");
        assert!(*phase != PhaseName::Completed || times == 1, "{id} is completed and was never done");
    }
    let known: std::collections::BTreeSet<TaskId> =
        can_wait.ids.iter().chain(&in_a_hurry.ids).map(|(id, _)| *id).collect();
    assert!(counts.keys().all(|id| known.contains(id)), "what was refused was done");
    assert_eq!((can_wait.refused, can_wait.late), (0, 0), "who can wait is served");
    assert!(in_a_hurry.refused > 0, "50 a second were offered to 30: some had to be turned away");
    assert!(
        in_a_hurry.late * 10 <= in_a_hurry.taken(),
        "{} of {} in a hurry were taken on in vain",
        in_a_hurry.late,
        in_a_hurry.taken()
    );
    for agent in agents {
        agent.drain(Duration::from_secs(2)).await;
    }
}
