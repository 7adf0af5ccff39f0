//! Tasks that wait for a person: the table, and one of them with all that a person needs to answer it.

use agent_reach_sdk::TaskView;
use agent_reach_sdk::schemas::HumanView;
use agent_reach_sdk::schemas::call::HumanWork;

use super::text::{shorten, when};
use super::{Grid, Look, Shape, Tone, attempts, sheet, tasks};

/// How much of the last failure is shown in the table.
const WHY_MAX: usize = 80;

/// The table of what waits; `limit` is how many were asked for.
pub(crate) fn table(waiting: &[TaskView], limit: u32, look: &Look) -> String {
    if waiting.is_empty() {
        return "nothing waits for a person\n".to_owned();
    }
    let mut grid = Grid::new(&[
        ("TASK", Shape::Fixed),
        ("QUEUE", Shape::Fixed),
        ("SINCE", Shape::Fixed),
        ("WITH", Shape::Text),
        ("WHAT", Shape::Text),
        ("WHY", Shape::Text),
    ]);
    for task in waiting {
        let Some(human) = &task.human else { continue };
        let tone = if human.lease_until.is_some() { Tone::Faint } else { Tone::Plain };
        let cells = [
            task.task_id.to_string(),
            human.queue.to_string(),
            when(human.since, look.now),
            holder(human).unwrap_or_default().to_owned(),
            tasks::wanted(task),
            why(task, human),
        ];
        grid.row(tone, cells);
    }
    let mut text = grid.render(look);
    if waiting.len() >= limit as usize {
        text.push_str(&format!("the first {limit}; more with --limit\n"));
    }
    text
}

/// What is compared from look to look.
pub(crate) fn line(task: &TaskView) -> (String, String) {
    let human = task.human.as_ref();
    let place = human.map(|human| human.queue.to_string()).unwrap_or_default();
    let who = human.and_then(holder).map_or_else(|| "waits".to_owned(), |who| format!("with {who}"));
    (task.task_id.to_string(), format!("{place} {who} {}", tasks::wanted(task)))
}

fn holder(human: &HumanView) -> Option<&str> {
    human.lease_until.and_then(|_| human.takes.last()).map(|take| take.by.as_str())
}

/// Why no agent could do it. That a write may have happened comes before everything else.
fn why(task: &TaskView, human: &HumanView) -> String {
    let failure = task.attempts.iter().rev().find_map(|attempt| attempt.failure.as_ref());
    let failed = failure.map(|failure| format!("{}: {}", failure.code.name(), shorten(&failure.message, WHY_MAX)));
    let parts = [unsure(human), failed.unwrap_or_default()];
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("\n")
}

fn unsure(human: &HumanView) -> String {
    let writes: Vec<&str> = human.unsure.iter().map(|name| name.as_str()).collect();
    if writes.is_empty() { String::new() } else { format!("may have happened: {}", writes.join(", ")) }
}

/// What a person has to do about a task that waits for one.
pub(crate) fn how_to_answer(task: &TaskView) -> String {
    let id = task.task_id;
    format!(
        "no agent could do it; a person does: `reachctl human take {id}`, then `reachctl human answer {id} --result JSON`"
    )
}

/// Where a task is, or was, among people. Nothing, if it was not put before them.
pub(crate) fn place(task: &TaskView, look: &Look) -> String {
    let Some(human) = &task.human else { return String::new() };
    let mut text = format!("the queue {}, {}", human.queue, when(human.since, look.now));
    for take in &human.takes {
        let how = match (take.ending, human.lease_until) {
            (Some(ending), _) => ending.as_str().replace('_', " "),
            (None, Some(until)) => format!("has it, lease over {}", when(until, look.now)),
            (None, None) => "has it".to_owned(),
        };
        text.push_str(&format!("\n{} {how}", take.by));
    }
    text
}

/// A task that was taken.
pub(crate) fn work(work: &HumanWork, look: &Look) -> String {
    let task = &work.task;
    let mut text = tasks::header(task, look);
    let json = |json: &Option<agent_reach_sdk::RawJson>| json.as_ref().map(tasks::excerpt).unwrap_or_default();
    let unsure = task.human.as_ref().map(unsure).unwrap_or_default();
    let look_first = if unsure.is_empty() { unsure } else { format!("{unsure}\nlook whether it did before you do it") };
    let id = task.task_id;
    let rows = [
        ("unsure", Tone::Bad, look_first),
        ("params", Tone::Plain, json(&work.params)),
        ("answer as", Tone::Plain, json(&work.output_schema)),
        ("token", Tone::Plain, work.token.0.to_string()),
        ("yours", Tone::Good, format!("lease over {}", when(work.lease_until, look.now))),
        ("then", Tone::Plain, format!("reachctl human answer {id} --result JSON\nor refuse, or return")),
    ];
    text.push_str(&sheet(rows, look));
    let attempts = attempts::timeline(task, look);
    if attempts.is_empty() { text } else { format!("{text}\n{attempts}") }
}
