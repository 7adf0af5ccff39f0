//! Servers that others wrote, from npm and PyPI, as agents.

use std::path::Path;

use serde_json::{Value, json};

use crate::node::Node;
use crate::python;
use crate::world::Gateway;

const PACKAGES: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];

/// The command that runs a script of a package.
fn words(node: &Node, script: &str) -> Vec<String> {
    let command = node.run(script);
    let program = command.get_program().to_str().unwrap().to_owned();
    std::iter::once(program).chain(command.get_args().map(|arg| arg.to_str().unwrap().to_owned())).collect()
}

fn text_of(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn common_servers_are_agents_whose_tools_are_called_by_name_and_by_words() {
    let node = Node::with("npm-mcp-servers", &PACKAGES);
    let python = python::with("python-mcp-server-time", &["mcp-server-time==2026.10.19"]);
    let folder = tempfile::tempdir().unwrap();
    let papers = folder.path().join("papers");
    std::fs::create_dir(&papers).unwrap();
    std::fs::write(papers.join("a.txt"), "twelve words").unwrap();
    let papers = papers.canonicalize().unwrap().display().to_string();
    let gateway = Gateway::start(folder.path(), "");
    let add = |name: &str, flags: &[&str], words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        gateway.ok(&[&["add", "mcp", name], flags, &["--"], &words].concat())
    };
    let script = |name: &str| words(&node, &format!("@modelcontextprotocol/server-{name}/dist/index.js"));
    add("files", &[], &[script("filesystem"), vec![papers.clone()]].concat());
    let memory = format!("MEMORY_FILE_PATH={}", folder.path().join("memory.jsonl").display());
    add("memory", &["--env", &memory], &script("memory"));
    add("everything", &[], &script("everything"));
    add("clock", &[], &[python.display().to_string(), "-m".to_owned(), "mcp_server_time".to_owned()]);

    let read =
        gateway.reach("files@mcp", "read_text_file", &json!({ "path": Path::new(&papers).join("a.txt") }).to_string());
    assert_eq!(text_of(&read), "twelve words");
    let entity = json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": ["counts"] }] });
    gateway.reach("memory@mcp", "create_entities", &entity.to_string());
    assert!(text_of(&gateway.reach("memory@mcp", "search_nodes", r#"{"query":"Ada"}"#)).contains("counts"));
    assert_eq!(text_of(&gateway.reach("everything@mcp", "get-sum", r#"{"a":2,"b":3}"#)), "The sum of 2 and 3 is 5.");
    let time = text_of(&gateway.reach("clock@mcp", "get_current_time", r#"{"timezone":"Europe/Paris"}"#));
    assert!(time.contains("Europe/Paris"), "{time}");

    let found = gateway.call("capability/find", &json!({ "intent": "convert the time between two timezones" }));
    assert_eq!(found["capabilities"][0]["agent_id"], "clock@mcp", "{found}");
    let view = gateway.call("agent/get", &json!({ "agent_id": "files@mcp" }));
    let capabilities = view["card"]["capabilities"].as_array().unwrap();
    let effect =
        |name: &str| capabilities.iter().find(|capability| capability["name"] == name).unwrap()["effect"].clone();
    assert_eq!((effect("read_text_file"), effect("edit_file")), (json!("read"), json!("write")));
    let refused = gateway.run(&["reach", "--to", "files@mcp", "--capability", "read_text_file", "--params", "{}"]);
    assert!(refused.err.contains("params_mismatch"), "its own schema is held to: {}", refused.err);
}
