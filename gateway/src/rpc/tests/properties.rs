//! What holds for any text, any id and any batch.

use proptest::prelude::*;

use super::super::Limits;
use super::answer_now;

/// Bytes of every kind: noise, noise of JSON's own letters, and good requests with one thing changed.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let good = br#"[{"jsonrpc":"2.0","id":"\u0061","method":"echo","params":{"a":[1,"\"",null]}},{"jsonrpc":"2.0","method":"fail"}]"#;
    let changed = (0..good.len(), 0..good.len(), any::<u8>()).prop_map(|(start, at, byte)| {
        let mut frame = good.to_vec();
        frame[at] = byte;
        frame.split_off(start)
    });
    let members = proptest::collection::vec((member_name(), member_value()), 0..7).prop_map(|members| {
        let members = members.iter().map(|(name, value)| format!("{name}:{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(",")).into_bytes()
    });
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        r#"[\[\]{}",:0-9a-z\\ \n.-]{0,80}"#.prop_map(String::into_bytes),
        changed,
        members,
    ]
}

fn member_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        r#""jsonrpc""#,
        r#""id""#,
        r#""method""#,
        r#""params""#,
        r#""result""#,
        r#""error""#,
        r#""\u0069d""#,
        r#""other""#,
    ])
}

fn member_value() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        r#""2.0""#,
        r#""echo""#,
        r#""fail""#,
        r#""panic""#,
        "1",
        "-1.50",
        "null",
        "true",
        "{}",
        "[1]",
        r#"{"code":1}"#,
        r#""\ud800""#,
    ])
}

/// An id as its text: strings with and without escapes, numbers of any size, and `null`.
fn legal_id() -> impl Strategy<Value = String> {
    let string = any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap());
    let escaped = any::<String>().prop_map(|text| {
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
        format!("\"{}\"", units.collect::<String>())
    });
    let number = r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?".prop_map(String::from);
    prop_oneof![string, escaped, number, Just("null".to_owned())]
}

/// Fails unless an answer is one line that holds one JSON-RPC response, or an array of one or more of them.
fn check_answer(answer: &[u8]) -> Result<(), TestCaseError> {
    prop_assert!(!answer.contains(&b'\n'));
    let value: serde_json::Value = serde_json::from_slice(answer).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let responses = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
    prop_assert!(!responses.is_empty());
    for response in responses {
        prop_assert_eq!(&response["jsonrpc"], "2.0");
        prop_assert!(response.get("id").is_some());
        prop_assert!(response.get("result").is_some() != response["error"]["code"].is_i64());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_get_nothing_or_a_json_rpc_answer(frame in any_frame()) {
        if let Some(answer) = answer_now(&frame, &Limits::default()) {
            check_answer(&answer)?;
        }
    }

    #[test]
    fn any_legal_id_comes_back_byte_for_byte(id in legal_id(), space in "[ \t\r\n]{0,3}") {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{space}{id}{space},"method":"echo"}}"#);
        let answer = answer_now(frame.as_bytes(), &Limits::default());
        prop_assert_eq!(answer.unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#));
    }

    #[test]
    fn a_batch_answers_exactly_its_requests(ids in proptest::collection::vec(proptest::option::of(legal_id()), 1..100)) {
        let calls = ids.iter().map(|id| match id {
            Some(id) => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo"}}"#),
            None => r#"{"jsonrpc":"2.0","method":"echo"}"#.to_owned(),
        });
        let frame = format!("[{}]", calls.collect::<Vec<_>>().join(","));
        let answers = ids.iter().flatten().map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#));
        let answers = answers.collect::<Vec<_>>();
        let expected = (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")));
        let answer = answer_now(frame.as_bytes(), &Limits::default());
        prop_assert_eq!(answer.map(|answer| String::from_utf8_lossy(&answer).into_owned()), expected);
    }
}
