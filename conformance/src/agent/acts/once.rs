//! What comes twice is done once; and reports, which are sent until they are taken or refused.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use reach_schemas::Effect;
use serde_json::Value;

use crate::agent::desk::{Answer, State};
use crate::agent::plan::raw;
use crate::agent::stage::{Agent, no_work};
use crate::agent::work::{Event, Key, Work};
use crate::engine::{Act, Findings, Stop};
use crate::exchange::short;

/// How long a report that was not taken has to come again.
const AGAIN: Duration = Duration::from_secs(6);
/// How long an agent is watched that should say no more: long enough for one that says it every second.
const WATCHED: Duration = Duration::from_millis(2500);
/// How long it takes at most until work has begun that is not said to have.
const BEGUN: Duration = Duration::from_millis(150);
/// How much longer than before a second time may take.
const MORE: Duration = Duration::from_millis(300);

/// Deliveries that come twice, for the first capability of each kind that changes something.
pub(crate) async fn twice(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.usable.is_empty() {
        return Err(no_work());
    }
    for wanted in [Effect::Write, Effect::IdempotentWrite] {
        let plan = agent.plan()?;
        let offers = agent.usable.iter().map(|usable| usable.offer);
        let fits = offers.filter(|offer| plan.offers[*offer].effect == wanted);
        // One of which there is work that takes a while shows most.
        let Some(offer) = fits.max_by_key(|offer| plan.offers[*offer].inputs.slow.is_some()) else { continue };
        for how in [Repeat::Same, Repeat::Next, Repeat::Older] {
            // Only an idempotent write promises anything about its key.
            if how == Repeat::Next && wanted != Effect::IdempotentWrite {
                continue;
            }
            repeat(agent, findings, offer, how).await?;
            if how != Repeat::Older {
                meanwhile(agent, findings, offer, how).await?;
            }
        }
    }
    Ok(())
}

/// How a task is delivered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// The attempt itself.
    Same,
    /// The next one, with the key of the first.
    Next,
    /// An older one, with a key of its own, so that only the token tells.
    Older,
}

/// The first delivery, which must end well.
async fn first(agent: &mut Agent, work: &Work) -> Result<String, Stop> {
    match agent.do_work(work).await {
        Ok((Event::Result { text, .. }, _)) => Ok(text),
        Ok((event, _)) => Err(Stop(format!("the first delivery came to {}", event.words()))),
        Err(why) => Err(Stop(format!("the first delivery came to nothing: {why}"))),
    }
}

fn is_same(one: &str, other: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    value(one) == value(other)
}

/// Judges what came of a repetition by its result, and by the effects that were counted.
fn judge_once(agent: &Agent, findings: &mut Findings<'_>, id: &str, before: Option<usize>, pair: (&str, &Event)) {
    let effects = agent.effects().zip(before).map(|(now, before)| now.saturating_sub(before));
    let found = match (effects, pair) {
        (Some(more @ 1..), _) => Err(format!("{more} more effects")),
        (_, (first, Event::Result { text, .. })) if !is_same(first, text) => {
            Err(format!("{}, and before {}: it was done again", short(text), short(first)))
        }
        (Some(0) | None, _) => Ok(()),
    };
    findings.judge(id, "one effect, and the same result", found);
}

/// Delivers a task once and again, and judges what came of the second time.
async fn repeat(agent: &mut Agent, findings: &mut Findings<'_>, offer: usize, how: Repeat) -> Act {
    findings.begin(false);
    let params = agent.plan()?.offers[offer].inputs.params.as_ref().map(raw);
    let task = agent.task(offer, params)?;
    let newer = || Work { idempotency_key: format!("{}-newer", task.idempotency_key), ..task.next_attempt() };
    let (once, again) = match how {
        Repeat::Same => (task.clone(), task.clone()),
        Repeat::Next => (task.clone(), task.next_attempt()),
        Repeat::Older => (newer(), task.clone()),
    };
    let result = first(agent, &once).await?;
    let before = agent.effects();
    let ended = agent.do_work(&again).await.map(|(event, _)| event);
    let is_result = matches!(ended, Ok(Event::Result { .. }));
    let words = ended.as_ref().map_or_else(Clone::clone, Event::words);
    let event = ended.unwrap_or(Event::Sent);
    let expected = "the first one's result";
    match how {
        Repeat::Same => {
            judge_once(agent, findings, "done-once-per-attempt", before, (&result, &event));
            findings.judge("answers-repeats-alike", expected, if is_result { Ok(()) } else { Err(words) });
        }
        Repeat::Next if event == Event::Sent => findings.fail("done-once-per-key", expected, words),
        Repeat::Next => judge_once(agent, findings, "done-once-per-key", before, (&result, &event)),
        Repeat::Older => {
            let found = if is_result { Err(words) } else { Ok(()) };
            findings.judge("heeds-newer-token", "no result for the older token", found);
        }
    }
    Ok(())
}

