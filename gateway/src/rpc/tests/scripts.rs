//! Stories in text: `-->` is sent, `<--` is what comes back, or `nothing`. A script that names no text but
//! `error CODE id ID` leaves the wording open.

use super::super::{Frame, Limits, StrayResponses};
use super::{answer_now, play};

fn check(script: &str) {
    check_within(&Limits::default(), script);
}

fn check_within(limits: &Limits, script: &str) {
    let mut answer = None;
    let mut sent = "";
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(frame) = line.strip_prefix("--> ") {
            sent = frame;
            answer = Some(answer_now(frame.as_bytes(), limits));
        } else if let Some(expected) = line.strip_prefix("<-- ") {
            let answer = answer.take().expect("every answer follows a frame");
            let text = answer.map_or("nothing".to_owned(), |bytes| String::from_utf8(bytes.to_vec()).unwrap());
            let text = if expected.starts_with("error ") { outline(&text) } else { text };
            assert_eq!(text, expected, "in answer to {sent}");
        } else {
            panic!("a line is neither sent nor answered: {line}");
        }
    }
    assert!(answer.is_none(), "the script does not say what answers {sent}");
}

fn outline(answer: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(answer).unwrap_or_default();
    format!("error {} id {}", value["error"]["code"], value["id"])
}

#[test]
fn a_call_is_answered_under_its_id_with_params_as_they_came() {
    check(
        r#"
        --> {"jsonrpc":"2.0","id":1,"method":"echo","params":{"z":1.10,"a":123456789012345678901,"z2":{"é":"\u00e9"}}}
        <-- {"jsonrpc":"2.0","id":1,"result":{"z":1.10,"a":123456789012345678901,"z2":{"é":"\u00e9"}}}
        --> {"params":[1, 2.0],"method":"echo","id":"x","jsonrpc":"2.0"}
        <-- {"jsonrpc":"2.0","id":"x","result":[1, 2.0]}
        --> {"jsonrpc":"2.0","id":1,"method":"echo"}
        <-- {"jsonrpc":"2.0","id":1,"result":null}
        "#,
    );
}

#[test]
fn a_legal_id_comes_back_byte_for_byte() {
    check(
        r#"
        --> {"jsonrpc":"2.0","method":"echo","id":9007199254740993}
        <-- {"jsonrpc":"2.0","id":9007199254740993,"result":null}
        --> {"jsonrpc":"2.0","method":"echo","id": -0.10e+2 }
        <-- {"jsonrpc":"2.0","id":-0.10e+2,"result":null}
        --> {"jsonrpc":"2.0","method":"echo","id":1e999}
        <-- {"jsonrpc":"2.0","id":1e999,"result":null}
        --> {"jsonrpc":"2.0","method":"echo","id":"\u0061\/\"é"}
        <-- {"jsonrpc":"2.0","id":"\u0061\/\"é","result":null}
        --> {"jsonrpc":"2.0","method":"echo","id":""}
        <-- {"jsonrpc":"2.0","id":"","result":null}
        --> {"jsonrpc":"2.0","method":"echo","id":null}
        <-- {"jsonrpc":"2.0","id":null,"result":null}
        "#,
    );
}

