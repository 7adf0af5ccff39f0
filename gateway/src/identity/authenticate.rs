//! From what a caller shows to who it is. This is the one place where that is done, whatever the transport.

use std::sync::Arc;

use http::{HeaderMap, header};
use reach_core::access::{Caller, Operator};
use reach_core::identity::{Book, Claims, Principal, Rejection};
use reach_schemas::{ErrorCode, Failure, Role, Timestamp};

use super::pass::{AgentPass, OperatorPass, Pass};
use super::{Identity, Mode, OPERATOR_PREFIX, hash, is_equal, jwt};

/// What a caller shows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presented<'a> {
    /// Nothing.
    Nothing,
    /// A token.
    Token(&'a str),
    /// Something that is no bearer token.
    Unreadable,
}

/// What is shown in the head of a request (RFC 6750, section 2.1). Tokens in a query or a body are not looked at.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Presented<'_> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Presented::Nothing,
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => return Presented::Unreadable,
    };
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => {
            Presented::Token(token.trim())
        }
        Some(_) | None => Presented::Unreadable,
    }
}

/// Somebody whose token is not accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Stranger {
    /// What it is told.
    pub failure: Failure,
    /// Whose token it was, where it was one of ours: for the audit log.
    pub was: Option<String>,
}

impl Stranger {
    fn of(failure: Failure) -> Self {
        Self { failure, was: None }
    }

    /// What the audit log calls it.
    #[must_use]
    pub fn name(&self) -> String {
        self.was.clone().unwrap_or_else(|| Pass::Nobody.to_string())
    }
}

/// A refusal for want of a token that is believed.
pub(crate) fn refused(rejection: Rejection) -> Failure {
    Failure::new(rejection.code(), format!("the token is not accepted: {rejection}"))
}

/// A refusal for want of any token.
pub(crate) fn nobody() -> Failure {
    let message = "this gateway asks its callers who they are: send a token as `Authorization: Bearer ...`";
    Failure::new(ErrorCode::Unauthenticated, message)
}

