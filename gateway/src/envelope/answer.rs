//! Answers as text, put together from raw pieces: an id and a result leave as they came.

use bytes::Bytes;
use jsonrpsee_types::ErrorObjectOwned;
use serde_json::value::RawValue;

use super::Id;

/// What is said to one call: the result as JSON text, or the error object to send.
pub type Outcome = Result<Box<RawValue>, ErrorObjectOwned>;

/// Room for the constant parts of one answer.
const FRAME_LEN: usize = 64;

/// One answer, before it is text.
#[derive(Debug)]
pub struct Answer<'f> {
    /// The id of the call, as it came.
    pub id: Id<'f>,
    /// What is said to it.
    pub outcome: Outcome,
}

impl Answer<'_> {
    /// About how many bytes the answer takes.
    pub(crate) fn len(&self) -> usize {
        let body = match &self.outcome {
            Ok(result) => result.get().len(),
            Err(error) => error.message().len() + error.data().map_or(0, |data| data.get().len()),
        };
        FRAME_LEN + self.id.get().len() + body
    }

    /// The answer as the whole of a frame: one line of JSON.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        let mut out = Vec::with_capacity(self.len());
        self.write(&mut out);
        keep_on_one_line(&mut out);
        out.into()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(self.id.get().as_bytes());
        match &self.outcome {
            Ok(result) => {
                out.extend_from_slice(br#","result":"#);
                out.extend_from_slice(result.get().as_bytes());
            }
            Err(error) => {
                out.extend_from_slice(br#","error":"#);
                serde_json::to_writer(&mut *out, error)
                    .expect("an error object is text and raw JSON, and memory takes it");
            }
        }
        out.push(b'}');
    }
}

/// The answer to a frame that could not be read, in a transport that knows why: its id is `null`.
#[must_use]
pub fn refused(error: ErrorObjectOwned) -> Bytes {
    Answer { id: Id::NULL, outcome: Err(error) }.into_bytes()
}

/// The answers of a batch, of which there must be one or more, in the given order.
pub(crate) fn batch_into_bytes<'f>(answers: impl Iterator<Item = Answer<'f>>, len: usize) -> Bytes {
    let mut out = Vec::with_capacity(len);
    for answer in answers {
        out.push(if out.is_empty() { b'[' } else { b',' });
        answer.write(&mut out);
    }
    out.push(b']');
    keep_on_one_line(&mut out);
    out.into()
}

/// Makes blanks of line breaks, for the transports that end a frame with one. A JSON string cannot hold a
/// raw line break, so each of them stands between two tokens, where a blank means the same.
fn keep_on_one_line(out: &mut [u8]) {
    for byte in out {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}
