//! Connected agents: a scripted peer on the far side of a session.

use std::sync::{Arc, Mutex};

use reach_core::task::event::Trace;
use reach_gateway::adapter::session::SessionAdapter;
use reach_gateway::adapter::{Adapter, Delivered};
use reach_gateway::clock::Clock;
use reach_gateway::sessions::{Handle, Sessions};
use reach_schemas::call::HealthReport;
use reach_schemas::{AgentId, Effect, ErrorCode, Protocol, RawJson, Span};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::contract::{LONG, PARAMS, Peers, agent, agent_at, delivery, endpoint, failed, probing};

#[derive(Deserialize)]
struct Message {
    id: Option<u64>,
    method: String,
    params: RawJson,
}

/// What a scripted peer does with each message.
#[derive(Clone)]
enum Script {
    /// Answers so: a result, or an error object.
    Answer(Result<&'static str, &'static str>),
    /// Reads and says nothing.
    Silent,
    /// Closes the connection when it has read a message.
    Dying,
}

/// The messages that a peer got, by method and parameters.
type Seen = Arc<Mutex<Vec<(String, RawJson)>>>;

fn connect(sessions: &Arc<Sessions>, agent: &AgentId, script: Script) -> Seen {
    let (handle, outgoing) = sessions.open(|_| {});
    assert!(sessions.bind(handle.id(), agent));
    let seen = Seen::default();
    tokio::spawn(play(handle, outgoing, script, Arc::clone(&seen)));
    seen
}

async fn play(handle: Handle, mut outgoing: mpsc::Receiver<String>, script: Script, seen: Seen) {
    while let Some(text) = outgoing.recv().await {
        let message: Message = serde_json::from_str(&text).unwrap();
        seen.lock().unwrap().push((message.method, message.params));
        let json = |text: &str| RawJson::parse(text).unwrap();
        match (message.id, &script) {
            (Some(id), Script::Answer(answer)) => {
                handle.answered(&id.to_string(), answer.map(json).map_err(json));
            }
            (_, Script::Dying) => return,
            (None, _) | (_, Script::Silent) => {}
        }
    }
}

#[tokio::test]
async fn a_session_keeps_the_contract() {
    let (sessions, clock) = (Arc::new(Sessions::default()), Clock::start());
    // A dying peer has one connection for each delivery that the contract tries.
    let scripts = [
        ("well", Script::Answer(Ok("{}"))),
        ("silent", Script::Silent),
        ("dying", Script::Dying),
        ("dying", Script::Dying),
    ];
    let at = |name: &str| endpoint(Protocol::Websocket, name);
    for (name, script) in scripts {
        connect(&sessions, &agent_at(&at(name)), script);
    }
    let peers = Peers {
        adapter: Arc::new(SessionAdapter::new(sessions, clock)),
        clock,
        well: (at("well"), Delivered::Accepted),
        silent: at("silent"),
        dying: at("dying"),
        absent: at("absent"),
    };
    peers.keep_the_contract().await;
}

/// An adapter with one connected agent that follows the script.
fn connected(script: Script) -> (SessionAdapter, Clock, Seen) {
    let (sessions, clock) = (Arc::new(Sessions::default()), Clock::start());
    let seen = connect(&sessions, &agent(), script);
    (SessionAdapter::new(sessions, clock), clock, seen)
}

#[tokio::test]
async fn a_refusal_over_a_session_never_started_and_full_is_told_apart() {
    let full = r#"{"code":3001,"message":"full","data":{"code":"overloaded","retry_after":"2s"}}"#;
    let named = r#"{"code":-32000,"message":"full","data":{"code":"overloaded"}}"#;
    let unwilling = r#"{"code":2008,"message":"not on Sundays","data":{"day":7}}"#;
    let table = [
        (full, ErrorCode::Overloaded, "full", Some(Span::from_secs(2))),
        (named, ErrorCode::Overloaded, "full", None),
        (unwilling, ErrorCode::AgentRefused, "not on Sundays", None),
        ("\"no\"", ErrorCode::AgentRefused, "the agent refused the work and did not say why", None),
        (
            r#"{"code":"x","message":7}"#,
            ErrorCode::AgentRefused,
            "the agent refused the work and did not say why",
            None,
        ),
    ];
    for (error, code, message, retry_after) in table {
        let (adapter, clock, _) = connected(Script::Answer(Err(error)));
        let delivery = delivery(clock, Effect::Write, PARAMS, LONG);
        let (failure, trace) = failed(adapter.deliver(&endpoint(Protocol::Websocket, ""), delivery).await);
        assert_eq!((failure.code, trace), (code, Trace::NotStarted), "{error}");
        assert_eq!((failure.message.as_str(), failure.retry_after), (message, retry_after), "{error}");
    }
}

#[tokio::test]
async fn a_connected_agent_gets_the_delivery_the_stop_and_the_probe_as_messages() {
    let (adapter, clock, seen) = connected(Script::Answer(Ok(r#"{"queue_depth":2,"mood":"fine"}"#)));
    let (to, delivery) = (endpoint(Protocol::Websocket, ""), delivery(clock, Effect::Write, PARAMS, LONG));
    assert_eq!(adapter.deliver(&to, delivery.clone()).await, Delivered::Accepted);
    adapter.cancel(&to, &agent(), delivery.task_id, delivery.token).await;
    let report = adapter.probe(&to, &agent(), &probing(LONG)).await;
    assert_eq!(report, Ok(HealthReport { queue_depth: Some(2), ..HealthReport::default() }));

    let seen = seen.lock().unwrap().clone();
    let methods: Vec<_> = seen.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["task/deliver", "task/stop", "agent/probe"]);
    assert_eq!(seen[0].1, RawJson::of(&delivery).unwrap());
    assert_eq!(seen[1].1.get(), format!(r#"{{"task_id":"{}","token":7}}"#, delivery.task_id));
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_five_seconds_to_say_that_it_has_the_work() {
    let (adapter, clock, _) = connected(Script::Silent);
    let begun = clock.now();
    let delivery = delivery(clock, Effect::Write, PARAMS, Span::from_mins(5));
    let (failure, trace) = failed(adapter.deliver(&endpoint(Protocol::Websocket, ""), delivery).await);
    assert_eq!((failure.code, trace), (ErrorCode::Timeout, Trace::Unknown));
    assert_eq!(clock.now().since(begun), Span::from_secs(5));
}

#[tokio::test]
async fn a_probe_of_a_connected_agent_that_is_not_well_says_why() {
    let (adapter, ..) = connected(Script::Answer(Err(r#"{"code":1,"message":"no database"}"#)));
    let told = adapter.probe(&endpoint(Protocol::Websocket, ""), &agent(), &probing(LONG)).await;
    assert_eq!(told, Err("no database".to_owned()));
}
