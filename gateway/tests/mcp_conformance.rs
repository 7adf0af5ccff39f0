//! The official conformance suite of MCP against a server that is reached through the gateway, beside the same server
//! reached directly: what passes there must pass here.
#![expect(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "common/node.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod node;
#[path = "common/python.rs"]
mod python;
#[path = "servers/world.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod world;

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use node::Node;
use world::{Gateway, until};

const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const SERVER: &str = "mcp==2.3.0";
const BASELINE: &str = include_str!("servers/conformance.txt");

/// The everything server of the Python SDK, from its own source package.
struct Everything {
    process: Child,
    url: String,
}

impl Everything {
    fn start() -> Self {
        let python = python::with("python-mcp-2", &[SERVER, "click", "starlette", "uvicorn", "httpx2"]);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-2-source");
        let package = folder.join("examples/servers/everything-server");
        let one_at_a_time = std::fs::File::create(folder.with_extension("lock")).unwrap();
        one_at_a_time.lock().unwrap();
        if !package.is_dir() {
            unpack(&python, &folder);
        }
        drop(one_at_a_time);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(python);
        command.args(["-m", "mcp_everything_server", "--log-level", "ERROR", "--port", &port.to_string()]);
        let process = command.current_dir(package).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the everything server", || TcpStream::connect(("127.0.0.1", port)).ok());
        Self { process, url: format!("http://127.0.0.1:{port}/mcp") }
    }
}

fn unpack(python: &Path, folder: &Path) {
    let script = "import glob, sys, tarfile\n\
                  with tarfile.open(glob.glob(sys.argv[1] + '/*.tar.gz')[0]) as tar:\n    \
                  root = tar.getnames()[0].split('/')[0]\n    tar.extractall(sys.argv[1], filter='data')\n\
                  print(root)\n";
    let fetched = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let needed = |why| panic!("the source of {SERVER} is needed: {why}");
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", SERVER, "-d"])
        .arg(fetched.path());
    python::run(&mut pip, "").unwrap_or_else(needed);
    let root = python::run(Command::new(python).args(["-c", script]).arg(fetched.path()), "").unwrap_or_else(needed);
    std::fs::rename(fetched.path().join(root.trim()), folder).unwrap();
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What one run of the suite found.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    scored: usize,
    failed: BTreeSet<String>,
}

fn judge(suite: &Node, url: &str, revision: &str) -> Found {
    let folder = tempfile::tempdir().unwrap();
    let mut command = suite.run("@modelcontextprotocol/conformance/dist/index.js");
    command.args(["server", "--url", url, "--requirements", revision, "--timeout", "60000", "-o"]).arg(folder.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (before, after) = text.split_once("=== SUMMARY ===").unwrap_or_else(|| panic!("no summary: {text}"));
    let (summary, rest) = after.split_once("Total:").unwrap();
    let name =
        |line: &str| line.trim().trim_start_matches(['✓', '✗', ' ']).split([':', ' ']).next().unwrap().to_owned();
    let is_result = |line: &&str| line.trim().starts_with(['✓', '✗']);
    let unscored: BTreeSet<String> = rest.lines().filter(is_result).map(name).collect();
    let mut found = Found { scored: 0, failed: BTreeSet::new() };
    for line in summary.lines().filter(is_result).filter(|line| !unscored.contains(&name(line))) {
        found.scored += 1;
        // A scenario that checked nothing has not passed.
        if !line.trim().starts_with('✓') || line.contains(": 0 passed") {
            found.failed.insert(name(line));
        }
    }
    if !found.failed.is_empty() {
        eprintln!("{url} at {revision}:\n{before}\n{summary}");
    }
    found
}

fn expected(revision: &str) -> Found {
    let lines = BASELINE.lines().filter_map(|line| line.strip_prefix(revision)).map(str::trim);
    let mut found = Found { scored: 0, failed: BTreeSet::new() };
    for line in lines {
        match line.split_once(' ') {
            Some(("scored", count)) => found.scored = count.parse().unwrap(),
            Some(("fails", rest)) => {
                found.failed.insert(rest.split(':').next().unwrap().to_owned());
            }
            other => panic!("{other:?}"),
        }
    }
    found
}

fn check(revision: &str) {
    let suite = Node::with("npm-mcp-conformance", &[SUITE]);
    let server = Everything::start();
    let folder = tempfile::tempdir().unwrap();
    let config = format!("[[mcp_servers]]\nname = \"everything\"\nurl = {:?}\n", server.url);
    let gateway = Gateway::start(folder.path(), &config);
    let through = format!("{}/servers/everything/mcp", gateway.url);
    let direct = judge(&suite, &server.url, revision);
    let found = judge(&suite, &through, revision);
    assert_eq!(direct, Found { scored: direct.scored, failed: BTreeSet::new() }, "the server itself");
    assert_eq!(found, expected(revision), "through the gateway");
    assert_eq!(found.scored, direct.scored);
}

#[test]
fn a_server_behind_the_gateway_passes_what_it_passes_directly_in_the_handshake_era() {
    check("2025-11-25");
}

#[test]
fn a_server_behind_the_gateway_passes_what_it_passes_directly_in_the_stateless_era() {
    check("2026-07-28");
}
