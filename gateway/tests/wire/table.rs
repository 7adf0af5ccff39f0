//! One table of requests, which every transport answers alike.

use serde_json::Value;

use crate::common::peer::{Over, Peer};
use crate::common::start;

/// A frame, and what its answer holds; nothing: it is not answered. `TASK` stands for the task that was named last.
const TABLE: &[(&str, &[&str])] = &[
    (r#"{"jsonrpc":"2.0","id":"a","method":"agent/list"}"#, &[r#""result":{"agents":[]}"#, r#""id":"a""#]),
    (r#"{"jsonrpc":"2.0","id":-1.50,"method":"no/such"}"#, &["-32601", r#""id":-1.50,"#, "method_not_found"]),
    (r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"agent/get"}"#, &["-32602", "9007199254740993", "agent_id"]),
    (r#"{"jsonrpc":"2.0","id":null,"method":"agent/list","params":[1]}"#, &["-32602", r#""id":null"#, "by name"]),
    (r#"{"jsonrpc":"2.0","id":1,"method":"agent/list","params":{"limt":1}}"#, &["-32602", "limt", "unknown field"]),
    (r#"{"jsonrpc":"2.0","method":"agent/list"}"#, &[]),
    (r#"[{"jsonrpc":"2.0","method":"agent/list"}]"#, &[]),
    ("[]", &["-32600"]),
    ("{", &["-32700", r#""id":null"#]),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"agent/register","params":{"agent_id":"Echo@n","capabilities":[]}}"#,
        &["-32602", "agent_id"],
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"agent/register","params":{"agent_id":"echo@n","capabilities":[{"name":"echo","description":"Repeats a sentence.","effect":"read","input_schema":{"type":"object","required":["say"]}}]}}"#,
        &[r#""agent_id":"echo@n""#, r#""generation":1"#, "heartbeat_due_at", r#""unchanged":false"#],
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"agent/heartbeat","params":{"agent_id":"echo@n"}}"#, &["heartbeat_due_at"]),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"agent/heartbeat","params":{"agent_id":"no@n"}}"#,
        &["1004", "agent_not_found"],
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"capability/find","params":{"intent":"repeat this sentence"}}"#, &["echo@n"]),
    (
        r#"[{"jsonrpc":"2.0","id":1,"method":"resolve","params":{"capability":"echo","params":{"say":1}}},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"task/list"},1]"#,
        &[r#""id":1"#, r#""id":2"#, "-32600", "echo@n"],
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"task/submit","params":{}}"#, &["-32602", "to_agent"]),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"task/submit","params":{"capability":"no_such"}}"#,
        &["2001", "no_candidate", r#""fault":"agent""#],
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"task/submit","params":{"capability":"echo","params":{"sya":1}}}"#,
        &["params_mismatch", "say"],
    ),
    (
        r#"{"jsonrpc":"2.0","id":"s","method":"task/submit","params":{"capability":"echo","params":{"say": 1.10},"idempotency_key":"k","mode":"queue"}}"#,
        &[r#""phase":"submitted""#, r#""idempotency_key":"k""#],
    ),
    (
        r#"{"jsonrpc":"2.0","id":"s","method":"task/submit","params":{"capability":"echo","params":{"say": 1.10},"idempotency_key":"k","mode":"queue"}}"#,
        &[r#""replayed":true"#],
    ),
    (
        r#"{"jsonrpc":"2.0","id":"s","method":"task/submit","params":{"capability":"echo","params":{"say":2},"idempotency_key":"k","mode":"queue"}}"#,
        &["1007", "idempotency_key_reused"],
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"task/get","params":{"task_id":"x"}}"#, &["-32602", "UUID"]),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"task/get","params":{"task_id":"01890a5d-ac96-774b-bcce-b302099a8057"}}"#,
        &["1005", "task_not_found"],
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"task/wait","params":{"task_id":"TASK","wait":"10ms"}}"#,
        &[r#""phase":"submitted""#],
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"task/claim","params":{"agent_id":"echo@n"}}"#,
        &[r#""params":{"say": 1.10}"#, r#""token":1"#],
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"task/accept","params":{"task_id":"TASK","token":1}}"#,
        &[r#""phase":"accepted""#],
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"task/complete","params":{"task_id":"TASK","token":0}}"#, &["stale_token"]),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"task/complete","params":{"task_id":"TASK","token":1,"result":{"said": 1.10}}}"#,
        &[r#""phase":"completed""#],
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"task/wait","params":{"task_id":"TASK"}}"#,
        &[r#""result":{"said": 1.10}"#, "REACH_OK"],
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"task/explain","params":{"task_id":"TASK"}}"#, &["decisions", "echo@n"]),
    (r#"{"jsonrpc":"2.0","id":1,"method":"task/cancel","params":{"task_id":"TASK"}}"#, &["1010", "wrong_phase"]),
    (
        r#"{"jsonrpc":"2.0","id":"s","method":"task/submit","params":{"capability":"echo","params":{"say":3},"mode":"queue"}}"#,
        &[r#""phase":"submitted""#],
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":"task/cancel","params":{"task_id":"TASK"}}"#, &[r#""phase":"cancelled""#]),
    (r#"{"jsonrpc":"2.0","id":1,"method":"task/list"}"#, &["REACH_OK", "REACH_CANCELLED"]),
    (r#"{"jsonrpc":"2.0","id":1,"method":"dead_letter/list"}"#, &[r#"{"tasks":[]}"#]),
    (r#"{"jsonrpc":"2.0","id":1,"method":"agent/drain","params":{"agent_id":"echo@n"}}"#, &[r#""in_flight":0"#]),
    (r#"{"jsonrpc":"2.0","id":1,"method":"agent/deregister","params":{"agent_id":"echo@n"}}"#, &[r#""in_flight":0"#]),
];

/// Runs the table, and gives the answers without what differs from one run to the next.
async fn answers(over: Over) -> Vec<String> {
    let running = start().await;
    let mut peer = Peer::connect(&running, over).await;
    let mut task = String::new();
    let mut answers = Vec::new();
    for (frame, held) in TABLE {
        let frame = frame.replace("TASK", &task);
        let answer = match held {
            [] => peer.ask(frame.as_bytes()).await,
            [..] => match peer.send(frame.as_bytes()).await {
                Some(answer) => Some(answer),
                None => Some(peer.read_answer().await),
            },
        };
        assert_eq!(answer.is_none(), held.is_empty(), "{over:?}: {frame}: {answer:?}");
        let answer = answer.unwrap_or_default();
        for part in *held {
            assert!(answer.contains(part), "{over:?}: {frame}: {part} is not in {answer}");
        }
        if let Some((_, rest)) = answer.split_once(r#""task_id":""#) {
            task = rest[..36].to_owned();
        }
        answers.push(comparable(&answer));
    }
    answers
}

/// Instants are of each run, and how long something took. Everything else is the same, numbers to the digit.
fn comparable(answer: &str) -> String {
    let (mut comparable, mut is_duration) = (String::new(), false);
    for (at, part) in answer.split('"').enumerate() {
        let is_instant = part.parse::<reach_schemas::Timestamp>().is_ok();
        let is_id = part.parse::<reach_schemas::TaskId>().is_ok() || part.parse::<reach_schemas::Traceparent>().is_ok();
        comparable.push_str(if at > 0 { "\"" } else { "" });
        let part = if is_duration {
            part.trim_start_matches([':', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        } else {
            part
        };
        comparable.push_str(if is_instant || is_id { "-" } else { part });
        is_duration = matches!(part, "latency_ms" | "took_us");
    }
    comparable
}

#[tokio::test]
async fn every_transport_gives_the_same_answers_to_one_table_of_requests() {
    let [http, web_socket, stdio] = Over::ALL.map(answers);
    let (http, web_socket, stdio) = tokio::join!(http, web_socket, stdio);
    for (row, answer) in http.iter().enumerate() {
        assert_eq!(answer, &web_socket[row], "WebSocket, row {row}: {}", TABLE[row].0);
        assert_eq!(answer, &stdio[row], "stdio, row {row}: {}", TABLE[row].0);
    }
}

#[tokio::test]
async fn a_slow_call_does_not_hold_up_later_ones_of_its_connection() {
    for over in [Over::WebSocket, Over::Stdio] {
        let running = start().await;
        let mut peer = Peer::connect(&running, over).await;
        let card = serde_json::json!({ "agent_id": "a@n", "capabilities": [{ "name": "c" }] });
        peer.call(1, "agent/register", &card).await;
        let slow = br#"{"jsonrpc":"2.0","id":2,"method":"task/claim","params":{"agent_id":"a@n","wait":"5m"}}"#;
        peer.send(slow).await;
        let submit = serde_json::json!({ "capability": "c", "mode": "queue" });
        peer.send(format!(r#"{{"jsonrpc":"2.0","id":3,"method":"task/submit","params":{submit}}}"#).as_bytes()).await;
        let mut answers: Vec<Value> = Vec::new();
        for _ in 0..3 {
            answers.push(serde_json::from_str(&peer.read().await).unwrap());
        }
        let claimed = answers.iter().find(|answer| answer["id"] == 2).unwrap();
        assert_eq!(claimed["result"]["tasks"][0]["capability"], "c", "{over:?}: {claimed}");
        assert!(answers.iter().any(|answer| answer["id"] == 3), "{over:?}");
        assert!(answers.iter().any(|answer| answer["method"] == "task/offer"), "{over:?}: {answers:?}");
    }
}
