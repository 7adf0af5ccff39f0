//! The operator's policy: it holds from the next call on, over restarts, and is refused whole if anything is wrong with it.

use reach_gateway::boot::{self, Running};
use reach_gateway::config::{self, Config};
use reach_schemas::call::{Nothing, PolicyPut};
use reach_schemas::{ErrorCode, Permission};
use serde_json::json;

use super::world::{World, card, id, operator, rule};

async fn two_who_may() -> World {
    let world = World::start().await;
    let does = |name: &str| json!({ "name": name, "description": "Does it", "effect": "read" });
    world.register(&card("a@x", &does("ask"), &json!({ "may_call": ["*@x", "*@y"] }))).await;
    let both = json!({ "agent_id": "b@y", "capabilities": [does("pay_out"), does("read_out")], "access": { "callable_by": ["a@x"] } });
    world.register(&both).await;
    world
}

async fn resolved(world: &World, capability: &str) -> String {
    let answer =
        world.call("resolve", &json!({ "from_agent": "a@x", "to_agent": "b@y", "capability": capability })).await;
    // It pulls its work, so it is there whether or not it is connected.
    answer["agent_id"].as_str().or(answer["data"]["code"].as_str()).unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn a_policy_holds_from_the_next_call_on_and_opens_again_what_it_closed() {
    let world = two_who_may().await;
    assert_eq!(resolved(&world, "pay_out").await, "b@y");
    let warnings =
        world.put_policy("cards", &json!([rule("deny", "*@x", &["call"], "*@y", Some("pay_*"))])).await.unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(
        (resolved(&world, "pay_out").await, resolved(&world, "read_out").await),
        ("no_candidate".into(), "b@y".into())
    );
    let tools = world.mcp("a@x", "tools/list", json!({})).await.to_string();
    assert!(tools.contains("read_out") && !tools.contains("pay_out"), "{tools}");

    world.put_policy("rules", &json!([])).await.unwrap();
    assert_eq!(resolved(&world, "read_out").await, "agent_not_found", "nothing is allowed across namespaces");
    assert_eq!(world.shown("b@y", "a@x")["failure"]["code"], "agent_not_found");
    let allow = rule("allow", "a@x", &["list", "call"], "b@y", Some("pay_*"));
    world.put_policy("rules", &json!([allow])).await.unwrap();
    assert_eq!(
        (resolved(&world, "pay_out").await, resolved(&world, "read_out").await),
        ("b@y".into(), "no_candidate".into())
    );
    let shown: Vec<String> = world.shown("b@y", "a@x")["card"]["capabilities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|capability| capability["name"].to_string())
        .collect();
    assert_eq!(shown, ["\"pay_out\""], "what it may not list is not on the card");
    world.put_policy("cards", &json!([])).await.unwrap();
    assert_eq!(resolved(&world, "read_out").await, "b@y");
}

#[tokio::test]
async fn an_allowance_does_not_open_what_a_card_closes() {
    let world = two_who_may().await;
    world.register(&card("c@y", &json!({ "name": "keep", "effect": "read" }), &json!({}))).await;
    world.put_policy("rules", &json!([rule("allow", "*@*", &["list", "call"], "*@*", None)])).await.unwrap();
    let closed = world.call("resolve", &json!({ "from_agent": "a@x", "to_agent": "c@y" })).await;
    assert_eq!(closed["data"]["code"], "agent_not_found", "{closed}");
    let open = world.call("resolve", &json!({ "from_agent": "a@x", "to_agent": "b@y", "capability": "pay_out" })).await;
    assert_eq!(open["agent_id"], "b@y", "{open}");
}

#[tokio::test]
async fn what_was_offered_is_not_given_to_one_that_the_caller_may_not_call_any_more() {
    let world = two_who_may().await;
    let task =
        world.call("task/submit", &json!({ "from_agent": "a@x", "to_agent": "b@y", "capability": "pay_out" })).await;
    assert_eq!(task["to_agent"], "b@y", "{task}");
    world.put_policy("cards", &json!([rule("deny", "a@x", &["call"], "b@y", None)])).await.unwrap();
    let claimed = world.call("task/claim", &json!({ "agent_id": "b@y", "task_id": task["task_id"] })).await;
    assert_eq!(claimed["data"]["code"], "claim_lost", "{claimed}");
}

#[tokio::test]
async fn an_agent_may_not_declare_what_the_policy_denies_and_one_that_has_is_named() {
    let world = World::start().await;
    let pays = |agent: &str| card(agent, &json!({ "name": "pay_out" }), &json!({}));
    world.register(&pays("early@lab")).await;
    let deny = rule("deny", "*@lab", &["register"], "*@lab", Some("pay_*"));
    let warnings = world.put_policy("cards", &json!([deny])).await.unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("early@lab may not declare pay_out"), "{warnings:?}");
    let late = world.call("agent/register", &pays("late@lab")).await;
    assert_eq!(late["data"]["code"], "forbidden", "{late}");
    assert!(late["message"].as_str().unwrap().contains("pay_out: rules[0] of the policy denies it"), "{late}");
    assert!(world.call("agent/register", &pays("late@bank")).await["generation"].is_number());
}

#[tokio::test]
async fn who_may_not_subscribe_is_told_nothing_of_changes_and_may_still_look() {
    let world = two_who_may().await;
    let task =
        world.call("task/submit", &json!({ "from_agent": "a@x", "to_agent": "b@y", "capability": "pay_out" })).await;
    let named = || serde_json::from_value(json!({ "task_id": task["task_id"] })).unwrap();
    assert!(world.gateway().follow(world.grant("a@x", Permission::OwnTask), named()).await.is_ok());
    world.put_policy("cards", &json!([rule("deny", "*@x", &["subscribe"], "*@y", None)])).await.unwrap();
    let refused = world.gateway().follow(world.grant("a@x", Permission::OwnTask), named()).await.err().unwrap();
    assert_eq!(refused.code, ErrorCode::Forbidden);
    assert!(world.gateway().get(world.grant("a@x", Permission::OwnTask), named()).await.is_ok());
}

#[tokio::test]
async fn everything_wrong_is_told_at_once_and_of_two_changes_the_second_is_refused() {
    let world = World::start().await;
    let wrong = json!({ "version": 0, "across": "cards", "rules": [
        rule("deny", "lab", &["see"], "*@bank", Some("Pay*")), rule("allow", "a@x", &[], "b", None) ] });
    let refused = world.call("policy/put", &wrong).await;
    assert_eq!(refused["data"]["code"], "invalid_params", "{refused}");
    for place in
        ["rules[0].subject", "rules[0].actions[0]", "rules[0].capability", "rules[1].object", "rules[1].actions"]
    {
        assert!(refused["message"].as_str().unwrap().contains(place), "{place}: {refused}");
    }
    let empty = json!({ "version": 0, "across": "rules", "rules": [] });
    assert_eq!(world.call("policy/put", &empty).await["policy"]["version"], 1);
    assert_eq!(world.call("policy/put", &empty).await["data"]["code"], "version_conflict");
    assert_eq!(world.call("policy/get", &json!({})).await["across"], "rules");
    let agent = authorized_as_agent(&world);
    assert!(agent.to_string().contains("operator"), "{agent}");
}

fn authorized_as_agent(world: &World) -> reach_core::access::Denial {
    let caller = world.gateway().caller_named(&id("a@x"));
    reach_core::access::authorize(caller, reach_schemas::Method::PolicyPut.permission()).unwrap_err()
}

#[tokio::test]
async fn the_operator_can_ask_who_says_no() {
    let world = two_who_may().await;
    world.put_policy("cards", &json!([rule("deny", "*@x", &["call"], "*@y", Some("pay_*"))])).await.unwrap();
    let ask = async |subject: &str, object: &str, capability: &str| {
        let params = json!({ "subject": subject, "action": "call", "object": object, "capability": capability });
        world.call("policy/test", &params).await
    };
    let said = ask("a@x", "b@y", "pay_out").await;
    assert_eq!((&said["allowed"], &said["registered"]), (&json!(false), &json!(true)), "{said}");
    assert_eq!(said["why"], "a@x may not call b@y: rules[0] of the policy denies it");
    assert_eq!(ask("a@x", "b@y", "read_out").await["allowed"], true);
    let by_card = ask("z@x", "b@y", "read_out").await;
    assert!(by_card["why"].as_str().unwrap().contains("its own may_call"), "{by_card}");
    assert_eq!(ask("a@x", "gone@x", "read_out").await["registered"], false);
}

/// A gateway over a file, as it is when it starts.
async fn started(config: &Config) -> Running {
    // The one before gives the file back once the last of its tasks has ended.
    let opened = async {
        loop {
            match boot::open_store(&config.data) {
                Ok(store) => return store,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let store = tokio::time::timeout(std::time::Duration::from_secs(60), opened).await.unwrap();
    boot::start(config, store).await.unwrap()
}

#[tokio::test]
async fn a_policy_outlives_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let file = config::File { data: Some(folder.path().to_owned()), ..config::File::default() };
    let config = config::check(file, config::Flags::default()).unwrap();
    let put =
        json!({ "version": 0, "across": "rules", "rules": [rule("deny", "*@x", &["call"], "*@x", Some("pay_*"))] });
    let put: PolicyPut = serde_json::from_value(put).unwrap();
    let Running { gateway, stop, workers, .. } = started(&config).await;
    let stands = gateway.put_policy(operator(Permission::Operate), put.clone()).await.unwrap();
    assert_eq!((stands.policy.version, &stands.policy.rules), (1, &put.rules));
    stop.cancel();
    workers.wait().await;
    drop(gateway);
    let running = started(&config).await;
    assert_eq!(running.gateway.policy(operator(Permission::Operate), Nothing {}).await.unwrap(), stands.policy);
    let asked = json!({ "subject": "a@x", "action": "call", "object": "b@x", "capability": "pay_out" });
    let asked = serde_json::from_value(asked).unwrap();
    assert!(!running.gateway.test_policy(operator(Permission::Operate), asked).await.unwrap().allowed);
}
