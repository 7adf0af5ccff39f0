//! The way in, and every road that leads there.

use futures_util::{SinkExt, StreamExt};
use reach_gateway::transport::bridge;
use reach_schemas::Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_tungstenite::tungstenite::Message;

use super::world::{Agent, OPERATOR_KEY, SECRET, World};

#[tokio::test]
async fn without_a_token_nothing_is_answered_but_how_the_gateway_is_and_how_one_gets_in() {
    let world = World::new().await;
    let routes = [
        "GET /agents",
        "GET /agents/a@b",
        "GET /capabilities",
        "POST /reach",
        "POST /tasks",
        "GET /tasks",
        "POST /agent/heartbeat",
        "POST /agent/a@b/invoke",
        "GET /dead-letters",
        "GET /human",
        "GET /webhooks",
        "GET /overview",
        "GET /metrics",
        "POST /mcp",
        "GET /mcp",
        "DELETE /mcp",
        "POST /servers/x/mcp",
        "GET /.well-known/ai-catalog.json",
        "GET /agents/a@b/agent-card.json",
        "GET /no/such",
    ];
    for route in routes {
        let (verb, path) = route.split_once(' ').unwrap();
        let body = (verb == "POST").then(|| json!({}));
        for token in [None, Some("nonsense"), Some("reach_op_nonsense"), Some("a.b.c")] {
            let said = world.http(verb, path, token, &[], body.as_ref()).await;
            said.refused("unauthenticated");
            let challenge = said.headers["www-authenticate"].to_str().unwrap();
            assert_eq!(challenge.contains("invalid_token"), token.is_some(), "{route}: {challenge}");
        }
    }
    for path in ["/rpc/ws", "/mcp/ws"] {
        assert_eq!(world.socket(path, None).await.err(), Some(401), "{path}");
        assert_eq!(world.socket(path, Some("nonsense")).await.err(), Some(401), "{path}");
    }
    for path in ["/healthz", "/openapi.json", "/errors", "/errors/unauthenticated", "/mcp/server-card"] {
        assert_eq!(world.http("GET", path, None, &[], None).await.status, 200, "{path}");
    }
    // How much there is to do is the doing of all tenants: operators are told, and nobody else.
    let agent = world.agent("a@desk").await;
    for token in [None, Some(agent.token.as_str())] {
        assert_eq!(world.http("GET", "/healthz", token, &[], None).await.json, json!({ "status": "ok" }), "{token:?}");
    }
    let told = world.http("GET", "/healthz", Some(OPERATOR_KEY), &[], None).await.json;
    assert!(told["version"].is_string() && told["open"].is_object() && told["ended"].is_object(), "{told}");
    for method in ["agent/list", "task/submit", "agent/drain", "token/list", "token/create_join"] {
        world.call(None, method, json!({})).await.refused("unauthenticated");
    }
    let card = Agent::new("a@b").card();
    world.call(None, "agent/register", card.clone()).await.refused("unauthenticated");
    world.http("POST", "/agent/register", None, &[], Some(&card)).await.refused("unauthenticated");
    for headers in
        [[("authorization", "Basic x"), ("x", "y")], [("authorization", "Bearer x"), ("authorization", "Bearer y")]]
    {
        world.http("GET", "/agents", None, &headers, None).await.refused("unauthenticated");
    }
}

