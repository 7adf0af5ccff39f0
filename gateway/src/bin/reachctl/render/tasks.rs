//! Tasks: the table, one of them whole, and the sentences about where they are.

use agent_reach_sdk::schemas::{Take, TakeEnding};
use agent_reach_sdk::{Mode, PhaseName, RawJson, Span, TaskView};

use super::text::{count, lasting, shorten, when};
use super::{Grid, Look, Shape, Tone, attempts, people, sheet, suggestions};

/// From this width on, a table of tasks has all its columns.
const WIDE: u16 = 110;
/// How much of a result, an intent or a message is shown; `--json` has all of it.
const EXCERPT_MAX: usize = 600;
const INTENT_MAX: usize = 60;

pub(crate) fn tone(phase: PhaseName) -> Tone {
    match phase {
        PhaseName::Submitted | PhaseName::Routed | PhaseName::Delivered | PhaseName::Accepted => Tone::Plain,
        PhaseName::Completed => Tone::Good,
        PhaseName::Cancelled => Tone::Warn,
        PhaseName::Failed | PhaseName::Expired | PhaseName::DeadLettered => Tone::Bad,
    }
}

/// The table of tasks; `limit` is how many were asked for.
pub(crate) fn table(tasks: &[TaskView], limit: u32, look: &Look) -> String {
    if tasks.is_empty() {
        return "no tasks\n".to_owned();
    }
    let is_wide = look.width >= WIDE;
    let mut text = if is_wide { wide(tasks, look) } else { narrow(tasks, look) };
    if tasks.len() >= limit as usize {
        text.push_str(&format!("the newest {limit}; more with --limit\n"));
    }
    text
}

fn wide(tasks: &[TaskView], look: &Look) -> String {
    let mut grid = Grid::new(&[
        ("TASK", Shape::Fixed),
        ("PHASE", Shape::Fixed),
        ("AGE", Shape::Fixed),
        ("TOOK", Shape::Number),
        ("TRIES", Shape::Number),
        ("WHAT", Shape::Text),
        ("AGENT", Shape::Text),
    ]);
    for task in tasks {
        grid.row(
            tone(task.phase),
            [
                task.task_id.to_string(),
                phase(task),
                when(task.created_at, look.now),
                task.finished_at.map(|at| lasting(at.since(task.created_at))).unwrap_or_default(),
                task.attempts.len().to_string(),
                what(task),
                agent(task),
            ],
        );
    }
    grid.render(look)
}

fn narrow(tasks: &[TaskView], look: &Look) -> String {
    let mut grid = Grid::new(&[
        ("TASK", Shape::Fixed),
        ("PHASE", Shape::Fixed),
        ("AGE", Shape::Fixed),
        ("WHAT, AGENT", Shape::Text),
    ]);
    for task in tasks {
        let who = [what(task), agent(task)];
        let who: Vec<&str> = who.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let age = when(task.created_at, look.now);
        grid.row(tone(task.phase), [task.task_id.to_string(), phase(task), age, who.join("\n")]);
    }
    grid.render(look)
}

/// The phase, and why, where it is not the good one.
fn phase(task: &TaskView) -> String {
    match &task.failure {
        Some(failure) => format!("{}\n{}", task.phase.as_str(), failure.code.name()),
        None => task.phase.as_str().to_owned(),
    }
}

/// The capability, else the words.
fn what(task: &TaskView) -> String {
    match (&task.capability, &task.intent) {
        (Some(capability), _) => capability.to_string(),
        (None, Some(intent)) => format!("\"{}\"", shorten(&one_line(intent), INTENT_MAX)),
        (None, None) => String::new(),
    }
}

