//! Servers that come and go.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::world::{Gateway, Peer, heard, script, state, until};

#[test]
fn a_command_becomes_an_agent_that_outlives_restarts_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    let state = state(folder.path(), "files");
    let told = gateway.ok(&[
        "add",
        "mcp",
        "files",
        "--env",
        "COLOR=red",
        "--",
        "python3",
        &script(),
        "stdio",
        &state,
        "--junk",
    ]);
    assert!(told.contains("files is added: 11 tools, offered by files@mcp") && told.contains("broken"), "{told}");
    assert!(gateway.reach("files@mcp", "echo", "{}").contains("heard"));
    assert!(gateway.reach("files@mcp", "env", "{}").contains("COLOR"), "its environment is its own");
    assert!(gateway.log.lock().unwrap().contains("a complaint about nothing"), "standard error goes to the log");
    let server = gateway.server("files");
    assert_eq!(
        (&server["state"], &server["revision"], &server["tools"]),
        (&json!("up"), &json!("2025-06-18"), &json!(11))
    );

    // The process ends in the midst of work; the next call finds it started again.
    let died = gateway.run(&["reach", "--to", "files@mcp", "--capability", "die", "--params", "{}"]);
    assert_eq!(died.exit, Some(1), "{} {}", died.out, died.err);
    assert!(died.err.contains("outcome_unknown"), "{}", died.err);
    assert!(gateway.reach("files@mcp", "echo", "{}").contains("heard"));

    let gateway = gateway.restart();
    assert!(gateway.reach("files@mcp", "echo", "{}").contains("heard"));
    let agent = gateway.call("agent/get", &json!({ "agent_id": "files@mcp" }));
    assert_eq!(agent["card"]["capabilities"].as_array().unwrap().len(), 11);
    let told = gateway.ok(&["remove", "mcp", "files"]);
    assert!(told.contains("files is removed"), "{told}");
    assert_eq!(gateway.run(&["get", "agent", "files@mcp"]).exit, Some(3));
    let gateway = gateway.restart();
    assert_eq!(gateway.call("server/list", &json!({})), json!({ "servers": [] }));
}

#[test]
fn nobody_makes_the_gateway_run_commands_who_cannot_read_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    let mark = folder.path().join("mark");
    let add = |proof: Option<&str>| {
        let server = json!({ "name": "bad", "command": "touch", "args": [mark] });
        let mut params = json!({ "server": server });
        if let Some(proof) = proof {
            params["proof"] = json!(proof);
        }
        gateway.run(&["--json", "call", "server/add", &params.to_string()])
    };
    for proof in [None, Some(""), Some("guessed")] {
        let ran = add(proof);
        assert_eq!(ran.exit, Some(4), "{proof:?} {} {}", ran.out, ran.err);
        assert!(ran.err.contains("operator-key") || ran.out.contains("operator-key"), "{} {}", ran.out, ran.err);
    }
    assert!(!mark.exists());
    let key = std::fs::read_to_string(folder.path().join("data/operator-key")).unwrap();
    // It runs, and is no server.
    assert_eq!(add(Some(&key)).exit, Some(5), "it cannot be met");
    assert!(mark.exists());
    let card = json!({ "agent_id": "sly@mcp", "capabilities": [{ "name": "x" }],
                       "endpoints": [{ "protocol": "mcp", "address": "server:files" }] });
    let ran = gateway.run(&["call", "agent/register", &card.to_string()]);
    assert!(ran.err.contains("for servers that the operator added"), "{}", ran.err);
}

/// It is asked in the one era, and as it does not answer in the other; by then it has taken the first question.
#[test]
fn a_server_that_is_slow_to_start_is_met_in_its_own_era() {
    for era in ["stateless", "handshake"] {
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(folder.path(), "");
        let state = state(folder.path(), "p");
        gateway.ok(&["add", "mcp", "p", "--", "python3", &script(), "stdio", &state, "--era", era, "--slow", "7"]);
        assert!(gateway.reach("p@mcp", "echo", "{}").contains("heard"), "{era}");
    }
}

#[test]
fn a_server_that_cannot_be_met_is_not_added_and_one_of_the_file_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (state_of_mute, state_of_well) = (state(folder.path(), "mute"), state(folder.path(), "well"));
    let config = format!(
        "[[mcp_servers]]\nname = \"gone\"\nurl = \"http://127.0.0.1:9/mcp\"\n\
         [[mcp_servers]]\nname = \"mute\"\ncommand = \"python3\"\nargs = [{0:?}, \"stdio\", {1:?}, \"--mute\"]\n\
         [[mcp_servers]]\nname = \"well\"\nnamespace = \"tools\"\ncommand = \"python3\"\nargs = [{0:?}, \"stdio\", {2:?}]\n",
        script(),
        state_of_mute,
        state_of_well
    );
    let gateway = Gateway::start(folder.path(), &config);
    until("the server that is well", || (gateway.server("well")["state"] == "up").then_some(()));
    // It is up as soon as it has answered; its agent is there a moment later.
    until("its agent", || (gateway.run(&["get", "agent", "well@tools"]).exit == Some(0)).then_some(()));
    assert!(gateway.reach("well@tools", "echo", "{}").contains("heard"));
    let gone = until("the server that is not", || Some(gateway.server("gone")).filter(|gone| gone["state"] == "down"));
    assert!(gone["why"].as_str().unwrap().contains("refused"), "{gone}");
    assert_eq!(gateway.server("mute")["state"], "starting");
    let ran = gateway.run(&["add", "mcp", "more", "http://127.0.0.1:9/mcp"]);
    assert!(ran.exit == Some(5) && ran.err.contains("was not added"), "{} {}", ran.out, ran.err);
    assert_eq!(gateway.run(&["remove", "mcp", "well"]).exit, Some(4), "it stands in the file");
    assert!(gateway.run(&["deregister", "well@tools"]).err.contains("goes with the server"));
    let table = gateway.ok(&["get", "servers"]);
    assert!(table.contains("well") && table.contains("down") && !table.contains("more"), "{table}");
}

