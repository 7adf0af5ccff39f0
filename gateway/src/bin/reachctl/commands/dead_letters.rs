//! Tasks that were given up on: listed, shown, sent again.

use agent_reach_sdk::schemas::call::{LIST_MAX, Redrive, Redriven, TaskList, TaskRef};
use agent_reach_sdk::{Explanation, Method};

use crate::args::DeadLetters;
use crate::exit::{Exit, Stop};
use crate::render::{dead_letters, explanation};
use crate::session::{Session, read};
use crate::watch::present;

/// How many one call sends, so that whoever waits sees how far it is.
const AT_A_TIME: u32 = 500;

pub(crate) async fn run(command: DeadLetters, session: &Session) -> Result<Exit, Stop> {
    match command {
        DeadLetters::List { agent, limit, watch } => {
            let params = TaskList { phase: None, agent_id: agent, limit: Some(limit), before: None };
            present(session, Method::DeadLetterList, &params, &watch, super::get::task_list("no dead letters", limit))
                .await
        }
        DeadLetters::Show { task } => {
            session.show::<Explanation>(Method::DeadLetterGet, &TaskRef { task_id: task }, explanation::whole).await
        }
        DeadLetters::Redrive { which, limit, how } => redrive(which.into_call(how), limit, session).await,
    }
}

/// Calls again until all are sent that fitted at the first call. One that is not sent does not keep back the others, and
/// is told of at the end.
async fn redrive(mut call: Redrive, most: Option<u32>, session: &Session) -> Result<Exit, Stop> {
    let is_named = !call.task_ids.is_empty();
    let mut left = most.unwrap_or(u32::MAX);
    let mut whole: Option<Redriven> = None;
    loop {
        // A call that sends nothing, or what it names, is one call.
        let is_one = is_named || call.dry_run;
        call.limit = if is_one { most.map(|most| most.min(LIST_MAX)) } else { Some(left.min(AT_A_TIME)) };
        let answer = session.ask(Method::DeadLetterRedrive, &call).await?;
        let answer: Redriven = read(Method::DeadLetterRedrive, &answer)?;
        let (as_of, rate, remaining) = (answer.as_of, answer.rate, answer.remaining);
        let came = answer.redriven.len() + usize::try_from(answer.gone).unwrap_or_default();
        let is_over = is_one || answer.stopped.is_some() || remaining == 0 || came == 0;
        left = left.saturating_sub(u32::try_from(came + answer.refused.len()).unwrap_or(left));
        let told = match whole.take() {
            Some(before) => joined(before, answer),
            None => answer,
        };
        if is_over || left == 0 {
            whole = Some(told);
            break;
        }
        session.out.note(&dead_letters::so_far(&told))?;
        whole = Some(told);
        // What is given up on again while this goes on is left alone.
        call.ended_before = Some(call.ended_before.map_or(as_of, |given| given.min(as_of)));
        (call.all, call.rate) = (false, rate);
    }
    let Some(told) = whole else { return Ok(Exit::Done) };
    if session.out.is_json {
        let json = serde_json::to_string(&told).map_err(|error| Stop::Unreadable(error.to_string()))?;
        session.out.line(&json)?;
    } else {
        session.out.text(&dead_letters::redriven(&told, is_named, &session.out.look()))?;
    }
    Ok(match (told.refused.is_empty(), &told.stopped) {
        (true, None) => Exit::Done,
        (true, Some(_)) => Exit::Later,
        (false, _) => Exit::Refused,
    })
}

/// Two answers as if they were one.
fn joined(mut before: Redriven, next: Redriven) -> Redriven {
    before.redriven.extend(next.redriven);
    // One that is refused is still there, and is asked for again.
    let known: Vec<_> = before.refused.iter().map(|refused| refused.task_id).collect();
    before.refused.extend(next.refused.into_iter().filter(|refused| !known.contains(&refused.task_id)));
    Redriven {
        remaining: next.remaining,
        gone: before.gone + next.gone,
        spread_until: next.spread_until.or(before.spread_until),
        stopped: next.stopped,
        ..before
    }
}
