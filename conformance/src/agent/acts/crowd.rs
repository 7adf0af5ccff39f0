//! As much work at once as the agent says that it takes, and one more.

use std::time::{Duration, Instant};

use super::work::judge_result;
use crate::agent::stage::Agent;
use crate::agent::work::{Event, Work};
use crate::engine::{Act, Findings, Stop};

/// How many are sent at once, at most.
const CROWD_MAX: usize = 32;

/// Fills the agent.
pub(crate) async fn crowd(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let bound = agent.plan()?.max_concurrency;
    let is_command = agent.way() == Some("process");
    let count = if is_command { bound.min(4) } else { bound.min(CROWD_MAX) };
    let slow = agent.slow.clone();
    let mut crowd = Vec::new();
    for _ in 0..count {
        crowd.push(match &slow {
            Some(slow) => agent.task(slow.offer, Some(slow.params.clone()))?,
            None => agent.easy_task()?,
        });
    }
    let courier = agent.courier()?;
    for work in &crowd {
        courier.deliver(work);
    }
    let takes = slow.as_ref().map(|slow| slow.takes);
    let can_fill = takes.is_some() && !is_command && bound <= CROWD_MAX;
    if can_fill {
        let keys: Vec<_> = crowd.iter().map(Work::key).collect();
        let begun = |event: &Event| *event == Event::Accepted || event.is_end();
        let all = agent.desk.wait(takes.unwrap_or_default() / 4, |state| {
            let has_begun =
                |key| state.attempts.get(key).is_some_and(|events| events.iter().any(|(_, event)| begun(event)));
            keys.iter().all(has_begun).then_some(())
        });
        all.await;
        let extra =
            agent.task(slow.as_ref().map_or(0, |slow| slow.offer), slow.as_ref().map(|slow| slow.params.clone()))?;
        courier.deliver(&extra);
        crowd.push(extra);
    }
    let ends = ends(agent, &crowd).await;
    let offer = slow.as_ref().map(|slow| slow.offer).or(agent.usable.first().map(|usable| usable.offer));
    for (_, event) in ends.iter().flatten() {
        judge_result(agent, findings, offer.unwrap_or_default(), event);
    }
    if ends.iter().all(|end| matches!(end, None | Some((_, Event::Lost(_))))) {
        agent.missed();
        return Err(Stop("none of the attempts at once was answered".to_owned()));
    }
    judge_all(findings, count, can_fill, &ends)?;
    match takes.filter(|_| can_fill) {
        Some(takes) => judge_bound(findings, takes, &ends),
        None => {
            let why = match (is_command, takes) {
                (true, _) => "how many commands run at once is the gateway's affair".to_owned(),
                (false, None) => "its work is too quick to fill it; give `slow` parameters with --samples".to_owned(),
                (false, Some(_)) => format!("its bound of {bound} is beyond what is sent at once here, {CROWD_MAX}"),
            };
            findings.skip("keeps-its-bound", why.clone());
            findings.skip("says-when-again", why);
        }
    }
    findings.begin(false);
    agent.judge_still_works(findings, "works-after-crowd").await
}

type End = Option<(Instant, Event)>;

async fn ends(agent: &Agent, crowd: &[Work]) -> Vec<End> {
    let within = crowd.first().map_or(Duration::ZERO, |work| work.attempt_timeout + Duration::from_millis(500));
    let until = Instant::now() + within;
    let mut ends = Vec::new();
    for work in crowd {
        ends.push(agent.end_after(work.key(), 0, until.saturating_duration_since(Instant::now())).await);
    }
    ends
}

const fn is_full(end: &End) -> bool {
    matches!(end, Some((_, Event::Refused { is_full: true, .. })))
}

/// All must end well, save for one too many, which may be refused as full.
fn judge_all(findings: &mut Findings<'_>, count: usize, has_extra: bool, ends: &[End]) -> Result<(), Stop> {
    let refused = ends.iter().filter(|end| is_full(end)).count();
    let allowed = usize::from(has_extra);
    let expected = format!("{count} attempts at once, all with a result");
    if refused > allowed {
        findings.fail("works-side-by-side", expected, format!("{refused} of {} were refused as full", ends.len()));
        return Err(Stop("it was full too early, see works-side-by-side".to_owned()));
    }
    let mut odd = ends.iter().filter(|end| !is_full(end)).filter_map(|end| match end {
        Some((_, Event::Result { .. })) => None,
        Some((_, event)) => Some(event.words()),
        None => Some("nothing in time".to_owned()),
    });
    let first = odd.next();
    match first {
        // One that is too many and fails otherwise than it should is judged as that.
        Some(_) if has_extra && odd.count() == 0 && refused == 0 => {
            findings.pass("works-side-by-side");
        }
        Some(words) => findings.fail("works-side-by-side", expected, words),
        None => findings.pass("works-side-by-side"),
    }
    Ok(())
}

fn judge_bound(findings: &mut Findings<'_>, takes: Duration, ends: &[End]) {
    let expected = "one more than the bound is refused as full, or waits";
    if let Some(Some((_, Event::Refused { says_when, .. }))) = ends.iter().find(|end| is_full(end)) {
        findings.pass("keeps-its-bound");
        let told = if *says_when { Ok(()) } else { Err("no time".to_owned()) };
        findings.judge("says-when-again", "when to come again", told);
        return;
    }
    findings.skip("says-when-again", "it does not refuse: it has more work wait");
    let mut times = Vec::new();
    for end in ends {
        match end {
            Some((at, Event::Result { .. })) => times.push(*at),
            Some((_, event)) => return findings.fail("keeps-its-bound", expected, event.words()),
            None => return findings.fail("keeps-its-bound", expected, "nothing in time"),
        }
    }
    times.sort();
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return };
    let apart = last.duration_since(*first);
    // What waited until the first had ended takes as long as the first did.
    let found = if apart >= takes / 2 {
        Ok(())
    } else {
        Err(format!(
            "all {} ended within {} ms of each other, and one takes {} ms: they were worked on at once",
            times.len(),
            apart.as_millis(),
            takes.as_millis()
        ))
    };
    findings.judge("keeps-its-bound", expected, found);
}
