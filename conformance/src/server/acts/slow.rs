//! Calls that take a while, are called off, or come many at once.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::engine::{Act, Findings, Stop};
use crate::inputs::holds;
use crate::server::inbox::{Notice, Said};
use crate::server::session::Session;
use crate::server::stage::{Server, Slow, good};

/// Work that is quicker than this cannot be called off in time.
const SLOW_MIN: Duration = Duration::from_millis(200);
/// How many calls there are at once.
const CROWD: usize = 8;
/// How long progress that comes too late is listened for.
const LATE: Duration = Duration::from_millis(300);
const TOKEN: &str = "conformance-slow";

/// As many calls at once as a gateway may well have.
pub(crate) async fn crowd(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    let (name, arguments) = server.easy()?;
    let tools = server.usable.iter().map(|usable| &server.tools[usable.tool]);
    let with_text = tools.filter_map(|tool| Some((tool, tool.inputs.with_marked_text()?)));
    let mut echo = None;
    for (tool, (plain, mark)) in with_text {
        let said = main.tool(&tool.name, &plain).await;
        if good(&said).is_ok_and(|result| holds(&result.to_string(), mark)) {
            echo = Some(tool);
            break;
        }
    }
    findings.begin(false);
    let calls = (0..CROWD).map(|number| {
        let mark = format!("mark-{number}-of-{CROWD}");
        let own = echo.and_then(|tool| Some((tool.name.clone(), tool.inputs.with_text(&mark)?)));
        let is_marked = own.is_some();
        let (name, arguments) = own.unwrap_or_else(|| (name.clone(), arguments.clone()));
        async move {
            let result = good(&main.tool(&name, &arguments).await)?;
            let is_own = !is_marked || holds(&result.to_string(), &mark);
            if is_own { Ok(()) } else { Err(format!("the call with {mark} was answered {result}")) }
        }
    });
    let found = join_all(calls).await.into_iter().find(Result::is_err).unwrap_or(Ok(()));
    findings.judge("mcp-side-by-side", &format!("{CROWD} calls at once, each with its own result"), found);
    Ok(())
}

fn progress(session: &Session, after: usize) -> Vec<Notice> {
    let notices = session.inbox.notices().into_iter().filter(|notice| notice.method == "notifications/progress");
    notices.skip(after).collect()
}

/// A call that takes a while, for which progress is asked.
pub(crate) async fn slow(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    let found = server.usable.iter().find_map(|usable| {
        let tool = &server.tools[usable.tool];
        let own = tool.inputs.params.clone().filter(|_| usable.took >= SLOW_MIN);
        Some((tool.name.clone(), tool.inputs.slow.clone().or(own)?))
    });
    let Some((name, arguments)) = found else {
        let why = "no call takes long enough: give arguments of work of about a second as `slow`, in a file named with --samples";
        server.reasons.insert("mcp-slow", why.to_owned());
        server.reasons.insert("mcp-progress", why.to_owned());
        return Err(Stop(why.to_owned()));
    };
    let (before, effects) = (progress(main, 0).len(), server.effects());
    let began = Instant::now();
    let call = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": TOKEN } });
    let mut asked = main.ask("tools/call", call);
    tokio::time::sleep(SLOW_MIN / 4).await;
    let (method, probed) = if main.is_stateless() { ("server/discover", main) } else { ("ping", main) };
    let alive = probed.call(method, json!({})).await;
    let answered_at = Instant::now();
    let (said, ended_at) = asked.wait(server.options.timeout).await;
    if let Err(words) = good(&said) {
        return Err(Stop(format!("the slow call came to {words}; see the `slow` arguments in the samples")));
    }
    let takes = ended_at.duration_since(began);
    if takes < SLOW_MIN {
        let why = format!("the slow call took {} ms only: give more as `slow`", takes.as_millis());
        server.reasons.insert("mcp-slow", why.clone());
        server.reasons.insert("mcp-progress", why.clone());
        return Err(Stop(why));
    }
    let found = match alive.result() {
        Ok(_) if answered_at < ended_at => Ok(()),
        Ok(_) => Err("its answer came after that of the call".to_owned()),
        Err(words) => Err(words),
    };
    findings.judge("mcp-answers-at-work", &format!("an answer to {method} while the call runs"), found);
    tokio::time::sleep(LATE).await;
    judge_progress(findings, &progress(main, before), ended_at);
    let told = progress(main, before).len();
    if told == 0 {
        server.reasons.insert("mcp-progress", "the slow call told no progress".to_owned());
    }
    let has_effect = server.effects() > effects;
    server.slow = Some(Slow { name, arguments, takes, has_effect });
    Ok(())
}

