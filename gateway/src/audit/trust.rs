//! Whose checkpoints are believed. A key that stands beside a signature proves nothing: whoever wrote both has made both. What
//! does is a key that was known before: the gateway's own, those that it had before, or one that was kept elsewhere.
//!
//! In the data folder: `audit-key` signs; `audit-key.1`, `audit-key.old` and the like are what signed before it, kept there
//! by whoever changed it; `audit-key.pub` tells the public keys of all of them, and `audit-pin.json` the last place that was
//! signed. The last two are for everybody to read.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reach_core::audit::Checkpoint;
use reach_schemas::AuditCheckpoint;

use super::signer::{Signer, holds, of_wire, to_wire};

/// The file with what signs, in the data folder.
pub const KEY: &str = "audit-key";
/// The file with the public keys.
const PUBLIC: &str = "audit-key.pub";
/// The file with the last place that was signed.
const PIN: &str = "audit-pin.json";
/// How large a file with public keys may be.
const PUBLIC_MAX: u64 = 64 * 1024;

/// The keys that are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust(BTreeSet<[u8; 32]>);

impl Trust {
    /// These keys, and no other.
    pub fn of(keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Public keys as they are written: in base64, one a line. None: one of them is none, or there is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Option<BTreeSet<[u8; 32]>> =
            lines.map(|line| STANDARD.decode(line).ok().and_then(|key| key.try_into().ok())).collect();
        keys.filter(|keys| !keys.is_empty()).map(Self)
    }

    /// The public keys of a file.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, "holds no public keys: 32 bytes in base64, one a line");
        if fs::metadata(path)?.len() > PUBLIC_MAX {
            return Err(wrong());
        }
        Self::read(&fs::read_to_string(path)?).ok_or_else(wrong)
    }

    /// The keys of a data folder: by what signs, where that may be read, else by what is told of it.
    ///
    /// # Errors
    /// Neither can be read.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        if fs::read(folder.join(KEY)).is_ok() {
            return Ok(Self::of(keys_in(folder)?.iter().map(Signer::key)));
        }
        Self::of_file(&folder.join(PUBLIC))
    }

    /// Whether a checkpoint was signed by one of them.
    #[must_use]
    pub fn believes(&self, checkpoint: &Checkpoint) -> bool {
        self.0.contains(&checkpoint.key) && holds(checkpoint)
    }

    /// The last place of a data folder that was signed. None: none is told, or not by one who is believed.
    #[must_use]
    pub fn pin_of(&self, folder: &Path) -> Option<Checkpoint> {
        let text = fs::read(folder.join(PIN)).ok()?;
        let told: AuditCheckpoint = serde_json::from_slice(&text).ok()?;
        of_wire(&told).ok().filter(|checkpoint| self.believes(checkpoint))
    }
}

/// What signs in a data folder: the key itself, made if there is none, and those that were there before it.
fn keys_in(folder: &Path) -> io::Result<Vec<Signer>> {
    let mut keys = vec![Signer::of_file(&folder.join(KEY))?];
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("audit-key.") && name != PUBLIC && !name.ends_with(".new") {
            keys.push(Signer::of_file(&folder.join(name.as_ref()))?);
        }
    }
    Ok(keys)
}

/// What is told beside the log: who signs it, and the last place that was signed.
#[derive(Debug, Clone)]
pub struct Beside {
    folder: PathBuf,
    /// Who is believed.
    pub trust: Trust,
}

impl Beside {
    /// Opens a data folder: the key that signs, and what is told of it to everybody.
    ///
    /// # Errors
    /// A key cannot be read or made, or what is told of them cannot be written.
    pub fn open(folder: &Path) -> io::Result<(Signer, Self)> {
        let mut keys = keys_in(folder)?;
        let told: String = keys.iter().map(|key| format!("{}\n", STANDARD.encode(key.key()))).collect();
        let trust = Trust::of(keys.iter().map(Signer::key));
        let beside = Self { folder: folder.to_owned(), trust };
        beside.write(PUBLIC, told.as_bytes())?;
        Ok((keys.swap_remove(0), beside))
    }

    /// The last place that was signed.
    #[must_use]
    pub fn pin(&self) -> Option<Checkpoint> {
        self.trust.pin_of(&self.folder)
    }

    /// Tells the last place that was signed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put_pin(&self, checkpoint: &Checkpoint) -> io::Result<()> {
        self.write(PIN, &serde_json::to_vec(&to_wire(checkpoint))?)
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let new = self.folder.join(format!("{name}.new"));
        fs::write(&new, content)?;
        fs::rename(new, self.folder.join(name))
    }
}

#[cfg(test)]
mod tests {
    use reach_core::audit::{Hash, Mark};
    use reach_schemas::Timestamp;

    use super::*;

    fn checkpoint(signer: &Signer) -> Checkpoint {
        signer.sign(Mark { seq: 7, hash: Hash([3; 32]) }, Timestamp::from_ms(5))
    }

    #[test]
    fn a_checkpoint_is_believed_by_a_known_key_only_and_a_key_before_it_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let (first, beside) = Beside::open(folder.path()).unwrap();
        let stranger = Signer::of_seed(&[9; 32]).unwrap();
        assert!(beside.trust.believes(&checkpoint(&first)) && !beside.trust.believes(&checkpoint(&stranger)));
        let claimed = Checkpoint { key: first.key(), ..checkpoint(&stranger) };
        assert!(!beside.trust.believes(&claimed));
        beside.put_pin(&checkpoint(&first)).unwrap();
        assert_eq!(beside.pin(), Some(checkpoint(&first)));
        beside.put_pin(&checkpoint(&stranger)).unwrap();
        assert_eq!(beside.pin(), None);

        fs::rename(folder.path().join(KEY), folder.path().join("audit-key.1")).unwrap();
        let (second, beside) = Beside::open(folder.path()).unwrap();
        assert_ne!(second.key(), first.key());
        assert!(beside.trust.believes(&checkpoint(&first)) && beside.trust.believes(&checkpoint(&second)));
        assert_eq!(Trust::of_file(&folder.path().join(PUBLIC)).unwrap(), beside.trust);
        // Whoever may read what signs goes by that, and not by what others may have written beside it.
        fs::write(folder.path().join(PUBLIC), STANDARD.encode(stranger.key())).unwrap();
        assert_eq!(Trust::of_folder(folder.path()).unwrap(), beside.trust);
        fs::remove_file(folder.path().join("audit-key.1")).unwrap();
        assert!(!Trust::of_folder(folder.path()).unwrap().believes(&checkpoint(&first)));
        assert!(Trust::read("").is_none() && Trust::read("c2hvcnQ=").is_none());
    }
}
