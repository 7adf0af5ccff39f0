//! The lease of an agent that pulls: kept while the work runs, and what is done once it is lost.

use std::time::{Duration, Instant};

use super::slow::too_quick;
use crate::agent::stage::Agent;
use crate::agent::work::{Event, Key};
use crate::engine::{Act, Findings, Stop};

/// What a renewal may be late on a machine with much to do.
const LATE: Duration = Duration::from_millis(250);
/// How long an agent has to claim what waits for it.
const CLAIM: Duration = Duration::from_secs(5);

/// Work that takes a while, with its lease looked after; and the same with the lease lost in the middle.
pub(crate) async fn lease(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.way() != Some("queue") {
        return Err(Stop("the agent does not pull".to_owned()));
    }
    let Some(slow) = agent.slow.clone() else { return Err(too_quick(None)) };
    let courier = agent.courier()?;
    findings.begin(true);
    let work = agent.task(slow.offer, Some(slow.params.clone()))?;
    courier.deliver(&work);
    let ended = agent.end_after(work.key(), 0, slow.takes * 2 + agent.at_most(CLAIM)).await;
    if !matches!(ended, Some((_, Event::Result { .. }))) {
        let words = ended.map_or_else(|| "nothing in time".to_owned(), |(_, event)| event.words());
        return Err(Stop(format!("the work came to {words}")));
    }
    judge_kept(agent, findings, work.key());

    findings.begin(false);
    let first = agent.task(slow.offer, Some(slow.params.clone()))?;
    courier.deliver(&first);
    let key = first.key();
    let has = |event: &Event| matches!(event, Event::Sent | Event::Accepted);
    let taken = agent.desk.wait(agent.at_most(CLAIM), |state| {
        state.attempts.get(&key)?.iter().any(|(_, event)| has(event)).then_some(())
    });
    if taken.await.is_none() {
        return Err(Stop("the work was not claimed".to_owned()));
    }
    agent.pause(slow.takes / 4).await;
    agent
        .note("the lease is lost: from now on reports of the attempt are stale, and the task waits for its next claim");
    agent.desk.change(|state| {
        state.lost.insert(key);
        state.stops.push(key);
    });
    let second = first.next_attempt();
    courier.deliver(&second);
    let found = match agent.end_after(second.key(), 0, slow.takes * 4 + agent.at_most(CLAIM)).await {
        Some((_, Event::Result { .. })) => Ok(()),
        Some((_, event)) => Err(event.words()),
        None => Err("nothing in time".to_owned()),
    };
    findings.judge("works-after-lost-lease", "a result under the next token", found);
    Ok(())
}

/// Judges whether the lease held until the end, by what renewed it.
fn judge_kept(agent: &Agent, findings: &mut Findings<'_>, key: Key) {
    let id = "keeps-its-lease";
    let events = agent.desk.events(key);
    let Some(lease) = agent.desk.look(|state| state.leases.get(&key).copied()) else {
        return findings.skip(id, "the work was not claimed");
    };
    let counts = |event: &Event| {
        matches!(event, Event::Sent | Event::Accepted | Event::Progress | Event::Renewed) || event.is_end()
    };
    let times: Vec<Instant> = events.iter().filter(|(_, event)| counts(event)).map(|(at, _)| *at).collect();
    let longest = times.windows(2).map(|pair| pair[1].duration_since(pair[0])).max().unwrap_or_default();
    if longest > lease + LATE {
        let found = format!("{} ms without a word, under a lease of {} ms", longest.as_millis(), lease.as_millis());
        return findings.fail(id, "progress, or a heartbeat with working_on, before the lease is over", found);
    }
    if events.iter().any(|(_, event)| matches!(event, Event::Progress | Event::Renewed)) {
        return findings.pass(id);
    }
    let took = times.last().zip(times.first()).map_or(Duration::ZERO, |(last, first)| last.duration_since(*first));
    findings.skip(
        id,
        format!(
            "the work took {} ms, within its lease of {} ms and before the next heartbeat: give slower work as `slow`",
            took.as_millis(),
            lease.as_millis()
        ),
    );
}
