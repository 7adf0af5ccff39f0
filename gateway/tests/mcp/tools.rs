//! What agents offer, as a host sees it: names, schemas, who sees what, and who is told when it changes.

use serde_json::{Value, json};

use super::world::{Host, agent, alone, capability, echo};
use crate::common::start;

fn names(list: &Value) -> Vec<String> {
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn listed(host: &Host) -> Vec<String> {
    names(&host.ask_alone(1, "tools/list", json!({})).await.json())
}

#[tokio::test]
async fn schemas_come_byte_for_byte_and_tools_in_the_order_of_their_names() {
    let running = start().await;
    let schema = r##"{ "type": "object", "$defs": {"z": {"const": 1.10}}, "properties": {"b": {"$ref": "#/$defs/z"}, "a": true} }"##;
    let card = format!(
        r#"{{"agent_id":"s@x","capabilities":[{{"name":"zeta"}},{{"name":"alpha","input_schema":{schema}}}]}}"#
    );
    let web = crate::common::web::Web::new(&running);
    let registered =
        web.ask(reqwest::Method::POST, "/agent/register", &[("content-type", "application/json")], Some(card)).await;
    assert_eq!(registered.status, 200, "{registered:?}");
    let list = Host::of(&running).ask_alone(1, "tools/list", json!({})).await;
    assert!(list.text.contains(&format!(r#""inputSchema":{schema}"#)), "{}", list.text);
    assert_eq!(names(&list.json()), ["alpha", "zeta"]);
}

#[tokio::test]
async fn agents_that_mean_the_same_are_one_tool_and_others_are_named_apart() {
    let running = start().await;
    let offer = |kind: &str| json!({ "name": "sum.up", "input_schema": { "type": "object", "properties": { "text": { "type": kind } } } });
    let _one = echo(&running, "one@x", &[offer("string")]).await;
    let _two = echo(&running, "two@x", &[offer("string")]).await;
    let host = Host::of(&running);
    assert_eq!(listed(&host).await, ["sum_up"]);
    let _three = echo(&running, "three@x", &[offer("number")]).await;
    assert_eq!(listed(&host).await, ["one__sum_up", "three__sum_up", "two__sum_up"]);
    let params = json!({ "name": "three__sum_up", "arguments": { "text": 7 } });
    let called = host.ask_alone(2, "tools/call", params).await.json();
    assert_eq!(called["result"]["_meta"]["agent-reach/agent"], "three@x", "{called}");
}

#[tokio::test]
async fn a_caller_sees_what_it_may_reach_and_named_as_if_there_were_nothing_else() {
    let running = start().await;
    let _here = echo(&running, "doer@x", &[json!({ "name": "work" })]).await;
    let _there =
        echo(&running, "doer@y", &[json!({ "name": "work", "input_schema": { "type": "object", "required": ["a"] } })])
            .await;
    assert_eq!(listed(&Host::of(&running).named("me@x")).await, ["work"]);
    assert_eq!(listed(&Host::of(&running).named("me@y")).await, ["work"]);
    assert!(listed(&Host::of(&running).named("me@z")).await.is_empty());
    let all = listed(&Host::of(&running)).await;
    assert!(all.len() == 2 && all.iter().all(|name| name.starts_with("doer__work-")), "{all:?}");
    let called = Host::of(&running).named("me@z").ask_alone(2, "tools/call", json!({ "name": "work" })).await.json();
    assert_eq!(called["error"]["code"], -32602, "{called}");
}

#[tokio::test]
async fn a_refusal_is_a_result_that_a_model_can_act_on() {
    let running = start().await;
    let offer = json!({ "name": "book", "description": "Books a table.", "input_schema":
        { "type": "object", "properties": { "seats": { "type": "integer" } }, "required": ["seats"] } });
    let _agent = echo(&running, "b@x", &[offer]).await;
    let host = Host::of(&running);
    let called = host.ask_alone(1, "tools/call", json!({ "name": "book", "arguments": { "seats": "two" } })).await;
    assert_eq!(called.status, 200);
    let result = called.json()["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    let words = result["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("seats") && words.contains("integer") && words.contains("will not help"), "{words}");
    assert_eq!(result["_meta"]["agent-reach/error"]["code"], "params_mismatch", "{result}");
    let unknown = host.ask_alone(2, "tools/call", json!({ "name": "bok", "arguments": {} })).await;
    let error = unknown.json()["error"].clone();
    assert!(error["code"] == -32602 && error["message"].as_str().unwrap().contains("near: book"), "{error}");
    let odd = host.ask_alone(3, "tools/call", json!({ "name": "book", "arguments": [1] })).await.json();
    assert_eq!(odd["error"]["code"], -32602, "{odd}");
}

#[tokio::test]
async fn what_is_no_object_is_wrapped_and_comes_back_as_text() {
    let running = start().await;
    let offer = json!({ "name": "sort", "input_schema": { "type": "array" }, "output_schema": { "type": "array" }, "effect": "read" });
    let _agent = echo(&running, "s@x", &[offer]).await;
    let host = Host::of(&running);
    let params = json!({ "name": "sort", "arguments": { "value": [2, 1] } });
    let alone = host.ask_alone(1, "tools/call", params.clone()).await.json()["result"].clone();
    assert_eq!((alone["content"][0]["text"].as_str(), &alone["structuredContent"]), (Some("[2,1]"), &json!([2, 1])));
    let host = host.session("2025-11-25").await;
    let result = host.ask(1, "tools/call", params).await.json()["result"].clone();
    assert!(result.get("structuredContent").is_none() && result["isError"] == false, "{result}");
    let list = host.ask(2, "tools/list", json!({})).await.json();
    assert!(list["result"]["tools"][0].get("outputSchema").is_none(), "{list}");
}

#[tokio::test]
async fn a_bad_cursor_is_refused_and_a_good_one_goes_on() {
    let running = start().await;
    let host = Host::of(&running);
    let many: Vec<Value> = (0..250).map(|n| json!({ "name": format!("tool_{n:03}") })).collect();
    let mut agents = Vec::new();
    for n in 0..5 {
        let builder = many.iter().fold(agent(&running.url(""), &format!("a{n}@x")), |builder, json| {
            let mut json = json.clone();
            json["name"] = format!("a{n}_{}", json["name"].as_str().unwrap()).into();
            builder.capability(capability(&json), |_: agent_reach_sdk::Task, _: agent_reach_sdk::Context| async {
                Ok::<_, agent_reach_sdk::HandlerError>(1)
            })
        });
        agents.push(builder.start().await.unwrap());
    }
    let mut seen = Vec::new();
    let mut cursor = json!({});
    loop {
        let page = host.ask_alone(1, "tools/list", cursor).await.json();
        seen.extend(names(&page));
        match page["result"]["nextCursor"].as_str() {
            Some(next) => cursor = json!({ "cursor": next }),
            None => break,
        }
    }
    assert_eq!(seen.len(), 1250);
    assert!(seen.is_sorted());
    for bad in ["", "nonsense", "AAAA"] {
        let reply = host.ask_alone(2, "tools/list", json!({ "cursor": bad })).await.json();
        assert_eq!(reply["error"]["code"], -32602, "{bad}: {reply}");
    }
}

/// Reads a stream of events until a message fits.
async fn until(response: &mut reqwest::Response, text: &mut String, fits: impl Fn(&Value) -> bool) -> Value {
    loop {
        while let Some((event, rest)) = text.split_once("\n\n").map(|(event, rest)| (event.to_owned(), rest.to_owned()))
        {
            *text = rest;
            let data: String = event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
            if let Ok(message) = serde_json::from_str::<Value>(&data)
                && fits(&message)
            {
                return message;
            }
        }
        let chunk = response.chunk().await.unwrap().expect("the stream goes on");
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

#[tokio::test]
async fn those_who_listen_are_told_when_their_own_tools_change() {
    let running = start().await;
    let host = Host::of(&running).named("me@x");
    let (headers, body) = alone(
        5,
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true } }),
    );
    let mut request = host.request(
        reqwest::Method::POST,
        &[("accept", "application/json, text/event-stream"), ("content-type", "application/json")],
    );
    for (name, value) in &headers {
        request = request.header(*name, value);
    }
    let mut listen = request.body(body).send().await.unwrap();
    assert_eq!(listen.headers()["x-accel-buffering"], "no");
    let mut text = String::new();
    let first = until(&mut listen, &mut text, |_| true).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({ "toolsListChanged": true }));
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
    let session = host.session("2025-06-18").await;
    let request = session.request(reqwest::Method::GET, &[("accept", "text/event-stream")]);
    let mut stream = request.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    // Another tenant's agent comes first; nobody here is told of it.
    let _theirs = echo(&running, "e@y", &[json!({ "name": "hidden" })]).await;
    let _ours = echo(&running, "e@x", &[json!({ "name": "seen" })]).await;
    let changed = |message: &Value| message["method"] == "notifications/tools/list_changed";
    let told = until(&mut listen, &mut text, |_| true).await;
    assert!(changed(&told) && told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 5, "{told}");
    let told = until(&mut stream, &mut String::new(), |_| true).await;
    assert!(changed(&told), "{told}");
    assert_eq!(listed(&host).await, ["seen"]);
    running.stop.cancel();
    let last = until(&mut listen, &mut text, |_| true).await;
    assert_eq!((last["id"].as_u64(), last["result"]["resultType"].as_str()), (Some(5), Some("complete")), "{last}");
}
