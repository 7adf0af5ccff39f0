//! Whether the agent shows who it is: joins, bears its token and the next one, and shows its key when a token is lost.

use std::time::{Duration, Instant};

use crate::agent::desk::State;
use crate::agent::links::Courier;
use crate::agent::stage::Agent;
use crate::agent::tokens::{Shown, Tokens};
use crate::engine::{Act, Findings, Stop};

/// The longest interval between heartbeats that is waited for.
const INTERVAL_MAX: Duration = Duration::from_secs(12);
/// What a call may be late on a machine with much to do.
const LATE: Duration = Duration::from_secs(2);
/// What is on its way already when the agent is told something.
const ON_ITS_WAY: Duration = Duration::from_millis(500);
/// The close codes of docs/identity.md.
const CLOSE_EXPIRED: u16 = 4401;
const CLOSE_SUPERSEDED: u16 = 4409;

/// Why there is nothing to look at.
pub(crate) fn why_not(agent: &Agent) -> Option<String> {
    (!agent.options.demands_tokens)
        .then(|| "the agent was not asked for a token: --tokens makes the runner a gateway that does".to_owned())
}

fn look<T>(agent: &Agent, look: impl FnOnce(&Tokens) -> T) -> T {
    agent.desk.look(|state| look(&state.tokens))
}

async fn shown(agent: &Agent, within: Duration, wanted: impl Fn(&Tokens, &Shown) -> bool) -> Option<Shown> {
    let found = |tokens: &Tokens| tokens.shown.iter().find(|shown| wanted(tokens, shown)).cloned();
    agent.desk.wait(within, |state| found(&state.tokens)).await
}

/// Waits until a connected agent that has just come back is settled: until it has registered, it is not told anything.
async fn settled(agent: &Agent) {
    if agent.way() == Some("websocket") {
        let is_up = |state: &State| state.connection.as_ref().filter(|open| open.is_registered).map(drop);
        // One that stays away is judged by that.
        if agent.desk.wait(LATE, is_up).await.is_some() {
            agent.pause(ON_ITS_WAY).await;
        }
    }
}

/// Tells a connected agent something by the end of its connection.
fn close(agent: &Agent, courier: &Courier, code: u16) {
    if agent.way() == Some("websocket") {
        // One that is not connected hears of it when it comes back.
        let _ = courier.close(code);
    }
}

/// Joining, tokens, and a token that is lost.
pub(crate) async fn tokens(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if let Some(why) = why_not(agent) {
        return Err(Stop(why));
    }
    if agent.registered_at.is_none() {
        return Err(Stop("the agent did not register".to_owned()));
    }
    judge_first(agent, findings);
    let interval = agent.interval();
    if interval > INTERVAL_MAX {
        let seconds = interval.as_secs();
        return Err(Stop(format!("its interval of {seconds} s is longer than this run; declare a shorter one")));
    }
    let (courier, patience) = (agent.courier()?, interval * 2 + LATE);
    findings.begin(true);
    next_token(agent, findings, &courier, patience).await?;
    findings.begin(true);
    lost_token(agent, findings, &courier, patience).await;
    let keys = look(agent, |tokens| tokens.proofs.iter().map(|proof| proof.key.clone()).collect::<Vec<_>>());
    let found = if keys.windows(2).all(|pair| pair[0] == pair[1]) { Ok(()) } else { Err(format!("{keys:?}")) };
    findings.judge("keeps-its-key", "one key all along", found);
    Ok(())
}

fn judge_first(agent: &Agent, findings: &mut Findings<'_>) {
    let (has_joined, wrong) = look(agent, |tokens| {
        let wrong = tokens.proofs.iter().find_map(|proof| proof.wrong.clone());
        (tokens.proofs.iter().any(|proof| proof.has_join), wrong)
    });
    let found = if has_joined { Ok(()) } else { Err("a proof, and no join token with it".to_owned()) };
    findings.judge("joins", "a join token and a proof, once it is told `unauthenticated`", found);
    findings.judge("proves-its-key", "a proof for this gateway, of now, used once", wrong.map_or(Ok(()), Err));
    let bare = look(agent, |tokens| {
        let given = tokens.proofs.first().map(|proof| proof.at);
        tokens
            .shown
            .iter()
            .filter(|shown| Some(shown.at) > given.map(|at| at + ON_ITS_WAY) && shown.token.is_none())
            .count()
    });
    let found = if bare == 0 { Ok(()) } else { Err(format!("{bare} calls without a token")) };
    findings.judge("shows-its-token", "the token with every call", found);
}

