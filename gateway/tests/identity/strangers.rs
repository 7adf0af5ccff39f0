//! Whom somebody has nothing to do with: of them it is told nothing, neither whether there are any.

use std::time::Duration;

use reach_gateway::gateway::Settings;
use reach_gateway::ops::reconfigure::Wanted;
use serde_json::{Value, json};

use super::signer::Signer;
use super::world::{Agent, OPERATOR_KEY, Said, World, pass};

/// The same text, whichever of these names is in it.
fn nameless(said: &Said, names: &[&str]) -> (u16, String) {
    let text = names.iter().fold(said.json.to_string(), |text, name| text.replace(name, "IT"));
    (said.status, text)
}

/// A world with an agent of its configuration, and one that has joined.
async fn with_names() -> (World, [&'static str; 3]) {
    let world = World::new().await;
    let agents =
        vec![serde_json::from_value(json!({ "agent_id": "payroll@media", "capabilities": [{ "name": "pay" }] }))];
    let agents = agents.into_iter().map(Result::unwrap).collect();
    world
        .gateway
        .reconfigure(Wanted { settings: Settings::default(), agents, servers: Vec::new() }, false)
        .await
        .unwrap();
    world.agent("joined@media").await;
    (world, ["payroll@media", "joined@media", "nobody@media"])
}

#[tokio::test]
async fn without_proof_all_names_are_alike_on_every_road_to_a_token() {
    let (world, names) = with_names().await;
    let url = world.url("/rpc");
    let elsewhere = "http://elsewhere.example/rpc";
    for join in [None, Some("reach_join_nonsense"), Some("nonsense")] {
        for htu in [url.as_str(), elsewhere, ""] {
            let mut told = Vec::new();
            for name in names {
                let stranger = Agent::new(name);
                let proof = || Signer::new().proof(htu, world.now());
                let card = || json!({ "card": stranger.card(), "join": join, "proof": proof() });
                let issue = json!({ "agent_id": name, "join": join, "proof": proof() });
                let all = [
                    world.call(None, "token/issue", issue).await,
                    world.call(None, "agent/register", card()).await,
                    world.http("POST", "/agent/register", None, &[], Some(&card())).await,
                ];
                all.iter().for_each(|said| said.refused("unauthenticated"));
                told.push(all.map(|said| nameless(&said, &names)));
            }
            assert!(told.windows(2).all(|two| two[0] == two[1]), "{join:?} {htu}: {told:?}");
        }
    }
    let mut told = Vec::new();
    for name in names {
        let body = json!({ "iss": name, "sub": name, "aud": world.url(""), "exp": world.now().as_ms() / 1000 + 60, "jti": "j" });
        let assertion = Signer::new().sign(&json!({ "typ": "JWT", "alg": "EdDSA" }), &body);
        let form = [
            ("grant_type", "client_credentials"),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", assertion.as_str()),
        ];
        told.push(nameless(&world.form("/oauth/token", None, &form).await, &names));
    }
    assert!(told.windows(2).all(|two| two[0] == two[1]), "{told:?}");
}

#[tokio::test]
async fn who_may_join_is_told_that_a_name_is_the_gateways_own_and_keeps_its_join_token() {
    let (world, [own, ..]) = with_names().await;
    let join = world.join("*@media").await;
    Agent::new(own).shows_key(&world, Some(&join)).await.refused("forbidden");
    assert_eq!(Agent::new("other@media").shows_key(&world, Some(&join)).await.status, 200);
}

#[tokio::test]
async fn a_card_that_is_refused_costs_no_join_token_and_supersedes_nobody() {
    let world = World::new().await;
    let rule = json!({ "ruling": "deny", "subject": "*@lab", "actions": ["register"], "object": "*@lab", "capability": "pay" });
    let policy = json!({ "version": 0, "across": "cards", "rules": [rule] });
    world.call(Some(OPERATOR_KEY), "policy/put", policy).await.result();
    let join = world.join("*@lab").await;
    let agent = Agent::new("l@lab");
    let endpoint = json!([{ "protocol": "http", "address": "http://169.254.169.254/latest" }]);
    let process = json!([{ "protocol": "process", "address": "/bin/sh" }]);
    let wrong: [(&str, Value, &str); 3] = [
        ("capabilities", json!([{ "name": "pay" }]), "forbidden"),
        ("endpoints", endpoint, "invalid_card"),
        ("endpoints", process, "invalid_card"),
    ];
    let refuse = async |agent: &Agent, join: Option<&str>| {
        for (member, value, code) in &wrong {
            let mut card = agent.card();
            card[member] = value.clone();
            let params = json!({ "card": card, "join": join, "proof": agent.proof(&world) });
            world.call(None, "agent/register", params).await.refused(code);
        }
    };
    refuse(&agent, Some(&join)).await;
    let agent = agent.register(&world, Some(&join)).await;
    refuse(&agent, None).await;
    assert_eq!(agent.beat(&world).await.status, 200, "the agent is who it was");
}

/// Two agents that know nothing of each other, and a task of the one.
async fn two_tenants() -> (World, Agent, Agent, String) {
    let world = World::new().await;
    let (near, far) = (world.agent("a@red").await, world.agent("b@blue").await);
    let asker = world.agent("c@blue").await;
    let times = ("10m", "20m");
    let submit = json!({ "to_agent": far.id, "capability": "work", "attempt_timeout": times.0, "deadline": times.1 });
    let task = asker.call(&world, "task/submit", submit).await.result()["task_id"].as_str().unwrap().to_owned();
    (world, near, far, task)
}

const UNKNOWN: &str = "01890000-0000-7000-8000-000000000001";

#[tokio::test]
async fn a_heartbeat_renews_no_lease_of_another_and_tells_nothing_of_it() {
    let (world, near, far, task) = two_tenants().await;
    let claim = json!({ "agent_id": far.id, "lease": "60s" });
    let token = far.call(&world, "task/claim", claim).await.result()["tasks"][0]["token"].clone();
    pass(Duration::from_secs(40)).await;
    let mut told = Vec::new();
    for id in [task.as_str(), UNKNOWN] {
        let beat = json!({ "agent_id": near.id, "working_on": [{ "task_id": id, "token": token }] });
        let said = near.call(&world, "agent/heartbeat", beat).await;
        let mut result = said.result().clone();
        result.as_object_mut().unwrap().remove("heartbeat_due_at");
        told.push(result.to_string().replace(id, "IT"));
    }
    assert_eq!(told[0], told[1]);
    // The lease runs out at its time.
    pass(Duration::from_secs(25)).await;
    let get = async || world.call(Some(OPERATOR_KEY), "task/get", json!({ "task_id": task })).await.result().clone();
    let lost = tokio::time::timeout(Duration::from_secs(20), async {
        while get().await["attempts"][0]["ended_at"].is_null() {
            tokio::task::yield_now().await;
        }
    });
    assert!(lost.await.is_ok(), "the lease was renewed: {}", get().await);
}

#[tokio::test]
async fn the_one_that_has_it_renews_its_lease() {
    let (world, _, far, task) = two_tenants().await;
    let claim = json!({ "agent_id": far.id, "lease": "60s" });
    let token = far.call(&world, "task/claim", claim).await.result()["tasks"][0]["token"].clone();
    pass(Duration::from_secs(40)).await;
    let beat = json!({ "agent_id": far.id, "working_on": [{ "task_id": task, "token": token }] });
    assert!(far.call(&world, "agent/heartbeat", beat).await.result()["stop"].as_array().is_none_or(Vec::is_empty));
    pass(Duration::from_secs(25)).await;
    let done = json!({ "task_id": task, "token": token, "result": 1 });
    assert_eq!(far.call(&world, "task/complete", done).await.result()["phase"], "completed");
}

#[tokio::test]
async fn whoever_claims_a_task_of_others_by_its_id_is_told_the_same_wherever_it_is() {
    let (world, near, far, task) = two_tenants().await;
    let claim = async |id: &str| {
        let said = near.call(&world, "task/claim", json!({ "agent_id": near.id, "task_id": id })).await;
        said.refused("claim_lost");
        said.json.to_string().replace(id, "IT")
    };
    let unknown = claim(UNKNOWN).await;
    assert_eq!(claim(&task).await, unknown, "it waits");
    let claimed = far.call(&world, "task/claim", json!({ "agent_id": far.id })).await;
    let token = claimed.result()["tasks"][0]["token"].clone();
    assert_eq!(claim(&task).await, unknown, "another has it");
    far.call(&world, "task/accept", json!({ "task_id": task, "token": token })).await.result();
    assert_eq!(claim(&task).await, unknown, "another works on it");
    far.call(&world, "task/complete", json!({ "task_id": task, "token": token, "result": 1 })).await.result();
    assert_eq!(claim(&task).await, unknown, "it has ended");
    // Of what it had itself, an agent is told where it is.
    let own = far.call(&world, "task/claim", json!({ "agent_id": far.id, "task_id": task })).await;
    own.refused("wrong_phase");
}
