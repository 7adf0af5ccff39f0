//! The front as a whole: text in, text out, through the same door as every transport.

mod batches;
mod properties;
mod scripts;
mod vectors;

use bytes::Bytes;
use futures_util::FutureExt;
use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::ErrorCode;
use serde_json::value::{RawValue, to_raw_value};

use super::{Call, Limits, Outcome, answer, refusal};

/// A handler that is ready at once: it echoes, fails or panics as the method asks.
fn play(call: &Call<'_>) -> Outcome {
    match call.method.as_ref() {
        "echo" => Ok(call.params.unwrap_or(RawValue::NULL).to_owned()),
        "name" => to_raw_value(&call.method).map_err(|_| unreachable!()),
        "fail" => Err(ErrorObjectOwned::owned(-32050, "as \"asked\"", call.params)),
        "panic" => panic!("as asked"),
        method => Err(refusal(ErrorCode::MethodNotFound, format!("no method `{method}`"))),
    }
}

/// The answer to a frame whose calls are all ready at once.
fn answer_now(frame: &[u8], limits: &Limits) -> Option<Bytes> {
    answer(frame, limits, async |call| play(&call)).now_or_never().expect("the handler never waits")
}