async fn next_token(agent: &Agent, findings: &mut Findings<'_>, courier: &Courier, patience: Duration) -> Act {
    agent.desk.change(|state| state.tokens.brings_next = true);
    let Some(at) = agent.desk.wait(patience, |state| state.tokens.brought_at).await else {
        return Err(Stop("no heartbeat came that could be answered with the next token".to_owned()));
    };
    let is_socket = agent.way() == Some("websocket");
    if is_socket {
        // A connection goes on under the token that it was opened with: the next one shows what the agent has now.
        agent.pause(ON_ITS_WAY).await;
        courier.cut().map_err(Stop)?;
    }
    let bears = |tokens: &Tokens, shown: &Shown| {
        shown.at > at && shown.opens_socket == is_socket && shown.token.as_deref() == tokens.newest()
    };
    let found = shown(agent, patience.max(LATE * 3), bears).await;
    let found = found.map(drop).ok_or_else(|| "calls with an older token only".to_owned());
    findings.judge("takes-next-token", "the token that the heartbeat brought, on what follows", found);
    Ok(())
}

async fn lost_token(agent: &Agent, findings: &mut Findings<'_>, courier: &Courier, patience: Duration) {
    settled(agent).await;
    agent.note("every token is over from now on");
    let at = Instant::now();
    agent.desk.change(|state| state.tokens.end_all());
    close(agent, courier, CLOSE_EXPIRED);
    let is_back = |_: &Tokens, shown: &Shown| shown.at > at && shown.is_taken;
    let back = shown(agent, patience + LATE * 2, is_back).await;
    let proved = look(agent, |tokens| tokens.proofs.iter().any(|proof| proof.at > at));
    let found = match (back, proved) {
        (Some(_), _) => Ok(()),
        (None, true) => Err("a proof, and no call under the token that it got".to_owned()),
        (None, false) => Err("no proof of its key".to_owned()),
    };
    findings.judge("shows-its-key-again", "a proof, and calls under the token that it brings", found);
}

/// Tells the agent that another has taken its place.
pub(crate) async fn superseded(agent: &mut Agent, findings: &mut Findings<'_>) -> Act {
    if let Some(why) = why_not(agent) {
        return Err(Stop(why));
    }
    if agent.registered_at.is_none() || agent.interval() > INTERVAL_MAX {
        return Err(Stop("the agent did not register, or beats too seldom for this run".to_owned()));
    }
    settled(agent).await;
    findings.begin(true);
    let (courier, at) = (agent.courier()?, Instant::now());
    agent.note("another has taken the agent's place");
    agent.desk.change(|state| state.tokens.is_superseded = true);
    close(agent, &courier, CLOSE_SUPERSEDED);
    let told_at = if agent.way() == Some("websocket") {
        at
    } else {
        let told = shown(agent, agent.interval() * 2 + LATE, |_, shown| shown.at > at).await;
        let Some(told) = told else { return Err(Stop("no call came that could be refused".to_owned())) };
        told.at
    };
    agent.pause(agent.interval().mul_f64(1.5) + LATE).await;
    let more = look(agent, |tokens| {
        let later = |at: &Instant| *at > told_at + ON_ITS_WAY;
        tokens.shown.iter().filter(|shown| later(&shown.at)).count()
            + tokens.proofs.iter().filter(|proof| later(&proof.at)).count()
    });
    let found = if more == 0 { Ok(()) } else { Err(format!("{more} more calls, connections or proofs")) };
    findings.judge("stops-when-superseded", "no more calls", found);
    Ok(())
}
