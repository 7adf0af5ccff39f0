//! How long one call takes: serves an agent that echoes, or calls it again and again and prints the times as JSON. What the
//! benchmark of the Python package compares itself with.
//!
//!     call_speed serve                     serves `echo` until it is killed
//!     call_speed call CALLS CALLERS FIRST  calls it so often, by so many callers at once, with numbers from FIRST on, no two
//!                                          alike, and looks at every answer

use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::RawJson;
use agent_reach_sdk::{Agent, Capability, Client, Context, Effect, HandlerError, Task, capability, card};

/// How many calls are made before any is measured.
const WARM_UP: usize = 50;

async fn echo(task: Task, _context: Context) -> Result<Option<RawJson>, HandlerError> {
    Ok(task.raw_params().cloned())
}

/// The times of so many calls, made one after another, with numbers from `first` on.
async fn times(client: Client, calls: usize, first: usize) -> Result<Vec<Duration>, agent_reach_sdk::Error> {
    let mut times = Vec::with_capacity(calls);
    for number in first..first + calls {
        let said = serde_json::json!({ "number": number });
        let begun = Instant::now();
        let done = client.task("echo").params(&said).without_key().reach().await?;
        let heard = done.result::<serde_json::Value>()?;
        times.push(begun.elapsed());
        assert_eq!(heard, said, "the answer is another call's");
    }
    Ok(times)
}

async fn measure(calls: usize, callers: usize, first: usize) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env().await?;
    times(client.clone(), WARM_UP, first).await?;
    let (each, first) = (calls / callers, first + WARM_UP);
    let begun = Instant::now();
    let running: Vec<_> = (0..callers).map(|at| tokio::spawn(times(client.clone(), each, first + at * each))).collect();
    let mut all = Vec::new();
    for caller in running {
        all.extend(caller.await??);
    }
    let took = begun.elapsed();
    all.sort_unstable();
    let at = |share: usize| all.get(all.len() * share / 100).copied().unwrap_or_default().as_secs_f64() * 1e6;
    let per_call = took.as_secs_f64() * 1e6 / all.len() as f64;
    println!("{}", serde_json::json!({ "p50_us": at(50), "p99_us": at(99), "per_call_us": per_call }));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => {
            let card = agent_reach_sdk::AgentCard { max_concurrency: 512, ..card("echo@bench")? };
            let echoes = Capability { effect: Effect::Read, ..capability("echo")? };
            Ok(Agent::builder(card).capability(echoes, echo).run().await?)
        }
        ["call", calls, callers, first] => measure(calls.parse()?, callers.parse()?, first.parse()?).await,
        _ => Err("say `serve`, or `call CALLS CALLERS FIRST`".into()),
    }
}
