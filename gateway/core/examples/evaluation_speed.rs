//! What counting costs each task, and what reading the figures costs, with 1,000 agents.
//! `cargo run --release -p reach-core --example evaluation_speed`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::time::Instant;

use reach_core::evaluation::Evaluation;
use reach_core::task::ending::Ending;
use reach_core::task::{Birth, Effects, EndedAttempt, Phase, Task};
use reach_schemas::{FencingToken, RawJson, Span, Submit, TaskId, Timestamp};

const AGENTS: u64 = 1_000;
const TASKS: u64 = 1_000_000;

fn ended(agent: u64) -> (Task, Effects) {
    let submit =
        Submit { capability: Some(format!("work_{}", agent % 200).parse().expect("a name")), ..Submit::default() };
    let capability = submit.capability.clone().expect("it was set just above");
    let created_at = Timestamp::from_ms(1_700_000_000_000);
    let id = TaskId::from_parts(1, 1);
    let birth = Birth { id, scope: String::new(), has_scoped_key: true, submit, created_at };
    let mut task = Task::new(birth, Span::from_secs(60));
    task.state.phase = Phase::Completed { result: RawJson::of(&()).expect("null is JSON") };
    let ended = EndedAttempt {
        agent_id: format!("agent_{agent}@bench").parse().expect("an id"),
        capability,
        token: FencingToken(1),
        ending: Ending::Succeeded,
        is_timeout: false,
        retry_after: None,
        took: Span::from_ms(20 + agent % 300),
    };
    (task, Effects { ended: Some(ended), changed: true, ..Effects::default() })
}

fn main() {
    let steps: Vec<_> = (0..AGENTS).map(ended).collect();
    let mut evaluation = Evaluation::default();
    let start = Timestamp::from_ms(1_700_000_000_000);
    let began = Instant::now();
    for number in 0..TASKS {
        // A thousand tasks a second, for a good sixteen minutes.
        let now = start + Span::from_ms(number);
        let (task, effects) = &steps[(number.wrapping_mul(7919) % AGENTS) as usize];
        evaluation.routed(task.state.target.capability.as_ref(), 20 + number % 60, now);
        evaluation.stepped(task, effects, now);
    }
    let each = began.elapsed().as_nanos() / u128::from(TASKS);
    println!("counting: {each} ns a task (one look of the router, one attempt, one end)");
    let now = start + Span::from_ms(TASKS);
    let began = Instant::now();
    let agents = evaluation.agent_figures(now).len();
    let capabilities = evaluation.capability_figures(now).len();
    let all = evaluation.figures(now);
    println!("reading:  {:?} for {agents} agents, {capabilities} capabilities, {} tasks", began.elapsed(), all.asked);
}
