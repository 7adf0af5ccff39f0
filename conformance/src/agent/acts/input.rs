//! Parameters and messages that are wrong, strange, large or absent.

use std::time::Duration;

use reach_schemas::RawJson;
use reqwest::header::CONTENT_TYPE;

use crate::agent::http;
use crate::agent::links::{Courier, Link};
use crate::agent::plan::raw;
use crate::agent::stage::{Agent, no_work};
use crate::agent::work::Event;
use crate::engine::{Act, Findings, Stop};
use crate::exchange::{Way, short};
use crate::inputs::{NUMBER, PLAIN_NUMBER, PLAIN_TEXT, TEXT, holds};

/// How long work is waited for whose parameters may make no sense.
const QUICK: Duration = Duration::from_secs(3);

/// Parameters that do not fit the schema.
pub(crate) async fn bad_input(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.usable.is_empty() {
        return Err(no_work());
    }
    let usable: Vec<usize> = agent.usable.iter().map(|usable| usable.offer).collect();
    let plan = agent.plan()?;
    let bad = usable.into_iter().find_map(|offer| plan.offers[offer].inputs.bad.as_ref().map(|bad| (offer, raw(bad))));
    let Some((offer, bad)) = bad else {
        let why = "no capability has an input_schema that refuses anything; give bad parameters with --samples";
        findings.skip("refuses-bad-input", why);
        findings.skip("survives-bad-input", why);
        return Ok(());
    };
    let is_command = matches!(agent.courier()?.link, Link::Process(_));
    let work = agent.task(offer, Some(bad))?;
    let expected = "a refusal for good";
    match agent.do_work(&work).await {
        Ok((Event::Failed { for_good, why }, _)) if is_command => {
            findings.pass("refuses-bad-input");
            let found = if for_good { Ok(()) } else { Err(why) };
            findings.judge("command-refuses-with-its-code", "exit code 64 to 66", found);
        }
        Ok((Event::Failed { for_good: true, .. } | Event::Refused { is_full: false, .. }, _)) => {
            findings.pass("refuses-bad-input");
        }
        Ok((event, _)) => findings.fail("refuses-bad-input", expected, event.words()),
        Err(why) => findings.fail("refuses-bad-input", expected, why),
    }
    agent.judge_still_works(findings, "survives-bad-input").await
}

/// Messages that are no deliveries.
pub(crate) async fn garbage(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let courier = agent.courier()?;
    let found = match &courier.link {
        Link::Http { client, url } => post_garbage(&courier, client, url).await,
        Link::Socket => push_garbage(&courier).await,
        Link::Queue | Link::Process(_) => return Err(Stop("nothing can be sent to it".to_owned())),
    };
    findings.judge("refuses-garbage", "a refusal as the sender's mistake", found);
    agent.judge_still_works(findings, "survives-garbage").await
}

async fn post_garbage(courier: &Courier, client: &reqwest::Client, url: &str) -> Result<(), String> {
    for body in ["{\"task_id\": ", "[]", "{\"hello\": 1}"] {
        courier.desk.exchange.add(Way::Out, &format!("POST {url} {body}"));
        let request = client.post(url).header(CONTENT_TYPE, "application/json").body(body);
        let answer = request.timeout(Duration::from_secs(5)).send().await;
        let status = answer.map_err(|error| format!("no answer to {body}: {}", http::lost(&error)))?.status();
        courier.desk.exchange.add(Way::In, &status.to_string());
        if !status.is_client_error() || [408, 425, 429].contains(&status.as_u16()) {
            return Err(format!("{body} was answered {status}"));
        }
    }
    Ok(())
}

async fn push_garbage(courier: &Courier) -> Result<(), String> {
    courier.say("{\"jsonrpc\": ".to_owned())?;
    courier.say("[1, 2".to_owned())?;
    let method = reach_schemas::method::push::DELIVER;
    match courier.request(method, "{\"hello\":1}", Duration::from_secs(5)).await? {
        Ok(result) => Err(format!("task/deliver without a delivery was answered with the result {}", short(&result))),
        Err(_) => Ok(()),
    }
}

/// Text of many scripts, and a number that no float holds.
pub(crate) async fn texts(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.usable.is_empty() {
        return Err(no_work());
    }
    unicode(agent, findings).await?;
    numbers(agent, findings).await
}

