//! Those who pretend. Each is refused, and told no more than that.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{SinkExt, StreamExt};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio_tungstenite::tungstenite::Message;

use super::signer::{Signer, body, part, secs};
use super::world::{Agent, World, pass};

/// The head and the body of a token.
pub(crate) fn parts(token: &str) -> (Value, Value) {
    let read = |at: usize| {
        let text = URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    (read(0), read(1))
}

/// The key that the gateway signs with, by the name that a token gives it: as if its file had been stolen.
fn signing_key(world: &World, kid: &Value) -> Signer {
    let text = std::fs::read_to_string(world.keys_file()).unwrap();
    let keys: Vec<Value> = serde_json::from_str(&text).unwrap();
    let key = keys.iter().find(|key| key["kid"] == *kid).unwrap();
    Signer::of(&URL_SAFE_NO_PAD.decode(key["pkcs8"].as_str().unwrap()).unwrap())
}

async fn refused(world: &World, token: &str, code: &str) {
    world.call(Some(token), "agent/list", json!({})).await.refused(code);
    world.http("GET", "/agents", Some(token), &[], None).await.refused(code);
    world.mcp(Some(token)).await.refused(code);
    assert_eq!(world.socket("/rpc/ws", Some(token)).await.err(), Some(401));
}

#[tokio::test]
async fn no_other_algorithm_can_be_talked_into() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let (head, claims) = parts(&agent.token);
    let ours = signing_key(&world, &head["kid"]);
    assert_eq!(
        world.call(Some(&ours.sign(&head, &claims)), "agent/list", json!({})).await.status,
        200,
        "the forger can sign"
    );
    for algorithm in ["none", "None", "NONE", ""] {
        let mut head = head.clone();
        head["alg"] = json!(algorithm);
        refused(&world, &format!("{}.{}.", part(&head), part(&claims)), "unauthenticated").await;
    }
    // The public key, which everybody has, as the secret of a symmetric algorithm.
    for algorithm in ["HS256", "RS256", "ES256"] {
        let mut head = head.clone();
        head["alg"] = json!(algorithm);
        let text = format!("{}.{}", part(&head), part(&claims));
        for secret in [ours.public(), ours.x().as_bytes()] {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
            mac.update(text.as_bytes());
            let forged = format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
            refused(&world, &forged, "unauthenticated").await;
        }
        refused(&world, &ours.sign(&head, &claims), "unauthenticated").await;
    }
}

#[tokio::test]
async fn a_token_is_believed_for_what_our_own_key_has_signed() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let (head, claims) = parts(&agent.token);
    let stranger = Signer::new();
    refused(&world, &stranger.sign(&head, &claims), "unauthenticated").await;
    refused(&world, &agent.key.sign(&head, &claims), "unauthenticated").await;
    let kids = ["", "../signing-keys", "../../../../etc/passwd", "/dev/null", "x' OR '1'='1", "%00", &"k".repeat(9000)];
    for kid in kids {
        let mut head = head.clone();
        head["kid"] = json!(kid);
        refused(&world, &stranger.sign(&head, &claims), "unauthenticated").await;
    }
    let mut without = head.clone();
    without.as_object_mut().unwrap().remove("kid");
    refused(&world, &stranger.sign(&without, &claims), "unauthenticated").await;
    // A key of the forger's own in the head, and another place to look for one.
    let mut with_key = head.clone();
    with_key["jwk"] = stranger.head()["jwk"].clone();
    with_key["jku"] = json!("http://127.0.0.1:1/jwks.json");
    refused(&world, &stranger.sign(&with_key, &claims), "unauthenticated").await;
    // One word changed.
    let (left, rest) = agent.token.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let mut other = claims.clone();
    other["sub"] = json!("agent:media/sport");
    other["client_id"] = json!("sport@media");
    refused(&world, &format!("{left}.{}.{signature}", part(&other)), "unauthenticated").await;
    for broken in [
        agent.token.trim_end_matches(|c: char| c != '.').to_owned(),
        format!("{}x", agent.token),
        agent.token.replace('.', ".."),
    ] {
        refused(&world, &broken, "unauthenticated").await;
    }
    // What a gateway elsewhere has signed.
    let elsewhere = World::new().await;
    let agent = elsewhere.agent("news@media").await;
    refused(&world, &agent.token, "unauthenticated").await;
}