impl Identity {
    /// By whom a request is. True beside it: that its token is in use now is new, and to be stored.
    ///
    /// # Errors
    /// What it shows is not believed.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, now: Timestamp) -> Result<(Pass, bool), Stranger> {
        if self.mode() == Mode::Open {
            return Ok((Pass::Open, false));
        }
        match bearer(headers) {
            Presented::Nothing => Ok((Pass::Nobody, false)),
            Presented::Unreadable => {
                let message = "`Authorization` is not one bearer token: write `Authorization: Bearer TOKEN`, once";
                Err(Stranger::of(Failure::new(ErrorCode::Unauthenticated, message)))
            }
            Presented::Token(token) => self
                .read(token, now)
                .map_err(|rejection| Stranger { failure: refused(rejection), was: self.was(token) }),
        }
    }

    fn read(&self, token: &str, now: Timestamp) -> Result<(Pass, bool), Rejection> {
        if token.starts_with(OPERATOR_PREFIX) {
            let hash = hash(token);
            let book = self.book();
            let row = book.operator(&hash, now)?;
            let operator = Operator { name: Some(row.name.clone()), role: row.role };
            return Ok((Pass::Operator(Arc::new(OperatorPass { operator, hash: Some(hash) })), false));
        }
        if let Some(operator) = self.folder_operator(token) {
            return Ok((Pass::Operator(Arc::new(OperatorPass { operator, hash: None })), false));
        }
        let claims = self.claims(token).ok_or(Rejection::Foreign)?;
        let (agent, is_newer) = {
            let book = self.book();
            let (agent, principal) = book.judge(&claims, self.audience(), now, &self.settings.lifetimes)?;
            (agent, principal.used(&claims, now).is_some())
        };
        let is_new = is_newer && self.note_used(&agent, &claims, now);
        Ok((Pass::Agent(Arc::new(AgentPass::new(agent, &claims))), is_new))
    }

    /// Who has the key in the gateway's own folder. None: the text is not that key.
    pub(crate) fn folder_operator(&self, token: &str) -> Option<Operator> {
        let key = self.settings.operator_key.as_ref()?;
        is_equal(key.reveal(), token).then_some(Operator { name: None, role: Role::Admin })
    }

    /// Whose token it is, good or not. None: none that we gave out and know of.
    fn was(&self, token: &str) -> Option<String> {
        if token.starts_with(OPERATOR_PREFIX) {
            let (hash, book) = (hash(token), self.book());
            let row = book.operators.values().find(|row| row.hash == hash)?;
            return Some(Caller::Operator(Operator { name: Some(row.name.clone()), role: row.role }).to_string());
        }
        self.claims(token)?.agent().map(|agent| agent.to_string())
    }

    /// What an agent's token says, if one of our keys signed it.
    pub(crate) fn claims(&self, token: &str) -> Option<Arc<Claims>> {
        self.cache.get(token, || {
            let kid = jwt::kid(token)?;
            // The name is looked up among the keys that there are, and leads nowhere else.
            let public = self.keys().get(&kid)?.public.clone();
            jwt::read(token, &public)
        })
    }

    /// Whether what was found out of a caller still holds.
    ///
    /// # Errors
    /// It does not, and why.
    pub(crate) fn check(&self, pass: &Pass, now: Timestamp) -> Result<(), Rejection> {
        match pass {
            Pass::Open | Pass::Nobody => Ok(()),
            Pass::Operator(operator) => {
                let Some(hash) = &operator.hash else { return Ok(()) };
                let standing = self.book().operator(hash, now).map(|_| ());
                // It stood when the pass was made.
                standing.map_err(|no| if no == Rejection::Withdrawn { Rejection::Revoked } else { no })
            }
            Pass::Agent(agent) => self.standing(&self.book(), agent, now).map(|_| ()),
        }
    }

    /// What is known of an agent whose pass still holds.
    ///
    /// # Errors
    /// It does not, and why.
    pub(super) fn standing<'b>(
        &self,
        book: &'b Book,
        pass: &AgentPass,
        now: Timestamp,
    ) -> Result<&'b Principal, Rejection> {
        let (token, lifetimes) = (pass.token(), &self.settings.lifetimes);
        if token.expires_at + lifetimes.skew <= now {
            return Err(Rejection::Expired);
        }
        let principal = book.principals.get(&pass.agent_id).ok_or(Rejection::Unknown)?;
        principal.check((pass.generation, token.rot, &token.jti), now, lifetimes)?;
        Ok(principal)
    }

    /// When a pass ends by itself at the latest. None: it does not.
    pub(crate) fn ends_at(&self, pass: &Pass) -> Option<Timestamp> {
        match pass {
            Pass::Open | Pass::Nobody => None,
            Pass::Operator(operator) => {
                let book = self.book();
                book.operators.values().find(|row| Some(&row.hash) == operator.hash.as_ref())?.expires_at
            }
            Pass::Agent(agent) => {
                let (token, lifetimes) = (agent.token(), &self.settings.lifetimes);
                let by_itself = token.expires_at + lifetimes.skew;
                let book = self.book();
                let replaced = book.principals.get(&agent.agent_id).filter(|principal| token.rot < principal.used_rot);
                let replaced_at = replaced.map(|principal| principal.used_since + lifetimes.after_next);
                Some(replaced_at.map_or(by_itself, |at| at.min(by_itself)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_once_and_as_a_bearer_token() {
        let mut headers = HeaderMap::new();
        assert_eq!(bearer(&headers), Presented::Nothing);
        for (value, expected) in [
            ("Bearer abc", Presented::Token("abc")),
            ("bearer  abc ", Presented::Token("abc")),
            ("Basic abc", Presented::Unreadable),
            ("Bearer", Presented::Unreadable),
            ("Bearer ", Presented::Unreadable),
            ("", Presented::Unreadable),
        ] {
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            assert_eq!(bearer(&headers), expected, "{value:?}");
        }
        headers.append(header::AUTHORIZATION, "Bearer abc".parse().unwrap());
        assert_eq!(bearer(&headers), Presented::Unreadable);
    }
}
