//! The proof that somebody has a key (the form is that of DPoP, RFC 9449), and whether it is for us, for now, and new.

use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::principal::Used;

/// How old a proof may be, beside what clocks may differ.
const AGE_MAX: Span = Span::from_secs(60);
/// What a proof says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// For which HTTP method: always `POST`.
    pub htm: String,
    /// For which address. It says for which gateway, so that one that is not to be trusted cannot hand it on.
    pub htu: String,
    /// When it was made, in seconds since 1970.
    pub iat: u64,
    /// Its id, never used before.
    pub jti: String,
    /// Not after, in seconds since 1970, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<u64>,
    /// Not before, in seconds since 1970, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
}

/// Why a proof proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ProofFlaw {
    /// It cannot be read, or its signature is not by the key in it.
    #[error("it is no `dpop+jwt` that is signed by the Ed25519 key in its `jwk`")]
    Foreign,
    /// It is not for this.
    #[error("`htm` is not POST, or `htu` is not the address of this gateway")]
    Elsewhere,
    /// It is not of now.
    #[error("`iat` is not within a minute of now, or `exp` or `nbf` is against it: are the clocks right?")]
    Stale,
    /// It was used before.
    #[error("`jti` was used before, or is no id")]
    Replayed,
    /// There were very many of late.
    #[error("there were very many of late; wait for two minutes")]
    TooMany,
}

/// A host without the port that its scheme has anyway (RFC 9110, section 4.2.3): some write it, some do not.
fn without_usual_port<'a>(scheme: &str, host: &'a str) -> &'a str {
    let usual = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    host.strip_suffix(usual).unwrap_or(host)
}

impl Proof {
    /// Whether it is for a gateway that is called by one of these names, each a host with its port, for now, and not one of
    /// those that were used. What is returned is to be remembered. For a gateway that has no name there is no proof.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, hosts: &[&str], used: &[Used], now: Timestamp, skew: Span) -> Result<Vec<Used>, ProofFlaw> {
        let (scheme, named) = self.htu.split_once("://").unwrap_or_default();
        let named = named.split(['/', '?', '#']).next().unwrap_or_default();
        let named = without_usual_port(scheme, named);
        let is_here = hosts.iter().any(|host| without_usual_port(scheme, host).eq_ignore_ascii_case(named));
        if self.htm != "POST" || named.is_empty() || !is_here {
            return Err(ProofFlaw::Elsewhere);
        }
        let at = |secs: u64| Timestamp::from_ms(secs.saturating_mul(1000));
        let good_until = at(self.iat) + AGE_MAX + skew;
        let is_early = at(self.iat) > now + skew || self.nbf.is_some_and(|nbf| at(nbf) > now + skew);
        let is_over = good_until <= now || self.exp.is_some_and(|exp| at(exp) + skew <= now);
        if is_early || is_over {
            return Err(ProofFlaw::Stale);
        }
        Used::once(used, &self.jti, good_until, now)
    }
}