#[tokio::test]
async fn a_token_of_our_key_is_good_for_us_for_its_time_and_as_a_token() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    world.agent("sport@media").await;
    let (head, claims) = parts(&agent.token);
    let ours = signing_key(&world, &head["kid"]);
    let now = secs(world.now());
    let with = |field: &str, value: Value| {
        let mut claims = claims.clone();
        claims[field] = value;
        ours.sign(&head, &claims)
    };
    for (field, value, code) in [
        ("aud", json!("https://elsewhere.example"), "unauthenticated"),
        ("aud", json!([claims["aud"], "https://elsewhere.example"]), "unauthenticated"),
        ("iss", json!("https://elsewhere.example"), "unauthenticated"),
        ("exp", json!(now - 61), "token_expired"),
        ("exp", json!(0), "token_expired"),
        ("nbf", json!(now + 120), "unauthenticated"),
        ("iat", json!(now + 120), "unauthenticated"),
        ("sub", json!("agent:media/news/../sport"), "unauthenticated"),
        ("sub", json!("agent:desk/news"), "unauthenticated"),
        ("sub", json!("agent:media/sport"), "unauthenticated"),
        ("client_id", json!("sport@media"), "unauthenticated"),
        ("gen", json!(0), "token_revoked"),
        ("gen", json!(2), "unauthenticated"),
    ] {
        refused(&world, &with(field, value), code).await;
    }
    // Within what clocks may differ it is good.
    for (field, value) in [("nbf", now + 50), ("iat", now + 50), ("exp", now - 50)] {
        let said = world.call(Some(&with(field, json!(value))), "agent/list", json!({})).await;
        assert_eq!(said.status, 200, "{field}: {said:?}");
    }
    for gone in ["exp", "aud", "jti", "gen", "sub"] {
        let mut claims = claims.clone();
        claims.as_object_mut().unwrap().remove(gone);
        refused(&world, &ours.sign(&head, &claims), "unauthenticated").await;
    }
    for kind in ["JWT", "dpop+jwt", ""] {
        let mut head = head.clone();
        head["typ"] = json!(kind);
        refused(&world, &ours.sign(&head, &claims), "unauthenticated").await;
    }
    let mut critical = head.clone();
    critical["crit"] = json!(["exp"]);
    refused(&world, &ours.sign(&critical, &claims), "unauthenticated").await;
    // A proof is no token.
    refused(&world, &agent.proof(&world), "unauthenticated").await;
}

async fn shows(world: &World, agent: &Agent, proof: &str) -> super::world::Said {
    world.call(None, "token/issue", json!({ "agent_id": agent.id, "proof": proof })).await
}

#[tokio::test]
async fn a_proof_is_good_once_for_now_for_here_and_by_the_right_key() {
    let world = World::new().await;
    let (agent, other) = (world.agent("news@media").await, world.agent("news@desk").await);
    let url = world.url("/rpc");
    let now = secs(world.now());
    let proof = agent.proof(&world);
    assert_eq!(shows(&world, &agent, &proof).await.status, 200);
    shows(&world, &agent, &proof).await.refused("unauthenticated");
    // Another tenant's key, and a stranger's.
    for key in [&other.key, &Signer::new()] {
        shows(&world, &agent, &key.proof(&url, world.now())).await.refused("unauthenticated");
    }
    // Signed by one key, and naming the right one.
    let right = agent.key.head();
    shows(&world, &agent, &other.key.sign(&right, &body(&url, now))).await.refused("unauthenticated");
    for (wrong, iat) in
        [(url.as_str(), now - 121), (url.as_str(), now + 120), ("http://elsewhere.example/rpc", now), ("", now)]
    {
        shows(&world, &agent, &agent.key.sign(&right, &body(wrong, iat))).await.refused("unauthenticated");
    }
    let mut body = body(&url, now);
    body["htm"] = json!("GET");
    shows(&world, &agent, &agent.key.sign(&right, &body)).await.refused("unauthenticated");
    for (member, value) in [
        ("typ", json!("JWT")),
        ("alg", json!("none")),
        ("alg", json!("HS256")),
        ("jwk", json!({ "kty": "oct", "k": "AAAA" })),
        ("jwk", Value::Null),
    ] {
        let mut head = right.clone();
        head[member] = value;
        shows(&world, &agent, &agent.key.sign(&head, &super::signer::body(&url, now))).await.refused("unauthenticated");
    }
    // A token is no proof.
    shows(&world, &agent, &agent.token).await.refused("unauthenticated");
    shows(&world, &agent, "nonsense").await.refused("unauthenticated");
}

/// What a call over an open connection is answered.
pub(crate) async fn over(socket: &mut crate::common::peer::Socket, params: &Value) -> Value {
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "token/issue", "params": params });
    socket.send(Message::text(frame.to_string())).await.unwrap();
    serde_json::from_str(&socket.next().await.unwrap().unwrap().into_text().unwrap()).unwrap()
}

