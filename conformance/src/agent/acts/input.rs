//! Parameters and messages that are wrong, strange, large or absent.

use std::time::{Duration, Instant};

use reach_schemas::RawJson;
use reqwest::header::CONTENT_TYPE;

use crate::agent::http;
use crate::agent::links::{Courier, Link};
use crate::agent::plan::raw;
use crate::agent::stage::{Agent, no_work};
use crate::agent::work::Event;
use crate::engine::{Act, Findings, Stop};
use crate::exchange::{Way, short};
use crate::inputs::{NUMBER, NUMBER_PAUSE, PLAIN_NUMBERS, PLAIN_TEXT, TEXT, holds};
use crate::misfit::Misfit;

/// How long work is waited for whose parameters may make no sense.
const QUICK: Duration = Duration::from_secs(3);
/// How long bad parameters are tried in all, and how many of one capability may be taken before it is told of.
const BAD_MAX: Duration = Duration::from_secs(6);
const WRONG_MAX: usize = 2;
/// How long one that is full is left alone.
const FULL: Duration = Duration::from_millis(300);
/// How long an answer to garbage is waited for.
const ANSWER: Duration = Duration::from_secs(5);

/// Parameters that do not fit the schemas: of each capability, each fault once that its schema can express.
pub(crate) async fn bad_input(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.usable.is_empty() {
        return Err(no_work());
    }
    let offers = agent.plan()?.offers.iter().enumerate();
    let misfits = offers.flat_map(|(index, offer)| offer.inputs.bad.iter().map(move |bad| (index, bad.clone())));
    let misfits: Vec<(usize, Misfit)> = misfits.collect();
    if misfits.is_empty() {
        let why = "no capability has an input_schema that refuses anything; give bad parameters with --samples";
        findings.skip("refuses-bad-input", why);
        findings.skip("survives-bad-input", why);
        return Ok(());
    }
    let began = Instant::now();
    let mut wrong = Vec::new();
    for (offer, misfit) in misfits {
        // One that takes what is wrong is told of once, and not asked all of it.
        if wrong.iter().filter(|other| **other == offer).count() >= WRONG_MAX || began.elapsed() > BAD_MAX {
            continue;
        }
        findings.begin(false);
        let ended = ask_badly(agent, offer, &misfit).await?;
        let is_silent = matches!(ended, Err(_) | Ok(Event::Lost(_)));
        if let Err(words) = refused(agent, findings, ended) {
            let name = &agent.plan()?.offers[offer].name;
            let found =
                format!("{name}, asked with {}, where {}: {words}", short(&misfit.value.to_string()), misfit.words());
            findings.fail_too("refuses-bad-input", "a refusal for good", found);
            wrong.push(offer);
        }
        if is_silent {
            break;
        }
        agent.judge_still_works(findings, "survives-bad-input").await?;
        if findings.is_failed("survives-bad-input") {
            break;
        }
    }
    Ok(())
}

/// What bad parameters come to. One that is full for a moment is asked again.
async fn ask_badly(agent: &mut Agent, offer: usize, misfit: &Misfit) -> Result<Result<Event, String>, Stop> {
    let work = agent.task(offer, Some(raw(&misfit.value)))?;
    let ended = agent.do_work(&work).await.map(|(event, _)| event);
    if !matches!(ended, Ok(Event::Refused { is_full: true, .. })) {
        return Ok(ended);
    }
    agent.pause(FULL).await;
    let work = agent.task(offer, Some(raw(&misfit.value)))?;
    Ok(agent.do_work(&work).await.map(|(event, _)| event))
}

/// Judges what bad parameters came to. `Err`: it was no refusal for good.
fn refused(agent: &Agent, findings: &mut Findings<'_>, ended: Result<Event, String>) -> Result<(), String> {
    let is_command = agent.way() == Some("process");
    match ended {
        Ok(Event::Failed { for_good, why }) if is_command => {
            findings.pass("refuses-bad-input");
            let found = if for_good { Ok(()) } else { Err(why) };
            findings.judge("command-refuses-with-its-code", "exit code 64 to 66", found);
            Ok(())
        }
        Ok(Event::Failed { for_good: true, .. }) => {
            findings.pass("refuses-bad-input");
            Ok(())
        }
        Ok(event) => Err(event.words()),
        Err(why) => Err(why),
    }
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
        let answer = request.timeout(ANSWER.min(courier.timeout)).send().await;
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
    match courier.request(method, "{\"hello\":1}", ANSWER.min(courier.timeout)).await? {
        Ok(result) => Err(format!("task/deliver without a delivery was answered with the result {}", short(&result))),
        Err(_) => Ok(()),
    }
}

/// Text of many scripts.
pub(crate) async fn texts(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.usable.is_empty() {
        return Err(no_work());
    }
    unicode(agent, findings).await
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

/// A number that no float holds, for a capability that gives back what it is given. It comes late: what takes a number
/// for a length of time may be busy with it until the end.
pub(crate) async fn numbers(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let usable: Vec<(usize, Duration)> = agent.usable.iter().map(|usable| (usable.offer, usable.took)).collect();
    if usable.is_empty() {
        return Err(no_work());
    }
    for (offer, took) in usable {
        let Some(params) = agent.plan()?.offers[offer].inputs.with_number(NUMBER) else { continue };
        match echoes_numbers(agent, offer, took).await? {
            Echo::Yes => {}
            Echo::No => continue,
            Echo::Busy => break,
        }
        let found = match quick_result(agent, offer, params).await? {
            Ok(text) if text.contains(NUMBER) => Ok(()),
            Ok(text) => Err(short(&text)),
            Err(_) if agent.is_silent() => {
                busy(agent, offer, NUMBER)?;
                break;
            }
            Err(_) => continue,
        };
        findings.judge("keeps-numbers", &format!("{NUMBER} in the result"), found);
        return Ok(());
    }
    let why = || "no capability gives a large number back that it was given".to_owned();
    agent.no_number = Some(agent.busy_with.clone().unwrap_or_else(why));
    Ok(())
}

/// Whether numbers come back.
enum Echo {
    Yes,
    No,
    /// It is still at it.
    Busy,
}

/// Tries numbers that any float holds, from small to large. One that takes its time over one takes it for a length of time,
/// or a size.
async fn echoes_numbers(agent: &mut Agent, offer: usize, took: Duration) -> Result<Echo, Stop> {
    for digits in PLAIN_NUMBERS {
        let Some(params) = agent.plan()?.offers[offer].inputs.with_number(digits) else { continue };
        let began = Instant::now();
        let ended = quick_result(agent, offer, params).await?;
        let is_slow = began.elapsed() > took.saturating_mul(3) + NUMBER_PAUSE;
        match ended {
            Ok(text) if text.contains(digits) && !is_slow => {}
            Err(_) if agent.is_silent() => {
                busy(agent, offer, digits)?;
                return Ok(Echo::Busy);
            }
            Ok(_) | Err(_) => return Ok(Echo::No),
        }
    }
    Ok(Echo::Yes)
}

/// What this number came to nothing with may run on, and no more is held against the agent for that.
fn busy(agent: &mut Agent, offer: usize, digits: &str) -> Act {
    let name = &agent.plan()?.offers[offer].name;
    agent.busy_with = Some(format!("{name} may still be at work on the number {digits}, a check of this run's"));
    agent.heard();
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
