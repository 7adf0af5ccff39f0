//! MCP servers: those of others, which meet every must, and one with a planted fault at a time, each of which the runner
//! must find by the right requirement, and by no other.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;
#[allow(dead_code, reason = "the gateway's tests use more of it")]
#[path = "../../gateway/tests/common/node.rs"]
mod node;

use std::process::Stdio;
use std::sync::Arc;

use common::built::{project, python};
use common::{Done, file, run};
use node::Node;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

/// How many runs there are at once: they wait more than they work.
const RUNS_MAX: usize = 4;

#[derive(Debug, Clone, Copy)]
enum Over {
    Stdio,
    Http,
}

use Over::{Http, Stdio as Pipe};

/// What is planted, by which way the server is reached, and which requirement must say so.
const TABLE: &[(&str, Over, &str)] = &[
    ("mute", Pipe, "mcp-begins"),
    ("mute", Http, "mcp-begins"),
    ("no_server_info", Pipe, "mcp-greets"),
    ("no_pong", Http, "mcp-pings"),
    ("discover_without_versions", Pipe, "mcp-discovers"),
    ("no_tools_member", Http, "mcp-lists-tools"),
    ("name_twice", Pipe, "mcp-names-apart"),
    ("odd_name", Pipe, "mcp-names-plain"),
    ("unusable_schema", Pipe, "mcp-schemas-usable"),
    ("no_description", Http, "mcp-says-what-it-does"),
    ("no_hint", Pipe, "mcp-says-its-effect"),
    ("contrary_hints", Pipe, "mcp-hints-agree"),
    ("order_changes", Pipe, "mcp-lists-alike"),
    ("takes_any_cursor", Http, "mcp-refuses-cursor"),
    ("eras_differ", Pipe, "mcp-eras-alike"),
    ("no_result_type", Pipe, "mcp-says-result-type"),
    ("no_ttl", Http, "mcp-says-how-long"),
    ("never_answers_calls", Pipe, "mcp-answers-calls"),
    ("content_is_text", Pipe, "mcp-result-is-content"),
    ("breaks_output", Http, "mcp-result-fits-schema"),
    ("wrong_version_offered", Pipe, "mcp-negotiates"),
    ("echoes_version", Http, "mcp-knows-its-revisions"),
    ("fails_old_revision", Pipe, "mcp-serves-each-revision"),
    ("serves_unknown_stateless", Http, "mcp-stateless-refuses-version"),
    ("rounds_ids", Pipe, "mcp-echoes-ids"),
    ("answers_unknown_method", Http, "mcp-unknown-method"),
    ("answers_notices", Pipe, "mcp-silent-to-notices"),
    ("limps_after_garbage", Pipe, "mcp-survives-garbage"),
    ("notice_200", Http, "mcp-http-accepts-notices"),
    ("garbage_200", Http, "mcp-http-refuses-garbage"),
    ("chokes_on_meta", Pipe, "mcp-takes-meta"),
    ("chokes_on_unknown", Http, "mcp-passes-over-unknown"),
    ("takes_bad", Pipe, "mcp-refuses-bad-arguments"),
    ("limps_after_bad", Pipe, "mcp-survives-bad-arguments"),
    ("takes_unknown_tool", Http, "mcp-refuses-unknown-tool"),
    ("mangles_unicode", Pipe, "mcp-keeps-unicode"),
    ("rounds_numbers", Http, "mcp-keeps-numbers"),
    ("drops_large", Pipe, "mcp-takes-large"),
    ("mixes_answers", Http, "mcp-side-by-side"),
    ("one_at_a_time", Pipe, "mcp-answers-at-work"),
    ("wrong_progress_token", Http, "mcp-progress-names-its-token"),
    ("progress_back", Pipe, "mcp-progress-grows"),
    ("progress_late", Pipe, "mcp-progress-ends"),
    ("progress_unasked", Http, "mcp-progress-only-asked"),
    ("ignores_cancel", Pipe, "mcp-stops-when-cancelled"),
    ("ignores_cancel", Http, "mcp-stops-when-cancelled"),
    ("limps_after_cancel", Pipe, "mcp-survives-cancel"),
    ("read_writes", Pipe, "mcp-reads-only"),
    ("once_more", Http, "mcp-once-is-enough"),
    ("odd_session_id", Http, "mcp-session-id-plain"),
    ("same_session", Http, "mcp-sessions-apart"),
    ("unknown_session_400", Http, "mcp-forgets-sessions"),
    ("no_delete", Http, "mcp-session-ends"),
    ("ended_goes_on", Http, "mcp-ended-is-ended"),
    ("one_session_only", Http, "mcp-session-anew"),
    ("any_version_header", Http, "mcp-http-refuses-version"),
    ("prints", Pipe, "mcp-stdio-clean"),
    ("never_ends", Pipe, "mcp-stdio-ends"),
];

/// The Python itself, and no script that looks for one.
fn interpreter() -> String {
    let mut command = std::process::Command::new("python3");
    python::run(command.args(["-c", "import sys; print(sys.executable)"]), "").unwrap().trim().to_owned()
}

/// A server over HTTP, and its address, which it prints.
async fn serve(mut command: Command) -> (Child, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().expect("it prints its address");
    (child, url)
}