#[tokio::test]
async fn a_proof_for_another_gateway_is_refused_over_every_transport() {
    let world = World::new().await;
    let (agent, relay) = (world.agent("news@media").await, world.agent("relay@desk").await);
    let mut socket = world.socket("/rpc/ws", Some(&relay.token)).await.unwrap();
    for elsewhere in ["http://elsewhere.example/rpc", "https://elsewhere.example:443/rpc", "http://127.0.0.1:1/rpc", ""]
    {
        let params = json!({ "agent_id": agent.id, "proof": agent.key.proof(elsewhere, world.now()) });
        let said = over(&mut socket, &params).await;
        assert_eq!(said["error"]["data"]["code"], "unauthenticated", "{elsewhere}: {said}");
    }
    assert_eq!(agent.beat(&world).await.status, 200, "it was not superseded");
    let right = json!({ "agent_id": agent.id, "proof": agent.proof(&world) });
    assert_eq!(over(&mut socket, &right).await["result"]["generation"], 2);
    // Over a pipe the gateway has no name, so that no proof can be for it unless one is set.
    let nameless = json!({ "agent_id": agent.id, "proof": agent.proof(&world) });
    let refused = world.gateway.issue(serde_json::from_value(nameless).unwrap(), None).await.unwrap_err();
    assert_eq!(refused.code, reach_schemas::ErrorCode::Unauthenticated);
    assert!(refused.message.contains("auth.public_url"), "{}", refused.message);
}

#[tokio::test]
async fn a_proof_has_an_id_of_its_own_and_more_of_them_than_are_remembered_are_not_taken() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let (url, head) = (world.url("/rpc"), agent.key.head());
    let with_id = |id: &str| {
        let mut body = body(&url, secs(world.now()));
        body["jti"] = json!(id);
        agent.key.sign(&head, &body)
    };
    for id in ["", &"x".repeat(129)] {
        shows(&world, &agent, &with_id(id)).await.refused("unauthenticated");
    }
    // The first was shown when it joined.
    assert_eq!(shows(&world, &agent, &with_id(&"x".repeat(128))).await.status, 200);
    for number in 3..=16 {
        assert_eq!(shows(&world, &agent, &with_id(&format!("{number}"))).await.status, 200, "{number}");
    }
    shows(&world, &agent, &with_id("17")).await.refused("overloaded");
    pass(std::time::Duration::from_secs(121)).await;
    let later = shows(&world, &agent, &agent.proof(&world)).await;
    later.result();
}

#[tokio::test]
async fn what_a_key_has_signed_is_believed_no_more_once_the_key_is_gone_also_if_it_was_believed_a_moment_ago() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let (head, mut claims) = parts(&agent.token);
    claims["exp"] = json!(secs(world.now()) + 100 * 3600);
    let forged = signing_key(&world, &head["kid"]).sign(&head, &claims);
    let ask = async || world.call(Some(&forged), "agent/list", json!({})).await;
    let is_published = async || {
        let keys = world.http("GET", "/.well-known/jwks.json", None, &[], None).await.json["keys"].clone();
        keys.as_array().unwrap().iter().any(|key| key["kid"] == head["kid"])
    };
    for hours in [0, 25, 11] {
        pass(std::time::Duration::from_secs(hours * 3600)).await;
        assert!(is_published().await, "{hours}");
        assert_eq!(ask().await.status, 200, "{hours}");
    }
    pass(std::time::Duration::from_secs(2 * 3600)).await;
    let began = std::time::Instant::now();
    while is_published().await {
        assert!(began.elapsed().as_secs() < 30, "the key is published for ever");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    refused(&world, &forged, "unauthenticated").await;
}

#[tokio::test]
async fn a_replayed_proof_is_refused_by_a_gateway_that_was_started_anew() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let proof = agent.proof(&world);
    assert_eq!(shows(&world, &agent, &proof).await.status, 200);
    let world = world.restarted(0).await;
    shows(&world, &agent, &proof).await.refused("unauthenticated");
}

#[tokio::test]
async fn no_secret_is_kept_as_it_is() {
    let world = World::new().await;
    let join = world.join("*@media").await;
    let operator = world.operator("alice", "admin").await;
    let agent = world.agent("news@media").await;
    let listed = world.call(Some(&operator), "token/list", json!({})).await.json.to_string();
    for secret in [&join, &operator, &agent.token] {
        assert!(!listed.contains(secret.as_str()));
    }
    let kept = format!("{:?}", world.kept().await);
    for secret in [&join, &operator, &agent.token] {
        assert!(!kept.contains(secret.as_str()));
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(world.keys_file()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}
