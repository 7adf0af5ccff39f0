//! JSON-RPC 2.0 on every transport: <https://www.jsonrpc.org/specification>, sections 4 to 6.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::engine::{Act, Findings, Stop};
use crate::exchange::short;
use crate::gateway::peer::Peer;
use crate::gateway::stage::Gateway;
use crate::json::spelled;

/// Connects by every transport.
pub(crate) async fn connect(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    let (exchange, timeout) = (gateway.exchange.clone(), gateway.options.timeout);
    let url = gateway.options.url.clone();
    let mut http = Peer::http(gateway.client.clone(), &url, exchange.clone(), timeout);
    let found = http.call("agent/list", &json!({})).await;
    if let Err(why) = found {
        findings.fail("gw-transports", "agent/list is answered over HTTP", why);
        return Err(Stop("the gateway does not answer over HTTP".to_owned()));
    }
    gateway.peers.push(http);
    let mut others = vec![Peer::socket(&url, exchange.clone(), timeout).await];
    others.extend(gateway.options.stdio.as_deref().map(|line| Peer::stdio(line, exchange, timeout)));
    let mut found = Ok(());
    for other in others {
        let answered = match other {
            Ok(mut peer) => {
                let answered = peer.call("agent/list", &json!({})).await.map(drop);
                gateway.peers.push(peer);
                answered
            }
            Err(why) => Err(why),
        };
        found = found.and(answered);
    }
    findings.judge("gw-transports", "agent/list is answered over every transport", found);
    Ok(())
}

/// What a frame must be answered with.
enum Expected {
    /// Nothing at all.
    Silence,
    /// One error: any of these codes, and this id, if it matters.
    Error(&'static [i64], Option<&'static str>),
    /// A result, with this id.
    Result(&'static str),
    /// A list of one answer each, in any order: the code of the error, or 0 for a result, and the id.
    Batch(&'static [(i64, &'static str)]),
}

type Vector = (&'static str, &'static str, Expected);

const PARSE: &[i64] = &[-32700];
const INVALID: &[i64] = &[-32600];
const UNKNOWN: &[i64] = &[-32601];
const PARAMS: &[i64] = &[-32602];

