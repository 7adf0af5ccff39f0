//! The standard road: what a plain OAuth client reads, asks and is given.

use serde_json::{Value, json};

use super::signer::{Signer, secs};
use super::world::{Agent, OPERATOR_KEY, Said, World, pass};

pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// What a client says of itself.
pub(crate) fn assertion(world: &World, key: &Signer, client: &str, audience: &str) -> String {
    let now = secs(world.now());
    let body = json!({ "iss": client, "sub": client, "aud": audience, "iat": now, "exp": now + 120, "jti": uuid::Uuid::now_v7().to_string() });
    key.sign(&json!({ "typ": "JWT", "alg": "EdDSA" }), &body)
}

async fn post(world: &World, path: &str, token: Option<&str>, form: &[(&str, &str)]) -> Said {
    world.form(path, token, form).await
}

fn asking(assertion: &str) -> Vec<(&'static str, &str)> {
    vec![("grant_type", "client_credentials"), ("client_assertion_type", JWT_BEARER), ("client_assertion", assertion)]
}

#[tokio::test]
async fn a_client_finds_its_way_from_the_refusal_to_a_token_that_every_road_takes() {
    let world = World::new().await;
    let key = Signer::new();
    let trusted =
        world.call(Some(OPERATOR_KEY), "token/trust_key", json!({ "agent_id": "host@desk", "x": key.x() })).await;
    assert_eq!(trusted.result()["generation"], 1);
    let refused = world.mcp(None).await;
    let challenge = refused.headers["www-authenticate"].to_str().unwrap();
    let metadata = challenge.split("resource_metadata=\"").nth(1).unwrap().split('"').next().unwrap();
    let path = metadata.strip_prefix(&world.url("")).unwrap();
    let resource = world.http("GET", path, None, &[], None).await.json;
    assert_eq!(resource["resource"], world.url("/mcp"));
    let server = resource["authorization_servers"][0].as_str().unwrap().to_owned();
    let found = format!("{}/.well-known/oauth-authorization-server", server.strip_prefix(&world.url("")).unwrap());
    let server = world.http("GET", &found, None, &[], None).await.json;
    assert_eq!(
        (&server["issuer"], &server["grant_types_supported"]),
        (&json!(world.url("")), &json!(["client_credentials"]))
    );
    let endpoint = server["token_endpoint"].as_str().unwrap();
    let said = assertion(&world, &key, "host@desk", endpoint);
    let mut form = asking(&said);
    let wanted = world.url("/mcp");
    form.extend([("resource", wanted.as_str()), ("scope", "agent"), ("client_id", "host@desk")]);
    let given = post(&world, endpoint.strip_prefix(&world.url("")).unwrap(), None, &form).await;
    assert_eq!(
        (given.status, &given.json["token_type"], &given.json["expires_in"]),
        (200, &json!("Bearer"), &json!(43_200)),
        "{given:?}"
    );
    assert_eq!(given.headers["cache-control"], "no-store");
    let token = given.json["access_token"].as_str().unwrap();
    assert_eq!(world.mcp(Some(token)).await.status, 200);
    assert_eq!(world.call(Some(token), "agent/list", json!({})).await.status, 200);
    // Another one is given, and the first stays good.
    let said = assertion(&world, &key, "host@desk", &world.url(""));
    assert_eq!(post(&world, "/oauth/token", None, &asking(&said)).await.status, 200);
    assert_eq!(world.mcp(Some(token)).await.status, 200);
}

#[tokio::test]
async fn a_client_whose_tokens_were_revoked_is_back_by_its_key_and_they_stay_dead() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let token = async || {
        let said = assertion(&world, &agent.key, &agent.id, &world.url("/oauth/token"));
        let given = post(&world, "/oauth/token", None, &asking(&said)).await;
        given.json["access_token"].as_str().unwrap().to_owned()
    };
    let before = token().await;
    assert_eq!(world.mcp(Some(&before)).await.status, 200);
    world.call(Some(OPERATOR_KEY), "token/revoke", json!({ "agent_id": agent.id })).await.result();
    world.mcp(Some(&before)).await.refused("token_revoked");
    let after = token().await;
    assert_eq!(world.mcp(Some(&after)).await.status, 200);
    world.mcp(Some(&before)).await.refused("token_revoked");
}