/// Delivers a task, and again while the first delivery is worked on. Whatever is said to the second: there is one effect.
async fn meanwhile(agent: &mut Agent, findings: &mut Findings<'_>, offer: usize, how: Repeat) -> Act {
    findings.begin(false);
    let inputs = &agent.plan()?.offers[offer].inputs;
    let (is_slow, params) = (inputs.slow.is_some(), inputs.slow.as_ref().or(inputs.params.as_ref()).map(raw));
    let first = agent.task(offer, params)?;
    let (id, second) = match how {
        Repeat::Same => ("done-once-per-attempt", first.clone()),
        Repeat::Next | Repeat::Older => ("done-once-per-key", first.next_attempt()),
    };
    let keys = BTreeSet::from([first.key(), second.key()]);
    let (before, courier, began) = (agent.effects(), agent.courier()?, Instant::now());
    courier.deliver(&first);
    if is_slow {
        // It is at work once it has said so; one that answers with the result itself is after a moment.
        let begun = |event: &Event| *event == Event::Accepted || event.is_end();
        agent.desk.wait(BEGUN, |state| (count(state, &keys, begun) > 0).then_some(())).await;
    }
    courier.deliver(&second);
    let is_result = |event: &Event| matches!(event, Event::Result { .. });
    let both = |state: &State| count(state, &keys, Event::is_end) >= 2;
    let ended = |state: &State| (both(state) || count(state, &keys, is_result) > 0).then_some(());
    if agent.desk.wait(first.attempt_timeout, ended).await.is_none() {
        agent.missed();
        return Err(Stop("a delivery that came twice came to nothing".to_owned()));
    }
    // As long as it took again, in case it is done again.
    let _ = agent.desk.wait(agent.at_most(began.elapsed() + MORE), |state| both(state).then_some(())).await;
    let effects = agent.effects().zip(before).map(|(now, before)| now.saturating_sub(before));
    let results: Vec<String> = keys
        .iter()
        .flat_map(|key| agent.desk.events(*key))
        .filter_map(|(_, event)| if let Event::Result { text, .. } = event { Some(text) } else { None })
        .collect();
    let other = results.iter().skip(1).find(|result| !is_same(&results[0], result));
    let found = match (effects, other) {
        (Some(effects @ 2..), _) => Err(format!("{effects} effects")),
        (_, Some(other)) => Err(format!("{}, and {}: it was done twice", short(&results[0]), short(other))),
        (_, None) if results.is_empty() => return Ok(()),
        (_, None) => Ok(()),
    };
    findings.judge(id, "one effect, when the second delivery comes while the first is worked on", found);
    Ok(())
}

/// How many events of these attempts are such.
fn count(state: &State, keys: &BTreeSet<Key>, wanted: impl Fn(&Event) -> bool) -> usize {
    let events = keys.iter().filter_map(|key| state.attempts.get(key)).flatten();
    events.filter(|(_, event)| wanted(event)).count()
}

/// Reports that are not taken at once, and reports that are not wanted.
pub(crate) async fn reports(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if !agent.has_accepted {
        return Err(Stop("the agent reports nothing: it answers with the result itself".to_owned()));
    }
    let told = |agent: &Agent, work: &Work| {
        let key = work.key();
        agent.desk.look(|state| state.ends_told.get(&key).copied().unwrap_or_default())
    };
    let mut work = reported_task(agent)?;
    work.attempt_timeout = agent.at_most(AGAIN);
    let key = work.key();
    agent.desk.change(|state| state.answers.insert(key, [Answer::Unavailable].into()));
    // The report that was not taken is not noted as an end; the second one is.
    let ended = agent.do_work(&work).await;
    if told(agent, &work) == 0 {
        return Err(Stop("this time the agent answered with the result itself".to_owned()));
    }
    let found = ended.map(drop).map_err(|_| format!("nothing more within {} s", agent.at_most(AGAIN).as_secs()));
    findings.judge("reports-again", "the report again, after store_unavailable", found);

    findings.begin(false);
    let work = reported_task(agent)?;
    let key = work.key();
    agent.desk.change(|state| state.answers.insert(key, [Answer::Stale].into()));
    // The answer that it is stale counts as an end here, so that this waits for the report.
    let _ = agent.do_work(&work).await;
    let more = agent.desk.wait(WATCHED, |state| state.ends_told.get(&key).copied().filter(|count| *count > 1)).await;
    let found = match more {
        Some(count) => Err(format!("{count} reports of the same attempt")),
        None => Ok(()),
    };
    findings.judge("takes-no-for-an-answer", "no further report after stale_token", found);
    Ok(())
}

/// Work that is reported: over HTTP only what takes a while is.
fn reported_task(agent: &mut Agent) -> Result<Work, Stop> {
    match agent.slow.clone() {
        Some(slow) if agent.way() == Some("http") => agent.task(slow.offer, Some(slow.params)),
        Some(_) | None => agent.easy_task(),
    }
}
