//! The `reach_*` tools, long work as tasks of the extension, what is published, and headers that mirror arguments.

use agent_reach_sdk::{Context, HandlerError, Task};
use reach_gateway::gateway::Settings;
use reach_gateway::mcp::server::Shown;
use reach_gateway::transport::HttpSettings;
use serde_json::{Value, json};

use super::world::{Host, agent, alone, capability, echo, read};
use crate::common::{Running, start, start_with};

async fn showing(tools: Shown) -> Running {
    let mcp = reach_gateway::mcp::server::Settings { tools, ..Default::default() };
    start_with(Settings::default(), HttpSettings { mcp, ..HttpSettings::default() }).await
}

async fn names(host: &Host) -> Vec<String> {
    let list = host.ask_alone(1, "tools/list", json!({})).await.json();
    let tools = list["result"]["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn call(host: &Host, tool: &str, arguments: Value) -> Value {
    host.ask_alone(9, "tools/call", json!({ "name": tool, "arguments": arguments })).await.last()["result"].clone()
}

#[tokio::test]
async fn a_setting_says_which_tools_are_shown() {
    let five = ["reach_cancel", "reach_explain", "reach_find", "reach_submit", "reach_wait"];
    for (shown, expected) in [
        (Shown::Capabilities, vec!["zed"]),
        (Shown::Reach, five.to_vec()),
        (Shown::Both, [&five[..], &["zed"]].concat()),
    ] {
        let running = showing(shown).await;
        let _agent = echo(&running, "z@x", &[json!({ "name": "zed" })]).await;
        assert_eq!(names(&Host::of(&running)).await, expected, "{shown:?}");
    }
}

#[tokio::test]
async fn a_model_finds_submits_waits_explains_and_calls_off() {
    let running = showing(Shown::Reach).await;
    let offer = json!({ "name": "book.table", "description": "Books a table in a restaurant.", "exclusions": ["pay"],
        "input_schema": { "type": "object", "properties": { "seats": { "type": "integer" } } } });
    let slow = json!({ "name": "paint_fence", "description": "Paints a fence, slowly." });
    let _agent = agent(&running.url(""), "b@x")
        .capability(capability(&offer), |task: Task, _: Context| async move { task.params::<Value>() })
        .capability(capability(&slow), |_: Task, context: Context| async move {
            context.cancelled().await;
            Err::<Value, _>(HandlerError::failed("stopped"))
        })
        .start()
        .await
        .unwrap();
    let host = Host::of(&running);
    let found = call(&host, "reach_find", json!({ "intent": "book a table in a restaurant" })).await;
    let first = &found["structuredContent"]["found"][0];
    assert_eq!((first["tool"].as_str(), first["agent"].as_str()), (Some("book_table"), Some("b@x")), "{found}");
    let submit =
        json!({ "tool": "book_table", "arguments": { "seats": 2 }, "idempotency_key": "k", "wait_seconds": 20 });
    let done = call(&host, "reach_submit", submit.clone()).await;
    assert_eq!(done["structuredContent"]["result"], json!({ "seats": 2 }), "{done}");
    let again = call(&host, "reach_submit", submit).await;
    assert_eq!(again["structuredContent"]["replayed"], true, "{again}");
    let task = done["structuredContent"]["task_id"].clone();
    let explained = call(&host, "reach_explain", json!({ "task_id": task })).await;
    assert_eq!(explained["structuredContent"]["decisions"][0]["chosen"]["agent_id"], "b@x", "{explained}");
    let open = call(&host, "reach_submit", json!({ "capability": "paint_fence" })).await;
    let open = open["structuredContent"]["task_id"].clone();
    let waited = call(&host, "reach_wait", json!({ "task_id": open, "wait_seconds": 0 })).await;
    assert!(waited["isError"] == false && waited["structuredContent"].get("result").is_none(), "{waited}");
    let off = call(&host, "reach_cancel", json!({ "task_id": open })).await;
    assert_eq!(off["structuredContent"]["phase"], "cancelled", "{off}");
    let wrong = call(&host, "reach_submit", json!({ "tool": "nothing" })).await;
    assert!(
        wrong["isError"] == true && wrong["content"][0]["text"].as_str().unwrap().contains("reach_find"),
        "{wrong}"
    );
    let nobody = call(&host, "reach_submit", json!({ "intent": "fly to the moon" })).await;
    assert_eq!(
        (&nobody["isError"], &nobody["_meta"]["agent-reach/error"]["code"]),
        (&json!(true), &json!("no_candidate"))
    );
}

fn with_tasks(mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": {
        "extensions": { "io.modelcontextprotocol/tasks": {} } } });
    params
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_work_is_a_task_to_those_who_take_one_and_is_waited_for_by_others() {
    let running = start().await;
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&gate);
    let offer = json!({ "name": "dig", "tier": "long", "effect": "read" });
    let _agent = agent(&running.url(""), "d@x")
        .capability(capability(&offer), move |_: Task, _: Context| {
            let gate = std::sync::Arc::clone(&held);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, HandlerError>(json!({ "depth": 3 }))
            }
        })
        .start()
        .await
        .unwrap();
    let host = Host::of(&running);
    let created = host.ask_alone(1, "tools/call", with_tasks(json!({ "name": "dig" }))).await.json()["result"].clone();
    assert_eq!(
        (created["resultType"].as_str(), created["status"].as_str()),
        (Some("task"), Some("working")),
        "{created}"
    );
    let id = created["taskId"].as_str().unwrap().to_owned();
    let get = || with_tasks(json!({ "taskId": id }));
    let working = host.ask_alone(2, "tasks/get", get()).await.json()["result"].clone();
    assert_eq!(
        (working["status"].as_str(), working["resultType"].as_str()),
        (Some("working"), Some("complete")),
        "{working}"
    );
    let listening = {
        let (headers, body) =
            alone(3, "subscriptions/listen", with_tasks(json!({ "notifications": { "taskIds": [id, "nonsense"] } })));
        let mut request = host.request(
            reqwest::Method::POST,
            &[("accept", "application/json, text/event-stream"), ("content-type", "application/json")],
        );
        for (name, value) in &headers {
            request = request.header(*name, value);
        }
        request.body(body).send().await.unwrap()
    };
    gate.add_permits(2);
    let mut listening = listening;
    let mut text = String::new();
    while !text.contains(r#""status":"completed""#) {
        text.push_str(std::str::from_utf8(&listening.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(text.contains(&format!(r#""notifications":{{"taskIds":["{id}"]}}"#)), "{text}");
    let done = host.ask_alone(4, "tasks/get", get()).await.json()["result"].clone();
    assert_eq!(done["result"]["structuredContent"], json!({ "depth": 3 }), "{done}");
    let waited = host.ask_alone(5, "tools/call", json!({ "name": "dig" })).await.last()["result"].clone();
    assert_eq!(waited["structuredContent"], json!({ "depth": 3 }), "{waited}");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let undeclared = host.ask_alone(6, method, json!({ "taskId": id })).await;
        assert_eq!((undeclared.status, undeclared.json()["error"]["code"].as_i64()), (400, Some(-32021)), "{method}");
        let unknown = host.ask_alone(7, method, with_tasks(json!({ "taskId": "nonsense" }))).await;
        assert_eq!(unknown.json()["error"]["code"], -32602, "{method}");
    }
    let ended = host.ask_alone(8, "tasks/cancel", get()).await.json();
    assert_eq!(ended["result"]["resultType"], "complete", "{ended}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_asks_for_nothing_passes_answers_over() {
    let running = start().await;
    let _agent = echo(&running, "d@x", &[json!({ "name": "dig", "tier": "long" })]).await;
    let host = Host::of(&running);
    let created = host.ask_alone(1, "tools/call", with_tasks(json!({ "name": "dig" }))).await.json()["result"].clone();
    let get = || with_tasks(json!({ "taskId": created["taskId"] }));
    let update = |more: Value| {
        let mut params = get();
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        host.ask_alone(2, "tasks/update", params)
    };
    for wrong in [json!({}), json!({ "inputResponses": null }), json!({ "inputResponses": [1] })] {
        let refused = update(wrong.clone()).await.json();
        assert_eq!(refused["error"]["code"], -32602, "{wrong}: {refused}");
    }
    for unasked in [json!({ "inputResponses": {} }), json!({ "inputResponses": { "name": { "action": "accept" } } })] {
        let heard = update(unasked).await.json()["result"].clone();
        assert_eq!(heard["resultType"], "complete", "{heard}");
    }
    let seen = host.ask_alone(3, "tasks/get", get()).await.json()["result"]["status"].clone();
    assert!(seen == "working" || seen == "completed", "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_called_off_by_its_id() {
    let running = start().await;
    let offer = json!({ "name": "dig", "tier": "long", "cancellable": true });
    let _agent = agent(&running.url(""), "d@x")
        .capability(capability(&offer), |_: Task, context: Context| async move {
            context.cancelled().await;
            Err::<Value, _>(HandlerError::failed("stopped"))
        })
        .start()
        .await
        .unwrap();
    let host = Host::of(&running);
    let created = host.ask_alone(1, "tools/call", with_tasks(json!({ "name": "dig" }))).await.json()["result"].clone();
    let id = created["taskId"].clone();
    let cancelled = host.ask_alone(2, "tasks/cancel", with_tasks(json!({ "taskId": id }))).await.json();
    assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
    let seen = host.ask_alone(3, "tasks/get", with_tasks(json!({ "taskId": id }))).await.json();
    assert_eq!(seen["result"]["status"], "cancelled", "{seen}");
}

#[tokio::test]
async fn what_is_here_is_published_to_those_who_may_see_it() {
    let running = start().await;
    let _one = echo(&running, "one@x", &[json!({ "name": "work", "description": "Works." })]).await;
    let _other = echo(&running, "other@y", &[json!({ "name": "work" })]).await;
    let get = async |path: &str, agent: &str| {
        let host = Host::new(running.url(path)).named(agent);
        read(host.request(reqwest::Method::GET, &[]).send().await.unwrap()).await
    };
    let card = get("/mcp/server-card", "me@x").await;
    assert_eq!(card.header("content-type"), "application/mcp-server-card+json");
    assert_eq!(card.json()["remotes"][0]["url"], running.url("/mcp"));
    let catalog = get("/.well-known/ai-catalog.json", "me@x").await.json();
    let entries: Vec<_> =
        catalog["entries"].as_array().unwrap().iter().map(|entry| entry["displayName"].clone()).collect();
    assert_eq!(entries, [json!("Agent-Reach"), json!("one@x")], "{catalog}");
    let agent = get("/agents/one@x/agent-card.json", "me@x").await.json();
    assert_eq!((agent["skills"][0]["id"].as_str(), agent["name"].as_str()), (Some("work"), Some("one@x")), "{agent}");
    assert_eq!(get("/agents/other@y/agent-card.json", "me@x").await.status, 404);
}

#[tokio::test]
async fn arguments_that_a_tool_wants_in_headers_must_be_there_and_the_same() {
    let running = start().await;
    let offer = json!({ "name": "route", "effect": "read", "input_schema": { "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" } } } });
    let _agent = echo(&running, "r@x", &[offer]).await;
    let host = Host::of(&running);
    let (headers, body) = alone(1, "tools/call", json!({ "name": "route", "arguments": { "region": "é" } }));
    for (value, status) in [(Some("=?base64?w6k=?="), 200), (Some("e"), 400), (None, 400), (Some("=?base64?!?="), 400)]
    {
        let mut sent: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        sent.extend(value.map(|value| ("mcp-param-region", value)));
        let reply = host.post(&sent, body.clone()).await;
        assert_eq!(reply.status, status, "{value:?}: {reply:?}");
        assert!(status == 200 || reply.json()["error"]["code"] == -32020, "{reply:?}");
    }
}
