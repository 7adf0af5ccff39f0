//! The SDK in front of a gateway that asks who calls: its user says where a join token is, and no more.

use std::time::Duration;

use agent_reach_sdk::schemas::call::AgentList;
use agent_reach_sdk::{Agent, Client, Context, Error, ErrorCode, Task, card};
use serde_json::{Value, json};

use super::world::{OPERATOR_KEY, World};

fn builder(world: &World, folder: &std::path::Path, name: &str) -> agent_reach_sdk::AgentBuilder {
    let key = folder.join(format!("{name}.key"));
    let client = Client::builder().url(world.url("")).key_file(key);
    let offer = serde_json::from_value(
        json!({ "name": "echo", "description": "Says it again.", "effect": "read", "input_schema": { "type": "object" } }),
    );
    Agent::builder(card(name).unwrap())
        .connection(client)
        .capability(offer.unwrap(), |task: Task, _: Context| async move { task.params::<Value>() })
}

#[tokio::test]
async fn an_agent_and_a_caller_get_in_by_join_tokens_and_come_back_by_their_keys() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let join = world.join("echo@media").await;
    let agent = builder(&world, folder.path(), "echo@media").join(join).start().await.unwrap();
    let join = world.join("desk@media").await;
    let key = folder.path().join("desk.key");
    let client = || Client::builder().url(world.url("")).from_agent("desk@media").key_file(&key);
    let desk = client().join(join).connect().await.unwrap();
    let ask = async |client: &Client| {
        let said = json!({ "say": "hello" });
        let done = client.task("echo").params(&said).submit().await?.wait().await?;
        done.result::<Value>()
    };
    assert_eq!(ask(&desk).await.unwrap(), json!({ "say": "hello" }));
    // Another process of the same agent, with nothing but the key.
    let again = client().connect().await.unwrap();
    assert_eq!(ask(&again).await.unwrap(), json!({ "say": "hello" }));
    let refused = ask(&desk).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Superseded), "{refused}");
    // Its token is revoked: it shows its key, and nobody notices.
    world.call(Some(OPERATOR_KEY), "token/revoke", json!({ "agent_id": "desk@media" })).await.result();
    assert_eq!(ask(&again).await.unwrap(), json!({ "say": "hello" }));
    // So does an agent on its connection.
    world.call(Some(OPERATOR_KEY), "token/revoke", json!({ "agent_id": "echo@media" })).await.result();
    assert_eq!(ask(&again).await.unwrap(), json!({ "say": "hello" }));
    drop(agent);
}

#[tokio::test]
async fn of_two_agents_with_one_key_the_older_one_stops_and_says_why() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let join = world.join("echo@media").await;
    let older = builder(&world, folder.path(), "echo@media").join(join).start().await.unwrap();
    let newer = builder(&world, folder.path(), "echo@media").start().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), older.ended()).await.expect("it stops");
    assert_eq!(ended.code(), Some(ErrorCode::Superseded), "{ended}");
    drop(newer);
}

#[tokio::test]
async fn who_has_neither_token_nor_key_is_told_so() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let client = Client::builder().url(world.url("")).from_agent("x@media").key_file(folder.path().join("none.key"));
    let refused = client
        .connect()
        .await
        .unwrap()
        .agents(&AgentList { namespace: None, limit: None, after: None })
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::Unauthenticated(_)), "{refused}");
    let started = builder(&world, folder.path(), "y@media").join("reach_join_nonsense").start().await;
    assert!(matches!(started, Err(Error::Unauthenticated(_))));
}
