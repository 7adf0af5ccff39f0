//! Limits that are changed act at once; a file that is wrong, or that only a restart can follow, changes nothing.

use agent_reach_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::world::{Gate, World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_acts_from_the_next_task_on_and_what_is_open_stays() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::at(folder.path());
    let agent = gate.agent("digger@yard", 8);
    let world = World::start_in(folder, &format!("open_max = 1\n{agent}")).await;
    let pid = world.victim.pid();
    let submit = || world.submit(json!({ "capability": "gated", "deadline": "60s" }));
    let first = submit().await.unwrap();
    assert_eq!(refusal(submit().await), ErrorCode::Overloaded);
    let done = world.reload(&format!("open_max = 2\n{agent}")).await.unwrap();
    let changes: Vec<_> = done.changes.iter().map(|it| (it.key.as_str(), it.was.get(), it.is.get())).collect();
    assert_eq!(changes, [("open_max", "1", "2")]);
    assert!(done.agents.added.is_empty() && done.agents.changed.is_empty() && done.agents.removed.is_empty());
    let second = submit().await.unwrap();
    world.reload(&format!("open_max = 1\n{agent}")).await.unwrap();
    assert_eq!(refusal(submit().await), ErrorCode::Overloaded);
    gate.open();
    for task in [first, second] {
        let view = world.end(task).await;
        assert_eq!((view.attempts.len(), view.result.unwrap().get()), (1, "\"done\""));
    }
    assert_eq!(world.victim.pid(), pid);
}

fn refusal<T: std::fmt::Debug>(refused: Result<T, agent_reach_sdk::Error>) -> ErrorCode {
    refused.unwrap_err().code().unwrap()
}

const FAILS: &str = "[[agents]]\nagent_id = \"broken@yard\"\nendpoints = [{ protocol = \"process\", address = \"false\" }]\n\
    capabilities = [{ name = \"fail\", effect = \"read\" }]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cards_do_not_say_they_inherit_live_and_breakers_keep_what_they_counted() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::at(folder.path());
    let agents = format!("{FAILS}{}", gate.agent("digger@yard", 8));
    let world = World::start_in(folder, &agents).await;
    let fail = async || {
        let task = world.submit(json!({ "capability": "fail", "tries": 1, "deadline": "20s" })).await.unwrap();
        world.end(task).await;
        world.agent("broken@yard").await.unwrap().breakers.len()
    };
    assert_eq!((fail().await, fail().await), (0, 0), "three in a row open it");
    world.reload(&format!("[defaults.breaker.read]\nfailures_in_row = 9\nwindow_min = 9\n{agents}")).await.unwrap();
    assert_eq!(fail().await, 0, "the third of nine");
    world.reload(&format!("[defaults.breaker.read]\nfailures_in_row = 4\n{agents}")).await.unwrap();
    assert_eq!(fail().await, 1, "the fourth of four, of which three were counted before");
    // How long an attempt may take is inherited as well.
    let quick = format!("[defaults.timeout]\nnormal = \"300ms\"\n{agents}");
    world.reload(&quick).await.unwrap();
    let task = world.submit(json!({ "capability": "gated", "tries": 1, "deadline": "60s" })).await.unwrap();
    assert_eq!(world.end(task).await.failure.unwrap().code, ErrorCode::Timeout);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_gateway_may_go_is_changed_for_all_who_go_there() {
    let world = World::start("").await;
    let card = |name: &str| {
        json!({ "agent_id": name, "endpoints": [{ "protocol": "http", "address": "http://127.0.0.1:9/work" }],
            "capabilities": [{ "name": "work", "effect": "read" }] })
    };
    let register = async |name: &str| world.client.call::<Value>("agent/register", &card(name)).await;
    register("first@yard").await.unwrap();
    world.reload("endpoints.allow = []\n[webhooks]\nallow = [\"127.0.0.0/8\"]\n").await.unwrap();
    assert_eq!(refusal(register("second@yard").await), ErrorCode::InvalidCard);
    // One that was registered before is not gone to any more: the very adapter that was made at the start knows.
    let task = json!({ "to_agent": "first@yard", "capability": "work", "tries": 1, "deadline": "20s",
        "callbacks": [{ "url": "http://127.0.0.1:9/hook" }] });
    let view = world.end(world.submit(task.clone()).await.unwrap()).await;
    let failure = view.failure.unwrap();
    assert!(failure.message.contains("[endpoints] allow"), "{failure:?}");
    world.reload("").await.unwrap();
    register("second@yard").await.unwrap();
    assert_eq!(refusal(world.submit(task).await), ErrorCode::InvalidParams, "and its receiver not, either");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_file_leaves_all_as_it_is_and_every_mistake_is_named() {
    let world = World::start(&format!("open_max = 3\n{FAILS}")).await;
    let before = world.show().await;
    let wrong = "open_max = 9\nlissen = \"x\"\ndeadline = \"soon\"\nwaiting.fast = \"many\"\ntiers.long = 0\n[health]\nslow_in_row = 0\nfast = 1\n\
        [defaults.breaker.write]\nwindow_min = 40\n[intent]\naccept = 7.5\n[webhooks]\nat_once_per_host = 0\n\
        [[agents]]\nagent_id = \"a@b\"\n[[mcp_servers]]\nname = \"both\"\n";
    let refused = world.refused(wrong).await;
    let told = refused.mistakes.join("\n");
    for part in [
        "lissen: unknown field `lissen`",
        "deadline: \"soon\"",
        "waiting.fast: ",
        "tiers.long: is 0",
        "health.slow_in_row: is 0",
        "health.fast: unknown field `fast`",
        "defaults.breaker.write.window_min: is 40",
        "intent.accept: is 7.5",
        "webhooks.at_once_per_host: is 1 to 256",
        "agents[0]: missing field `capabilities`",
        "mcp_servers[0] (both): names neither",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!(world.refused("open_max = ").await.mistakes[0].contains("gateway.toml"));
    std::fs::remove_file(world.folder.path().join("gateway.toml")).unwrap();
    let gone = world.client.call::<Value>("config/reload", &json!({})).await.unwrap_err();
    assert!(gone.to_string().contains("cannot be read"), "{gone}");
    assert_eq!(world.show().await, before);
    assert!(world.agent("broken@yard").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_tells_and_changes_nothing() {
    let world = World::start("").await;
    let before = world.show().await;
    world.write(&format!("open_max = 9\n{FAILS}"));
    let dry: agent_reach_sdk::schemas::call::ConfigReloaded =
        world.client.call("config/reload", &json!({ "dry_run": true })).await.unwrap();
    assert!(dry.dry_run && dry.changes.len() == 1 && dry.agents.added == ["broken@yard"], "{dry:?}");
    assert_eq!(world.show().await, before);
    assert_eq!(refusal(world.agent("broken@yard").await), ErrorCode::AgentNotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hangup_has_the_file_read_again_and_a_wrong_one_does_no_harm() {
    let world = World::start("open_max = 3\n").await;
    let pid = nix::unistd::Pid::from_raw(i32::try_from(world.victim.pid()).unwrap());
    let hang_up = |text: &str| {
        world.write(text);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).unwrap();
    };
    hang_up("open_max = 7\n");
    until("it is taken on", async || (world.value("open_max").await.0 == 7).then_some(())).await;
    hang_up("open_max = \"none\"\n");
    until("it is refused", async || world.log().contains("the configuration stays as it was").then_some(())).await;
    assert!(world.log().contains("open_max"), "the log says why: {}", world.log());
    assert_eq!(world.value("open_max").await, (json!(7), "file".to_owned()));
}
