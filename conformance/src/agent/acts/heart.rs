//! Heartbeats over the whole run, the agent's last words, and what is counted at the end.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::agent::desk::{Beat, CALM_MAX, State};
use crate::agent::stage::Agent;
use crate::child;
use crate::engine::{Act, Findings, Stop};

/// The longest interval whose heartbeats are waited for.
const INTERVAL_MAX: Duration = Duration::from_secs(12);
/// Beyond this, only the first heartbeats are waited for.
const BRIEF: Duration = Duration::from_secs(5);
/// What a heartbeat may be late on a machine with much to do.
const LATE: Duration = Duration::from_secs(1);
/// How long an agent that is told to stop may take.
const LEAVE: Duration = Duration::from_secs(10);

/// Looks at all heartbeats since the agent registered.
pub(crate) async fn heartbeat(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let Some(registered_at) = agent.registered_at else {
        return Err(Stop("the agent did not register here".to_owned()));
    };
    findings.begin(true);
    let interval = agent.interval();
    if interval > INTERVAL_MAX {
        return Err(Stop(format!(
            "its interval of {} s is longer than this run; declare a shorter one",
            interval.as_secs()
        )));
    }
    let patience = interval * 2 + LATE;
    // The first heartbeat is answered that the agent is not known.
    let disowned = wait_for(agent, registered_at + patience, |state| state.disowned.clone());
    let Some(disowned) = disowned.await else {
        judge_beats(agent, findings, registered_at, interval);
        let found = if beats(agent).is_empty() { "none" } else { "heartbeats of another agent only" };
        let expected = format!("a heartbeat every {} ms", interval.as_millis());
        if !findings.is_failed("beats-are-valid") {
            findings.fail("beats-in-time", expected, format!("{found} within {} ms", patience.as_millis()));
        }
        return Err(Stop("no heartbeat came, see beats-in-time".to_owned()));
    };
    judge_again(agent, findings, disowned.at, patience).await;
    if findings.is_failed("registers-again") {
        judge_beats(agent, findings, registered_at, interval);
        return Err(Stop("the agent did not register again, see registers-again".to_owned()));
    }
    // From then on answers have members that nobody knows.
    let first = wait_for(agent, Instant::now() + patience, |state| state.puzzled.clone()).await;
    match first {
        Some(first) if interval <= BRIEF => {
            let next = wait_for(agent, first.at + patience, |state| {
                state.beats.iter().find(|beat| beat.at > first.at).cloned()
            });
            let found = if next.await.is_some() { Ok(()) } else { Err("no further heartbeat".to_owned()) };
            findings.judge("beats-on", "a further heartbeat", found);
        }
        Some(_) => findings.skip("beats-on", format!("another heartbeat would take {} s more", interval.as_secs())),
        None => findings.fail("beats-in-time", "a heartbeat after the second registration", "none"),
    }
    judge_beats(agent, findings, registered_at, interval);
    Ok(())
}

fn beats(agent: &Agent) -> Vec<Beat> {
    agent.desk.look(|state| state.beats.iter().cloned().collect())
}

async fn wait_for(agent: &Agent, until: Instant, look: impl FnMut(&State) -> Option<Beat>) -> Option<Beat> {
    agent.desk.wait(until.saturating_duration_since(Instant::now()), look).await
}

async fn judge_again(agent: &Agent, findings: &mut Findings<'_>, since: Instant, patience: Duration) {
    let left = (since + patience).saturating_duration_since(Instant::now());
    let again =
        agent.desk.wait(left, |state| state.registrations.iter().find(|registration| registration.at > since).cloned());
    let Some(again) = again.await else {
        let found = format!("no registration within {} ms", patience.as_millis());
        return findings.fail("registers-again", "agent/register after agent_not_found", found);
    };
    findings.pass("registers-again");
    let first = agent.card.clone().unwrap_or_default();
    let again: Value = serde_json::from_str(&again.card).unwrap_or_default();
    let found = if again == first || again["version"] != first["version"] {
        Ok(())
    } else {
        Err(format!("another card of the same version: {again}"))
    };
    findings.judge("registers-the-same", "the same card", found);
}

