//! How a client shows who it is: with the token that it was given, with the next one that a heartbeat brought, or, when the
//! gateway does not take it any more, by showing its key once more. Nobody who uses the client sees any of it.

mod key;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reach_schemas::call::{AgentToken, TokenIssue};
use reach_schemas::{AgentId, ErrorCode, Method, Secret};
use reqwest::header::HeaderValue;

use crate::error::{Error, Refusal, Result};
use crate::transport::http::Http;
use crate::transport::{Call, Target};
use key::Key;

/// How long showing the key may take.
const SHOWING_TIMEOUT: Duration = Duration::from_secs(10);

/// What a client has to show.
#[derive(Clone, Default)]
pub(crate) struct Papers {
    /// A token that it was given.
    pub(crate) token: Option<Secret>,
    /// What lets its agent in for the first time: a join token, or the secret of its namespace.
    pub(crate) join: Option<Secret>,
    /// Where its key is. None: at its usual place.
    pub(crate) key_file: Option<PathBuf>,
}

/// How a client shows who it is. All its connections share this.
pub(crate) struct Credentials {
    agent: Option<AgentId>,
    papers: Papers,
    held: Mutex<Option<Secret>>,
    /// The key is shown once, however many calls found out that the token is not taken any more.
    showing: tokio::sync::Mutex<()>,
}

impl Credentials {
    pub(crate) fn new(papers: Papers, agent: Option<AgentId>) -> Result<Self> {
        let held = Mutex::new(papers.token.clone());
        let credentials = Self { agent, papers, held, showing: tokio::sync::Mutex::default() };
        credentials.header()?;
        Ok(credentials)
    }

    /// The token as it is now.
    pub(crate) fn token(&self) -> Option<Secret> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The header that shows it.
    pub(crate) fn header(&self) -> Result<Option<(Secret, HeaderValue)>> {
        let Some(token) = self.token() else { return Ok(None) };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))
            .map_err(|_| Error::Config("the token holds characters that no HTTP header can carry".to_owned()))?;
        value.set_sensitive(true);
        Ok(Some((token, value)))
    }

    /// Takes the token that the gateway has given.
    pub(crate) fn take(&self, token: AgentToken) {
        if self.agent.as_ref().is_none_or(|agent| *agent == token.agent_id) {
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.token);
        }
    }

    /// Gets another token in the place of the one that was refused. False: there is none to be had in this way, and the
    /// refusal stands.
    pub(crate) async fn renew(&self, target: &Target, refused: Option<&Secret>, code: ErrorCode) -> Result<bool> {
        let is_worth_it =
            matches!(code, ErrorCode::Unauthenticated | ErrorCode::TokenExpired | ErrorCode::TokenRevoked);
        let (true, Some(agent)) = (is_worth_it, &self.agent) else { return Ok(false) };
        let _one_at_a_time = self.showing.lock().await;
        if self.token().as_ref() != refused {
            return Ok(true);
        }
        let path = key::place(self.papers.key_file.as_deref(), agent)?;
        let known = Key::read(&path)?;
        let (key, is_new) = match (known, &self.papers.join) {
            (Some(key), _) => (key, false),
            (None, Some(_)) => (Key::make(&path)?, true),
            (None, None) => return Ok(false),
        };
        let by_key = if is_new { None } else { Some(self.show(target, agent, &key, None).await) };
        let token = match (by_key, &self.papers.join) {
            (Some(Err(Error::Unauthenticated(_))) | None, Some(join)) => {
                self.show(target, agent, &key, Some(join.clone())).await?
            }
            (Some(shown), _) => shown?,
            (None, None) => return Ok(false),
        };
        tracing::info!(agent_id = %agent, generation = token.generation, "the gateway knows us by our key");
        self.take(token);
        Ok(true)
    }

    async fn show(&self, target: &Target, agent: &AgentId, key: &Key, join: Option<Secret>) -> Result<AgentToken> {
        let http = Http::anonymous(target)?;
        let params = TokenIssue { agent_id: agent.clone(), join, proof: key.proof(http.url().as_str()) };
        let params =
            reach_schemas::RawJson::of(&params).map_err(|error| Error::Config(format!("parameters: {error}")))?;
        let method = Method::TokenIssue.name();
        let call = Call { method: method.into(), params: Some(params), timeout: SHOWING_TIMEOUT, is_safe: false };
        let answer = http.call_once(&call).await?;
        answer.read().map_err(|error| Error::unreadable("the answer to token/issue", error))
    }
}

/// The error of a refusal whose body cannot be read, by the page that it names.
pub(crate) fn named_in(challenge: Option<&str>) -> ErrorCode {
    let page = challenge.and_then(|text| text.split_once("/errors/")).map_or("", |(_, rest)| rest);
    let name = page.split('"').next().unwrap_or_default();
    ErrorCode::by_name(name).unwrap_or(ErrorCode::Unauthenticated)
}

/// A refusal for who we are.
pub(crate) fn unknown(code: ErrorCode, message: impl Into<String>) -> Error {
    Refusal::new(code, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_names_the_error() {
        let challenge = r#"Bearer realm="agent-reach", error="invalid_token", error_uri="http://h:1/errors/superseded", resource_metadata="x""#;
        assert_eq!(named_in(Some(challenge)), ErrorCode::Superseded);
        assert_eq!(named_in(Some("Bearer")), ErrorCode::Unauthenticated);
        assert_eq!(named_in(None), ErrorCode::Unauthenticated);
    }
}