#[test]
fn what_a_server_says_anew_is_offered_anew() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    for era in ["handshake", "stateless"] {
        let peer = Peer::start(state(folder.path(), era), &["--era", era]);
        let state = state(folder.path(), &format!("{era}-p"));
        gateway.ok(&["add", "mcp", &format!("h-{era}"), &peer.url()]);
        gateway.ok(&["add", "mcp", &format!("p-{era}"), "--", "python3", &script(), "stdio", &state, "--era", era]);
        until("it is listened to", || heard(&peer.state).contains("listening").then_some(()));
        for kind in ["h", "p"] {
            let agent = format!("{kind}-{era}@mcp");
            until("the new tool", || {
                // It may have been said before anybody listened.
                gateway.reach(&agent, "grow", "{}");
                let view = gateway.call("agent/get", &json!({ "agent_id": agent }));
                let capabilities = view["card"]["capabilities"].as_array().unwrap().clone();
                capabilities.iter().any(|capability| capability["name"] == "new_tool").then_some(())
            });
        }
    }
}

#[test]
fn a_secret_goes_to_the_server_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start(state(folder.path(), "peer"), &[]);
    let secret = "tr0ub4dor";
    let gateway = Gateway::start_with(folder.path(), "", &[("PEER_TOKEN", secret)]);
    gateway.ok(&["add", "mcp", "peer", &peer.url(), "--header", "Authorization=Bearer env:PEER_TOKEN"]);
    gateway.reach("peer@mcp", "echo", "{}");
    let heard = heard(&peer.state);
    assert!(
        heard.lines().filter(|line| line.contains("method")).all(|line| line.ends_with("Bearer tr0ub4dor")),
        "{heard}"
    );
    let shown: Value = gateway.call("server/list", &json!({}));
    let agent = gateway.ok(&["--json", "get", "agent", "peer@mcp"]);
    let told = format!("{shown}{agent}{}{}", gateway.ok(&["get", "servers"]), gateway.log.lock().unwrap());
    assert!(!told.contains(secret) && told.contains("PEER_TOKEN"), "{told}");
    let missing = gateway.run(&["add", "mcp", "other", &peer.url(), "--header", "Authorization=env:NOT_SET"]);
    assert!(missing.err.contains("NOT_SET is not set"), "{}", missing.err);
}

/// How many rows the audit log has of refusals of a method.
fn refusals(gateway: &Gateway, method: &str) -> usize {
    let rows = gateway.call("audit/search", &json!({ "kind": "call.refused", "target": method }));
    rows["rows"].as_array().unwrap().len()
}

#[test]
fn to_be_asked_for_a_proof_is_no_refusal_and_to_have_none_is() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    let state = state(folder.path(), "files");
    gateway.ok(&["add", "mcp", "files", "--", "python3", &script(), "stdio", &state]);
    // What is refused after it is written down after it.
    assert_eq!(gateway.run(&["get", "agent", "nobody@mcp"]).exit, Some(3));
    until("that is written down", || (refusals(&gateway, "agent/get") > 0).then_some(()));
    assert_eq!(refusals(&gateway, "server/add"), 0, "it was added");
    // As one who is not the gateway's user: the file is not there to be read.
    let key = folder.path().join("data/operator-key");
    std::fs::rename(&key, key.with_extension("gone")).unwrap();
    let ran = gateway.run(&["add", "mcp", "more", "--", "python3", &script(), "stdio", &state]);
    assert_eq!(ran.exit, Some(4), "{} {}", ran.out, ran.err);
    let how = format!("run it as the gateway's user, who can read {}", key.display());
    assert!(ran.err.contains(&how), "{}", ran.err);
    until("that is written down", || (refusals(&gateway, "server/add") > 0).then_some(()));
    let ran = gateway.run(&["add", "mcp", "bad", "http://127.0.0.1:9/mcp"]);
    assert_eq!(ran.exit, Some(5), "{} {}", ran.out, ran.err);
}

#[test]
fn whoever_asks_may_go_away_and_a_server_is_added_and_written_down_or_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    let state = state(folder.path(), "slow");
    let is_known = |name: &str| {
        let servers = gateway.call("server/list", &json!({}));
        servers["servers"].as_array().unwrap().iter().any(|server| server["server"]["name"] == name)
    };
    // Each is known as soon as it is being met, which takes longer than whoever asks waits.
    for (name, command) in
        [("slow", &["python3", &script(), "stdio", &state, "--slow", "4"] as &[&str]), ("never", &["sleep", "1000"])]
    {
        let mut asks = Command::new(env!("CARGO_BIN_EXE_reachctl"));
        asks.args(["add", "mcp", name, "--start-timeout", "8s", "--"]).args(command);
        let mut asks = asks.env("AGENT_REACH_URL", &gateway.url).stdin(Stdio::null()).spawn().unwrap();
        until("it is being met", || is_known(name).then_some(()));
        asks.kill().unwrap();
        asks.wait().unwrap();
    }
    until("it is put back", || (!is_known("never")).then_some(()));
    let added = until("it is written down", || {
        let rows = gateway.call("audit/search", &json!({ "kind": "server.added" }));
        let rows = rows["rows"].as_array().unwrap().clone();
        (!rows.is_empty()).then_some(rows)
    });
    assert!(added.len() == 1 && added[0]["target"] == "slow", "{added:?}");
    assert!(gateway.reach("slow@mcp", "echo", "{}").contains("heard"));
}
