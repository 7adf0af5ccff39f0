//! Calls over HTTP: retries, keys, refusals, waiting.

use std::time::{Duration, Instant};

use agent_reach_sdk::{Client, Error, ErrorCode, RetryPolicy};
use serde_json::json;
use tokio::net::TcpListener;

use crate::http_gateway::{HttpGateway, Step};
use crate::soon;
use crate::view::{TASK, completed, error, task};

/// As the default, but impatient.
fn quick() -> RetryPolicy {
    RetryPolicy { base: Duration::from_millis(5), cap: Duration::from_millis(20), ..RetryPolicy::default() }
}

async fn client(gateway: &HttpGateway) -> Client {
    Client::builder().url(gateway.url()).token("secret").retry(quick()).connect().await.unwrap()
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_the_same_key() {
    let gateway = HttpGateway::start(|nth, _| match nth {
        0 | 2 => Step::Reset,
        1 => Step::Status(503, None),
        _ => Step::Answer(task("submitted")),
    })
    .await;
    let handle = client(&gateway).await.task("sum").params(&json!({ "a": 1 })).submit().await.unwrap();
    assert_eq!(handle.id().to_string(), TASK);
    let asked = gateway.asked();
    assert_eq!(asked.len(), 4);
    assert!(asked[0].params["idempotency_key"].is_string());
    for again in &asked {
        assert_eq!(again.params, asked[0].params);
        assert_eq!(again.authorization.as_deref(), Some("Bearer secret"));
    }
}

#[tokio::test]
async fn two_submits_have_two_keys() {
    let gateway = HttpGateway::start(|_, _| Step::Answer(task("submitted"))).await;
    let client = client(&gateway).await;
    client.task("sum").submit().await.unwrap();
    client.task("sum").submit().await.unwrap();
    let asked = gateway.asked();
    assert_ne!(asked[0].params["idempotency_key"], asked[1].params["idempotency_key"]);
}

#[tokio::test]
async fn what_carries_no_key_is_not_sent_twice() {
    let gateway = HttpGateway::start(|_, _| Step::Reset).await;
    let failed = client(&gateway).await.task("sum").without_key().reach().await.unwrap_err();
    assert!(matches!(failed, Error::Transport { sent: true, .. }), "{failed:?}");
    assert_eq!(gateway.asked().len(), 1);
}

#[tokio::test]
async fn an_overloaded_gateway_is_left_alone_for_as_long_as_it_asks() {
    let gateway = HttpGateway::start(|nth, _| match nth {
        0 => Step::Error(error(ErrorCode::Overloaded, Some("150ms"))),
        1 => Step::Status(429, Some("1")),
        _ => Step::Answer(task("submitted")),
    })
    .await;
    let begun = Instant::now();
    client(&gateway).await.task("sum").submit().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(1150), "{:?}", begun.elapsed());
    assert_eq!(gateway.asked().len(), 3);
}

