//! The key that signs checkpoints of the audit log: Ed25519. It signs nothing else, and no other key signs checkpoints.

use std::fmt;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reach_core::audit::checkpoint::signed;
use reach_core::audit::{Checkpoint, Mark};
use reach_schemas::{AuditCheckpoint, Timestamp};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::verdict::{mark_of_wire, mark_to_wire};

/// How many bytes a private key has.
pub(super) const SEED: usize = 32;

/// What signs checkpoints.
pub struct Signer {
    pair: Ed25519KeyPair,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", STANDARD.encode(self.key()))
    }
}

pub(super) fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

impl Signer {
    /// A key out of its 32 private bytes.
    ///
    /// # Errors
    /// They are not 32.
    pub fn of_seed(seed: &[u8]) -> io::Result<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        pair.map(|pair| Self { pair }).map_err(|_| invalid(format!("holds no key: it is {SEED} bytes in base64")))
    }

    /// The public key.
    #[must_use]
    pub fn key(&self) -> [u8; 32] {
        self.pair.public_key().as_ref().try_into().unwrap_or([0; 32])
    }

    /// Signs a place in the log.
    #[must_use]
    pub fn sign(&self, mark: Mark, at: Timestamp) -> Checkpoint {
        let signature = self.pair.sign(&signed(&mark, at));
        Checkpoint { mark, at, key: self.key(), signature: signature.as_ref().try_into().unwrap_or([0; 64]) }
    }
}

/// Whether the signature of a checkpoint is one of its key.
#[must_use]
pub fn holds(checkpoint: &Checkpoint) -> bool {
    let Checkpoint { mark, at, key, signature } = checkpoint;
    UnparsedPublicKey::new(&ED25519, key).verify(&signed(mark, *at), signature).is_ok()
}

/// A checkpoint as it is sent.
#[must_use]
pub fn to_wire(checkpoint: &Checkpoint) -> AuditCheckpoint {
    let mark = mark_to_wire(&checkpoint.mark);
    AuditCheckpoint {
        seq: mark.seq,
        hash: mark.hash,
        at: checkpoint.at,
        key: STANDARD.encode(checkpoint.key),
        signature: STANDARD.encode(checkpoint.signature),
    }
}

/// Why something is no checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the checkpoint's {0}")]
pub struct NoCheckpoint(&'static str);

/// A checkpoint as it was sent.
///
/// # Errors
/// It has not the form of one, or its signature does not hold.
pub fn of_wire(given: &AuditCheckpoint) -> Result<Checkpoint, NoCheckpoint> {
    let bytes = |text: &str| STANDARD.decode(text.trim()).ok();
    let mark = reach_schemas::AuditMark { seq: given.seq, hash: given.hash.clone() };
    let checkpoint = Checkpoint {
        mark: mark_of_wire(&mark).ok_or(NoCheckpoint("`hash` is not 64 hexadecimal digits"))?,
        at: given.at,
        key: bytes(&given.key)
            .and_then(|key| key.try_into().ok())
            .ok_or(NoCheckpoint("`key` is not 32 bytes in base64"))?,
        signature: bytes(&given.signature)
            .and_then(|signature| signature.try_into().ok())
            .ok_or(NoCheckpoint("`signature` is not 64 bytes in base64"))?,
    };
    if holds(&checkpoint) {
        Ok(checkpoint)
    } else {
        Err(NoCheckpoint("signature does not hold: it was changed, or is none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(seq: u64) -> Mark {
        Mark { seq, hash: reach_core::audit::Hash([7; 32]) }
    }

    #[test]
    fn a_signature_holds_for_what_was_signed_and_nothing_else() {
        let signer = Signer::of_seed(&[1; SEED]).unwrap();
        let checkpoint = signer.sign(mark(9), Timestamp::from_ms(5));
        assert!(holds(&checkpoint));
        let other = Signer::of_seed(&[2; SEED]).unwrap().key();
        for wrong in [
            Checkpoint { mark: mark(8), ..checkpoint.clone() },
            Checkpoint { at: Timestamp::from_ms(6), ..checkpoint.clone() },
            Checkpoint { key: other, ..checkpoint.clone() },
            Checkpoint { signature: [0; 64], ..checkpoint.clone() },
        ] {
            assert!(!holds(&wrong), "{wrong:?}");
            assert!(of_wire(&to_wire(&wrong)).is_err());
        }
        assert_eq!(of_wire(&to_wire(&checkpoint)), Ok(checkpoint));
    }
}
