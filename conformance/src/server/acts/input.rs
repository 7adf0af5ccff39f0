//! Arguments that are wrong, strange or large, and tools that there are not.

use std::time::Instant;

use serde_json::{Value, json};

use crate::engine::{Act, Findings, Stop};
use crate::exchange::short;
use crate::inputs::{NUMBER, NUMBER_PAUSE, PLAIN_NUMBERS, PLAIN_TEXT, TEXT, holds};
use crate::server::inbox::Said;
use crate::server::stage::{Server, good};

/// Refused, in one of the two ways that a gateway reads as a refusal.
fn refused(said: &Said) -> Result<(), String> {
    let is_error = said.result().is_ok_and(|result| result["isError"] == true);
    if is_error || said.code() == Some(-32602) { Ok(()) } else { Err(said.words()) }
}

/// Arguments that do not fit, and a tool that there is not.
pub(crate) async fn bad(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    server.easy()?;
    let expected = "a result with isError, or error -32602";
    let tools = server.usable.iter().map(|usable| &server.tools[usable.tool]);
    for (tool, bad) in tools.filter_map(|tool| Some((tool, &tool.inputs.bad.first()?.value))) {
        findings.begin(false);
        let said = main.tool(&tool.name, bad).await;
        findings.judge("mcp-refuses-bad-arguments", expected, refused(&said));
    }
    server.judge_still_works(findings, "mcp-survives-bad-arguments").await?;
    findings.begin(false);
    let said = main.tool("reach_conformance_no_such_tool", &json!({})).await;
    findings.judge("mcp-refuses-unknown-tool", expected, refused(&said));
    Ok(())
}

/// Text of many scripts, and a number that no float holds.
pub(crate) async fn texts(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    server.easy()?;
    let mut best = None;
    for tool in server.usable.iter().map(|usable| &server.tools[usable.tool]) {
        let Some(plain) = tool.inputs.with_text(PLAIN_TEXT) else { continue };
        // What fails with plain text of ours takes no free text: a path, a name of something.
        let Ok(plain) = good(&main.tool(&tool.name, &plain).await) else { continue };
        let does_echo = holds(&plain.to_string(), PLAIN_TEXT);
        best = best.filter(|_| !does_echo).or(Some((tool, does_echo)));
        if does_echo {
            break;
        }
    }
    if let Some((tool, does_echo)) = best {
        findings.begin(false);
        let arguments = tool.inputs.with_text(TEXT).unwrap_or_default();
        let found = match good(&main.tool(&tool.name, &arguments).await) {
            Ok(result) if does_echo && !holds(&result.to_string(), TEXT) => {
                Err(format!("plain text came back, and this did not: {}", short(&result.to_string())))
            }
            Ok(_) => Ok(()),
            Err(words) => Err(words),
        };
        findings.judge("mcp-keeps-unicode", &format!("the text {TEXT:?} as any other"), found);
    }
    let has_text = best.is_some();
    if !has_text {
        server.reasons.insert("mcp-text", "no tool takes free text".to_owned());
    }
    if !numbers(server, findings).await? {
        server.reasons.insert("mcp-numbers", "no tool gives a large number back that it was given".to_owned());
    }
    Ok(())
}

/// A number that no float holds, for a tool that gives back what it is given. Answers whether there is one.
async fn numbers(server: &Server, findings: &mut Findings<'_>) -> Result<bool, Stop> {
    let main = server.main()?;
    let shows = |said: &Said, digits: &str| matches!(said, Said::Result(text) if text.contains(digits));
    'tools: for usable in &server.usable {
        let tool = &server.tools[usable.tool];
        let with = |digits: &str| -> Option<Value> {
            tool.inputs.with_number(digits).and_then(|params| serde_json::from_str(params.get()).ok())
        };
        let Some(large) = with(NUMBER) else { continue };
        for (plain, digits) in PLAIN_NUMBERS.iter().filter_map(|digits| Some((with(digits)?, digits))) {
            let began = Instant::now();
            let does_echo = shows(&main.tool(&tool.name, &plain).await, digits);
            // One that takes its time over it takes it for a length of time.
            if !does_echo || began.elapsed() > usable.took.saturating_mul(3) + NUMBER_PAUSE {
                continue 'tools;
            }
        }
        findings.begin(false);
        let said = main.tool(&tool.name, &large).await;
        let found = if shows(&said, NUMBER) { Ok(()) } else { Err(said.words()) };
        findings.judge("mcp-keeps-numbers", &format!("{NUMBER} in the result"), found);
        return Ok(true);
    }
    Ok(false)
}

/// A megabyte of text.
pub(crate) async fn large(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    server.easy()?;
    let tools = server.usable.iter().map(|usable| &server.tools[usable.tool]);
    let made = tools.filter_map(|tool| Some((&tool.name, tool.inputs.with_large_text()?))).next();
    let Some((name, arguments)) = made else {
        findings.skip("mcp-takes-large", "no tool takes free text");
        return Ok(());
    };
    // It may take its time to be read and written.
    let mut asked = main.ask("tools/call", json!({ "name": name, "arguments": arguments }));
    let found = match asked.wait(server.options.timeout * 2).await.0 {
        Said::Nothing(why) if !why.starts_with("status 413") => Err(why),
        Said::Nothing(_) | Said::Result(_) | Said::Error(_) => Ok(()),
    };
    if findings.judge("mcp-takes-large", "an answer of any kind", found) {
        return server.judge_still_works(findings, "mcp-takes-large").await;
    }
    Ok(())
}
