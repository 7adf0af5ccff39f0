//! Secrets that are made here, and how one is compared with another.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reach_schemas::Secret;
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// What a token begins with by which an agent joins, so that whoever finds one knows what it is.
pub(crate) const JOIN_PREFIX: &str = "reach_join_";
/// What the token of an operator begins with.
pub(crate) const OPERATOR_PREFIX: &str = "reach_op_";
/// How many bytes of chance are in one.
const BYTES: usize = 32;

/// Chance from the operating system.
pub(super) fn random<const N: usize>() -> Zeroizing<[u8; N]> {
    let mut bytes = Zeroizing::new([0; N]);
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut *bytes).expect("the operating system gives random bytes");
    bytes
}

/// A token of 256 bits that nobody else knows.
///
/// # Panics
/// The operating system has no chance to give.
pub(crate) fn made(prefix: &str) -> Secret {
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(*random::<BYTES>())).into()
}

/// An id that nobody else gives: 128 bits.
pub(super) fn id() -> String {
    URL_SAFE_NO_PAD.encode(*random::<16>())
}

/// What is kept of a token: its SHA-256, in hexadecimal digits. It has 256 bits of chance, so that nobody finds it by trying.
pub(crate) fn hash(token: &str) -> String {
    digest(&SHA256, token.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
pub(crate) fn is_equal(a: &str, b: &str) -> bool {
    // Of texts whose lengths differ nothing is told but that, so their hashes are compared.
    let (a, b) = (digest(&SHA256, a.as_bytes()), digest(&SHA256, b.as_bytes()));
    a.as_ref().ct_eq(b.as_ref()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_256_bits_and_is_kept_as_a_hash() {
        let token = made(JOIN_PREFIX);
        assert_eq!(token.reveal().len(), JOIN_PREFIX.len() + 43);
        assert_ne!(token, made(JOIN_PREFIX));
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(is_equal("a", "a") && !is_equal("a", "b") && !is_equal("a", "aa"));
    }
}