/// Checks the server with this fault.
async fn check(fault: &str, over: Over) -> Done {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let samples = json!({ "nap": { "params": { "ms": 5 }, "slow": { "ms": 700 } } });
    let (samples, effects) = (file(folder.path(), "samples.json", &samples), path("effects"));
    let script = project("conformance/tests/wrong/server.py");
    let python = interpreter();
    let (_child, server) = match over {
        Pipe => (None, format!("{python} -S {script} {fault} stdio {effects}")),
        Http => {
            let mut command = Command::new(python);
            command.args(["-S", &script, fault, "http", &effects]);
            let (child, url) = serve(command).await;
            (Some(child), url)
        }
    };
    let samples = samples.to_str().unwrap();
    let rest = ["--samples", samples, "--effects", &effects, "--timeout", "6s"];
    run(&[&["agent", "--mcp", &server], &rest[..]].concat()).done().await
}

fn told(name: &str, done: &Done) {
    let rows = done.report["results"].as_array().unwrap().iter();
    let skipped: Vec<String> = rows
        .filter(|row| row["status"] == "skipped")
        .map(|row| format!("{} ({})", row["id"].as_str().unwrap(), row["why"].as_str().unwrap()))
        .collect();
    println!("{name}: {} in {:?}; skipped {skipped:#?}", done.report["badge"], done.took);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_fault_meets_every_requirement_by_both_ways() {
    for over in [Pipe, Http] {
        let done = check("none", over).await;
        told(&format!("{over:?}"), &done);
        assert_eq!(done.failures(), "", "{over:?}");
        assert_eq!(done.code, 0, "{over:?}: {}", done.report);
        assert!(done.took.as_secs() < 30, "{over:?}: a run takes {:?}", done.took);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_planted_fault_is_found_by_its_own_requirement_and_by_no_other() {
    let seats = Arc::new(Semaphore::new(RUNS_MAX));
    let runs = TABLE.iter().map(|(fault, over, expected)| {
        let seats = seats.clone();
        async move {
            let _seat = seats.acquire().await.unwrap();
            let done = check(fault, *over).await;
            let failed = done.with("failed");
            let is_right = failed == [*expected];
            let told = if is_right { String::new() } else { done.failures() };
            println!("{fault} over {over:?}: {failed:?} in {:?}", done.took);
            (!is_right).then(|| format!("{fault} over {over:?}: expected {expected}, found {failed:?}\n{told}"))
        }
    });
    let wrong: Vec<String> = futures_util::future::join_all(runs).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), TABLE.len(), wrong.join("\n\n"));
}

/// Each requirement has a fault that is found by it, so that none is there which cannot fail.
#[test]
fn every_requirement_of_a_server_has_a_planted_fault() {
    let text = std::fs::read_to_string(project("conformance/requirements.toml")).unwrap();
    let catalog: toml::Table = text.parse().unwrap();
    let rows = catalog["requirement"].as_array().unwrap().iter();
    let ids = rows.filter(|row| row["subject"].as_str() == Some("server")).map(|row| row["id"].as_str().unwrap());
    let without: Vec<&str> = ids.filter(|id| !TABLE.iter().any(|(_, _, expected)| expected == id)).collect();
    assert_eq!(without, Vec::<&str>::new());
}

/// Checks a real server, which must meet every must.
async fn is_right(name: &str, server: &str, samples: &Value) -> Done {
    let folder = tempfile::tempdir().unwrap();
    let samples = file(folder.path(), "samples.json", samples);
    // Some take long to be started, on a machine with much else to do.
    let arguments = ["agent", "--mcp", server, "--samples", samples.to_str().unwrap(), "--timeout", "20s"];
    let done = run(&arguments).done().await;
    told(name, &done);
    println!("{name}: {}", done.failures());
    assert_eq!(done.code, 0, "{name}: idle {}, {}", done.report["idle_profiles"], done.failures());
    done
}

/// A server on the Python SDK, by both ways.
const PYTHON_SERVER: &str = r#"
import asyncio, sys
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("words")

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def count_words(text: str, number: int = 1) -> dict[str, int | str]:
    """Counts the words of a text, and gives it back."""
    return {"words": len(text.split()), "text": text, "number": number}

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def nap(ms: int, context: Context) -> str:
    """Sleeps for a while, and says how far it is."""
    for step in range(4):
        await asyncio.sleep(ms / 4000)
        await context.report_progress(step + 1, 4)
    return f"napped {ms} ms"

if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    import socket
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_the_python_sdk_meets_every_must_by_both_ways() {
    let python = python::with("python-mcp-2", &["mcp==2.3.0", "click", "starlette", "uvicorn", "httpx2"]);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    std::fs::write(&script, PYTHON_SERVER).unwrap();
    let samples = json!({ "count_words": { "params": { "text": "one two", "number": 5 } }, "nap": { "params": { "ms": 5 }, "slow": { "ms": 800 } } });
    let line = format!("{} {} stdio", python.display(), script.display());
    is_right("PyPI mcp over stdio", &line, &samples).await;
    let mut command = Command::new(&python);
    command.arg(&script).arg("http");
    let (_child, url) = serve(command).await;
    is_right("PyPI mcp over HTTP", &url, &samples).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_everything_server_from_npm_meets_every_must() {
    let node = Node::with("npm-everything", &["@modelcontextprotocol/server-everything@2026.8.31"]);
    let command = node.run("@modelcontextprotocol/server-everything/dist/index.js");
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| shlex::try_quote(word.to_str().unwrap()).unwrap().into_owned())
        .collect();
    let samples = json!({
        "echo": { "params": { "message": "one two" } },
        "trigger-long-running-operation": { "params": { "duration": 0.1, "steps": 2 }, "slow": { "duration": 1, "steps": 5 } },
    });
    is_right("npm everything", &words.join(" "), &samples).await;
}