#[tokio::test]
async fn a_client_that_pretends_is_told_invalid_client() {
    let world = World::new().await;
    let (agent, other) = (world.agent("news@media").await, world.agent("desk@media").await);
    let endpoint = world.url("/oauth/token");
    let good = assertion(&world, &agent.key, &agent.id, &endpoint);
    assert_eq!(post(&world, "/oauth/token", None, &asking(&good)).await.status, 200);
    let now = secs(world.now());
    let of = |change: fn(&mut Value, u64)| {
        let mut body = json!({ "iss": agent.id, "sub": agent.id, "aud": endpoint, "exp": now + 60, "jti": uuid::Uuid::now_v7().to_string() });
        change(&mut body, now);
        agent.key.sign(&json!({ "alg": "EdDSA" }), &body)
    };
    for (what, said) in [
        ("it came before", good),
        ("another tenant's key", assertion(&world, &other.key, &agent.id, &endpoint)),
        ("a stranger's key", assertion(&world, &Signer::new(), &agent.id, &endpoint)),
        ("nobody's name", assertion(&world, &agent.key, "nobody@media", &endpoint)),
        ("for another", assertion(&world, &agent.key, &agent.id, "https://elsewhere.example/oauth/token")),
        ("over", of(|body, now| body["exp"] = json!(now - 61))),
        ("good for days", of(|body, now| body["exp"] = json!(now + 86_400))),
        ("not yet", of(|body, now| body["nbf"] = json!(now + 120))),
        ("of another", of(|body, _| body["iss"] = json!("desk@media"))),
        ("no id", of(|body, _| drop(body.as_object_mut().unwrap().remove("jti")))),
        ("no signature", format!("{}.", of(|_, _| {}).rsplit_once('.').unwrap().0)),
        ("nonsense", "nonsense".to_owned()),
    ] {
        let refused = post(&world, "/oauth/token", None, &asking(&said)).await;
        assert_eq!((refused.status, &refused.json["error"]), (401, &json!("invalid_client")), "{what}: {refused:?}");
        let told = refused.json["error_description"].as_str().unwrap();
        let claim = match what {
            "it came before" => "`jti` was used before",
            "for another" => "`aud` is neither",
            "over" => "`exp` is past",
            "good for days" => "`exp` is more than 10m ahead",
            "not yet" => "`nbf` is yet to come",
            _ => "is no JWT that is signed (EdDSA) by the key that is known of its `sub`",
        };
        assert!(told.contains(claim), "{what}: {told}");
    }
    let head = json!({ "alg": "none" });
    let forged = format!(
        "{}.{}.",
        super::signer::part(&head),
        super::signer::part(&json!({ "iss": agent.id, "sub": agent.id, "aud": endpoint, "exp": now + 60, "jti": "x" }))
    );
    assert_eq!(post(&world, "/oauth/token", None, &asking(&forged)).await.status, 401);
    let said = assertion(&world, &agent.key, &agent.id, &endpoint);
    for (member, value, error) in [
        ("grant_type", "password", "unsupported_grant_type"),
        ("scope", "agent admin", "invalid_scope"),
        ("resource", "https://elsewhere.example", "invalid_target"),
    ] {
        let mut form: Vec<_> = asking(&said).into_iter().filter(|(name, _)| *name != member).collect();
        form.push((member, value));
        let refused = post(&world, "/oauth/token", None, &form).await;
        assert_eq!((refused.status, &refused.json["error"]), (400, &json!(error)), "{refused:?}");
    }
    let secret = post(
        &world,
        "/oauth/token",
        None,
        &[("grant_type", "client_credentials"), ("client_id", "a"), ("client_secret", "b")],
    )
    .await;
    assert_eq!(secret.status, 401);
}