fn judge_progress(findings: &mut Findings<'_>, notices: &[Notice], ended_at: Instant) {
    if notices.is_empty() {
        return;
    }
    let other = notices.iter().find(|notice| notice.params["progressToken"] != TOKEN);
    let found = other.map_or(Ok(()), |notice| Err(notice.params.to_string()));
    findings.judge("mcp-progress-names-its-token", &format!("progressToken {TOKEN:?}"), found);
    let steps: Vec<Option<f64>> = notices.iter().map(|notice| notice.params["progress"].as_f64()).collect();
    let grows = steps.windows(2).all(|pair| matches!(pair, [Some(one), Some(two)] if one < two));
    let found = if grows && steps[0].is_some() { Ok(()) } else { Err(format!("{steps:?}")) };
    findings.judge("mcp-progress-grows", "numbers that grow", found);
    let late = notices.iter().filter(|notice| notice.at > ended_at).count();
    let found = if late == 0 { Ok(()) } else { Err(format!("{late} after the answer")) };
    findings.judge("mcp-progress-ends", "no progress after the answer", found);
}

/// Calls a call off.
pub(crate) async fn cancel(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    if let Some(slow) = &server.slow {
        called_off(server, findings, main, slow).await;
    } else {
        findings.skip("mcp-stops-when-cancelled", "no call takes long enough to be called off");
    }
    findings.begin(false);
    if main.is_pipe() || !main.is_stateless() {
        // A request that there is not.
        let _ = main.notify("notifications/cancelled", json!({ "requestId": 987_654, "reason": "a check" })).await;
    }
    server.judge_still_works(findings, "mcp-survives-cancel").await
}

async fn called_off(server: &Server, findings: &mut Findings<'_>, main: &Session, slow: &Slow) {
    let id = "mcp-stops-when-cancelled";
    let before = progress(main, 0).len();
    let (effects, call) = (server.effects(), json!({ "name": slow.name, "arguments": slow.arguments }));
    let mut asked = main.ask("tools/call", call);
    tokio::time::sleep(slow.takes / 4).await;
    if main.is_stateless() && !main.is_pipe() {
        main.inbox.exchange.add(crate::exchange::Way::Note, "the runner closes the stream of the call");
        asked.hang_up();
    } else {
        let request: Value = serde_json::from_str(&asked.id).unwrap_or_default();
        let _ = main.notify("notifications/cancelled", json!({ "requestId": request, "reason": "a check" })).await;
    }
    let watched = slow.takes * 2 + Duration::from_millis(500);
    let said = if main.is_stateless() && !main.is_pipe() {
        tokio::time::sleep(slow.takes + LATE).await;
        None
    } else {
        Some(asked.wait(watched).await.0)
    };
    match (said, effects.filter(|_| slow.has_effect), server.effects()) {
        (Some(Said::Result(text)), ..) if good(&Said::Result(text.clone())).is_ok() => {
            findings.fail(id, "no result of what was called off", crate::exchange::short(&text));
        }
        (Some(_), ..) => findings.pass(id),
        (None, Some(then), Some(now)) => {
            let found = if then == now { Ok(()) } else { Err("it had its effect".to_owned()) };
            findings.judge(id, "no effect of what was called off", found);
        }
        (None, ..) => findings.skip(id, "what became of a call whose stream was closed is seen with --effects only"),
    }
    let unasked = progress(main, before).into_iter().next();
    if server.reasons.contains_key("mcp-progress") && unasked.is_none() {
        return;
    }
    server_told_unasked(findings, unasked.as_ref());
}

fn server_told_unasked(findings: &mut Findings<'_>, unasked: Option<&Notice>) {
    let found = unasked.map_or(Ok(()), |notice| Err(notice.params.to_string()));
    findings.judge("mcp-progress-only-asked", "no progress of a call without a progressToken", found);
}