fn agent(task: &TaskView) -> String {
    task.to_agent.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// What is compared from look to look.
pub(crate) fn line(task: &TaskView) -> (String, String) {
    let mut parts = vec![phase(task).replace('\n', " "), what(task), agent(task)];
    parts.push(count(task.attempts.len(), "try", "tries"));
    parts.extend(task.progress.as_ref().map(|progress| format!("progress {}", shorten(progress.get(), INTENT_MAX))));
    parts.retain(|part| !part.is_empty());
    (task.task_id.to_string(), parts.join(" "))
}

/// One task and its attempts.
pub(crate) fn whole(task: &TaskView, look: &Look) -> String {
    let attempts = attempts::timeline(task, look);
    let header = format!("{}{}", header(task, look), near(task, look));
    if attempts.is_empty() { header } else { format!("{header}\n{attempts}") }
}

/// What a task is, apart from its attempts.
pub(crate) fn header(task: &TaskView, look: &Look) -> String {
    let excerpt = |json: &Option<RawJson>| json.as_ref().map(excerpt).unwrap_or_default();
    let failure = task.failure.as_ref().map(|failure| {
        let message = shorten(&failure.message, EXCERPT_MAX);
        format!("{}: {message}\nmore about it: reachctl errors {}", failure.code.name(), failure.code.name())
    });
    let data = task.failure.as_ref().and_then(|failure| failure.data.clone());
    let rows = [
        ("task", Tone::Head, task.task_id.to_string()),
        ("phase", tone(task.phase), how(task)),
        ("wanted", Tone::Plain, wanted(task)),
        ("given to", Tone::Plain, given_to(task)),
        ("people", Tone::Warn, people::place(task, look)),
        ("asked by", Tone::Plain, task.from_agent.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("key", Tone::Plain, task.idempotency_key.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("times", Tone::Plain, times(task, look)),
        ("progress", Tone::Plain, excerpt(&task.progress)),
        ("result", Tone::Plain, excerpt(&task.result)),
        ("failure", Tone::Bad, failure.unwrap_or_default()),
        ("with it", Tone::Plain, excerpt(&data)),
        ("next", Tone::Plain, next(task)),
    ];
    sheet(rows, look)
}

/// What was near, if nobody fitted.
pub(crate) fn near(task: &TaskView, look: &Look) -> String {
    task.failure.as_ref().map(|failure| suggestions::near(&failure.suggestions, look)).unwrap_or_default()
}

/// What can be done about it.
fn next(task: &TaskView) -> String {
    match task.phase {
        PhaseName::Submitted if task.human.is_some() => {
            format!("a person takes it: reachctl human take {}", task.task_id)
        }
        PhaseName::DeadLettered => format!("send it again: reachctl dead-letters redrive {}", task.task_id),
        PhaseName::Submitted
        | PhaseName::Routed
        | PhaseName::Delivered
        | PhaseName::Accepted
        | PhaseName::Completed
        | PhaseName::Failed
        | PhaseName::Cancelled
        | PhaseName::Expired => String::new(),
    }
}

pub(crate) fn how(task: &TaskView) -> String {
    let replayed = if task.replayed { ", known already by its key" } else { "" };
    match &task.outcome {
        Some(outcome) => format!("{} ({outcome}){replayed}", task.phase.as_str()),
        None => format!("{}{replayed}", task.phase.as_str()),
    }
}

pub(crate) fn wanted(task: &TaskView) -> String {
    let mode = match task.mode {
        Mode::Direct => "",
        Mode::Queue => ", to be pulled",
        Mode::Broadcast => ", offered to all",
    };
    let priority = if task.priority == 5 { String::new() } else { format!(", priority {}", task.priority) };
    let words = match (&task.intent, &task.fallback_from, &task.capability) {
        (Some(intent), ..) => format!("\"{}\"", shorten(&one_line(intent), EXCERPT_MAX)),
        (None, Some(first), _) => first.to_string(),
        (None, None, Some(capability)) => capability.to_string(),
        (None, None, None) => "whatever the agent does".to_owned(),
    };
    format!("{words}{mode}{priority}")
}

fn given_to(task: &TaskView) -> String {
    let other = task.fallback_from.as_ref().filter(|first| task.capability.as_ref() != Some(first));
    let fallback = other.map(|first| format!(", the fallback of {first}")).unwrap_or_default();
    match (&task.to_agent, &task.capability) {
        (Some(agent), Some(capability)) => format!("{agent} for {capability}{fallback}"),
        (Some(agent), None) => format!("{agent}{fallback}"),
        (None, Some(_)) if !fallback.is_empty() => fallback.trim_start_matches(", ").to_owned(),
        (None, _) => String::new(),
    }
}

fn times(task: &TaskView, look: &Look) -> String {
    let taken_on = when(task.created_at, look.now);
    match task.finished_at {
        Some(at) => format!("taken on {taken_on}, took {}", lasting(at.since(task.created_at))),
        None => format!("taken on {taken_on}, final by {}", when(task.deadline_at, look.now)),
    }
}

pub(crate) fn excerpt(json: &RawJson) -> String {
    let text = json.get();
    let length = text.chars().count();
    if length <= EXCERPT_MAX {
        return text.to_owned();
    }
    format!("{}\n({length} characters; --json has all of them)", shorten(text, EXCERPT_MAX))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where a task is that has not ended.
pub(crate) fn where_it_is(task: &TaskView) -> String {
    let known = if task.replayed { " (known already by its key)" } else { "" };
    if let Some(human) = &task.human {
        let holder = human.lease_until.and(human.takes.last());
        let who = holder.map_or_else(|| "waits for a person".to_owned(), |take| format!("is with {}", take.by));
        return format!("{}, {who} in the queue {}{known}", task.phase.as_str(), human.queue);
    }
    match (&task.to_agent, &task.capability) {
        (Some(agent), Some(capability)) => format!("{} to {agent} for {capability}{known}", task.phase.as_str()),
        (Some(agent), None) => format!("{} to {agent}{known}", task.phase.as_str()),
        (None, _) => format!("{}, waits for an agent{known}", task.phase.as_str()),
    }
}

/// How a task ended, by whom and after how long.
pub(crate) fn how_it_ended(task: &TaskView) -> String {
    let mut sentence = how(task);
    let answered = |take: &&Take| take.ending == Some(TakeEnding::Answered);
    let person = task.human.as_ref().and_then(|human| human.takes.last()).filter(answered);
    if let Some(take) = person {
        sentence.push_str(&format!(" by {}", take.by));
    } else if let Some(agent) = &task.to_agent {
        sentence.push_str(&format!(" by {agent}"));
    }
    let took = task.finished_at.map(|at| at.since(task.created_at)).filter(|took| *took > Span::ZERO);
    if let Some(took) = took {
        sentence.push_str(&format!(" in {}", lasting(took)));
    }
    if task.attempts.len() > 1 {
        sentence.push_str(&format!(" after {} tries", task.attempts.len()));
    }
    sentence
}
