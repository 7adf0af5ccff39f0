//! Batches: bounded in length, in how many run at once, and in what they answer.

use std::cell::Cell;
use std::time::Duration;

use serde_json::value::to_raw_value;
use tokio::time::{Instant, sleep};

use super::super::{Call, Limits, Outcome, answer, decode_params};
use super::answer_now;

/// A batch of calls to `method`, with ids and params counting from nought.
fn batch(method: &str, count: usize) -> String {
    let calls = (0..count).map(|n| format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"{method}","params":{{"n":{n}}}}}"#));
    format!("[{}]", calls.collect::<Vec<_>>().join(","))
}

fn ids(answer: &[u8]) -> Vec<u64> {
    let answers: Vec<serde_json::Value> = serde_json::from_slice(answer).unwrap();
    answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect()
}

#[derive(serde::Deserialize)]
struct Place {
    n: u64,
}

#[tokio::test(start_paused = true)]
async fn answers_keep_the_order_of_the_calls_whichever_ends_first() {
    let later_is_faster = async |call: Call<'_>| -> Outcome {
        let place: Place = decode_params(call.params)?;
        sleep(Duration::from_secs(100 - place.n)).await;
        to_raw_value(&place.n).map_err(|_| unreachable!())
    };
    let started_at = Instant::now();
    let answer = answer(batch("m", 50).as_bytes(), &Limits::default(), later_is_faster).await.unwrap();
    assert_eq!(ids(&answer), (0..50).collect::<Vec<_>>());
    assert!(started_at.elapsed() < Duration::from_secs(400), "{:?}", started_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_run_at_once_than_the_limit_and_a_slow_one_holds_one_seat() {
    let (running, most) = (Cell::new(0), Cell::new(0));
    let handler = async |call: Call<'_>| -> Outcome {
        running.set(running.get() + 1);
        most.set(most.get().max(running.get()));
        let place: Place = decode_params(call.params)?;
        sleep(Duration::from_secs(if place.n == 0 { 20 } else { 1 })).await;
        running.set(running.get() - 1);
        to_raw_value(&()).map_err(|_| unreachable!())
    };
    let limits = Limits { batch_concurrency_max: 5, ..Limits::default() };
    let started_at = Instant::now();
    answer(batch("m", 81).as_bytes(), &limits, handler).await.unwrap();
    assert_eq!(most.get(), 5);
    // Eighty calls of a second on the four other seats.
    assert_eq!(started_at.elapsed().as_secs(), 20);
}

#[tokio::test]
async fn an_answer_can_be_made_on_any_thread_with_a_handler_that_borrows() {
    let shared = std::sync::Arc::new(7_u64);
    let task = tokio::spawn(async move {
        let text = batch("m", 3);
        let handler = |call: Call<'_>| {
            let (shared, name) = (&shared, call.method.into_owned());
            async move {
                tokio::task::yield_now().await;
                to_raw_value(&format!("{name}{shared}")).map_err(|_| unreachable!())
            }
        };
        answer(text.as_bytes(), &Limits::default(), handler).await
    });
    let answer = task.await.unwrap().unwrap();
    assert!(answer.starts_with(br#"[{"jsonrpc":"2.0","id":0,"result":"m7"},{"#));
}

#[test]
fn a_batch_is_refused_whole_when_it_is_empty_or_too_long() {
    let limits = Limits { batch_max: 3, ..Limits::default() };
    let check = |frame: &str, expected: &str| assert_eq!(answer_now(frame.as_bytes(), &limits).unwrap(), expected);
    check(
        " [ ] ",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch holds at least one request","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}"#,
    );
    check(
        &batch("panic", 4),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch holds at most 3 requests; split it","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}"#,
    );
    assert_eq!(ids(&answer_now(batch("echo", 3).as_bytes(), &limits).unwrap()), [0, 1, 2]);
}

#[test]
fn a_batch_too_long_is_still_a_parse_error_when_it_is_not_json() {
    let limits = Limits { batch_max: 1, ..Limits::default() };
    let answer = answer_now(b"[1,2,3", &limits).unwrap();
    assert!(answer.starts_with(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700"#), "{answer:?}");
}

#[test]
fn each_entry_that_is_no_request_is_refused_apart() {
    let frame = br#"[1,{"foo":"boo"},[],{"jsonrpc":"2.0","id":5,"method":"echo"},{"jsonrpc":"2.0","id":6,"method":6},
        {"\ud800":1}]"#;
    let answer = answer_now(frame, &Limits::default()).unwrap();
    let answers: Vec<serde_json::Value> = serde_json::from_slice(&answer).unwrap();
    let told = answers.iter().map(|answer| (answer["id"].to_string(), answer["error"]["code"].as_i64()));
    let expected = [
        ("null", Some(-32600)),
        ("null", Some(-32600)),
        ("null", Some(-32600)),
        ("5", None),
        ("6", Some(-32600)),
        ("null", Some(-32700)),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected.map(|(id, code)| (id.to_owned(), code)));
}

#[test]
fn results_beyond_the_size_of_a_batch_are_replaced_by_an_error_under_their_id() {
    let long = "x".repeat(600);
    let call = |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo","params":["{long}"]}}"#);
    let limits = Limits { batch_answer_max: 1500, ..Limits::default() };
    let answer = answer_now(format!("[{},{},{}]", call(0), call(1), call(2)).as_bytes(), &limits).unwrap();
    let answers: Vec<serde_json::Value> = serde_json::from_slice(&answer).unwrap();
    assert_eq!(ids(&answer), [0, 1, 2]);
    assert!(answers[1]["result"].is_array());
    assert_eq!(answers[2]["error"]["code"], 1012);
}