fn judge_beats(agent: &Agent, findings: &mut Findings<'_>, registered_at: Instant, interval: Duration) {
    let beats = beats(agent);
    let wrong = beats.iter().find_map(|beat| beat.wrong.clone());
    if !beats.is_empty() {
        findings.judge("beats-are-valid", "heartbeats that fit Heartbeat.json", wrong.map_or(Ok(()), Err));
    }
    let mut times = vec![registered_at];
    times.extend(beats.iter().map(|beat| beat.at));
    // A flood is told of as such; what came behind it was late here.
    let is_flood = agent.desk.look(|state| state.peak) > CALM_MAX;
    let longest = times.windows(2).map(|pair| pair[1].duration_since(pair[0])).max();
    if let Some(longest) = longest {
        let found = if longest <= interval * 2 + LATE || is_flood {
            Ok(())
        } else {
            Err(format!("{} ms between two", longest.as_millis()))
        };
        findings.judge("beats-in-time", &format!("a heartbeat every {} ms", interval.as_millis()), found);
    }
    let elapsed = registered_at.elapsed().as_secs_f64();
    let most = 5.0 * elapsed / interval.as_secs_f64().max(0.001) + 5.0;
    let count = u32::try_from(beats.len()).unwrap_or(u32::MAX);
    let found = if f64::from(count) <= most || is_flood { Ok(()) } else { Err(format!("{count} in {elapsed:.0} s")) };
    findings.judge("beats-calmly", &format!("about one every {} ms", interval.as_millis()), found);
    judge_load(agent, findings, &beats);
}

fn judge_load(agent: &Agent, findings: &mut Findings<'_>, beats: &[Beat]) {
    let id = "beats-tell-load";
    let Some(slow) = &agent.slow else { return findings.skip(id, "its work is too quick to be seen in a heartbeat") };
    let (from, to) = slow.between;
    let within: Vec<&Beat> =
        beats.iter().filter(|beat| beat.at > from + Duration::from_millis(50) && beat.at < to).collect();
    if within.is_empty() {
        return findings.skip(id, "no heartbeat came while the slow work ran");
    }
    let found = if within.iter().any(|beat| beat.load > 0) { Ok(()) } else { Err("current_load 0".to_owned()) };
    findings.judge(id, "a current_load above 0 while work runs", found);
}

/// Tells the agent to stop.
pub(crate) async fn leave(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let id = "leaves-orderly";
    if agent.options.demands_tokens {
        findings.skip(id, "with --tokens the agent is told that another has taken its place");
        return Ok(());
    }
    let Some(mut started) = agent.started.take() else {
        findings.skip(id, "the runner did not start the agent; let it do so with --start");
        return Ok(());
    };
    if agent.registered_at.is_none() {
        findings.skip(id, "the agent did not register");
        return Ok(());
    }
    if let Some(why) = agent.busy_with.clone() {
        findings.skip(id, why);
        return Ok(());
    }
    agent.note("SIGTERM to the agent");
    child::signal(started.id(), Signal::SIGTERM);
    let within = agent.at_most(LEAVE);
    let ended = started.ended(within).await;
    let said = agent.desk.look(|state| !state.farewells.is_empty());
    let found = match (ended, said) {
        (Some(_), true) => Ok(()),
        (Some(_), false) => Err("it ended without a word".to_owned()),
        (None, _) => Err(format!("it had not ended {} s later", within.as_secs())),
    };
    findings.judge(id, "agent/drain or agent/deregister, and an end", found);
    Ok(())
}

/// What is known only at the end.
pub(crate) async fn calm(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let (peak, wrong, good) = agent.desk.look(|state| (state.peak, state.wrong_reports.clone(), state.good_reports));
    let found = if peak > CALM_MAX { Err(format!("{peak} messages in one second")) } else { Ok(()) };
    findings.judge("link-is-calm", "fewer than 200 messages a second", found);
    if let Some(first) = wrong.first() {
        findings.fail("reports-are-valid", "reports that fit the schemas", first.clone());
    } else if good > 0 {
        findings.pass("reports-are-valid");
    }
    Ok(())
}
