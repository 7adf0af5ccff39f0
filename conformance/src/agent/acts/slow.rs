//! Work that takes a while: what the agent says meanwhile, and what it does when the work is called off or late.

use std::time::{Duration, Instant};

use super::work::judge_result;
use crate::agent::links::Probe;
use crate::agent::plan::raw;
use crate::agent::stage::{Agent, Slow, no_work};
use crate::agent::work::{Event, Key};
use crate::engine::{Act, Findings, Stop};

/// Work that is quicker than this cannot be called off in time.
const SLOW_MIN: Duration = Duration::from_millis(200);
/// How long one that answers quick work with its result may hold its answer back to see whether this is such work.
const HELD_MAX: Duration = Duration::from_secs(2);

pub(super) fn too_quick(took: Option<Duration>) -> Stop {
    let took = took.map_or_else(String::new, |took| format!(" (it took {} ms)", took.as_millis()));
    Stop(format!(
        "no work takes long enough{took}: give parameters of work of about a second as `slow`, in a file named with --samples"
    ))
}

/// Does work that takes a while, and looks at the agent meanwhile.
pub(crate) async fn slow(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.usable.is_empty() {
        return Err(no_work());
    }
    let Some((offer, params)) = candidate(agent)? else {
        return Err(too_quick(agent.usable.last().map(|usable| usable.took)));
    };
    let work = agent.task(offer, params.clone())?;
    let courier = agent.courier()?;
    let began = Instant::now();
    courier.deliver(&work);
    let accepted =
        |events: &[(Instant, Event)]| events.iter().find(|(_, event)| *event == Event::Accepted).map(|(at, _)| *at);
    // It is at work once it has said so; one that answers with the result itself is after a moment.
    let key = work.key();
    agent.desk.wait(Duration::from_millis(150), |state| accepted(state.attempts.get(&key)?)).await;
    let probe_within = Duration::from(agent.plan()?.probe_timeout).min(agent.options.timeout);
    let asked = Instant::now();
    let probe = courier.probe(probe_within).await;
    let ended = agent.end_after(key, 0, work.attempt_timeout).await;
    if matches!(ended, None | Some((_, Event::Lost(_)))) {
        agent.missed();
    }
    let Some((ended_at, Event::Result { .. })) = ended.as_ref() else {
        let words = ended.map_or_else(|| "nothing in time".to_owned(), |(_, event)| event.words());
        return Err(Stop(format!("the slow work came to {words}; see the `slow` parameters in the samples")));
    };
    let ended_at = *ended_at;
    let takes = ended_at.duration_since(began);
    if let Some((_, event)) = &ended {
        judge_result(agent, findings, offer, event);
    }
    judge_probe(agent, findings, probe, asked < ended_at);
    let accepted = accepted(&agent.desk.events(key));
    let holds_answers = agent.way() == Some("http") && !agent.has_accepted;
    agent.has_accepted |= accepted.is_some();
    if takes < SLOW_MIN {
        return Err(too_quick(Some(takes)));
    }
    let params = params.unwrap_or_else(|| raw(&serde_json::json!({})));
    let between = (accepted.unwrap_or(began), ended_at);
    agent.slow = Some(Slow { offer, params, takes, between });
    if let Some(accepted) = accepted {
        let patience = if holds_answers { HELD_MAX } else { SLOW_MIN };
        judge_accept(agent, findings, patience, (began, accepted, ended_at)).await?;
    }
    Ok(())
}

/// A capability and parameters that take a while: best one that can be called off.
fn candidate(agent: &Agent) -> Result<Option<(usize, Option<reach_schemas::RawJson>)>, Stop> {
    let plan = agent.plan()?;
    let mut found: Vec<_> = agent
        .usable
        .iter()
        .filter_map(|usable| {
            let offer = &plan.offers[usable.offer];
            match &offer.inputs.slow {
                Some(slow) => Some((usable.offer, Some(raw(slow)))),
                None if usable.took >= SLOW_MIN => Some((usable.offer, offer.inputs.params.as_ref().map(raw))),
                None => None,
            }
        })
        .collect();
    found.sort_by_key(|(offer, _)| !plan.offers[*offer].is_cancellable);
    Ok(found.into_iter().next())
}

fn judge_probe(agent: &Agent, findings: &mut Findings<'_>, probe: Probe, was_working: bool) {
    match probe {
        Probe::Answered(..) if was_working => findings.pass("answers-probe-at-work"),
        Probe::Answered(..) => findings.skip("answers-probe-at-work", "the work had ended before it was asked"),
        Probe::None(why) => findings.skip("answers-probe-at-work", why),
        // One that does not answer when it is idle is told of already.
        Probe::Failed(why) if agent.no_probe.is_none() && !findings.is_failed("answers-probe") => {
            findings.fail("answers-probe-at-work", "an answer in time, while the work runs", why);
        }
        Probe::Failed(why) => findings.skip("answers-probe-at-work", why),
    }
}