/// Which requirement a frame shows, the frame, and what must come.
const VECTORS: &[Vector] = &[
    ("gw-parse-error", r#"{"jsonrpc":"2.0","method":"agent/list, "id":1"#, Expected::Error(PARSE, Some("null"))),
    ("gw-parse-error", r#"{"jsonrpc":"2.0","method":"agent/list","id":1}}"#, Expected::Error(PARSE, Some("null"))),
    ("gw-invalid-request", r#""text""#, Expected::Error(INVALID, Some("null"))),
    ("gw-invalid-request", r#"{"jsonrpc":"2.0","method":1,"id":7}"#, Expected::Error(INVALID, None)),
    ("gw-invalid-request", r#"{"method":"agent/list","id":7}"#, Expected::Error(INVALID, None)),
    ("gw-invalid-request", r#"{"jsonrpc":2.0,"method":"agent/list","id":7}"#, Expected::Error(INVALID, None)),
    (
        "gw-invalid-request",
        r#"{"jsonrpc":"2.0","method":"agent/list","id":{}}"#,
        Expected::Error(INVALID, Some("null")),
    ),
    (
        "gw-invalid-request",
        r#"{"jsonrpc":"2.0","method":"agent/list","id":true}"#,
        Expected::Error(INVALID, Some("null")),
    ),
    ("gw-unknown-method", r#"{"jsonrpc":"2.0","method":"no/such","id":"1"}"#, Expected::Error(UNKNOWN, Some("\"1\""))),
    ("gw-ids-exact", r#"{"jsonrpc":"2.0","method":"no/such","id":0}"#, Expected::Error(UNKNOWN, Some("0"))),
    ("gw-ids-exact", r#"{"jsonrpc":"2.0","method":"no/such","id":-1}"#, Expected::Error(UNKNOWN, Some("-1"))),
    (
        "gw-ids-exact",
        r#"{"jsonrpc":"2.0","method":"no/such","id":9007199254740993}"#,
        Expected::Error(UNKNOWN, Some("9007199254740993")),
    ),
    (
        "gw-ids-exact",
        r#"{"jsonrpc":"2.0","method":"no/such","id":"a\"b é"}"#,
        Expected::Error(UNKNOWN, Some(r#""a\"b é""#)),
    ),
    (
        "gw-ids-exact",
        r#"{"jsonrpc":"2.0","method":"agent/list","id":9007199254740993}"#,
        Expected::Result("9007199254740993"),
    ),
    ("gw-ids-exact", r#"{"jsonrpc":"2.0","method":"agent/list","id":"c\u00e9 \"d"}"#, Expected::Result(r#""cé \"d""#)),
    (
        "gw-duplicate-members",
        r#"{"jsonrpc":"2.0","method":"no/such","method":"agent/list","id":1}"#,
        Expected::Error(&[-32600, -32700], None),
    ),
    (
        "gw-bad-params",
        r#"{"jsonrpc":"2.0","method":"agent/list","id":1,"params":{"limt":1}}"#,
        Expected::Error(PARAMS, Some("1")),
    ),
    ("gw-bad-params", r#"{"jsonrpc":"2.0","method":"agent/get","id":1}"#, Expected::Error(PARAMS, Some("1"))),
    (
        "gw-bad-params",
        r#"{"jsonrpc":"2.0","method":"agent/list","id":1,"params":[1]}"#,
        Expected::Error(PARAMS, Some("1")),
    ),
    ("gw-silent-to-notifications", r#"{"jsonrpc":"2.0","method":"agent/list"}"#, Expected::Silence),
    ("gw-silent-to-notifications", r#"{"jsonrpc":"2.0","method":"no/such","params":{"x":1}}"#, Expected::Silence),
    (
        "gw-silent-to-notifications",
        r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]"#,
        Expected::Silence,
    ),
    ("gw-batches", "[]", Expected::Error(INVALID, Some("null"))),
    ("gw-batches", "[1,2,3]", Expected::Batch(&[(-32600, "null"), (-32600, "null"), (-32600, "null")])),
    (
        "gw-batches",
        r#"[{"jsonrpc":"2.0","method":"no/a","id":1},{"jsonrpc":"2.0","method":"no/b","id":1},{"jsonrpc":"2.0","method":"no/c"},7]"#,
        Expected::Batch(&[(-32601, "1"), (-32601, "1"), (-32600, "null")]),
    ),
    (
        "gw-batches",
        r#"[{"jsonrpc":"2.0","method":"agent/list","id":"a"},{"jsonrpc":"2.0","method":"no/b","id":2},{"jsonrpc":"2.0","method":"agent/list","id":-3}]"#,
        Expected::Batch(&[(0, "\"a\""), (-32601, "2"), (0, "-3")]),
    ),
];

/// Sends every frame over every transport.
pub(crate) async fn frames(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    if gateway.peers.is_empty() {
        return Err(Stop("there is no connection".to_owned()));
    }
    for peer in &mut gateway.peers {
        for (id, frame, expected) in VECTORS {
            findings.begin(false);
            let found = match peer.ask(frame.as_bytes()).await {
                Ok(answer) => fits(answer.as_deref(), expected),
                Err(why) => Err(why),
            };
            findings.judge(id, &in_words(expected), found.map_err(|found| format!("{}: {found}", peer.name)));
        }
        findings.begin(false);
        let found = deep(peer).await;
        findings.judge("gw-deep-nesting", "a refusal, and an answer to the next request", found);
    }
    Ok(())
}

/// Brackets within brackets, and then something plain.
async fn deep(peer: &mut Peer) -> Result<(), String> {
    let frame = "[".repeat(100_000);
    let answer = peer.ask(frame.as_bytes()).await?;
    // Which error it is belongs to another requirement.
    let value: Value = answer.as_deref().and_then(|answer| serde_json::from_str(answer).ok()).unwrap_or_default();
    if !value["error"].is_object() {
        return Err(format!("{}: {}", peer.name, answer.as_deref().map_or("no answer".to_owned(), short)));
    }
    match peer.call("agent/list", &json!({})).await? {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: afterwards, {error}", peer.name)),
    }
}

fn in_words(expected: &Expected) -> String {
    match expected {
        Expected::Silence => "no answer".to_owned(),
        Expected::Error(codes, Some(id)) => format!("error {codes:?} with the id {id}"),
        Expected::Error(codes, None) => format!("error {codes:?}"),
        Expected::Result(id) => format!("a result with the id {id}"),
        Expected::Batch(answers) => {
            format!("a list of the answers {answers:?}: errors, 0 for a result, each with its id")
        }
    }
}

/// The members of one answer, as they were written.
type Answer = BTreeMap<String, Box<RawValue>>;

/// The code of an answer's error, or 0 for a result; and its id, in one spelling. None: it is neither.
fn told(answer: &Answer) -> Option<(i64, String)> {
    let member = |name: &str| answer.get(name).map(|raw| spelled(raw.get()));
    let code = match (member("result"), member("error")) {
        (Some(_), None) => 0,
        (None, Some(error)) => serde_json::from_str::<Value>(&error).ok()?["code"].as_i64()?,
        (Some(_), Some(_)) | (None, None) => return None,
    };
    member("id").filter(|_| member("jsonrpc").as_deref() == Some("\"2.0\"")).map(|id| (code, id))
}

fn fits(answer: Option<&str>, expected: &Expected) -> Result<(), String> {
    let found = || answer.map_or_else(|| "no answer".to_owned(), short);
    let text = answer.unwrap_or_default();
    let one = serde_json::from_str::<Answer>(text).ok().and_then(|answer| told(&answer));
    let is_right = match expected {
        Expected::Silence => answer.is_none(),
        Expected::Error(codes, id) => {
            one.is_some_and(|(code, own)| codes.contains(&code) && id.is_none_or(|id| own == spelled(id)))
        }
        Expected::Result(id) => one == Some((0, spelled(id))),
        Expected::Batch(wanted) => {
            let answers: Vec<Answer> = serde_json::from_str(text).unwrap_or_default();
            let mut found: Vec<_> = answers.iter().map(told).collect();
            let mut wanted: Vec<_> = wanted.iter().map(|(code, id)| Some((*code, spelled(id)))).collect();
            found.sort_unstable();
            wanted.sort_unstable();
            found == wanted
        }
    };
    if is_right { Ok(()) } else { Err(found()) }
}

/// What every answer over HTTP so far had as its status.
pub(crate) async fn statuses(gateway: &mut Gateway, findings: &mut Findings<'_>) -> Act {
    let odd = gateway.http()?.odd_status.clone();
    findings.judge(
        "gw-http-status",
        "200 with every answer, and 202 or 204 where there is none",
        odd.map_or(Ok(()), Err),
    );
    Ok(())
}
