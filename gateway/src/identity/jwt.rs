//! Signed texts (RFC 7519), by Ed25519 and nothing else: no other algorithm is built in, so that none can be talked into.
//! Whether what they say holds is judged in the core, by the gateway's clock.

use std::sync::Once;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use curve25519_dalek::edwards::CompressedEdwardsY;
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result as JwtResult};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey, Header, Validation};
use reach_core::identity::{Assertion, Claims, Proof};
use reach_schemas::AgentId;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use serde::de::DeserializeOwned;
use signature::{Signer, Verifier};

use super::signing::Key;

/// The type of an agent's token (RFC 9068).
const ACCESS_TOKEN: &str = "at+jwt";
/// The type of a proof (RFC 9449).
const PROOF: &str = "dpop+jwt";
/// The longest text that is read.
const TEXT_MAX: usize = 8 * 1024;
/// How many bytes a public key has.
const KEY_LEN: usize = 32;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| {
        if *algorithm != Algorithm::EdDSA || key.family() != AlgorithmFamily::Ed {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        let pair = Ed25519KeyPair::from_pkcs8(key.as_bytes());
        Ok(Box::new(Pair(pair.map_err(|_| ErrorKind::InvalidEddsaKey)?)))
    },
    verifier_factory: |algorithm, key| {
        if *algorithm != Algorithm::EdDSA || key.family() != AlgorithmFamily::Ed {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        Ok(Box::new(Public(key.try_get_as_bytes()?.to_vec())))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

struct Pair(Ed25519KeyPair);

impl Signer<Vec<u8>> for Pair {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }
}

impl JwtSigner for Pair {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

struct Public(Vec<u8>);

impl Verifier<Vec<u8>> for Public {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Public {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

/// Has the library use the cryptography of TLS, and of it only what is needed.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The process is ours; another choice would be another library's mistake, and is as good.
        let _already_chosen = PROVIDER.install_default();
    });
}

/// Checks a signature and reads what was signed. Times and names are for the core to judge.
fn decode<T: DeserializeOwned + Clone>(text: &str, key: &DecodingKey) -> JwtResult<T> {
    install();
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_nbf, validation.validate_aud) = (false, false, false);
    jsonwebtoken::decode::<T>(text, key, &validation).map(|read| read.claims)
}

/// The head of a text, if it is of this type and by the one algorithm that there is.
fn head(text: &str, kind: &str) -> Option<Header> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let header = jsonwebtoken::decode_header(text).ok()?;
    let is_typed = header.typ.as_deref().is_some_and(|typ| typ.eq_ignore_ascii_case(kind));
    (is_typed && header.alg == Algorithm::EdDSA && header.crit.is_none()).then_some(header)
}

/// Signs an agent's token.
pub(super) fn sign(claims: &Claims, key: &Key) -> JwtResult<String> {
    install();
    let mut header = Header::new(Algorithm::EdDSA);
    (header.typ, header.kid) = (Some(ACCESS_TOKEN.to_owned()), Some(key.kid.clone()));
    jsonwebtoken::encode(&header, claims, &EncodingKey::from_ed_der(&key.pkcs8))
}

/// The key that an agent's token names. None: it is no such token.
pub(super) fn kid(token: &str) -> Option<String> {
    head(token, ACCESS_TOKEN)?.kid
}

/// What an agent's token says, if it was signed by this key.
pub(super) fn read(token: &str, public: &[u8]) -> Option<Claims> {
    decode(token, &DecodingKey::from_ed_der(public)).ok()
}

/// A proof, and the key that it is by.
pub(crate) struct SignedProof {
    /// What it says.
    pub(crate) proof: Proof,
    /// The public key in base64url.
    pub(crate) key: String,
    /// The key's thumbprint (RFC 7638).
    pub(crate) thumbprint: String,
}

/// Reads a proof whose signature is by the key in its head.
pub(crate) fn read_proof(text: &str) -> Option<SignedProof> {
    let key = public_of(&head(text, PROOF)?.jwk?)?;
    let proof = decode(text, &DecodingKey::from_ed_der(&point(&key)?)).ok()?;
    Some(SignedProof { proof, thumbprint: thumbprint(&key), key })
}

/// Reads what a client says of itself (RFC 7523), if it is signed by the key that `key_of` knows of it, in base64url. Whom
/// to ask for, it says itself: what else it says counts only once the signature was found right.
pub(crate) fn read_assertion(text: &str, key_of: impl FnOnce(&AgentId) -> Option<String>) -> Option<Assertion> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let header = jsonwebtoken::decode_header(text).ok()?;
    let is_typed = header
        .typ
        .as_deref()
        .is_none_or(|typ| ["JWT", "client-authentication+jwt"].iter().any(|kind| typ.eq_ignore_ascii_case(kind)));
    if !is_typed || header.alg != Algorithm::EdDSA || header.crit.is_some() {
        return None;
    }
    let claimed: Assertion = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text.split('.').nth(1)?).ok()?).ok()?;
    decode(text, &DecodingKey::from_ed_der(&point(&key_of(&claimed.client()?)?)?)).ok()
}

/// The bytes of a public key in base64url. None: it is none, or one of the few points of small order, for which one
/// signature is good for any message (RFC 8032, section 5.1.7, leaves it to us to refuse them).
pub(crate) fn point(x: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(x).ok().filter(|bytes| bytes.len() == KEY_LEN)?;
    let point = CompressedEdwardsY::from_slice(&bytes).ok()?.decompress()?;
    (!point.is_small_order()).then_some(bytes)
}

/// The Ed25519 point of a JWK.
fn public_of(jwk: &Jwk) -> Option<String> {
    let AlgorithmParameters::OctetKeyPair(pair) = &jwk.algorithm else { return None };
    (pair.curve == EllipticCurve::Ed25519).then(|| pair.x.clone())
}

/// The thumbprint of an Ed25519 key (RFC 7638, RFC 8037).
pub(crate) fn thumbprint(x: &str) -> String {
    let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_for_which_one_signature_is_good_for_all_is_none() {
        let with = |first: u8, rest: u8, last: u8| {
            let mut bytes = [rest; KEY_LEN];
            (bytes[0], bytes[KEY_LEN - 1]) = (first, last);
            point(&URL_SAFE_NO_PAD.encode(bytes))
        };
        // The neutral point, that of order two, those of order four, and both of the first written otherwise.
        for (first, rest, last) in
            [(1, 0, 0), (0xEC, 0xFF, 0x7F), (0, 0, 0), (0, 0, 0x80), (0xEE, 0xFF, 0x7F), (1, 0, 0x80)]
        {
            assert_eq!(with(first, rest, last), None, "{first:x}");
        }
        assert!(point("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").is_some());
        assert_eq!(point("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUQ"), None, "too short");
    }

    #[test]
    fn the_thumbprint_of_the_published_example_is_as_published() {
        // RFC 8037, appendix A.3.
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        assert_eq!(thumbprint(x), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }
}