#[tokio::test]
async fn tries_are_bounded_and_the_last_error_is_told() {
    let gateway = HttpGateway::start(|_, _| Step::Error(error(ErrorCode::Overloaded, None))).await;
    let failed = client(&gateway).await.task("sum").submit().await.unwrap_err();
    assert!(matches!(failed, Error::Overloaded(_)) && failed.is_retryable(), "{failed:?}");
    assert_eq!(gateway.asked().len(), 6);
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_keeps_its_words() {
    let gateway = HttpGateway::start(|_, _| {
        let mut refusal = error(ErrorCode::NoCandidate, None);
        refusal["data"]["suggestions"] =
            json!([{ "agent_id": "a@n", "capability": "sum", "similarity": 0.5, "lacks": [] }]);
        Step::Error(refusal)
    })
    .await;
    let failed = client(&gateway).await.intent("do something").submit().await.unwrap_err();
    let Error::NoCandidate(refusal) = &failed else { panic!("{failed:?}") };
    assert_eq!(refusal.suggestions.len(), 1);
    assert_eq!(failed.code(), Some(ErrorCode::NoCandidate));
    assert_eq!(gateway.asked().len(), 1);
}

#[tokio::test]
async fn a_part_that_cannot_be_used_is_named_and_nothing_is_sent() {
    let gateway = HttpGateway::start(|_, _| Step::Reset).await;
    let failed = client(&gateway).await.task("Not A Name!").to_agent("nobody").submit().await.unwrap_err();
    assert!(failed.to_string().starts_with("capability: "), "{failed}");
    assert!(gateway.asked().is_empty());
}

#[tokio::test]
async fn reach_goes_on_waiting_where_the_first_answer_came_too_early() {
    let gateway = HttpGateway::start(|nth, asked| match (nth, asked.method.as_str()) {
        (0, "reach") => Step::Answer(task("accepted")),
        (1, "task/wait") => Step::Answer(task("accepted")),
        (2, "task/wait") => Step::Answer(completed(&json!({ "sum": 3 }))),
        _ => panic!("{asked:?}"),
    })
    .await;
    let done = client(&gateway).await.task("sum").timeout(Duration::from_secs(10)).reach().await.unwrap();
    assert_eq!(done.raw().get(), r#"{"sum":3}"#);
    assert_eq!(gateway.asked()[0].params["deadline"], "10s");
}

#[tokio::test]
async fn reach_gives_up_when_its_time_is_over_and_not_after_all_its_tries() {
    let gateway = HttpGateway::start(|_, _| Step::Error(error(ErrorCode::Overloaded, Some("10s")))).await;
    let submit = client(&gateway).await.task("sum").build().unwrap();
    let failed = client(&gateway).await.reach(submit, Some(Duration::from_millis(100))).await.unwrap_err();
    assert!(matches!(failed, Error::Overloaded(_)), "{failed:?}");
    assert_eq!(gateway.asked().len(), 1);
}

#[tokio::test]
async fn waiting_outlives_a_restart_of_the_gateway() {
    let first =
        HttpGateway::start(|nth, _| if nth == 0 { Step::Answer(task("submitted")) } else { Step::Silence }).await;
    let address = first.address;
    let handle = client(&first).await.task("sum").submit().await.unwrap();
    let waiting = tokio::spawn(async move { handle.wait().await });
    while first.asked().len() < 2 {
        tokio::task::yield_now().await;
    }
    first.stop().await;
    let listener = TcpListener::bind(address).await.unwrap();
    let second = HttpGateway::start_on(listener, |_, _| Step::Answer(completed(&json!(7))));
    assert_eq!(soon(waiting).await.unwrap().unwrap().result::<u32>().unwrap(), 7);
    assert_eq!(second.asked()[0].method, "task/wait");
}

#[tokio::test]
async fn a_wait_that_is_over_is_not_the_end_of_the_task() {
    let gateway = HttpGateway::start(|_, _| Step::Answer(task("accepted"))).await;
    let client = client(&gateway).await;
    let failed = client.wait_for_result(TASK.parse().unwrap(), Duration::from_millis(30)).await.unwrap_err();
    assert!(matches!(failed, Error::WaitTimeout { .. }) && failed.is_retryable(), "{failed:?}");
    assert_eq!(failed.task_id().unwrap().to_string(), TASK);
    assert!(gateway.asked().len() <= 2, "a gateway that answers at once is not hammered");
}

#[tokio::test]
async fn a_failed_task_is_a_typed_error() {
    let gateway = HttpGateway::start(|_, _| {
        let mut view = task("dead_lettered");
        view["failure"] = json!({ "code": "outcome_unknown", "message": "it may have run" });
        Step::Answer(view)
    })
    .await;
    let failed = client(&gateway).await.task("pay").reach().await.unwrap_err();
    assert!(matches!(failed, Error::OutcomeUnknown(_)) && !failed.is_retryable(), "{failed:?}");
    assert_eq!(failed.task_id().unwrap().to_string(), TASK);
}

#[tokio::test]
async fn the_url_says_how_and_a_wrong_one_is_told() {
    for (url, word) in
        [("ftp://127.0.0.1", "ftp:"), ("127.0.0.1:7340", "did you mean http://"), ("nonsense", "not a URL")]
    {
        let failed = Client::builder().url(url).connect().await.unwrap_err();
        assert!(failed.to_string().contains(word), "{failed}");
    }
}

#[tokio::test]
async fn a_call_may_be_given_more_time_than_others_and_one_that_is_late_is_no_gateway_that_is_away() {
    let gateway = HttpGateway::start(|nth, _| match nth {
        0 => Step::Late(Duration::from_millis(600), json!({ "servers": [] })),
        _ => Step::Silence,
    })
    .await;
    let builder = Client::builder().url(gateway.url()).retry(quick()).call_timeout(Duration::from_millis(200));
    let client = builder.connect().await.unwrap();
    let within = Duration::from_secs(10);
    let answer: serde_json::Value = client.call_within("server/add", &json!({}), within).await.unwrap();
    assert_eq!(answer, json!({ "servers": [] }));
    let late = client.call::<serde_json::Value>("server/add", &json!({})).await.unwrap_err();
    assert_eq!(late.unanswered_for(), Some(Duration::from_millis(200)), "{late:?}");
    assert!(late.to_string().starts_with("no answer within 200ms from http://"), "{late}");
    assert_eq!(gateway.asked().len(), 2, "what may have been done is not asked for again");
    gateway.stop().await;
    let away = client.call::<serde_json::Value>("server/list", &json!({})).await.unwrap_err();
    assert_eq!(away.unanswered_for(), None, "{away:?}");
}
