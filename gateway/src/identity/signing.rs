//! The keys that sign agents' tokens, and where they are kept: a file for its owner's eyes only, or this process.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reach_core::identity::{KeyState, Schedule, turn};
use reach_schemas::Timestamp;
use reach_schemas::call::KeyStage;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::jwt::thumbprint;
use crate::webhook::write_secret;

/// Where keys are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyHome {
    /// In this process: what they signed is worth nothing after it.
    #[default]
    Memory,
    /// In a file.
    File(PathBuf),
}

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// Others can read the file.
    #[error("{} can be read by others (mode {mode:o}); whoever has read it can make tokens: chmod 600 it, or delete it", .path.display())]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file cannot be read or written.
    #[error("{} cannot be read or written", .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It holds no keys.
    #[error("{} holds no signing keys", .path.display())]
    Form {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A key.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) kid: String,
    pub(super) pkcs8: Zeroizing<Vec<u8>>,
    pub(super) public: Vec<u8>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.kid)
    }
}

impl Key {
    fn of(pkcs8: Zeroizing<Vec<u8>>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_pkcs8(&pkcs8).ok()?;
        let public = pair.public_key().as_ref().to_vec();
        Some(Self { kid: thumbprint(&URL_SAFE_NO_PAD.encode(&public)), pkcs8, public })
    }

    /// A key that nobody else has.
    fn made() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let pkcs8 = Zeroizing::new(pkcs8.expect("the operating system gives random bytes").as_ref().to_vec());
        Self::of(pkcs8).expect("a key that was just made can be read")
    }
}

/// A key as it is written down.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    state: KeyState,
    /// PKCS #8, in base64url.
    pkcs8: Zeroizing<String>,
}

/// All keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    keys: Vec<Key>,
    states: Vec<KeyState>,
}

impl Keys {
    /// The keys as they are kept. Where none can sign yet, one is made.
    ///
    /// # Errors
    /// Others can read the file, it cannot be read or written, or it holds something else.
    pub(super) fn open(home: &KeyHome, schedule: &Schedule, now: Timestamp) -> Result<Self, KeysError> {
        let mut keys = match home {
            KeyHome::Memory => Self::default(),
            KeyHome::File(path) => Self::read(path)?,
        };
        // Any other turn is for whoever writes it down.
        if keys.active().is_none() {
            keys.turn(home, schedule, now)?;
        }
        Ok(keys)
    }

    fn read(path: &Path) -> Result<Self, KeysError> {
        let io = |source| KeysError::Io { path: path.to_owned(), source };
        let mode = match fs::metadata(path) {
            Ok(metadata) => metadata.permissions().mode() & 0o777,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(io(error)),
        };
        if mode & 0o077 != 0 {
            return Err(KeysError::Exposed { path: path.to_owned(), mode });
        }
        let text = Zeroizing::new(fs::read_to_string(path).map_err(io)?);
        let form = |source| KeysError::Form { path: path.to_owned(), source };
        let written: Vec<Written> = serde_json::from_str(&text).map_err(|error| form(error.into()))?;
        let mut keys = Self::default();
        for Written { state, pkcs8 } in written {
            let bytes = URL_SAFE_NO_PAD.decode(&*pkcs8).map(Zeroizing::new).map_err(|error| form(error.into()))?;
            let key = Key::of(bytes).filter(|key| key.kid == state.kid);
            keys.keys.push(key.ok_or_else(|| form("a key is none, or is not the one that it is called".into()))?);
            keys.states.push(state);
        }
        Ok(keys)
    }

    fn write(&self, path: &Path) -> Result<(), KeysError> {
        let written: Vec<Written> = self.states.iter().filter_map(|state| self.written(state)).collect();
        let text = serde_json::to_string(&written).map(Zeroizing::new);
        let text = text.map_err(|error| KeysError::Form { path: path.to_owned(), source: error.into() })?;
        write_secret(path, &text).map_err(|source| KeysError::Io { path: path.to_owned(), source })
    }

    fn written(&self, state: &KeyState) -> Option<Written> {
        let key = self.get(&state.kid)?;
        Some(Written { state: state.clone(), pkcs8: Zeroizing::new(URL_SAFE_NO_PAD.encode(&*key.pkcs8)) })
    }

    /// Moves keys on in their lives, and keeps them. True: something changed. A key is kept before it signs anything.
    pub(super) fn turn(&mut self, home: &KeyHome, schedule: &Schedule, now: Timestamp) -> Result<bool, KeysError> {
        let mut moved = self.clone();
        let mut is_changed = false;
        loop {
            let turned = turn(&mut moved.states, schedule, now);
            is_changed |= turned.is_changed | turned.wants_key;
            if !turned.wants_key {
                break;
            }
            let key = Key::made();
            moved.states.push(KeyState { kid: key.kid.clone(), stage: KeyStage::Next, since: now });
            moved.keys.push(key);
        }
        if is_changed {
            moved.keys.retain(|key| moved.states.iter().any(|state| state.kid == key.kid));
            if let KeyHome::File(path) = home {
                moved.write(path)?;
            }
            *self = moved;
        }
        Ok(is_changed)
    }

    /// The key of an id.
    pub(super) fn get(&self, kid: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.kid == kid)
    }

    /// The key that signs.
    pub(super) fn active(&self) -> Option<&Key> {
        self.states.iter().find(|state| state.stage == KeyStage::Active).and_then(|state| self.get(&state.kid))
    }

    /// Where all keys are in their lives.
    pub(super) fn states(&self) -> &[KeyState] {
        &self.states
    }

    /// The public keys, as a JWK set (RFC 7517, RFC 8037).
    pub(super) fn published(&self) -> Value {
        let jwk = |state: &KeyState| {
            let x = URL_SAFE_NO_PAD.encode(&self.get(&state.kid)?.public);
            Some(json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": state.kid, "x": x }))
        };
        json!({ "keys": self.states.iter().filter_map(jwk).collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Timestamp {
        Timestamp::from_ms(1_800_000_000_000 + hours * 3_600_000)
    }

    #[test]
    fn keys_are_kept_for_their_owner_only_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let home = KeyHome::File(folder.path().join("signing-keys"));
        let schedule = Schedule::default();
        let made = Keys::open(&home, &schedule, at(0)).unwrap();
        let KeyHome::File(path) = &home else { unreachable!() };
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Keys::open(&home, &schedule, at(1)).unwrap();
        assert_eq!(made.states(), again.states());
        assert_eq!(made.active().unwrap().pkcs8, again.active().unwrap().pkcs8);
        fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Keys::open(&home, &schedule, at(1)).unwrap_err().to_string().contains("mode 640"));
    }

    #[test]
    fn nothing_of_a_key_is_shown_but_its_name() {
        let keys = Keys::open(&KeyHome::Memory, &Schedule::default(), at(0)).unwrap();
        let active = keys.active().unwrap();
        assert_eq!(format!("{active:?}"), format!("Key({})", active.kid));
        assert!(!keys.published().to_string().contains("\"d\""));
    }
}