#[tokio::test]
async fn an_agent_joins_by_a_token_and_every_road_is_open_to_it() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let token = Some(agent.token.as_str());
    assert_eq!(agent.call(&world, "agent/list", json!({})).await.result()["agents"][0]["card"]["agent_id"], agent.id);
    assert_eq!(world.http("GET", "/agents", token, &[], None).await.json["agents"][0]["card"]["agent_id"], agent.id);
    assert_eq!(world.mcp(token).await.result()["serverInfo"]["name"], "agent-reach");
    let mut socket = world.socket("/rpc/ws", token).await.unwrap();
    socket.send(Message::text(r#"{"jsonrpc":"2.0","id":1,"method":"agent/list"}"#)).await.unwrap();
    let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
    assert!(answer.contains("news@media"), "{answer}");
    let mut socket = world.socket("/mcp/ws", token).await.unwrap();
    socket.send(Message::text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).await.unwrap();
    assert_eq!(
        socket.next().await.unwrap().unwrap().into_text().unwrap().as_str(),
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#
    );
    assert_eq!(bridged(&world, token).await.unwrap(), json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    let refused = bridged(&world, None).await.unwrap_err();
    assert!(refused.contains("401") && refused.contains("AGENT_REACH_TOKEN"), "{refused}");
}

/// A ping through the bridge of standard input and output.
async fn bridged(world: &World, token: Option<&str>) -> Result<Value, String> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let (said, mut says) = tokio::io::split(ours);
    says.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
    let token = token.map(|token| Secret::from(token.to_owned()));
    let read = move || -> std::io::Result<_> { Ok(token.clone()) };
    let address = world.url("/mcp");
    let running = bridge(&address, None, &read, reader, writer);
    let mut lines = BufReader::new(said).lines();
    tokio::select! {
        ended = running => Err(ended.unwrap_err().to_string()),
        line = lines.next_line() => Ok(serde_json::from_str(&line.unwrap().unwrap()).unwrap()),
    }
}

#[tokio::test]
async fn a_join_token_lets_one_agent_in_of_the_names_that_it_is_for() {
    let world = World::new().await;
    let join = world.join("news_*@media").await;
    for id in ["sport@media", "news_a@other"] {
        Agent::new(id).shows_key(&world, Some(&join)).await.refused("unauthenticated");
    }
    // A card that is wrong costs no join token.
    let agent = Agent::new("news_a@media");
    let wrong = json!({ "card": { "agent_id": agent.id, "capabilities": [{ "name": "x", "description": "Does x." }, { "name": "x", "description": "Does it twice." }] }, "join": join, "proof": agent.proof(&world) });
    assert_eq!(world.call(None, "agent/register", wrong).await.json["error"]["data"]["code"], "invalid_card");
    let agent = agent.register(&world, Some(&join)).await;
    assert_eq!(agent.beat(&world).await.status, 200);
    Agent::new("news_b@media").shows_key(&world, Some(&join)).await.refused("unauthenticated");
    Agent::new("news_b@media").shows_key(&world, None).await.refused("unauthenticated");
    let said = world.call(Some(OPERATOR_KEY), "token/create_join", json!({ "agents": "*@*" })).await;
    assert_eq!(said.json["error"]["data"]["code"], "invalid_params");
}

#[tokio::test]
async fn of_two_who_come_at_once_with_one_join_token_one_gets_in() {
    let world = World::new().await;
    let join = world.join("*@media").await;
    let agents: Vec<Agent> = (0..8).map(|number| Agent::new(&format!("a{number}@media"))).collect();
    let all = agents.iter().map(|agent| agent.shows_key(&world, Some(&join)));
    let said = futures_util::future::join_all(all).await;
    assert_eq!(said.iter().filter(|said| said.status == 200).count(), 1);
}

#[tokio::test]
async fn the_secret_of_a_namespace_lets_its_agents_in_and_no_others() {
    let world = World::new().await;
    assert_eq!(Agent::new("a@desk").shows_key(&world, Some(SECRET)).await.status, 200);
    assert_eq!(Agent::new("b@desk").shows_key(&world, Some(SECRET)).await.status, 200);
    Agent::new("a@media").shows_key(&world, Some(SECRET)).await.refused("unauthenticated");
    Agent::new("c@desk").shows_key(&world, Some("a-secret-of-the-namespace-desl")).await.refused("unauthenticated");
}

#[tokio::test]
async fn an_agent_registers_over_rest_and_a_card_alone_needs_its_token() {
    let world = World::new().await;
    let agent = Agent::new("news@media");
    let join = world.join("*@media").await;
    let body = json!({ "card": agent.card(), "join": join, "proof": agent.key.proof(&world.url("/agent/register"), world.now()) });
    let said = world.http("POST", "/agent/register", None, &[], Some(&body)).await;
    let token = said.json["token"]["token"].as_str().unwrap();
    let again = world.http("POST", "/agent/register", Some(token), &[], Some(&agent.card())).await;
    assert_eq!((again.status, &again.json["unchanged"], again.json.get("token")), (200, &json!(true), None));
    let other = Agent::new("sport@media").card();
    assert_eq!(world.http("POST", "/agent/register", Some(token), &[], Some(&other)).await.status, 403);
}
