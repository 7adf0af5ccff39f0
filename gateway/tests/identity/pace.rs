//! How fast callers may ask, on every road that names them; and how often strangers may try to get in.

use std::time::Duration;

use reach_core::rate::Rate;
use reach_gateway::rates::RateLimits;
use serde_json::{Value, json};

use super::oauth::{JWT_BEARER, assertion};
use super::world::{Agent, SECRET, World, pass};

/// How many may come at once; after that, one in five minutes of nothing else would be far apart enough.
const BURST: u32 = 6;

const ROADS: [&str; 20] = [
    "POST /rpc",
    "POST /rpc nothing that is known",
    "POST /rpc token/issue",
    "POST /rpc a batch",
    "GET /agents",
    "GET /tasks/nonsense",
    "POST /reach",
    "GET /healthz",
    "GET /no/such",
    "GET /.well-known/ai-catalog.json",
    "GET /agents/desk@media/agent-card.json",
    "POST /mcp",
    "GET /mcp",
    "DELETE /mcp",
    "POST /servers/none/mcp",
    "/oauth/introspect",
    "/oauth/revoke",
    "/oauth/token",
    "WS /rpc/ws",
    "WS /mcp/ws",
];

/// Asks once. Whether it was told that it asks too fast.
async fn is_too_fast(world: &World, road: &str, agent: &Agent) -> bool {
    let token = Some(agent.token.as_str());
    let accept = [("accept", "application/json, text/event-stream")];
    let frame = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let list = frame("agent/list", json!({}));
    let is_overloaded = |json: &Value| json["error"]["data"]["code"] == "overloaded" || json["code"] == "overloaded";
    if let Some(path) = road.strip_prefix("WS ") {
        return world.socket(path, token).await.err() == Some(429);
    }
    let said = match road {
        "POST /rpc" => world.http("POST", "/rpc", token, &[], Some(&list)).await,
        "POST /rpc nothing that is known" => {
            world.http("POST", "/rpc", token, &[], Some(&frame("no/such", json!({})))).await
        }
        "POST /rpc token/issue" => {
            let params = json!({ "agent_id": agent.id, "proof": "none" });
            world.http("POST", "/rpc", token, &[], Some(&frame("token/issue", params))).await
        }
        "POST /rpc a batch" => {
            let said = world.http("POST", "/rpc", token, &[], Some(&json!([list]))).await;
            return is_overloaded(&said.json[0]);
        }
        "POST /reach" => world.http("POST", "/reach", token, &[], Some(&json!({ "nonsense": 1 }))).await,
        "/oauth/introspect" | "/oauth/revoke" => world.form(road, token, &[("token", "nonsense")]).await,
        "/oauth/token" => {
            let said = assertion(world, &agent.key, &agent.id, &world.url("/oauth/token"));
            let form = [
                ("grant_type", "client_credentials"),
                ("client_assertion_type", JWT_BEARER),
                ("client_assertion", &said),
            ];
            world.form(road, None, &form).await
        }
        _ => {
            let (verb, path) = road.split_once(' ').unwrap();
            let body = (verb == "POST").then_some(&list);
            world.http(verb, path, token, &accept, body).await
        }
    };
    let is_too_fast = is_overloaded(&said.json) || said.json["error"] == "temporarily_unavailable";
    if said.status == 429 {
        assert!(is_too_fast && said.headers.contains_key("retry-after"), "{road}: {said:?}");
    }
    is_too_fast
}

#[tokio::test]
async fn an_agent_is_held_to_its_rate_on_every_road_and_each_request_counts_once() {
    let own = Rate { per_second: 1, burst: BURST };
    let wide = Rate { per_second: 1000, burst: 1000 };
    let rates = RateLimits { caller: own, namespace: wide, operator: wide };
    for road in ROADS {
        let world = World::with(rates).await;
        let agent = world.agent("desk@media").await;
        // What came with joining is forgiven.
        pass(Duration::from_secs(60)).await;
        let began = world.now();
        let mut passed = 0;
        for _ in 0..4 * BURST {
            passed += u64::from(!is_too_fast(&world, road, &agent).await);
        }
        let most = u64::from(BURST) + world.now().since(began).as_ms() / 1000 + 1;
        assert!((u64::from(BURST)..=most).contains(&passed), "{road}: {passed} of {most}");
        let rows = world.refusals().await;
        let is_written = |row: &(String, String, String, u64)| row.0 == agent.id && row.2 == "overloaded";
        assert!(rows.iter().any(is_written) || road == "/oauth/token", "{road}: {rows:?}");
    }
}

#[tokio::test]
async fn a_stranger_guesses_a_few_secrets_and_then_waits_and_who_has_one_is_let_in_at_once() {
    let world = World::new().await;
    let guesses = async |count: usize| {
        let mut looked_at = 0;
        for number in 0..count {
            let guess = format!("a-secret-of-the-namespace-{number:04}");
            let said = Agent::new("a@desk").shows_key(&world, Some(&guess)).await;
            let code = &said.json["error"]["data"]["code"];
            assert!(code == "unauthenticated" || code == "overloaded", "{said:?}");
            looked_at += usize::from(code == "unauthenticated");
        }
        looked_at
    };
    let began = world.now();
    let looked_at = guesses(200).await;
    let most = 100 + usize::try_from(world.now().since(began).as_ms() / 200).unwrap() + 1;
    assert!((100..=most).contains(&looked_at), "{looked_at} of {most}");
    pass(Duration::from_secs(61)).await;
    for number in 0..150 {
        let said = Agent::new(&format!("a{number}@desk")).shows_key(&world, Some(SECRET)).await;
        assert_eq!(said.status, 200, "what is right costs nothing: {said:?}");
    }
    // One who is known guesses no better.
    let agent = world.agent("known@media").await;
    let mut told = Vec::new();
    for number in 0..120 {
        let stranger = Agent::new("b@desk");
        let params = json!({ "agent_id": "b@desk", "join": format!("guess-number-{number:020}"), "proof": stranger.proof(&world) });
        told.push(agent.call(&world, "token/issue", params).await.json["error"]["data"]["code"].clone());
    }
    assert!(told.iter().any(|code| code == "overloaded"), "{told:?}");
}