#[tokio::test]
async fn an_assertion_that_was_used_is_refused_for_all_its_life_also_by_a_gateway_that_was_started_anew() {
    let mut world = World::new().await;
    let agent = world.agent("news@media").await;
    // As far ahead as it may end.
    let now = secs(world.now());
    let body =
        json!({ "iss": agent.id, "sub": agent.id, "aud": world.url("/oauth/token"), "exp": now + 600, "jti": "once" });
    let said = agent.key.sign(&json!({ "alg": "EdDSA" }), &body);
    assert_eq!(post(&world, "/oauth/token", None, &asking(&said)).await.status, 200);
    for waited in [0, 300, 290, 60, 20] {
        pass(std::time::Duration::from_secs(waited)).await;
        world = world.restarted(0).await;
        let refused = post(&world, "/oauth/token", None, &asking(&said)).await;
        assert_eq!((refused.status, &refused.json["error"]), (401, &json!("invalid_client")), "{refused:?}");
        let told = refused.json["error_description"].as_str().unwrap();
        let is_over = secs(world.now()) >= now + 660;
        assert_eq!(told.contains("used before"), !is_over, "{told}");
    }
    assert!(secs(world.now()) >= now + 660, "its life is over by now");
}

#[tokio::test]
async fn a_token_is_ended_and_asked_about_by_whom_it_concerns() {
    let world = World::new().await;
    let (agent, other): (Agent, Agent) = (world.agent("news@media").await, world.agent("desk@media").await);
    let ask = async |by: Option<&str>| post(&world, "/oauth/introspect", by, &[("token", &agent.token)]).await;
    let told = ask(Some(OPERATOR_KEY)).await;
    assert_eq!((&told.json["active"], &told.json["client_id"]), (&json!(true), &json!(agent.id)));
    assert_eq!(ask(Some(&agent.token)).await.json["active"], true);
    assert_eq!(ask(Some(&other.token)).await.json, json!({ "active": false }));
    assert_eq!(ask(None).await.status, 401);
    assert_eq!(
        post(&world, "/oauth/introspect", Some(OPERATOR_KEY), &[("token", "nonsense")]).await.json,
        json!({ "active": false })
    );
    let end = async |by: &str| post(&world, "/oauth/revoke", Some(by), &[("token", &agent.token)]).await.status;
    assert_eq!(end(&other.token).await, 403);
    assert_eq!(agent.beat(&world).await.status, 200);
    assert_eq!(end(&agent.token).await, 200);
    agent.beat(&world).await.refused("token_revoked");
    assert_eq!(ask(Some(OPERATOR_KEY)).await.json, json!({ "active": false }));
    assert_eq!(end(OPERATOR_KEY).await, 200, "to end it twice is no mistake");
    assert_eq!(post(&world, "/oauth/revoke", Some(OPERATOR_KEY), &[("token", "nonsense")]).await.status, 200);
}