/// Judges when the accept came: within the patience, or long before the end. One that comes late is given a second chance: the
/// machine may have been busy.
async fn judge_accept(
    agent: &mut Agent,
    findings: &mut Findings<'_>,
    patience: Duration,
    seen: (Instant, Instant, Instant),
) -> Act {
    let is_late = |(began, accepted, ended): (Instant, Instant, Instant)| {
        let (before, after) = (accepted.duration_since(began), ended.duration_since(accepted));
        before > after * 2 && before > patience
    };
    let mut found = seen;
    if is_late(found) {
        let Some(slow) = agent.slow.clone() else { return Ok(()) };
        let work = agent.task(slow.offer, Some(slow.params))?;
        let began = Instant::now();
        // Only its events count.
        let _ = agent.do_work(&work).await;
        let events = agent.desk.events(work.key());
        let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().find(|(_, event)| wanted(event)).map(|(at, _)| *at);
        if let (Some(accepted), Some(ended)) = (at(&|event| *event == Event::Accepted), at(&Event::is_end)) {
            found = (began, accepted, ended.max(accepted));
        }
    }
    let (began, accepted, ended) = found;
    let told = format!(
        "the accept came after {} ms, and the end {} ms later",
        accepted.duration_since(began).as_millis(),
        ended.duration_since(accepted).as_millis()
    );
    findings.judge(
        "accepts-before-work",
        "the accept at once, and the work after it",
        if is_late(found) { Err(told) } else { Ok(()) },
    );
    Ok(())
}

/// Calls work off.
pub(crate) async fn cancel(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let slow = agent.slow.clone();
    let cancellable = match (&slow, agent.plan()) {
        (Some(slow), Ok(plan)) => plan.offers[slow.offer].is_cancellable || agent.way() == Some("process"),
        (_, Ok(_)) => false,
        (_, Err(stop)) => return Err(stop),
    };
    match slow {
        Some(slow) if cancellable => called_off(agent, findings, &slow).await?,
        Some(_) => {
            findings.skip("stops-when-cancelled", "the capability that takes a while is not declared cancellable")
        }
        None => findings.skip("stops-when-cancelled", too_quick(None).0),
    }
    findings.begin(false);
    // An attempt that the agent does not have.
    let stranger = agent.easy_task()?;
    if agent.way() != Some("process") {
        let answered = agent.courier()?.cancel(stranger.key()).await;
        if agent.way() == Some("http") {
            findings.judge("http-cancel-answered", "2xx within 2 s", answered);
        }
    }
    agent.judge_still_works(findings, "survives-cancel").await
}

async fn called_off(agent: &mut Agent, findings: &mut Findings<'_>, slow: &Slow) -> Act {
    let is_by_heartbeat = agent.way() == Some("queue");
    if is_by_heartbeat && agent.interval() > slow.takes / 2 {
        findings.skip(
            "stops-when-cancelled",
            format!(
                "it hears of it by a heartbeat, every {} ms, and the work takes {} ms",
                agent.interval().as_millis(),
                slow.takes.as_millis()
            ),
        );
        return Ok(());
    }
    let work = agent.task(slow.offer, Some(slow.params.clone()))?;
    let courier = agent.courier()?;
    courier.deliver(&work);
    let key = work.key();
    let has_begun = |event: &Event| matches!(event, Event::Accepted | Event::Progress);
    agent
        .desk
        .wait(slow.takes / 4, |state| state.attempts.get(&key)?.iter().any(|(_, event)| has_begun(event)).then_some(()))
        .await;
    agent.pause(slow.takes / 8).await;
    let answered = courier.cancel(key).await;
    match agent.way() {
        Some("http") => {
            findings.judge("http-cancel-answered", "2xx within 2 s", answered);
        }
        Some("process") => {
            findings.judge("command-ends-when-told", "an end within 2 s of SIGTERM", answered);
        }
        Some(_) | None => {}
    }
    let is_declared = agent.plan()?.offers[slow.offer].is_cancellable;
    if is_declared {
        judge_silence(agent, findings, "stops-when-cancelled", key, slow.takes).await;
    } else {
        findings.skip("stops-when-cancelled", "the capability that takes a while is not declared cancellable");
    }
    Ok(())
}

/// No result may come any more. Waits for as long as the work would take, and more.
async fn judge_silence(agent: &Agent, findings: &mut Findings<'_>, id: &str, key: Key, takes: Duration) {
    let ended = agent.end_after(key, 0, takes * 2 + Duration::from_millis(500)).await;
    let found = match ended {
        Some((_, event @ Event::Result { .. })) => Err(event.words()),
        Some(_) | None => Ok(()),
    };
    findings.judge(id, "no result of what was called off", found);
}

/// Lets the time of an attempt run out.
pub(crate) async fn deadline(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let id = "heeds-deadline";
    let Some(slow) = agent.slow.clone() else { return Err(too_quick(None)) };
    let can_stop = agent.plan()?.offers[slow.offer].is_cancellable;
    if !can_stop || findings.is_failed("stops-when-cancelled") || matches!(agent.way(), Some("queue" | "process")) {
        findings.skip(id, "its work cannot be stopped from here, see stops-when-cancelled");
        return Ok(());
    }
    let mut work = agent.task(slow.offer, Some(slow.params.clone()))?;
    work.attempt_timeout = slow.takes / 3;
    let courier = agent.courier()?;
    courier.deliver(&work);
    // A little more, since the agent counts from when it was sent.
    agent.pause(work.attempt_timeout + Duration::from_millis(50)).await;
    agent.note("the attempt's time is over, and it is called off");
    // Only what comes of the work is judged here.
    let _ = courier.cancel(work.key()).await;
    let seen = agent.desk.events(work.key()).len();
    let ended = agent.end_after(work.key(), seen, slow.takes * 2 + Duration::from_millis(500)).await;
    let found = match ended {
        Some((_, event @ Event::Result { .. })) => Err(event.words()),
        Some(_) | None => Ok(()),
    };
    findings.judge(id, "no result after attempt_until", found);
    Ok(())
}
