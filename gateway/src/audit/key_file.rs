//! The file with what signs: the key, and beneath it the last place that it signed. Both stand in one file because whoever
//! may write the folder and not read the file can put neither in another's place: without the key he cannot make the file anew,
//! and he cannot take the place out of it.
//!
//! A file of the form before has the key alone. Then it is told elsewhere where the log was signed last, or by nothing.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reach_core::audit::Mark;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::signer::{SEED, Signer, invalid};
use crate::webhook::write_secret;

/// The file with what signs, in the data folder.
pub const KEY: &str = "audit-key";
/// What stands before the last place that was signed.
const SIGNED: &str = "signed";

/// What such a file holds.
pub(super) struct KeyFile {
    path: PathBuf,
    /// The private bytes, in base64.
    secret: Zeroizing<String>,
    key: [u8; 32],
    signed: Option<Mark>,
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile").field("path", &self.path).field("signed", &self.signed).finish_non_exhaustive()
    }
}

impl KeyFile {
    /// Reads it. None: it is not there.
    ///
    /// # Errors
    /// It cannot be read, holds something else, or others than its owner may read it.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
            return Err(invalid("may be read by others than its owner: chmod 600 it, if they have not"));
        }
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let secret = Zeroizing::new(lines.next().unwrap_or_default().to_owned());
        let signed = lines.next().map(place).transpose()?;
        if lines.next().is_some() {
            return Err(invalid("holds more than a key and the last place that it signed"));
        }
        Self::of(path, secret, signed).map(Some)
    }

    /// Makes it, with a new key.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn make(path: &Path, signed: Option<Mark>) -> io::Result<Self> {
        let mut seed = Zeroizing::new([0; SEED]);
        SystemRandom::new().fill(&mut *seed).map_err(|_| io::Error::other("the system gives no random bytes"))?;
        let made = Self::of(path, Zeroizing::new(STANDARD.encode(*seed)), signed)?;
        write_secret(path, &made.text())?;
        Ok(made)
    }

    fn of(path: &Path, secret: Zeroizing<String>, signed: Option<Mark>) -> io::Result<Self> {
        let key = signer_of(&secret)?.key();
        Ok(Self { path: path.to_owned(), secret, key, signed })
    }

    fn text(&self) -> Zeroizing<String> {
        let signed = self.signed.map(|mark| format!("{SIGNED} {} {}\n", mark.seq, mark.hash)).unwrap_or_default();
        Zeroizing::new(format!("{}\n{signed}", *self.secret))
    }

    /// What signs.
    ///
    /// # Errors
    /// None: it was one when the file was read.
    pub(super) fn signer(&self) -> io::Result<Signer> {
        signer_of(&self.secret)
    }

    /// The public key.
    pub(super) const fn key(&self) -> [u8; 32] {
        self.key
    }

    /// The last place that was signed. Before the first: [`Mark::origin`]. None: the file is of the form before.
    pub(super) const fn signed(&self) -> Option<Mark> {
        self.signed
    }

    /// Whether the file is as it was read or written here last.
    pub(super) fn is_as_left(&self) -> bool {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        fs::read_to_string(&self.path).map(Zeroizing::new).is_ok_and(|text| words(&text) == words(&self.text()))
    }

    /// Puts down the last place that was signed.
    ///
    /// # Errors
    /// It cannot be written; then the last one stands.
    pub(super) fn put(&mut self, signed: Mark) -> io::Result<()> {
        let before = self.signed.replace(signed);
        let written = write_secret(&self.path, &self.text());
        if written.is_err() {
            self.signed = before;
        }
        written
    }
}

fn signer_of(secret: &str) -> io::Result<Signer> {
    let seed = STANDARD.decode(secret).map(Zeroizing::new);
    Signer::of_seed(&seed.map_err(|_| invalid("holds no key: it is not base64"))?)
}

/// The second line of the file.
fn place(line: &str) -> io::Result<Mark> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mark = match words[..] {
        [SIGNED, seq, hash] => seq.parse().ok().zip(hash.parse().ok()).map(|(seq, hash)| Mark { seq, hash }),
        _ => None,
    };
    mark.ok_or_else(|| invalid(format!("holds no key: beneath it is not `{SIGNED}`, a number and a hash")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_for_its_owner_only_and_refused_if_others_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY);
        assert!(KeyFile::read(&path).unwrap().is_none());
        let made = KeyFile::make(&path, None).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(KeyFile::read(&path).unwrap().unwrap().key(), made.key());
        let secret = fs::read_to_string(&path).unwrap();
        assert!(!format!("{made:?} {:?}", made.signer().unwrap()).contains(secret.trim()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for wrong in ["", "c2hvcnQ=", "not base64", &format!("{}\nsigned 7", secret.trim())] {
            fs::write(&path, wrong).unwrap();
            assert!(KeyFile::read(&path).unwrap_err().to_string().contains("holds no key"), "{wrong}");
        }
    }

    #[test]
    fn the_last_place_stands_beneath_the_key_and_the_form_before_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY);
        let mut file = KeyFile::make(&path, Some(Mark::origin())).unwrap();
        let mark = Mark { seq: 7, hash: reach_core::audit::Hash([3; 32]) };
        file.put(mark).unwrap();
        let read = KeyFile::read(&path).unwrap().unwrap();
        assert_eq!((read.key(), read.signed(), read.is_as_left()), (file.key(), Some(mark), true));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let secret = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
        fs::write(&path, &secret).unwrap();
        let before = KeyFile::read(&path).unwrap().unwrap();
        assert_eq!((before.key(), before.signed(), before.is_as_left()), (file.key(), None, true));
        assert!(!file.is_as_left());
        fs::remove_file(&path).unwrap();
        assert!(!before.is_as_left());
    }
}
