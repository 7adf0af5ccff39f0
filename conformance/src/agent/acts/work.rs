//! Work with good parameters: the first of every capability, and the same with more and with less around it.

use std::time::Duration;

use serde_json::Value;

use crate::agent::plan::raw;
use crate::agent::stage::{Agent, Usable, no_work};
use crate::agent::work::{Event, Key};
use crate::engine::{Act, Findings, Stop};
use crate::exchange::short;
use crate::schema;

/// How many capabilities are tried.
const OFFERS_MAX: usize = 16;
/// After so many that were not answered at all, no more are tried.
const SILENT_MAX: usize = 2;

/// What did not come to a result, in words: with parameters that somebody gave, and with such as were made here, of
/// which only the agent knows whether they make sense.
#[derive(Default)]
struct Failed {
    with_given: Vec<String>,
    with_made: Vec<String>,
}

/// Asks every capability for something once.
pub(crate) async fn work(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let count = agent.plan()?.offers.len();
    if count == 0 {
        findings.skip("answers-work", "the card has no capability");
        return Err(Stop("the card has no capability".to_owned()));
    }
    let (mut untried, mut failed, mut silent) = (Vec::new(), Failed::default(), 0);
    for index in 0..count {
        let offer = &agent.plan()?.offers[index];
        let (name, is_given) = (offer.name.to_string(), offer.inputs.is_given);
        let Some(params) = offer.inputs.params.as_ref().map(raw).filter(|_| index < OFFERS_MAX && silent < SILENT_MAX)
        else {
            untried.push(name);
            continue;
        };
        let asked = short(params.get());
        let work = agent.task(index, Some(params))?;
        let ended = agent.do_work(&work).await;
        judge_order(agent, findings, work.key());
        silent += usize::from(matches!(ended, Err(_) | Ok((Event::Lost(_), _))));
        if let Err(words) = judge_end(agent, findings, index, ended) {
            let list = if is_given { &mut failed.with_given } else { &mut failed.with_made };
            list.push(format!("{name}, asked with {asked}: {words}"));
        }
    }
    agent.usable.sort_by_key(|usable| usable.took);
    judge_all(agent, findings, &failed, &untried.join(", "))
}

fn judge_all(agent: &Agent, findings: &mut Findings<'_>, failed: &Failed, untried: &str) -> Act {
    let expected = "a result of each capability that was asked";
    if !untried.is_empty() {
        let why = format!("no parameters could be made for {untried}, or there was no time for it");
        findings.note(format!(
            "not tried with good parameters: {why}. Put examples into the input_schema, or name a file with --samples"
        ));
    }
    if !failed.with_given.is_empty() {
        findings.fail("answers-work", expected, failed.with_given.join("; "));
    }
    if agent.usable.is_empty() && !failed.with_made.is_empty() {
        findings.fail_too("answers-work", expected, failed.with_made.join("; "));
    } else if !failed.with_made.is_empty() {
        findings.fail("answers-each-capability", expected, failed.with_made.join("; "));
    } else if !agent.usable.is_empty() {
        findings.pass("answers-each-capability");
    }
    if agent.usable.is_empty() {
        findings.skip(
            "answers-work",
            format!(
                "no parameters could be made for {untried}: put examples into the input_schema, or name a file with --samples"
            ),
        );
        return Err(no_work());
    }
    Ok(())
}

fn judge_order(agent: &mut Agent, findings: &mut Findings<'_>, key: Key) {
    let events = agent.desk.events(key);
    let place = |wanted: fn(&Event) -> bool| events.iter().position(|(_, event)| wanted(event));
    let accepted = place(|event| matches!(event, Event::Accepted));
    let ended = place(|event| matches!(event, Event::Result { .. } | Event::Failed { .. }));
    agent.has_accepted |= accepted.is_some();
    if !matches!(agent.way(), Some("websocket" | "queue")) && accepted.is_none() {
        return;
    }
    match (accepted, ended) {
        (Some(accepted), Some(ended)) if accepted < ended => findings.pass("answers-in-order"),
        (_, Some(_)) => findings.fail(
            "answers-in-order",
            "the accept first, then the end",
            if accepted.is_some() { "the end first, then the accept" } else { "an end, and no accept" },
        ),
        (_, None) => {}
    }
}

/// Judges a result. `Err`: there was none, in words.
fn judge_end(
    agent: &mut Agent,
    findings: &mut Findings<'_>,
    index: usize,
    ended: Result<(Event, Duration), String>,
) -> Result<(), String> {
    match ended {
        Ok((event @ Event::Result { .. }, took)) => {
            findings.pass("answers-work");
            if judge_result(agent, findings, index, &event) {
                agent.usable.push(Usable { offer: index, took });
            }
            Ok(())
        }
        Ok((event, _)) => Err(event.words()),
        Err(why) => Err(why),
    }
}

/// Judges the form of a result, of whichever work. Whether it is JSON, and can be gone on with.
pub(super) fn judge_result(agent: &Agent, findings: &mut Findings<'_>, offer: usize, event: &Event) -> bool {
    let Some(offer) = agent.plan.as_ref().map(|plan| &plan.offers[offer]) else { return false };
    let Event::Result { text, is_json, says_json } = event else { return false };
    let found = if *is_json { Ok(()) } else { Err(format!("{}, of {}", short(text), offer.name)) };
    if !findings.judge("result-is-json", "one JSON value", found) {
        return false;
    }
    if agent.way() == Some("http") {
        let told = if *says_json { Ok(()) } else { Err("another content type, or none".to_owned()) };
        findings.judge("http-says-json", "Content-Type: application/json", told);
    }
    if let Some(output) = &offer.output {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let fits = schema::complaints(output, &value);
        findings.judge("result-fits-schema", &format!("a result that fits the output_schema of {}", offer.name), fits);
    }
    true
}

fn result_or_words(ended: Result<(Event, Duration), String>) -> Result<(), String> {
    match ended {
        Ok((Event::Result { .. }, _)) => Ok(()),
        Ok((event, _)) => Err(event.words()),
        Err(why) => Err(why),
    }
}

/// The same with members that nobody knows.
pub(crate) async fn unknown(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let mut work = agent.easy_task()?;
    work.has_unknown = true;
    let ended = agent.do_work(&work).await;
    findings.judge("passes-over-unknown-fields", "a result, as without the unknown member", result_or_words(ended));
    Ok(())
}

/// The same without a trace.
pub(crate) async fn trace(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let mut work = agent.easy_task()?;
    work.traceparent = None;
    let ended = agent.do_work(&work).await;
    findings.judge("needs-no-trace", "a result, as with a traceparent", result_or_words(ended));
    Ok(())
}
