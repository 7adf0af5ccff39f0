//! Keys, and what is signed with them, right or wrong.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reach_schemas::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

/// An Ed25519 key.
pub(crate) struct Signer(Ed25519KeyPair);

pub(crate) fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

pub(crate) fn secs(at: Timestamp) -> u64 {
    at.as_ms() / 1000
}

impl Signer {
    pub(crate) fn new() -> Self {
        Self::of(Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap().as_ref())
    }

    pub(crate) fn of(pkcs8: &[u8]) -> Self {
        Self(Ed25519KeyPair::from_pkcs8(pkcs8).unwrap())
    }

    /// The public key in base64url.
    pub(crate) fn x(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref())
    }

    pub(crate) fn public(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    /// A JWT with this head and body.
    pub(crate) fn sign(&self, head: &Value, body: &Value) -> String {
        let text = format!("{}.{}", part(head), part(body));
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(self.0.sign(text.as_bytes()).as_ref()))
    }

    pub(crate) fn head(&self) -> Value {
        json!({ "typ": "dpop+jwt", "alg": "EdDSA", "jwk": { "kty": "OKP", "crv": "Ed25519", "x": self.x() } })
    }

    /// A proof as it should be.
    pub(crate) fn proof(&self, url: &str, at: Timestamp) -> String {
        self.sign(&self.head(), &body(url, secs(at)))
    }
}

/// What a proof says.
pub(crate) fn body(url: &str, iat: u64) -> Value {
    json!({ "htm": "POST", "htu": url, "iat": iat, "jti": uuid::Uuid::now_v7().to_string() })
}
