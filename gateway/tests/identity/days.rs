//! Two days of an agent, hour by hour: nothing is refused that should pass.

use std::time::Duration;

use serde_json::json;

use super::world::{Agent, OPERATOR_KEY, World, pass};

const HOUR: Duration = Duration::from_secs(3600);

/// What the hour brings, beside a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Happens {
    /// The answer to the heartbeat is lost.
    Lost,
    /// The gateway is started anew, with a clock that goes wrong by so many milliseconds from then on.
    Restart(i64),
}

fn happens(hour: u32) -> Option<Happens> {
    match hour {
        // Just when a token was renewed, and for hours on end.
        6..=8 | 19 | 20 | 31 => Some(Happens::Lost),
        10 => Some(Happens::Restart(0)),
        22 => Some(Happens::Restart(60_000)),
        34 => Some(Happens::Restart(-60_000)),
        40 => Some(Happens::Restart(-60_000)),
        _ => None,
    }
}

/// A beat after which the agent has the next token, if it was brought one and heard it.
async fn beat(world: &World, agent: &mut Agent, is_heard: bool) -> bool {
    let said = agent.beat(world).await;
    let next = said.result()["token"]["token"].as_str().map(str::to_owned);
    assert_eq!(said.status, 200);
    match next {
        Some(next) if is_heard => {
            agent.token = next;
            true
        }
        Some(_) | None => false,
    }
}

#[tokio::test]
async fn for_two_days_of_rotation_lost_answers_restarts_and_skewed_clocks_nothing_is_refused() {
    let mut world = World::new().await;
    let mut agent = world.agent("news@media").await;
    let (mut renewals, mut kids) = (0, std::collections::BTreeSet::new());
    for hour in 1..=48 {
        pass(HOUR).await;
        let event = happens(hour);
        if let Some(Happens::Restart(ahead)) = event {
            world = world.restarted(ahead).await;
        }
        let is_renewed = beat(&world, &mut agent, event != Some(Happens::Lost)).await;
        renewals += u32::from(is_renewed);
        let asked = agent.call(&world, "agent/list", json!({})).await;
        assert_eq!(asked.status, 200, "hour {hour}: {asked:?}");
        world.mcp(Some(&agent.token)).await.result();
        drop(world.socket("/rpc/ws", Some(&agent.token)).await.unwrap());
        let tokens = world.call(Some(OPERATOR_KEY), "token/list", json!({})).await;
        for key in tokens.result()["signing_keys"].as_array().unwrap() {
            kids.insert(key["kid"].as_str().unwrap().to_owned());
        }
    }
    assert!((5..=8).contains(&renewals), "renewed {renewals} times");
    assert!(kids.len() >= 3, "the signing keys have changed: {kids:?}");
    let rows = world.call(Some(OPERATOR_KEY), "audit/search", json!({ "kind": "keys.rotated" })).await;
    let rotated = rows.result()["rows"].as_array().unwrap().clone();
    assert!((1..=2).contains(&rotated.len()), "{rotated:?}");
    assert!(rotated.iter().all(|row| row["actor"] == "gateway" && kids.contains(row["target"].as_str().unwrap())));
}

#[tokio::test]
async fn the_token_before_the_one_in_use_is_good_for_ten_minutes_and_no_longer() {
    let world = World::new().await;
    let mut agent = world.agent("news@media").await;
    pass(HOUR * 8).await;
    let old = agent.token.clone();
    assert!(beat(&world, &mut agent, true).await);
    // As long as the next one was not used, the old one is good.
    pass(HOUR).await;
    assert_eq!(world.call(Some(&old), "agent/list", json!({})).await.status, 200);
    assert_eq!(agent.beat(&world).await.status, 200);
    pass(Duration::from_secs(590)).await;
    assert_eq!(world.call(Some(&old), "agent/list", json!({})).await.status, 200);
    let (socket, world) = (world.socket("/rpc/ws", Some(&old)).await.unwrap(), world);
    pass(Duration::from_secs(15)).await;
    world.call(Some(&old), "agent/list", json!({})).await.refused("token_expired");
    assert_eq!(super::copies::closed(socket).await, 4401);
    // A gateway that is started anew knows that as well.
    let world = world.restarted(0).await;
    world.call(Some(&old), "agent/list", json!({})).await.refused("token_expired");
    assert_eq!(agent.beat(&world).await.status, 200);
}

#[tokio::test]
async fn without_heartbeats_a_token_ends_after_twelve_hours_and_its_connections_with_it() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    // Within the minute by which clocks may differ; and no socket is silent for a minute before its token ends.
    pass(HOUR * 12 + Duration::from_secs(30)).await;
    assert_eq!(agent.call(&world, "agent/list", json!({})).await.status, 200);
    let socket = world.socket("/mcp/ws", Some(&agent.token)).await.unwrap();
    pass(Duration::from_secs(50)).await;
    agent.call(&world, "agent/list", json!({})).await.refused("token_expired");
    world.mcp(Some(&agent.token)).await.refused("token_expired");
    assert_eq!(super::copies::closed(socket).await, 4401);
    let shown = agent.shows_key(&world, None).await;
    let token = shown.result()["token"].as_str().unwrap();
    assert_eq!(world.call(Some(token), "agent/list", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_join_token_is_good_for_a_quarter_of_an_hour() {
    let world = World::new().await;
    let (join, late) = (world.join("*@media").await, world.join("*@media").await);
    pass(Duration::from_secs(14 * 60)).await;
    assert_eq!(Agent::new("a@media").shows_key(&world, Some(&join)).await.status, 200);
    pass(Duration::from_secs(61)).await;
    Agent::new("b@media").shows_key(&world, Some(&late)).await.refused("unauthenticated");
}
