//! Checkpoints: places in the log that the gateway signs. The chain alone shows that a row was changed; a checkpoint that
//! was kept elsewhere shows that the whole end was cut off, or written anew.

use reach_schemas::Timestamp;

use super::chain::Mark;

/// What a signature is over begins with this, so that it is good for nothing else.
const FORM: &[u8] = b"agent-reach audit checkpoint 1";

/// A place in the log, and its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last row that it covers.
    pub mark: Mark,
    /// When it was signed.
    pub at: Timestamp,
    /// The public key: Ed25519.
    pub key: [u8; 32],
    /// The signature over [`signed`].
    pub signature: [u8; 64],
}

/// What is signed of a place.
#[must_use]
pub fn signed(mark: &Mark, at: Timestamp) -> Vec<u8> {
    [FORM, &mark.seq.to_be_bytes(), &mark.hash.0, &at.as_ms().to_be_bytes()].concat()
}
