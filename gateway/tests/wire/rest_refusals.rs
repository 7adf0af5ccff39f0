//! What is wrong with a request is said in a problem body, whatever it is.

use reach_gateway::gateway::Settings;
use reach_gateway::transport::HttpSettings;
use reqwest::Method;
use serde_json::json;

use crate::common::web::{Puller, Web};
use crate::common::{start, start_with};

#[tokio::test]
async fn a_path_or_method_that_is_not_there_is_a_problem() {
    let running = start().await;
    let web = Web::new(&running);
    let nothing = web.get("/no/such").await.problem(404, "method_not_found");
    assert!(nothing["detail"].as_str().unwrap().contains("/openapi.json"), "{nothing}");
    let allowed = [("/tasks", "GET,HEAD,POST"), ("/rpc", "POST"), ("/rpc/ws", "GET,HEAD"), ("/reach", "POST")];
    for (path, methods) in allowed {
        let refused = web.ask(Method::DELETE, path, &[], None).await;
        refused.problem(405, "method_not_found");
        let mut allow: Vec<&str> = refused.header("allow").split(',').collect();
        allow.sort_unstable();
        assert_eq!(allow.join(","), methods, "{path}");
    }
    let upgrade = web.get("/rpc/ws").await;
    upgrade.problem(426, "invalid_request");
    assert_eq!(upgrade.header("upgrade"), "websocket");
}

#[tokio::test]
async fn a_body_that_is_not_what_it_should_be_is_a_problem_that_names_the_place() {
    let running = start().await;
    let web = Web::new(&running);
    let send = async |content: &str, body: String| {
        web.ask(Method::POST, "/tasks", &[("content-type", content)], Some(body)).await
    };
    for path in ["/tasks", "/rpc"] {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let refused = web.ask(Method::POST, path, &form, Some("a=b".to_owned())).await;
        refused.problem(415, "invalid_request");
    }
    send("application/json", "{".to_owned()).await.problem(400, "parse_error");
    let deep = format!(r#"{{"params":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    send("application/json", deep).await.problem(400, "parse_error");
    send("application/json", "[1]".to_owned()).await.problem(422, "invalid_params");
    let unknown = send("application/json; charset=utf-8", r#"{"capabilty":"x"}"#.to_owned()).await;
    let unknown = unknown.problem(422, "invalid_params");
    assert!(unknown["detail"].as_str().unwrap().contains("`capabilty`: unknown field"), "{unknown}");
    assert!(unknown["detail"].as_str().unwrap().ends_with("of the body)"), "{unknown}");
    assert_eq!(unknown["details"]["at"], "capabilty");
    web.ask(Method::POST, "/tasks", &[], None).await.problem(422, "invalid_params");
}

#[tokio::test]
async fn a_query_or_id_that_is_not_what_it_should_be_is_a_problem() {
    let running = start().await;
    let web = Web::new(&running);
    let query = web.get("/agents?limit=many").await.problem(422, "invalid_params");
    assert!(query["detail"].as_str().unwrap().contains("limit"), "{query}");
    web.get("/agents?limt=1").await.problem(422, "invalid_params");
    web.get("/tasks/7/result").await.problem(422, "invalid_params");
    web.get("/agents/Nobody").await.problem(422, "invalid_params");
    web.get("/agents/nobody@n").await.problem(404, "agent_not_found");
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    web.get(&format!("/tasks/{id}")).await.problem(404, "task_not_found");
    web.get(&format!("/tasks/{id}/result?wait=soon")).await.problem(422, "invalid_params");
}

#[tokio::test]
async fn a_refusal_of_the_use_case_keeps_its_explanation() {
    let running = start().await;
    let (web, _agent) = (Web::new(&running), Puller::start(&running).await);
    let nobody = web.post("/reach", &json!({ "capability": "works" })).await.problem(503, "no_candidate");
    assert!(nobody["suggestions"].is_array(), "{nobody}");
    web.post("/tasks", &json!({ "capability": "work", "params": 1 })).await.problem(422, "params_mismatch");
}

#[tokio::test]
async fn a_full_gateway_says_when_to_come_back() {
    let running = start_with(Settings { open_max: 0, ..Settings::default() }, HttpSettings::default()).await;
    let (web, _agent) = (Web::new(&running), Puller::start(&running).await);
    let full = web.post("/tasks", &json!({ "capability": "work" })).await;
    assert_eq!(full.problem(429, "overloaded")["retry_after"], "1s");
    assert_eq!(full.header("retry-after"), "1");
}
