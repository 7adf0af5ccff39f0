//! What is known of callers, in memory: the store's rows, and the keys.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use reach_core::identity::{Book, Claims, Confirmation, KeyState, Principal, Rejection};
use reach_schemas::call::AgentToken;
use reach_schemas::{AgentId, Namespace, Secret, Timestamp};
use serde_json::Value;
use tokio::sync::watch;

use super::cache::Cache;
use super::pass::{AgentPass, Token};
use super::signing::{KeyHome, Keys, KeysError};
use super::{Mode, Settings, is_equal, jwt, secrets};
use crate::store::IdentityRow;

/// What every agent's token is for, at most.
const SCOPE: &str = "agent";

/// What is known of callers.
pub struct Identity {
    pub(super) settings: Settings,
    audience: String,
    keys: RwLock<Keys>,
    book: RwLock<Book>,
    pub(super) cache: Cache,
    changes: watch::Sender<u64>,
    /// Changes are made one after another: each is decided by what the one before it has left.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

impl Identity {
    /// Nobody is known yet, and there are no keys: see [`Identity::open_keys`] and [`Identity::put`].
    pub(crate) fn new(settings: Settings, cluster: &str) -> Self {
        let audience = settings.audience.as_ref().or(settings.public_url.as_ref());
        Self {
            audience: audience.cloned().unwrap_or_else(|| format!("urn:agent-reach:{cluster}")),
            settings,
            keys: RwLock::default(),
            book: RwLock::default(),
            cache: Cache::default(),
            changes: watch::Sender::new(0),
            changing: tokio::sync::Mutex::default(),
        }
    }

    /// Whether callers are asked who they are.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// Where the keys are kept.
    #[must_use]
    pub const fn key_home(&self) -> &KeyHome {
        &self.settings.keys
    }

    /// What may be set.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// For whom agents' tokens are, and by whom.
    #[must_use]
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// By which name the gateway is to be called, if one was set.
    #[must_use]
    pub fn named(&self) -> Option<&str> {
        self.settings.audience.as_deref().or(self.settings.public_url.as_deref())
    }

    /// Reads the keys, or makes them.
    ///
    /// # Errors
    /// They cannot be read, or others can.
    pub fn open_keys(&self, now: Timestamp) -> Result<(), KeysError> {
        let keys = Keys::open(&self.settings.keys, &self.settings.schedule, now)?;
        *self.keys_mut() = keys;
        Ok(())
    }

    /// Moves the keys on in their lives. True: something changed.
    ///
    /// # Errors
    /// They cannot be kept. Then they are as they were.
    pub fn turn_keys(&self, now: Timestamp) -> Result<bool, KeysError> {
        let is_changed = self.keys_mut().turn(&self.settings.keys, &self.settings.schedule, now)?;
        if is_changed {
            self.cache.clear();
        }
        Ok(is_changed)
    }

    /// The id of the key that signs.
    #[must_use]
    pub fn active_key(&self) -> Option<String> {
        self.keys().active().map(|key| key.kid.clone())
    }

    /// Where all keys are in their lives.
    #[must_use]
    pub fn key_states(&self) -> Vec<KeyState> {
        self.keys().states().to_vec()
    }

    /// The public keys, as a JWK set.
    #[must_use]
    pub fn jwks(&self) -> Value {
        self.keys().published()
    }

    pub(super) fn keys(&self) -> RwLockReadGuard<'_, Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn keys_mut(&self) -> RwLockWriteGuard<'_, Keys> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn book_mut(&self) -> RwLockWriteGuard<'_, Book> {
        self.book.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has something be known that is stored. Whoever waits for a pass to end looks again.
    pub(crate) fn put(&self, row: IdentityRow) {
        match row {
            IdentityRow::Agent(principal) => {
                self.book_mut().principals.insert(principal.agent_id.clone(), principal);
            }
            IdentityRow::Operator(row) => {
                self.book_mut().operators.insert(row.name.clone(), row);
            }
            IdentityRow::Join(join) => {
                self.book_mut().joins.insert(join.hash.clone(), join);
            }
        }
        self.changes.send_modify(|change| *change += 1);
    }

    /// Has something be forgotten that is stored no more.
    pub(crate) fn remove(&self, row: &IdentityRow) {
        match row {
            IdentityRow::Agent(principal) => drop(self.book_mut().principals.remove(&principal.agent_id)),
            IdentityRow::Operator(row) => drop(self.book_mut().operators.remove(&row.name)),
            IdentityRow::Join(join) => drop(self.book_mut().joins.remove(&join.hash)),
        }
        self.changes.send_modify(|change| *change += 1);
    }

    /// Notes that a token was used. True: that is new, and to be stored.
    pub(super) fn note_used(&self, agent: &AgentId, claims: &Claims, now: Timestamp) -> bool {
        let mut book = self.book_mut();
        let used = book.principals.get(agent).and_then(|principal| principal.used(claims, now));
        used.is_some_and(|principal| book.principals.insert(agent.clone(), principal).is_some())
    }

    /// A number that grows whenever somebody is known otherwise than before.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Whether a text is the secret of a namespace.
    pub(crate) fn is_secret_of(&self, namespace: &Namespace, text: &str) -> bool {
        self.settings.namespace_secrets.get(namespace).is_some_and(|secret| is_equal(secret.reveal(), text))
    }

    /// Signs a token for an agent. None: there is no key that signs, which is a fault of ours.
    pub(crate) fn sign(&self, principal: &Principal, rot: u64, now: Timestamp) -> Option<(AgentToken, Claims)> {
        let issued = now.as_ms() / 1000;
        let claims = Claims {
            iss: self.audience.clone(),
            sub: Claims::subject(&principal.agent_id),
            aud: self.audience.clone(),
            client_id: principal.agent_id.to_string(),
            iat: issued,
            nbf: issued,
            exp: issued + self.settings.lifetimes.token.as_ms() / 1000,
            jti: secrets::id(),
            scope: SCOPE.to_owned(),
            generation: principal.generation,
            rot,
            cnf: Confirmation { jkt: principal.thumbprint.clone() },
        };
        let keys = self.keys();
        let text = jwt::sign(&claims, keys.active()?).ok()?;
        let token = AgentToken {
            agent_id: principal.agent_id.clone(),
            token: Secret::from(text),
            generation: principal.generation,
            expires_at: claims.expires_at(),
            renew_at: claims.renew_at(),
        };
        Some((token, claims))
    }

    /// The agent's next token, if it is time for it. On a connection that lasts, it is the one that this goes on under.
    ///
    /// # Errors
    /// What the agent has shown holds no more: that is looked at and the token is signed while the book is held, so that
    /// nothing is signed once a revocation or another copy is in it.
    pub(crate) fn next_token(&self, pass: &AgentPass, now: Timestamp) -> Result<Option<AgentToken>, Rejection> {
        let book = self.book();
        let principal = self.standing(&book, pass, now)?;
        let token = pass.token();
        if now < token.renew_at {
            return Ok(None);
        }
        // A pass that stands is of the generation that its agent has.
        let Some((next, claims)) = self.sign(principal, token.rot + 1, now) else { return Ok(None) };
        pass.renew(Token::of(&claims));
        Ok(Some(next))
    }
}
