//! Registration, the card, and the probe of an agent that has nothing to do.

use std::time::Duration;

use serde_json::Value;

use crate::agent::links::Probe;
use crate::agent::stage::Agent;
use crate::engine::{Act, Findings, Stop};
use crate::schema;

/// Waits until the agent has registered.
pub(crate) async fn register(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if let Some(card) = agent.options.card.clone() {
        return agent.take_up(card).map_err(Stop);
    }
    let (within, desk) = (agent.options.timeout, agent.desk.clone());
    let fell = async {
        match agent.started.as_mut() {
            Some(started) => started.fell().await,
            None => std::future::pending().await,
        }
    };
    let came = tokio::select! {
        biased;
        came = desk.wait(within, |state| state.registrations.first().cloned()) => came.ok_or(None),
        how = fell => Err(Some(how)),
    };
    let registration = match came {
        Ok(registration) => registration,
        Err(how) => {
            judge_absent(agent, findings, how);
            return Err(Stop("the agent did not register".to_owned()));
        }
    };
    agent.registered_at = Some(registration.at);
    agent.desk.change(|state| state.disown_next = true);
    let card: Value = serde_json::from_str(&registration.card).unwrap_or_default();
    let is_pushed = card["endpoints"][0]["protocol"] == "websocket";
    if is_pushed && registration.connection.is_none() {
        findings.fail(
            "registers",
            "a card with a websocket endpoint is registered on that WebSocket",
            "it came over HTTP",
        );
    } else {
        findings.pass("registers");
    }
    agent.take_up(card).map_err(Stop)
}

/// Says why the agent did not register, with how it ended if it did.
fn judge_absent(agent: &Agent, findings: &mut Findings<'_>, ended: Option<String>) {
    let (is_silent, beats, connections) =
        agent.desk.look(|state| (state.has_heard_nothing(), state.beats.len(), state.connections));
    let within = agent.options.timeout.as_secs();
    let address = agent.address.map(|address| format!("http://{address}")).unwrap_or_default();
    let has_ended = ended.is_some();
    let found = ended.unwrap_or_else(|| {
        if is_silent {
            format!("nothing came to {address} within {within} s: does the agent call that address? AGENT_REACH_URL names it to one of --start")
        } else {
            format!("no registration that could be read within {within} s ({connections} connections, {beats} heartbeats)")
        }
    });
    // Who is asked for a token and shows none has not come as far as registering.
    let (is_asked, has_shown) =
        agent.desk.look(|state| (!state.tokens.shown.is_empty(), !state.tokens.proofs.is_empty()));
    if is_asked && !has_shown && !has_ended {
        findings.fail("joins", "a join token and a proof, once it is told `unauthenticated`", "no proof");
    } else {
        findings.fail("registers", "agent/register at the runner's address", found);
    }
}

/// Looks at the card.
pub(crate) async fn card(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let Some(card) = agent.card.clone() else { return Err(Stop("there is no card".to_owned())) };
    agent.note(&format!("the card: {card}"));
    let fits = schema::fits("AgentCard", &card).and_then(|()| {
        // What the schema cannot express is in the type.
        serde_json::from_value::<reach_schemas::AgentCard>(card.clone()).map(drop).map_err(|error| error.to_string())
    });
    findings.judge("card-is-valid", "a card that fits AgentCard.json", fits);
    let capabilities = card["capabilities"].as_array().cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    let (mut silent, mut vague) = (Vec::new(), Vec::new());
    for capability in &capabilities {
        let name = capability["name"].as_str().unwrap_or_default();
        for kind in ["input_schema", "output_schema"] {
            let schema = capability.get(kind).filter(|schema| !schema.is_null());
            if let Some(Err(why)) = schema.map(schema::compile) {
                wrong.push(format!("{kind} of {name}, {why}"));
            }
        }
        if capability["description"].as_str().unwrap_or_default().trim().is_empty() {
            silent.push(name.to_owned());
        }
        if capability.get("effect").is_none() {
            vague.push(name.to_owned());
        }
    }
    let none = |found: Vec<String>| if found.is_empty() { Ok(()) } else { Err(found.join("; ")) };
    findings.judge("card-schemas-usable", "schemas that can be used", none(wrong));
    findings.judge(
        "card-says-what-it-does",
        "a description of each capability",
        none(silent).map_err(|names| format!("none of {names}")),
    );
    findings.judge(
        "card-says-its-effect",
        "an effect of each capability",
        none(vague).map_err(|names| format!("none of {names}")),
    );
    let endpoints = card["endpoints"].as_array().cloned().unwrap_or_default();
    let versions: Vec<&str> = endpoints.iter().map(|endpoint| endpoint["version"].as_str().unwrap_or("1")).collect();
    let spoken =
        if versions.is_empty() || versions.contains(&"1") { Ok(()) } else { Err(format!("versions {versions:?}")) };
    findings.judge("card-version-spoken", "version \"1\" of one endpoint at least", spoken);
    Ok(())
}

/// Asks how it is, while it has nothing to do.
pub(crate) async fn probe(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    let within = Duration::from(agent.plan()?.probe_timeout).min(agent.options.timeout);
    match agent.courier()?.probe(within).await {
        Probe::None(why) => {
            agent.no_probe = Some(why.clone());
            return Err(Stop(why));
        }
        Probe::Failed(why) => {
            findings.fail("answers-probe", format!("an answer within {} ms", within.as_millis()), why);
            return Err(Stop("the probe was not answered".to_owned()));
        }
        Probe::Answered(report) => {
            findings.pass("answers-probe");
            if !report.is_object() {
                return Err(Stop("the answer is no health report, which is well".to_owned()));
            }
            findings.judge(
                "probe-fits-schema",
                "a report that fits HealthReport.json",
                schema::fits("HealthReport", &report),
            );
            let missing: Vec<&str> =
                ["queue_depth", "failure_rate_10m"].into_iter().filter(|name| report.get(*name).is_none()).collect();
            let told = if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} are not told")) };
            findings.judge("probe-reports", "queue_depth and failure_rate_10m", told);
        }
    }
    Ok(())
}