/// The result of an attempt, if it is one.
async fn result(agent: &mut Agent, offer: usize, params: RawJson) -> Result<Result<String, String>, Stop> {
    let work = agent.task(offer, Some(params))?;
    Ok(match agent.do_work(&work).await {
        Ok((Event::Result { text, .. }, _)) => Ok(text),
        Ok((event, _)) => Err(event.words()),
        Err(why) => Err(why),
    })
}

async fn unicode(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let usable: Vec<usize> = agent.usable.iter().map(|usable| usable.offer).collect();
    let mut best = None;
    for offer in usable {
        let Some(plain) = agent.plan()?.offers[offer].inputs.with_text(PLAIN_TEXT) else { continue };
        // What fails with plain text of ours takes no free text: a path, a name of something.
        let Ok(plain) = result(agent, offer, raw(&plain)).await? else { continue };
        let does_echo = holds(&plain, PLAIN_TEXT);
        best = best.filter(|_| !does_echo).or(Some((offer, does_echo)));
        if does_echo {
            break;
        }
    }
    let Some((offer, does_echo)) = best else {
        agent.no_text = Some("no capability takes free text".to_owned());
        return Ok(());
    };
    let Some(params) = agent.plan()?.offers[offer].inputs.with_text(TEXT) else { return Ok(()) };
    let found = match result(agent, offer, raw(&params)).await? {
        Ok(text) if does_echo && !holds(&text, TEXT) => {
            Err(format!("plain text came back in the result, and this did not: {}", short(&text)))
        }
        Ok(_) => Ok(()),
        Err(words) => Err(words),
    };
    findings.judge("keeps-unicode", &format!("the text {TEXT:?} as any other"), found);
    Ok(())
}

async fn numbers(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let usable: Vec<usize> = agent.usable.iter().map(|usable| usable.offer).collect();
    for offer in usable {
        let Some(plain) = agent.plan()?.offers[offer].inputs.with_number(PLAIN_NUMBER) else { continue };
        // A number may be a length of time or a size, and then this one is out of reach.
        let Ok(text) = quick_result(agent, offer, plain).await? else { continue };
        if !text.contains(PLAIN_NUMBER) {
            continue;
        }
        let Some(params) = agent.plan()?.offers[offer].inputs.with_number(NUMBER) else { continue };
        let Ok(text) = quick_result(agent, offer, params).await? else { continue };
        let found = if text.contains(NUMBER) { Ok(()) } else { Err(short(&text)) };
        findings.judge("keeps-numbers", &format!("{NUMBER} in the result"), found);
        return Ok(());
    }
    agent.no_number = Some("no capability gives a large number back that it was given".to_owned());
    Ok(())
}

/// The result of work that is not waited for long.
async fn quick_result(agent: &mut Agent, offer: usize, params: RawJson) -> Result<Result<String, String>, Stop> {
    let mut work = agent.task(offer, Some(params))?;
    work.attempt_timeout = work.attempt_timeout.min(QUICK);
    Ok(match agent.do_work(&work).await {
        Ok((Event::Result { text, .. }, _)) => Ok(text),
        Ok((event, _)) => Err(event.words()),
        Err(why) => Err(why),
    })
}

/// A megabyte of text.
pub(crate) async fn large(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let usable: Vec<usize> = agent.usable.iter().map(|usable| usable.offer).collect();
    let plan = agent.plan()?;
    let large = |offer: usize| plan.offers[offer].inputs.with_large_text().map(|params| (offer, raw(&params)));
    let made = usable.into_iter().find_map(large);
    let Some((offer, params)) = made else {
        findings.skip("takes-large-params", "no capability takes free text");
        return Ok(());
    };
    let work = agent.task(offer, Some(params))?;
    judge_answered(agent, findings, "takes-large-params", &work).await
}

/// No parameters at all.
pub(crate) async fn empty(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let mut work = agent.easy_task()?;
    work.params = None;
    judge_answered(agent, findings, "takes-empty-params", &work).await
}

/// Any end will do, and the agent must be there afterwards.
async fn judge_answered(
    agent: &mut Agent,
    findings: &mut Findings<'_>,
    id: &str,
    work: &crate::agent::work::Work,
) -> Act {
    let found = match agent.do_work(work).await {
        Ok((Event::Lost(why), _)) | Err(why) => Err(why),
        Ok(_) => Ok(()),
    };
    if findings.judge(id, "an answer of any kind", found) {
        return agent.judge_still_works(findings, id).await;
    }
    Ok(())
}
