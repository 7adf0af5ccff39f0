//! A batch: its calls run side by side, bounded in number and in what they may answer together.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::ErrorCode;

use super::dispatch::{Said, answer_message};
use crate::envelope::{Answer, Call, Limits, Message, batch_into_bytes, refusal};

/// Answers every message of a batch that gets an answer, in the order of the messages; `None` if none does.
///
/// A slow call does not hold back the start of later ones beyond its own seat. Which calls end beyond the
/// limit on the size of the whole answer depends on which end last; they have run, and the error says so.
pub(super) async fn answer_batch<'f, H, F>(messages: Vec<Message<'f>>, limits: &Limits, handler: &H) -> Option<Bytes>
where
    H: Fn(Call<'f>) -> F,
    F: Future<Output: Into<Said>>,
{
    let mut waiting = messages.into_iter().enumerate();
    let mut running = FuturesUnordered::new();
    let mut answers = Vec::new();
    let mut len = 2;
    loop {
        while running.len() < limits.batch_concurrency_max.max(1) {
            let Some((place, message)) = waiting.next() else { break };
            running.push(answer_in_place(place, message, limits, handler));
        }
        let Some((place, answer)) = running.next().await else { break };
        let Some(mut answer) = answer else { continue };
        if answer.outcome.is_ok() && len + answer.len() > limits.batch_answer_max {
            answer.outcome = Err(too_large(limits.batch_answer_max));
        }
        len += answer.len() + 1;
        answers.push((place, answer));
    }
    if answers.is_empty() {
        return None;
    }
    answers.sort_unstable_by_key(|(place, _)| *place);
    Some(batch_into_bytes(answers.into_iter().map(|(_, answer)| answer), len))
}

/// The answer to one message, with the place of the message in its batch.
async fn answer_in_place<'f, H, F>(
    place: usize,
    message: Message<'f>,
    limits: &Limits,
    handler: &H,
) -> (usize, Option<Answer<'f>>)
where
    H: Fn(Call<'f>) -> F,
    F: Future<Output: Into<Said>>,
{
    (place, answer_message(message, limits, handler).await)
}

fn too_large(batch_answer_max: usize) -> ErrorObjectOwned {
    let message = format!(
        "the call has run, but the results of its batch are more than {batch_answer_max} bytes; ask for this one alone"
    );
    refusal(ErrorCode::TooLarge, message)
}
