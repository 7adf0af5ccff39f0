//! Tokens whose signatures were found right a moment ago, so that not every call pays for that again. Whether a token still
//! stands is asked with every call all the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use reach_core::identity::Claims;
use ring::digest::{SHA256, digest};

/// How many are remembered. With more, all are found right anew, one by one.
const ENTRIES_MAX: usize = 10_000;

type Digest = [u8; 32];

/// Tokens by their SHA-256: the tokens themselves are not kept.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: Mutex<HashMap<Digest, Arc<Claims>>>,
}

impl Cache {
    /// What a token says; read by `read` where it is not remembered.
    pub(super) fn get(&self, token: &str, read: impl FnOnce() -> Option<Claims>) -> Option<Arc<Claims>> {
        let digest: Digest = digest(&SHA256, token.as_bytes()).as_ref().try_into().ok()?;
        let known = self.entries.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        if known.is_some() {
            return known;
        }
        let claims = Arc::new(read()?);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(digest, Arc::clone(&claims));
        Some(claims)
    }

    /// Forgets all: the keys that found them right are others now.
    pub(super) fn clear(&self) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
