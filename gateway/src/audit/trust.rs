//! Whose checkpoints are believed. A key that stands beside a signature proves nothing: whoever wrote both has made both. What
//! does is a key that was known before: the gateway's own, those that it had before, or one that was kept elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reach_core::audit::Checkpoint;

use super::signer::{holds, invalid};

/// How large a file with public keys may be.
const PUBLIC_MAX: u64 = 64 * 1024;
/// The line of such a file that says that the keys have signed something. To whoever reads keys it is a comment.
const HAVE_SIGNED: &str = "# These have signed; audit-pin.json tells the last place.";

/// The keys that are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    keys: BTreeSet<[u8; 32]>,
    have_signed: bool,
}

impl Trust {
    /// These keys, and no other. Of what they have signed nothing is said.
    pub fn of(keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        Self { keys: keys.into_iter().collect(), have_signed: false }
    }

    /// Public keys as they are written: in base64, one a line. None: one of them is none, or there is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let lines = text.lines().map(str::trim);
        let keys = lines.clone().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Option<BTreeSet<[u8; 32]>> =
            keys.map(|line| STANDARD.decode(line).ok().and_then(|key| key.try_into().ok())).collect();
        let have_signed = lines.clone().any(|line| line == HAVE_SIGNED);
        keys.filter(|keys| !keys.is_empty()).map(|keys| Self { keys, have_signed })
    }

    /// The public keys of a file.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let wrong = || invalid("holds no public keys: 32 bytes in base64, one a line");
        if fs::metadata(path)?.len() > PUBLIC_MAX {
            return Err(wrong());
        }
        Self::read(&fs::read_to_string(path)?).ok_or_else(wrong)
    }

    /// The same as it is written.
    #[must_use]
    pub fn text(&self, have_signed: bool) -> String {
        let keys: String = self.keys.iter().map(|key| format!("{}\n", STANDARD.encode(key))).collect();
        if have_signed { format!("{HAVE_SIGNED}\n{keys}") } else { keys }
    }

    /// Whether it is said of them that they have signed something.
    #[must_use]
    pub const fn have_signed(&self) -> bool {
        self.have_signed
    }

    /// Whether this key is one of them.
    #[must_use]
    pub fn has(&self, key: &[u8; 32]) -> bool {
        self.keys.contains(key)
    }

    /// Whether a checkpoint was signed by one of them.
    #[must_use]
    pub fn believes(&self, checkpoint: &Checkpoint) -> bool {
        self.has(&checkpoint.key) && holds(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_what_is_no_key_is_none() {
        let trust = Trust::of([[3; 32], [4; 32]]);
        let read = |have_signed| Trust::read(&trust.text(have_signed)).unwrap();
        assert_eq!(read(false), trust);
        assert_eq!((read(true).have_signed(), read(true).keys), (true, trust.keys.clone()));
        assert!(trust.has(&[3; 32]) && !trust.has(&[5; 32]));
        assert!(Trust::read("").is_none() && Trust::read("c2hvcnQ=").is_none());
    }
}