#[tokio::test]
async fn an_operators_token_is_ended_by_whoever_has_it_or_an_administrator_and_then_it_works_no_more() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let ask = async |by: &str, token: &str| post(&world, "/oauth/introspect", Some(by), &[("token", token)]).await.json;
    let end = async |by: &str, token: &str| post(&world, "/oauth/revoke", Some(by), &[("token", token)]).await;
    for role in ["viewer", "operator", "admin"] {
        let by_itself = world.operator(&format!("own-{role}"), role).await;
        let by_admin = world.operator(&format!("other-{role}"), role).await;
        for (token, by, name) in [(&by_itself, by_itself.as_str(), "own"), (&by_admin, OPERATOR_KEY, "other")] {
            let told = ask(by, token).await;
            let named = format!("{name}-{role}");
            assert_eq!(
                (&told["active"], &told["scope"], &told["username"]),
                (&json!(true), &json!(role), &json!(named))
            );
            assert_eq!((&told["sub"], told.get("exp")), (&json!(format!("operator:{named}")), None));
            assert_eq!(ask(&agent.token, token).await, json!({ "active": false }), "it is none of an agent's business");
            assert_eq!(end(&agent.token, token).await.status, 403);
            let ended = end(by, token).await;
            assert_eq!((ended.status, &ended.json), (200, &json!({})));
            world.call(Some(token), "agent/list", json!({})).await.refused("unauthenticated");
            assert_eq!(ask(OPERATOR_KEY, token).await, json!({ "active": false }));
            assert_eq!(end(OPERATOR_KEY, token).await.status, 200, "to end it twice is no mistake");
        }
    }
    let (viewer, operator) = (world.operator("v", "viewer").await, world.operator("o", "operator").await);
    for (by, token) in [(&viewer, &operator), (&operator, &viewer), (&operator, &agent.token)] {
        assert_eq!(end(by, token).await.status, 403);
        assert_eq!(ask(by, token).await["active"], true);
    }
    // One that the name was given anew is another, and stays.
    let newer = world.operator("o", "operator").await;
    assert_eq!(end(OPERATOR_KEY, &operator).await.status, 200);
    assert_eq!(world.call(Some(&newer), "agent/list", json!({})).await.status, 200);
    let rows = world.call(Some(OPERATOR_KEY), "audit/search", json!({ "kind": "token.revoked" })).await;
    assert_eq!(rows.result()["rows"].as_array().unwrap().len(), 6, "{rows:?}");
}

#[tokio::test]
async fn what_cannot_be_ended_so_is_said_to_be_so_and_is_told_as_it_is() {
    let world = World::new().await;
    let join = world.join("*@media").await;
    for token in [OPERATOR_KEY, join.as_str()] {
        let said = post(&world, "/oauth/revoke", Some(OPERATOR_KEY), &[("token", token)]).await;
        assert_eq!((said.status, &said.json["error"]), (400, &json!("unsupported_token_type")), "{said:?}");
    }
    let told = post(&world, "/oauth/introspect", Some(OPERATOR_KEY), &[("token", OPERATOR_KEY)]).await.json;
    assert_eq!((&told["active"], &told["sub"]), (&json!(true), &json!("operator")));
    // No call is let in by a join token.
    let told = post(&world, "/oauth/introspect", Some(OPERATOR_KEY), &[("token", &join)]).await.json;
    assert_eq!(told, json!({ "active": false }));
    assert_eq!(Agent::new("a@media").shows_key(&world, Some(&join)).await.status, 200);
}

#[tokio::test]
async fn the_published_keys_are_those_that_tokens_are_signed_with_and_the_next_is_known_ahead() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let kid = |token: &str| {
        use base64::Engine as _;
        let head = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
        serde_json::from_slice::<Value>(&head).unwrap()["kid"].as_str().unwrap().to_owned()
    };
    let published = async || world.http("GET", "/.well-known/jwks.json", None, &[], None).await;
    let first = published().await;
    let kids = |said: &Said| {
        said.json["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["kid"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let known = kids(&first);
    assert!(known.len() == 2 && known.contains(&kid(&agent.token)), "{known:?}");
    assert!(first.json["keys"].as_array().unwrap().iter().all(|key| key.get("d").is_none() && key["alg"] == "EdDSA"));
    let tag = first.headers["etag"].to_str().unwrap();
    assert_eq!(first.headers["cache-control"], "public, max-age=300");
    assert_eq!(world.http("GET", "/.well-known/jwks.json", None, &[("if-none-match", tag)], None).await.status, 304);
    pass(std::time::Duration::from_secs(24 * 3600 + 60)).await;
    let shown = agent.shows_key(&world, None).await;
    let now = kid(shown.result()["token"].as_str().unwrap());
    assert!(now != kid(&agent.token) && known.contains(&now), "it was published a day ahead");
    let later = published().await;
    assert_eq!(kids(&later).len(), 3, "the one before it is still known");
    assert_eq!(world.http("GET", "/.well-known/jwks.json", None, &[("if-none-match", tag)], None).await.status, 200);
}
