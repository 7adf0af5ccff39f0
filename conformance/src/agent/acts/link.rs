//! What holds for the connection that an agent keeps open, and for the claims of one that pulls.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agent::links::Courier;
use crate::agent::stage::Agent;
use crate::agent::work::Event;
use crate::engine::{Act, Findings, Stop};

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(5);
/// How long an agent has to come back.
const BACK: Duration = Duration::from_secs(10);
/// How long the claims of an agent that has nothing to do are counted.
const WATCHED: Duration = Duration::from_secs(1);
/// How many of them are patience.
const PULLS_MAX: usize = 5;

/// JSON-RPC over the agent's connection.
pub(crate) async fn rpc(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.way() != Some("websocket") {
        return Err(Stop("the agent keeps no connection open".to_owned()));
    }
    let (courier, within) = (agent.courier()?, agent.at_most(ANSWER));
    let found = match courier.request("agent/no_such_method", "{}", within).await {
        Ok(Err(error)) => {
            let error: Value = serde_json::from_str(&error).unwrap_or_default();
            if error["code"] == -32601 { Ok(()) } else { Err(format!("error {error}")) }
        }
        Ok(Ok(result)) => Err(format!("the result {result}")),
        Err(why) => Err(why),
    };
    findings.judge("rpc-unknown-method", "error -32601", found);
    findings.begin(false);
    let mut found = Ok(());
    for id in ["\"check-é-1\"", "9007199254740993", "-7"] {
        if let Err(why) = courier.request_as(id, "agent/no_such_method", "{}", within).await {
            let last = agent.desk.look(|state| state.strays.back().cloned());
            found = Err(format!("id {id}: {why}{}", last.map_or_else(String::new, |last| format!("; it sent {last}"))));
            break;
        }
    }
    findings.judge("rpc-echoes-ids", "an answer with the id of the request", found);
    findings.begin(false);
    let before = agent.desk.look(|state| state.strays.len());
    courier.say(r#"{"jsonrpc":"2.0","method":"agent/no_such_notice","params":{}}"#.to_owned()).map_err(Stop)?;
    // Frames are read in order: once this is answered, an answer to the notification would be here.
    let _ = courier.request("agent/no_such_method", "{}", within).await;
    let stray = agent.desk.look(|state| state.strays.iter().skip(before).last().cloned());
    findings.judge("rpc-silent-to-notifications", "no answer", stray.map_or(Ok(()), Err));
    Ok(())
}

/// Cuts the connection while work runs, and sees the agent come back.
pub(crate) async fn reconnect(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.way() != Some("websocket") {
        return Err(Stop("the agent keeps no connection open".to_owned()));
    }
    let courier = agent.courier()?;
    let work = match agent.slow.clone().filter(|_| agent.busy_with.is_none()) {
        Some(slow) => {
            let work = agent.task(slow.offer, Some(slow.params.clone()))?;
            courier.deliver(&work);
            let key = work.key();
            let accepted = |events: &Vec<(Instant, Event)>| events.iter().any(|(_, event)| *event == Event::Accepted);
            let within = agent.at_most(ANSWER);
            let has = agent.desk.wait(within, |state| accepted(state.attempts.get(&key)?).then_some(())).await;
            has.map(|()| (work, slow.takes))
        }
        None => None,
    };
    let Some(cut) = agent.desk.look(|state| state.connection.as_ref().map(|open| open.number)) else {
        findings.fail("link-comes-back", "an open connection", "there is none");
        return Err(Stop("the agent is not connected".to_owned()));
    };
    courier.cut().map_err(Stop)?;
    let within = agent.at_most(BACK);
    let back = agent.desk.wait(within, |state| {
        state.connection.as_ref().filter(|open| open.number > cut && open.is_registered).map(|_| ())
    });
    let found = match back.await {
        Some(()) => Ok(()),
        None => Err(why_not_back(&courier, cut)),
    };
    if !findings.judge(
        "link-comes-back",
        &format!("a new connection with agent/register within {} s", within.as_secs()),
        found,
    ) {
        return Err(Stop("the agent did not come back".to_owned()));
    }
    match work {
        Some((work, takes)) => {
            let ended = agent.end_after(work.key(), 0, takes * 2 + agent.at_most(ANSWER)).await;
            let found = match ended {
                Some((_, Event::Lost(_))) | None => Err("nothing was reported".to_owned()),
                Some(_) => Ok(()),
            };
            findings.judge("link-reports-meanwhile", "the report, over the new connection", found);
        }
        None => {
            let why = agent.busy_with.clone();
            let why = why.unwrap_or_else(|| "its work is too quick to be cut off in the middle".to_owned());
            findings.skip("link-reports-meanwhile", why);
        }
    }
    Ok(())
}

fn why_not_back(courier: &Courier, cut: u64) -> String {
    let open = courier.desk.look(|state| state.connection.as_ref().map(|open| open.number));
    match open {
        Some(number) if number > cut => "a new connection, and no registration on it".to_owned(),
        Some(_) | None => "no new connection".to_owned(),
    }
}

/// Claims, with work and without.
pub(crate) async fn claims(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if agent.way() != Some("queue") {
        return Err(Stop("the agent does not pull".to_owned()));
    }
    let before = Instant::now();
    // There is no work now: an agent that waits for it asks once, or not at all.
    agent.pause(WATCHED).await;
    let (wrong, pulls, all) = agent.desk.look(|state| {
        let wrong = state.pulls.iter().find_map(|pull| pull.wrong.clone());
        let lately = state.pulls.iter().filter(|pull| pull.at > before && !pull.is_patient).count();
        (wrong, lately, state.pulls.len())
    });
    if all == 0 {
        return Err(Stop("the agent claimed nothing".to_owned()));
    }
    findings.judge("claims-are-valid", "claims that fit Claim.json", wrong.map_or(Ok(()), Err));
    let found = if pulls > PULLS_MAX { Err(format!("{pulls} claims in a second that do not wait")) } else { Ok(()) };
    findings.judge("claims-patiently", "a claim with `wait`", found);
    Ok(())
}
