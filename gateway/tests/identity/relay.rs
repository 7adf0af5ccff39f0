//! Proofs and assertions that were meant for another gateway, or for another time, and keys that prove nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::oauth::{JWT_BEARER, assertion};
use super::signer::{body, secs};
use super::world::{OPERATOR_KEY, Said, World};

/// Names of another gateway on the same machine: whoever has what was meant for it can say that it calls us so.
const OTHERS: [&str; 4] = ["127.0.0.1:1", "localhost:1", "[::1]:1", "localhost"];

async fn issue(world: &World, params: &Value, host: &str) -> Said {
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "token/issue", "params": params });
    world.http("POST", "/rpc", None, &[("host", host)], Some(&frame)).await
}

#[tokio::test]
async fn a_proof_for_another_gateway_is_refused_whatever_the_one_who_hands_it_on_calls_us() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let for_gateway = |host: &str| json!({ "agent_id": agent.id, "proof": agent.key.proof(&format!("http://{host}/rpc"), world.now()) });
    for other in OTHERS {
        issue(&world, &for_gateway(other), other).await.refused("unauthenticated");
        let mut request = format!("ws://{}/rpc/ws", world.address).into_client_request().unwrap();
        request.headers_mut().insert("host", other.parse().unwrap());
        request.headers_mut().insert("authorization", format!("Bearer {}", agent.token).parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let said = super::attacks::over(&mut socket, &for_gateway(other)).await;
        assert_eq!(said["error"]["data"]["code"], "unauthenticated", "{other}: {said}");
    }
    assert_eq!(agent.beat(&world).await.status, 200, "it was not superseded");
    // By each of its own names it takes them.
    let own = format!("localhost:{}", world.address.rsplit(':').next().unwrap());
    assert_eq!(issue(&world, &for_gateway(&own), &own).await.result()["generation"], 2);
}

#[tokio::test]
async fn an_assertion_is_for_the_gateway_that_it_names_and_a_name_that_nobody_chose_is_none() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let ask = async |audience: &str, host: &str| {
        let said = assertion(&world, &agent.key, &agent.id, audience);
        let form =
            [("grant_type", "client_credentials"), ("client_assertion_type", JWT_BEARER), ("client_assertion", &*said)];
        world.form_at("/oauth/token", &[("host", host)], &form).await.status
    };
    let own = world.address.clone();
    for other in OTHERS {
        assert_eq!(ask(&format!("http://{other}"), other).await, 401, "{other}");
        assert_eq!(ask(&format!("http://{other}/oauth/token"), other).await, 401, "{other}");
    }
    let unchosen = world.gateway.identity().audience().to_owned();
    assert!(unchosen.starts_with("urn:"), "{unchosen}");
    assert_eq!(ask(&unchosen, &own).await, 401);
    assert_eq!(ask(&world.url(""), &own).await, 200);
}

#[tokio::test]
async fn what_a_proof_says_of_its_time_is_heeded() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let url = world.url("/rpc");
    let now = secs(world.now());
    let with = |member: &str, at: u64| {
        let mut body = body(&url, now);
        body[member] = json!(at);
        json!({ "agent_id": agent.id, "proof": agent.key.sign(&agent.key.head(), &body) })
    };
    for (member, at) in [("exp", 1), ("exp", now - 61), ("nbf", now + 120)] {
        world.call(None, "token/issue", with(member, at)).await.refused("unauthenticated");
    }
    for (member, at) in [("exp", now + 1), ("nbf", now - 1)] {
        assert_eq!(world.call(None, "token/issue", with(member, at)).await.status, 200, "{member} {at}");
    }
}

#[tokio::test]
async fn a_key_for_which_one_signature_is_good_for_everything_is_not_trusted_and_lets_nobody_in() {
    let world = World::new().await;
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let (x, signature) = (URL_SAFE_NO_PAD.encode(neutral), URL_SAFE_NO_PAD.encode([neutral, [0; 32]].concat()));
    let trusted = world.call(Some(OPERATOR_KEY), "token/trust_key", json!({ "agent_id": "weak@media", "x": x })).await;
    trusted.refused("invalid_params");
    let head = json!({ "typ": "dpop+jwt", "alg": "EdDSA", "jwk": { "kty": "OKP", "crv": "Ed25519", "x": x } });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let proof = format!("{}.{}.{signature}", part(&head), part(&body(&world.url("/rpc"), secs(world.now()))));
    let join = world.join("*@media").await;
    let params = json!({ "agent_id": "weak@media", "join": join, "proof": proof });
    world.call(None, "token/issue", params).await.refused("unauthenticated");
}