#[test]
fn an_id_of_another_type_is_refused_under_null() {
    check(
        r#"
        --> {"jsonrpc":"2.0","method":"echo","id":true}
        <-- {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"`id` must be a string or a number; leave it out for a notification","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}
        --> {"jsonrpc":"2.0","method":"echo","id":[1]}
        <-- error -32600 id null
        --> {"jsonrpc":"2.0","method":"echo","id":{}}
        <-- error -32600 id null
        --> {"jsonrpc":"2.0","method":"echo","id":"\ud800"}
        <-- error -32600 id null
        "#,
    );
}

#[test]
fn a_notification_is_never_answered_whatever_becomes_of_it() {
    check(
        r#"
        --> {"jsonrpc":"2.0","method":"echo","params":{}}
        <-- nothing
        --> {"jsonrpc":"2.0","method":"no/such","params":[1,2]}
        <-- nothing
        --> {"jsonrpc":"2.0","method":"fail"}
        <-- nothing
        --> {"jsonrpc":"2.0","method":"panic"}
        <-- nothing
        --> [{"jsonrpc":"2.0","method":"echo"},{"jsonrpc":"2.0","method":"panic"}]
        <-- nothing
        "#,
    );
}

#[test]
fn an_invalid_request_is_answered_under_its_id_if_that_is_legal() {
    check(
        r#"
        --> {"id":7,"method":"echo"}
        <-- {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"`jsonrpc` must be the string \"2.0\"","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}
        --> {"jsonrpc":2.0,"id":"a","method":"echo"}
        <-- error -32600 id "a"
        --> {"jsonrpc":"2.00","id":7,"method":"echo"}
        <-- error -32600 id 7
        --> {"jsonrpc":"2.0","id":7}
        <-- {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"`method` must be a string","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}
        --> {"jsonrpc":"2.0","id":7,"method":["echo"]}
        <-- error -32600 id 7
        --> {"jsonrpc":"2.0","id":7,"method":"\udc00"}
        <-- error -32600 id 7
        --> {"jsonrpc":"2.0","id":7,"method":"echo","params":null}
        <-- {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"`params` must be an object, or be left out","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}
        --> {"jsonrpc":"2.0","id":7,"method":"echo","params":"bar"}
        <-- error -32600 id 7
        --> {"jsonrpc":"2.0","id":7,"method":"echo","result":1}
        <-- error -32600 id 7
        --> {"jsonrpc":"2.0","method":1}
        <-- error -32600 id null
        --> {}
        <-- error -32600 id null
        "#,
    );
}

#[test]
fn a_member_given_twice_is_refused_however_it_is_spelled() {
    check(
        r#"
        --> {"jsonrpc":"2.0","id":1,"method":"echo","method":"fail"}
        <-- {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"`method` is given twice; give it once","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}
        --> {"jsonrpc":"2.0","id":1,"method":"echo","m\u0065thod":"fail"}
        <-- error -32600 id 1
        --> {"jsonrpc":"2.0","id":1,"method":"echo","id":2}
        <-- error -32600 id null
        --> {"jsonrpc":"2.0","id":1,"method":"echo","\u0069d":1}
        <-- error -32600 id null
        --> {"jsonrpc":"2.0","id":1,"method":"echo","params":{},"params":{}}
        <-- error -32600 id 1
        --> {"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"echo"}
        <-- error -32600 id 1
        --> {"jsonrpc":"2.0","id":1,"method":"echo","trace":1,"tr\u0061ce":2}
        <-- {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"a member is given twice; give each once","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}
        --> {"jsonrpc":"2.0","method":"echo","method":"echo"}
        <-- error -32600 id null
        "#,
    );
}

#[test]
fn unknown_members_escaped_names_and_white_space_are_let_through() {
    check(
        r#"
        --> {"jsonrpc":"2.0","id":1,"method":"echo","trace":{"a":1,"a":2},"Method":1}
        <-- {"jsonrpc":"2.0","id":1,"result":null}
        --> { "\u006asonrpc" : "\u0032.0" , "id" : 1 , "method" : "n\u0061me" }
        <-- {"jsonrpc":"2.0","id":1,"result":"name"}
        --> {"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1,"a":2}}
        <-- {"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}
        "#,
    );
}

#[test]
fn a_text_that_is_not_json_is_a_parse_error_under_null() {
    check(
        r#"
        --> {"jsonrpc":"2.0","id":1,"method":"echo"}}
        <-- {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"trailing characters at line 1 column 41; send one JSON value in UTF-8","data":{"code":"parse_error","fault":"caller","retry":"never"}}}
        --> {"jsonrpc":"2.0","id":1,"method":1,"params":"bar","baz]
        <-- error -32700 id null
        --> {"jsonrpc":"2.0","id":01,"method":"echo"}
        <-- error -32700 id null
        --> [{"jsonrpc":"2.0","id":1,"method":"echo"},]
        <-- error -32700 id null
        --> [{"jsonrpc":"2.0","id":1,"method":"echo"}
        <-- error -32700 id null
        --> 1 2
        <-- error -32700 id null
        --> nonsense
        <-- error -32700 id null
        --> 1
        <-- {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request is an object, a batch an array of them","data":{"code":"invalid_request","fault":"caller","retry":"never"}}}
        --> "x"
        <-- error -32600 id null
        "#,
    );
}

#[test]
fn a_frame_nested_too_deep_is_refused_and_one_that_is_just_deep_enough_is_not() {
    let nested = |depth: usize| {
        let params = format!("{}{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo","params":{params}}}"#)
    };
    let refused = "nested deeper than 128; send it flatter, or as a text inside a string";
    check(&format!(
        "--> {}\n<-- {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}{}}}",
        nested(128),
        "[".repeat(127),
        "]".repeat(127)
    ));
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"{refused}","data":{{"code":"parse_error","fault":"caller","retry":"never"}}}}}}"#
    );
    check(&format!("--> {}\n<-- {error}", nested(129)));
    check(&format!("--> {}\n<-- {error}", "[".repeat(1_000_000)));
    check(&format!("--> {}\n<-- {error}", r#"{"a":"#.repeat(1_000_000)));
}

#[test]
fn the_params_of_the_deepest_frame_can_still_be_decoded() {
    let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    let parsed = Frame::parse(text.as_bytes(), &Limits::default());
    let Frame::Single(super::super::Message::Call(call)) = parsed else { panic!("{parsed:?}") };
    serde_json::from_str::<serde_json::Value>(call.params.unwrap().get()).unwrap();
}

#[test]
fn bytes_that_are_not_utf_8_are_a_parse_error() {
    let answer = answer_now(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", &Limits::default()).unwrap();
    let expected = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not UTF-8 at byte 34; send one JSON value in UTF-8","data":{"code":"parse_error","fault":"caller","retry":"never"}}}"#;
    assert_eq!(answer, expected);
}

#[test]
fn an_error_leaves_with_its_code_message_and_data() {
    check(
        r#"
        --> {"jsonrpc":"2.0","id":1,"method":"fail","params":{"z":1.10}}
        <-- {"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"as \"asked\"","data":{"z":1.10}}}
        "#,
    );
}

#[test]
fn a_panic_ends_one_call_and_not_its_batch() {
    check(
        r#"
        --> {"jsonrpc":"2.0","id":1,"method":"panic"}
        <-- {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the call failed inside the gateway, whose log says why; call again later","data":{"code":"internal","fault":"gateway","retry":"later"}}}
        --> [{"jsonrpc":"2.0","id":1,"method":"panic"},{"jsonrpc":"2.0","id":2,"method":"echo"}]
        <-- [{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the call failed inside the gateway, whose log says why; call again later","data":{"code":"internal","fault":"gateway","retry":"later"}}},{"jsonrpc":"2.0","id":2,"result":null}]
        "#,
    );
}

#[test]
fn an_answer_is_one_line_even_when_the_result_was_written_on_many() {
    let frame = "{\"jsonrpc\":\"2.0\",\r\n\"id\":\n1,\"method\":\"echo\",\"params\":{\r\n\"a\":\"b\\n\"\n}}\n";
    let answer = answer_now(frame.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(answer, r#"{"jsonrpc":"2.0","id":1,"result":{  "a":"b\n" }}"#);
}

#[test]
fn a_response_to_nothing_is_refused_where_only_the_caller_asks() {
    check(
        r#"
        --> {"jsonrpc":"2.0","id":1,"result":{}}
        <-- error -32600 id null
        --> {"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}
        <-- error -32600 id null
        --> {"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}
        <-- error -32600 id null
        "#,
    );
}

#[test]
fn an_answer_is_never_answered_where_both_sides_ask() {
    let limits = Limits { stray_responses: StrayResponses::Ignore, ..Limits::default() };
    check_within(
        &limits,
        r#"
        --> {"jsonrpc":"2.0","id":1,"result":{}}
        <-- nothing
        --> {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}
        <-- nothing
        --> {"error":{"code":1,"message":"x"}}
        <-- nothing
        --> {"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}
        <-- nothing
        --> {"jsonrpc":"2.0","id":1,"result":{},"result":{}}
        <-- nothing
        --> [{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"method":"echo"}]
        <-- [{"jsonrpc":"2.0","id":2,"result":null}]
        --> {"jsonrpc":"2.0","id":2,"method":"echo","result":{}}
        <-- error -32600 id 2
        "#,
    );
}

#[test]
fn a_transport_takes_the_responses_out_and_has_the_rest_answered() {
    let text = r#"[{"jsonrpc":"2.0","id":1,"result":1.0},{"jsonrpc":"2.0","id":2,"method":"echo"},
        {"jsonrpc":"2.0","id":"b","error":{"code":1}}]"#;
    let limits = Limits::default();
    let mut frame = Frame::parse(text.as_bytes(), &limits);
    let taken = frame
        .take_responses()
        .into_iter()
        .map(|response| (response.id.get(), response.outcome.map(|raw| raw.get()).map_err(|raw| raw.get())));
    assert_eq!(taken.collect::<Vec<_>>(), [("1", Ok("1.0")), ("\"b\"", Err(r#"{"code":1}"#))]);
    assert_eq!(answer_rest(frame).unwrap(), r#"[{"jsonrpc":"2.0","id":2,"result":null}]"#);

    let mut frame = Frame::parse(br#"{"jsonrpc":"2.0","id":1,"result":null}"#, &limits);
    assert_eq!(frame.take_responses().len(), 1);
    assert_eq!(answer_rest(frame), None);
}

fn answer_rest(frame: Frame<'_>) -> Option<bytes::Bytes> {
    let limits = Limits::default();
    let answer = super::super::answer_frame(frame, &limits, async |call| play(&call));
    futures_util::FutureExt::now_or_never(answer).expect("the handler never waits")
}
