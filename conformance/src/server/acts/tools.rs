//! The tools: their list, a call of each, and what their annotations promise.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};

use crate::engine::{Act, Findings, Stop};
use crate::exchange::short;
use crate::inputs::Inputs;
use crate::schema;
use crate::server::inbox::Said;
use crate::server::session::Session;
use crate::server::stage::{Server, Tool, Usable, good};

/// How many pages are read.
const PAGES_MAX: usize = 50;
/// How many tools are called.
const TOOLS_MAX: usize = 24;
/// After so many that were not answered at all, no more are called.
const SILENT_MAX: usize = 2;
/// A cursor that nobody gave out.
const NO_CURSOR: &str = "reach-conformance-no-such-cursor";

/// Every page of the list.
async fn pages(session: &Session) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    let mut params = json!({});
    for _ in 0..PAGES_MAX {
        let page = session.call("tools/list", params).await.result()?;
        let next = page.get("nextCursor").filter(|next| !next.is_null()).cloned();
        found.push(page);
        match next {
            Some(next) => params = json!({ "cursor": next }),
            None => return Ok(found),
        }
    }
    Err(format!("no end after {PAGES_MAX} pages"))
}

fn listed(pages: &[Value]) -> Vec<Value> {
    pages.iter().flat_map(|page| page["tools"].as_array().cloned().unwrap_or_default()).collect()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

/// Reads the list.
pub(crate) async fn list(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let main = server.main()?;
    let expected = "a result with `tools`";
    let pages_now = match pages(main).await {
        Ok(pages) if pages.iter().all(|page| page["tools"].is_array()) => pages,
        Ok(pages) => {
            findings.fail("mcp-lists-tools", expected, short(&json!(pages).to_string()));
            return Err(Stop("the tools could not be listed".to_owned()));
        }
        Err(why) => {
            findings.fail("mcp-lists-tools", expected, why);
            return Err(Stop("the tools could not be listed".to_owned()));
        }
    };
    findings.pass("mcp-lists-tools");
    let tools = listed(&pages_now);
    judge_tools(findings, &tools);
    if main.is_stateless() {
        judge_stateless(findings, main, &pages_now);
    }
    findings.begin(false);
    let again = pages(main).await.map(|pages| listed(&pages));
    let found = match again {
        Ok(again) if names(&again) == names(&tools) => Ok(()),
        Ok(again) => Err(format!("{:?}, and then {:?}", names(&tools), names(&again))),
        Err(why) => Err(why),
    };
    findings.judge("mcp-lists-alike", "the same tools in the same order", found);
    let pages_reason = "the list has one page";
    if pages_now.len() > 1 {
        let said = main.call("tools/list", json!({ "cursor": NO_CURSOR })).await;
        let found = if said.code() == Some(-32602) { Ok(()) } else { Err(said.words()) };
        findings.judge("mcp-refuses-cursor", "error -32602", found);
    }
    if let Some(other) = server.other() {
        let found = match pages(other).await.map(|pages| listed(&pages)) {
            Ok(again) => {
                let (one, two): (BTreeSet<_>, BTreeSet<_>) =
                    (names(&tools).into_iter().collect(), names(&again).into_iter().collect());
                if one == two { Ok(()) } else { Err(format!("stateless {one:?}, with a handshake {two:?}")) }
            }
            Err(why) => Err(why),
        };
        findings.judge("mcp-eras-alike", "the same tools in both eras", found);
    }
    if pages_now.len() == 1 {
        server.reasons.insert("mcp-pages", pages_reason.to_owned());
    }
    take_up(server, &tools);
    Ok(())
}

fn judge_stateless(findings: &mut Findings<'_>, main: &Session, pages: &[Value]) {
    let results = || std::iter::once(&main.greeting).chain(pages);
    let untyped = results().find(|result| result["resultType"] != "complete");
    let found = untyped.map_or(Ok(()), |result| Err(short(&result.to_string())));
    findings.judge("mcp-says-result-type", "resultType \"complete\"", found);
    let hinted = |result: &Value| {
        result["ttlMs"].is_u64() && matches!(result["cacheScope"].as_str(), Some("public" | "private"))
    };
    let found = results().find(|result| !hinted(result)).map_or(Ok(()), |result| Err(short(&result.to_string())));
    findings.judge("mcp-says-how-long", "ttlMs and cacheScope", found);
}

fn judge_tools(findings: &mut Findings<'_>, tools: &[Value]) {
    let (mut seen, mut twice, mut odd) = (BTreeSet::new(), Vec::new(), Vec::new());
    let (mut unusable, mut silent, mut vague, mut contrary) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        if name.is_empty() || !seen.insert(name) {
            twice.push(format!("{:?}", tool["name"]));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if name.chars().count() > 128 || !name.chars().all(is_plain) {
            odd.push(name.to_owned());
        }
        for kind in ["inputSchema", "outputSchema"] {
            match tool.get(kind) {
                Some(schema) => {
                    let is_object = kind != "inputSchema" || schema["type"] == "object";
                    if let Err(why) = schema::compile(schema) {
                        unusable.push(format!("{kind} of {name}, {why}"));
                    } else if !is_object {
                        unusable.push(format!("{kind} of {name} is not of type object"));
                    }
                }
                None if kind == "inputSchema" => unusable.push(format!("{name} has no {kind}")),
                None => {}
            }
        }
        let says = |key: &str| tool[key].as_str().is_some_and(|text| !text.trim().is_empty());
        if !says("description") && !says("title") {
            silent.push(name.to_owned());
        }
        let hints = &tool["annotations"];
        if !hints["readOnlyHint"].is_boolean() && !hints["idempotentHint"].is_boolean() {
            vague.push(name.to_owned());
        }
        let is_wrong = |hint: &str| hints.get(hint).is_some_and(|value| !value.is_boolean());
        let is_contrary = hints["readOnlyHint"] == true && hints["destructiveHint"] == true;
        if is_contrary || ["readOnlyHint", "destructiveHint", "idempotentHint"].into_iter().any(is_wrong) {
            contrary.push(format!("{name}: {hints}"));
        }
    }
    let none = |found: Vec<String>| if found.is_empty() { Ok(()) } else { Err(found.join("; ")) };
    findings.judge("mcp-names-apart", "a name for each tool, and no name twice", none(twice));
    findings.judge("mcp-names-plain", "1 to 128 of A-Z a-z 0-9 _ - . /", none(odd));
    findings.judge("mcp-schemas-usable", "schemas that can be used", none(unusable));
    findings.judge("mcp-says-what-it-does", "a description of each tool", none(silent));
    findings.judge("mcp-says-its-effect", "readOnlyHint or idempotentHint of each tool", none(vague));
    findings.judge("mcp-hints-agree", "booleans that do not contradict each other", none(contrary));
}

fn take_up(server: &mut Server, tools: &[Value]) {
    let taken: Vec<Tool> = tools
        .iter()
        // One that only runs as a task is no tool that a call can be made of here.
        .filter(|tool| tool["execution"]["taskSupport"] != "required")
        .filter_map(|tool| {
            let name = tool["name"].as_str()?.to_owned();
            let mut inputs = Inputs::read(&name, tool.get("inputSchema"), &server.options.samples, &mut server.rng);
            // Arguments that are no object are no request of MCP, and tell nothing of the tool.
            inputs.bad.retain(|misfit| misfit.value.is_object());
            Some(Tool {
                inputs,
                output: tool.get("outputSchema").and_then(|schema| schema::compile(schema).ok()),
                annotations: tool["annotations"].clone(),
                name,
            })
        })
        .collect();
    let reasons = [
        ("mcp-output-schema", taken.iter().any(|tool| tool.output.is_some()), "no tool has an outputSchema"),
        ("mcp-input-schema", taken.iter().any(|tool| !tool.inputs.bad.is_empty()), "no inputSchema refuses anything"),
    ];
    for (profile, applies, why) in reasons {
        if !applies {
            server.reasons.insert(profile, why.to_owned());
        }
    }
    server.tools = taken;
}

/// Calls every tool once.
pub(crate) async fn call(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    let (mut usable, mut silent) = (Vec::new(), 0);
    let main = server.main()?;
    for (index, tool) in server.tools.iter().enumerate().take(TOOLS_MAX) {
        let Some(arguments) = &tool.inputs.params else { continue };
        findings.begin(false);
        let began = Instant::now();
        let said = main.tool(&tool.name, arguments).await;
        silent += usize::from(matches!(said, Said::Nothing(_)));
        if judge_call(findings, main, tool, &said) {
            usable.push(Usable { tool: index, took: began.elapsed() });
        }
        if silent >= SILENT_MAX {
            break;
        }
    }
    usable.sort_by_key(|usable| usable.took);
    server.usable = usable;
    if server.usable.is_empty() { Err(crate::server::stage::no_tool()) } else { Ok(()) }
}

/// Whether it went well.
fn judge_call(findings: &mut Findings<'_>, main: &Session, tool: &Tool, said: &Said) -> bool {
    let id = "mcp-answers-calls";
    let expected = format!("a result of {}", tool.name);
    let result = match said.result() {
        Ok(result) => result,
        // What was made up may make no sense to it, and then it says so.
        Err(_) if said.code() == Some(-32602) && !tool.inputs.is_given => return false,
        Err(words) => {
            findings.fail(id, expected, words);
            return false;
        }
    };
    findings.judge("mcp-result-is-content", "a CallToolResult", is_content(&result));
    if main.is_stateless() && result["resultType"] != "complete" {
        findings.fail("mcp-says-result-type", "resultType \"complete\"", short(&result.to_string()));
    }
    if result["isError"] == true {
        if tool.inputs.is_given {
            findings.fail(id, expected, said.words());
        }
        return false;
    }
    findings.pass(id);
    if let Some(output) = &tool.output {
        let found = match result.get("structuredContent") {
            Some(structured) => schema::complaints(output, structured),
            None => Err("no structuredContent".to_owned()),
        };
        findings.judge("mcp-result-fits-schema", &format!("what fits the outputSchema of {}", tool.name), found);
    }
    true
}

fn is_content(result: &Value) -> Result<(), String> {
    let Some(blocks) = result["content"].as_array() else { return Err(format!("no content in {result}")) };
    for block in blocks {
        let needed: &[&str] = match block["type"].as_str() {
            Some("text") => &["text"],
            Some("image" | "audio") => &["data", "mimeType"],
            Some("resource_link") => &["uri", "name"],
            Some("resource") => &[],
            Some(_) => continue,
            None => return Err(format!("a block without a type: {block}")),
        };
        let is_whole = needed.iter().all(|name| block[*name].is_string());
        if !is_whole || (block["type"] == "resource" && !block["resource"]["uri"].is_string()) {
            return Err(format!("a block that is not whole: {}", short(&block.to_string())));
        }
    }
    match result.get("isError") {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(other) => Err(format!("isError is {other}")),
    }
}

/// Holds tools to what their annotations promise, by the effects that are counted.
pub(crate) async fn effects(server: &mut Server, findings: &mut Findings<'_>) -> Act {
    if server.effects().is_none() {
        let why = "effects are not counted: name the file in which they leave a line with --effects";
        server.reasons.insert("mcp-effects", why.to_owned());
        return Err(Stop(why.to_owned()));
    }
    let main = server.main()?;
    let of = |hint: &str| {
        let tools = server.usable.iter().map(|usable| &server.tools[usable.tool]);
        tools.filter(|tool| tool.annotations[hint] == true).collect::<Vec<_>>()
    };
    for tool in of("readOnlyHint") {
        let before = server.effects();
        good(&main.tool(&tool.name, &tool.inputs.params.clone().unwrap_or_default()).await).map_err(Stop)?;
        let found = if server.effects() == before { Ok(()) } else { Err(format!("{} had an effect", tool.name)) };
        findings.judge("mcp-reads-only", "no effect of what is readOnlyHint", found);
    }
    for tool in of("idempotentHint").into_iter().filter(|tool| tool.annotations["readOnlyHint"] != true) {
        findings.begin(false);
        let arguments = tool.inputs.params.clone().unwrap_or_default();
        good(&main.tool(&tool.name, &arguments).await).map_err(Stop)?;
        let before = server.effects();
        good(&main.tool(&tool.name, &arguments).await).map_err(Stop)?;
        let found = if server.effects() == before { Ok(()) } else { Err(format!("{} had another", tool.name)) };
        findings.judge("mcp-once-is-enough", "no further effect of what is idempotentHint", found);
    }
    if of("readOnlyHint").is_empty() && of("idempotentHint").is_empty() {
        server.reasons.insert("mcp-effects", "no tool is readOnlyHint or idempotentHint".to_owned());
    }
    Ok(())
}
