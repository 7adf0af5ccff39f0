//! Agents and MCP servers that come into the file and go out of it while they work.

use agent_reach_sdk::schemas::call::{AgentState, Servers};
use agent_reach_sdk::{ErrorCode, PhaseName};
use serde_json::json;

use crate::world::{Gate, World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_taken_out_while_it_works_ends_what_it_has_and_gets_nothing_new() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::at(folder.path());
    let agent = gate.agent("digger@yard", 8);
    let world = World::start_in(folder, &agent).await;
    let wanted = json!({ "capability": "gated", "deadline": "60s" });
    let at_work = world.submit(wanted.clone()).await.unwrap();
    gate.begun(1).await;
    let done = world.reload("").await.unwrap();
    assert_eq!(done.agents.removed, ["digger@yard"]);
    assert_eq!(world.agent("digger@yard").await.unwrap().state, AgentState::Draining);
    let refused = world.submit(wanted).await;
    let waits = match refused {
        // It may be taken on to wait for one that comes, and is then not begun by this one.
        Ok(task) => Some(task),
        Err(error) => {
            assert_eq!(error.code(), Some(ErrorCode::NoCandidate), "{error}");
            None
        }
    };
    gate.open();
    let view = world.end(at_work).await;
    assert_eq!((view.phase, view.attempts.len()), (PhaseName::Completed, 1), "{view:?}");
    world.gone("digger@yard").await;
    if let Some(task) = waits {
        let view: agent_reach_sdk::TaskView = world.client.call("task/get", &json!({ "task_id": task })).await.unwrap();
        assert!(view.attempts.is_empty(), "{view:?}");
    }
    let begun = std::fs::read_to_string(world.folder.path().join("begun")).unwrap();
    assert_eq!(begun.lines().count(), 1, "nothing new was begun");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_comes_back_before_it_is_gone_takes_work_again() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::at(folder.path());
    let agent = gate.agent("digger@yard", 8);
    let world = World::start_in(folder, &agent).await;
    let submit = || world.submit(json!({ "capability": "gated", "deadline": "60s" }));
    let first = submit().await.unwrap();
    gate.begun(1).await;
    world.reload("").await.unwrap();
    world.reload(&agent).await.unwrap();
    let second = submit().await.unwrap();
    gate.begun(2).await;
    gate.open();
    for task in [first, second] {
        assert_eq!(world.end(task).await.attempts.len(), 1);
    }
    // What sees the leaving off has been by meanwhile; another reload waits for it.
    world.reload(&agent).await.unwrap();
    assert_eq!(world.agent("digger@yard").await.unwrap().state, AgentState::Alive);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_that_is_changed_keeps_what_its_agent_has() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::at(folder.path());
    let world = World::start_in(folder, &gate.agent("digger@yard", 1)).await;
    let submit = || world.submit(json!({ "capability": "gated", "deadline": "60s" }));
    let first = submit().await.unwrap();
    gate.begun(1).await;
    // There is no seat for the second until the card has two.
    let second = submit().await.unwrap();
    let done = world.reload(&gate.agent("digger@yard", 2)).await.unwrap();
    assert_eq!(done.agents.changed, ["digger@yard"]);
    gate.begun(2).await;
    gate.open();
    for task in [first, second] {
        assert_eq!(world.end(task).await.attempts.len(), 1);
    }
    assert_eq!(world.agent("digger@yard").await.unwrap().generation, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_taken_out_over_a_restart_is_forgotten_and_one_that_registered_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::at(folder.path());
    let mut world = World::start_in(folder, &gate.agent("digger@yard", 8)).await;
    let card = json!({ "agent_id": "caller@yard", "capabilities": [{ "name": "call", "effect": "read" }] });
    world.client.call::<serde_json::Value>("agent/register", &card).await.unwrap();
    world.victim.stop_and_restart().await;
    assert!(world.agent("digger@yard").await.is_ok(), "the file has it");
    world.write("");
    world.victim.kill_and_restart().await;
    world.gone("digger@yard").await;
    assert!(world.agent("caller@yard").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_come_change_and_go() {
    let world = World::start("").await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/peer.py");
    let state = world.folder.path().join("peer");
    std::fs::create_dir_all(&state).unwrap();
    let server = |more: &str| {
        let args = format!("{script:?}, \"stdio\", {:?}", state.display().to_string());
        format!(
            "[[mcp_servers]]\nname = \"peer\"\nnamespace = \"tools\"\ncommand = \"python3\"\nargs = [{args}]\n{more}"
        )
    };
    let added = world.reload(&server("")).await.unwrap();
    assert_eq!(added.mcp_servers.added, ["peer"]);
    let alive = async || world.agent("peer@tools").await.ok().filter(|agent| agent.state == AgentState::Alive);
    let before = until("its agent comes", alive).await;
    let changed = world.reload(&server("[mcp_servers.card]\ndescription = \"By hand\"\n")).await.unwrap();
    assert_eq!(changed.mcp_servers.changed, ["peer"]);
    let by_hand = async || alive().await.filter(|agent| agent.card.description == "By hand");
    let after = until("its card is changed", by_hand).await;
    assert_eq!(after.card.capabilities.len(), before.card.capabilities.len());
    let removed = world.reload("").await.unwrap();
    assert_eq!(removed.mcp_servers.removed, ["peer"]);
    world.gone("peer@tools").await;
    until("the server goes", async || {
        let servers: Servers = world.client.call("server/list", &json!({})).await.unwrap();
        servers.servers.is_empty().then_some(())
    })
    .await;
}
