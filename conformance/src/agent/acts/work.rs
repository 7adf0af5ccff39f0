//! Work with good parameters: the first of every capability, and the same with more and with less around it.

use std::time::Duration;

use serde_json::Value;

use crate::agent::plan::{Offer, raw};
use crate::agent::stage::{Agent, Usable, no_work};
use crate::agent::work::{Event, Key};
use crate::engine::{Act, Findings, Stop};
use crate::exchange::short;
use crate::schema;

/// How many capabilities are tried.
const OFFERS_MAX: usize = 16;
/// After so many that were not answered at all, no more are tried.
const SILENT_MAX: usize = 2;

/// Asks every capability for something once.
pub(crate) async fn work(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let count = agent.plan()?.offers.len();
    if count == 0 {
        findings.skip("answers-work", "the card has no capability");
        return Err(Stop("the card has no capability".to_owned()));
    }
    let (mut without, mut silent) = (Vec::new(), 0);
    for index in 0..count.min(OFFERS_MAX) {
        let offer = &agent.plan()?.offers[index];
        let Some(params) = offer.inputs.params.as_ref().map(raw) else {
            without.push(offer.name.to_string());
            continue;
        };
        findings.begin(false);
        let work = agent.task(index, Some(params))?;
        let ended = agent.do_work(&work).await;
        judge_order(agent, findings, work.key());
        silent += usize::from(matches!(ended, Err(_) | Ok((Event::Lost(_), _))));
        judge_end(agent, findings, index, ended);
        if silent >= SILENT_MAX {
            break;
        }
    }
    agent.usable.sort_by_key(|usable| usable.took);
    if agent.usable.is_empty() {
        findings.skip(
            "answers-work",
            format!(
                "no parameters could be made for {}: put examples into the input_schema, or name a file with --samples",
                without.join(", ")
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

fn judge_end(agent: &mut Agent, findings: &mut Findings<'_>, index: usize, ended: Result<(Event, Duration), String>) {
    let Some(offer) = agent.plan.as_ref().map(|plan| &plan.offers[index]) else { return };
    let expected = format!("a result of {}", offer.name);
    match ended {
        Ok((Event::Result { text, is_json, says_json }, took)) => {
            findings.pass("answers-work");
            if !is_json {
                findings.fail("result-is-json", "one JSON value", short(&text));
                return;
            }
            findings.pass("result-is-json");
            if agent.way() == Some("http") {
                let told = if says_json { Ok(()) } else { Err("another content type, or none".to_owned()) };
                findings.judge("http-says-json", "Content-Type: application/json", told);
            }
            judge_schema(findings, offer, &text);
            agent.usable.push(Usable { offer: index, took });
        }
        Ok((event, _)) => findings.fail("answers-work", expected, event.words()),
        Err(why) => findings.fail("answers-work", expected, why),
    }
}

fn judge_schema(findings: &mut Findings<'_>, offer: &Offer, text: &str) {
    if let Some(output) = &offer.output {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let fits = schema::complaints(output, &value);
        findings.judge("result-fits-schema", &format!("a result that fits the output_schema of {}", offer.name), fits);
    }
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
