//! What a process that many share says of its own accord, and whose it is.

use std::path::Path;

use serde_json::{Value, json};

use crate::world::{Gateway, heard, script, state, until};

/// Calls a tool of the shared process; with `logs`, the server's log is asked for.
async fn call(web: reqwest::Client, url: String, tool: &'static str, who: &'static str, logs: bool) -> String {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": who,
    });
    if logs {
        meta["io.modelcontextprotocol/logLevel"] = "info".into();
    }
    let params = json!({ "name": tool, "arguments": { "who": who }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = web.post(url).header("content-type", "application/json").header("mcp-method", "tools/call");
    let request = request.header("accept", "application/json, text/event-stream").header("mcp-name", tool);
    let response = request.header("mcp-protocol-version", "2026-07-28").body(body.to_string()).send().await.unwrap();
    response.text().await.unwrap()
}

/// Has two calls open at once, and gives what each was told.
async fn both(folder: &Path, first: (&'static str, bool), second: (&'static str, bool)) -> [String; 2] {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let state = state(folder, "p");
    let config = format!(
        "[[mcp_servers]]\nname = \"p\"\ncommand = \"python3\"\nargs = [{:?}, \"stdio\", {state:?}, \"--era\", \"stateless\"]\n",
        script(),
    );
    let gateway = Gateway::start(folder, &config);
    let url = format!("{}/servers/p/mcp", gateway.url);
    let web = reqwest::Client::builder().no_proxy().build().unwrap();
    let one = tokio::spawn(call(web.clone(), url.clone(), first.0, "one", first.1));
    let open = |count: usize| {
        let state = state.clone();
        tokio::task::spawn_blocking(move || {
            until("the calls are open", || (heard(&state).matches("tools/call").count() >= count).then_some(()));
        })
    };
    open(1).await.unwrap();
    let two = tokio::spawn(call(web, url, second.0, "two", second.1));
    open(2).await.unwrap();
    std::fs::write(Path::new(&state).join("go"), "").unwrap();
    [one.await.unwrap(), two.await.unwrap()]
}

fn told(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let messages: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    let notices = messages.into_iter().filter(|message| message.get("method").is_some());
    notices.map(|notice| notice["params"].get("data").unwrap_or(&notice["params"]["progressToken"]).clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_the_log_goes_to_the_one_who_asked_for_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = both(folder.path(), ("progress", false), ("log", true)).await;
    assert_eq!((told(&one), told(&two)), (vec![json!("one"), json!("one")], vec![json!("two")]), "{one} {two}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_anybodys_is_told_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = both(folder.path(), ("progress", true), ("log", true)).await;
    assert_eq!((told(&one), told(&two)), (vec![json!("one"), json!("one")], vec![]), "{one} {two}");
}
