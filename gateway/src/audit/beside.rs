//! What is told beside the log, in the data folder: `audit-key` signs, and has the last place that it signed; `audit-key.1`,
//! `audit-key.old` and the like are what signed before it, kept there by whoever changed it; `audit-key.pub` tells the public
//! keys of all of them, and `audit-pin.json` the last place that was signed. The last two are for everybody to read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reach_core::audit::{Checkpoint, Finding, Flaw, Mark};
use reach_schemas::AuditCheckpoint;

use super::key_file::{KEY, KeyFile};
use super::signer::{Signer, of_wire, to_wire};
use super::trust::Trust;
use super::verdict::Pins;
use crate::webhook::write_whole;

/// The file with the public keys.
const PUBLIC: &str = "audit-key.pub";
/// The file with the last place that was signed.
const PIN: &str = "audit-pin.json";
/// Who may read what is told to everybody.
const FOR_ALL: u32 = 0o644;

/// Why the gateway does not sign its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The log does not go on from the last place that was signed.
    #[error(
        "the audit log is not as it was signed last: it was signed up to row {}, which is not there or is another", .0.seq
    )]
    Elsewhere(Mark),
    /// There are rows, and nothing tells where they were signed last.
    #[error("nothing tells where the audit log was signed last: its key does not know it")]
    Untold,
    /// The file with what signs was moved or changed while the gateway ran.
    #[error("the file audit-key is not the one that this gateway left there")]
    KeyMoved,
}

/// What is told beside the log of a gateway that runs.
#[derive(Debug)]
pub struct Beside {
    folder: PathBuf,
    /// Who is believed.
    pub trust: Trust,
    key: Mutex<KeyFile>,
    /// The last place that was signed by a key before this one.
    before: Option<Mark>,
}

impl Beside {
    /// Opens a data folder: the key that signs, made if there is none, and what is told of it to everybody. `has_rows`: whether
    /// there is a log already, which a key that is made now does not know.
    ///
    /// # Errors
    /// A key cannot be read or made, or what is told of them cannot be written.
    pub fn open(folder: &Path, has_rows: bool) -> io::Result<(Signer, Self)> {
        let others = other_keys(folder)?;
        let before = last(&others);
        let at_first = (!has_rows).then(Mark::origin);
        let key = match KeyFile::read(&folder.join(KEY))? {
            None => KeyFile::make(&folder.join(KEY), before.or(at_first))?,
            Some(mut key) => {
                // A gateway that was killed before it wrote anything, or one of the form before.
                if let (None, None, Some(first)) = (key.signed(), before, at_first) {
                    key.put(first)?;
                }
                key
            }
        };
        let trust = Trust::of(others.iter().chain([&key]).map(KeyFile::key));
        let signer = key.signer()?;
        let beside = Self { folder: folder.to_owned(), trust, key: Mutex::new(key), before };
        let have_signed = beside.signed().is_some_and(|mark| mark.seq > 0) || beside.pin().is_some();
        beside.write(PUBLIC, beside.trust.text(have_signed).as_bytes())?;
        Ok((signer, beside))
    }

    fn key(&self) -> MutexGuard<'_, KeyFile> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last place that was signed, by what only the gateway can have written. None: it is not told there.
    #[must_use]
    pub fn signed(&self) -> Option<Mark> {
        self.key().signed().or(self.before)
    }

    /// The last place that was signed, as it is told to everybody. None: none is told, or not by one who is believed.
    #[must_use]
    pub fn pin(&self) -> Option<Checkpoint> {
        pin_in(&self.folder, &self.trust)
    }

    /// Whether the file with what signs is as the gateway left it. A gateway whose file was taken away while it ran must not put
    /// another in its place: whoever has the first could put that back, and with it what was signed last then.
    #[must_use]
    pub fn is_key_as_left(&self) -> bool {
        self.key().is_as_left()
    }

    /// Tells the last place that was signed; an earlier one than is told only if it `is_accepted` in the place of that. In this
    /// order: a gateway that is killed in between must find nothing that was signed and is not told, else it would doubt itself.
    ///
    /// # Errors
    /// It cannot be written, or the file with what signs is not as it was left.
    pub fn put(&self, checkpoint: &Checkpoint, is_accepted: bool) -> io::Result<()> {
        let mut key = self.key();
        if !is_accepted && !key.is_as_left() {
            return Err(io::Error::other(Doubt::KeyMoved));
        }
        let before = key.signed().map_or(0, |mark| mark.seq);
        if checkpoint.mark.seq < before && !is_accepted {
            return Ok(());
        }
        self.write(PIN, &serde_json::to_vec(&to_wire(checkpoint))?)?;
        key.put(checkpoint.mark)?;
        if before == 0 {
            self.write(PUBLIC, self.trust.text(true).as_bytes())?;
        }
        Ok(())
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        write_whole(&self.folder.join(name), content, FOR_ALL)
    }
}

/// What a data folder tells of its log to whoever checks that without a gateway.
#[derive(Debug)]
pub struct Told {
    /// Who is believed.
    pub trust: Trust,
    signed: Option<Mark>,
    pin: Option<Checkpoint>,
    /// The key is there, and does not know where it signed last.
    is_untold: bool,
    /// It is told that something was signed, and not what.
    is_pin_missing: bool,
}

impl Told {
    /// Reads it. With `kept`, keys that were kept elsewhere, nobody else is believed; without, those of the folder are: by what
    /// signs, where that may be read, else by what is told of it.
    ///
    /// # Errors
    /// The keys cannot be read.
    pub fn of_folder(folder: &Path, kept: Option<Trust>) -> io::Result<Self> {
        let own = if fs::read(folder.join(KEY)).is_ok() { KeyFile::read(&folder.join(KEY))? } else { None };
        let others = if own.is_some() { other_keys(folder)? } else { Vec::new() };
        let public = Trust::of_file(&folder.join(PUBLIC));
        let have_signed = public.as_ref().is_ok_and(Trust::have_signed);
        let trust = match (kept, &own) {
            (Some(kept), _) => kept,
            (None, Some(own)) => Trust::of(others.iter().chain([own]).map(KeyFile::key)),
            (None, None) => public?,
        };
        let own = own.filter(|own| trust.has(&own.key()));
        let signed = own.as_ref().and_then(|own| own.signed().or_else(|| last(&others)));
        let pin = pin_in(folder, &trust);
        let is_pin_missing = own.is_none() && have_signed && pin.is_none();
        Ok(Self { is_untold: own.is_some() && signed.is_none(), signed, pin, is_pin_missing, trust })
    }

    /// What is pinned by it.
    pub fn pin(&self, pins: &mut Pins) {
        self.pin.iter().for_each(|pin| pins.keep(pin));
        self.signed.iter().for_each(|mark| pins.keep_mark(mark));
    }

    /// Whether it should be told where a log up to `head` was signed last, and is not. `signed`: the last row that is pinned.
    #[must_use]
    pub fn unvouched(&self, head: u64, signed: u64) -> Option<Finding> {
        let is_of_nobody = head > 0 && signed == 0 && (self.is_untold || self.trust.have_signed());
        (self.is_pin_missing || is_of_nobody).then(|| unvouched(head))
    }
}

/// That nothing tells where a log up to `head` was signed last.
#[must_use]
pub const fn unvouched(head: u64) -> Finding {
    Finding { seq: 1, flaw: Flaw::Unvouched, other: Some(head) }
}

fn pin_in(folder: &Path, trust: &Trust) -> Option<Checkpoint> {
    let text = fs::read(folder.join(PIN)).ok()?;
    let told: AuditCheckpoint = serde_json::from_slice(&text).ok()?;
    of_wire(&told).ok().filter(|checkpoint| trust.believes(checkpoint))
}

/// What signed in a data folder before the key that does.
fn other_keys(folder: &Path) -> io::Result<Vec<KeyFile>> {
    let mut keys = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("audit-key.") && name != PUBLIC && !name.ends_with(".new") {
            keys.extend(KeyFile::read(&folder.join(name.as_ref()))?);
        }
    }
    Ok(keys)
}

/// The last place that one of them signed.
fn last(keys: &[KeyFile]) -> Option<Mark> {
    keys.iter().filter_map(KeyFile::signed).max_by_key(|mark| mark.seq)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use reach_core::audit::Hash;
    use reach_schemas::Timestamp;

    use super::*;

    fn checkpoint(signer: &Signer, seq: u64) -> Checkpoint {
        signer.sign(Mark { seq, hash: Hash([3; 32]) }, Timestamp::from_ms(5))
    }

    fn told(folder: &Path) -> Told {
        Told::of_folder(folder, None).unwrap()
    }

    #[test]
    fn a_checkpoint_is_believed_by_a_known_key_only_and_a_key_before_it_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let (first, beside) = Beside::open(folder.path(), false).unwrap();
        let stranger = Signer::of_seed(&[9; 32]).unwrap();
        assert!(beside.trust.believes(&checkpoint(&first, 7)) && !beside.trust.believes(&checkpoint(&stranger, 7)));
        let claimed = Checkpoint { key: first.key(), ..checkpoint(&stranger, 7) };
        assert!(!beside.trust.believes(&claimed));
        beside.put(&checkpoint(&first, 7), false).unwrap();
        assert_eq!(beside.pin(), Some(checkpoint(&first, 7)));
        beside.put(&checkpoint(&stranger, 8), false).unwrap();
        assert_eq!(beside.pin(), None);

        fs::rename(folder.path().join(KEY), folder.path().join("audit-key.1")).unwrap();
        let (second, beside) = Beside::open(folder.path(), true).unwrap();
        assert_ne!(second.key(), first.key());
        assert!(beside.trust.believes(&checkpoint(&first, 7)) && beside.trust.believes(&checkpoint(&second, 7)));
        // What the key before signed last is known to the one after it.
        assert_eq!(beside.signed().map(|mark| mark.seq), Some(8));
        assert!(Trust::of_file(&folder.path().join(PUBLIC)).unwrap().have_signed());
        // Whoever may read what signs goes by that, and not by what others may have written beside it.
        fs::write(folder.path().join(PUBLIC), STANDARD.encode(stranger.key())).unwrap();
        assert_eq!(told(folder.path()).trust, beside.trust);
        fs::remove_file(folder.path().join("audit-key.1")).unwrap();
        assert!(!told(folder.path()).trust.believes(&checkpoint(&first, 7)));
    }

    #[test]
    fn where_it_was_signed_last_goes_forward_only_unless_an_earlier_place_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let (signer, beside) = Beside::open(folder.path(), false).unwrap();
        let seqs = |beside: &Beside| (beside.signed().map(|mark| mark.seq), beside.pin().map(|pin| pin.mark.seq));
        assert_eq!(seqs(&beside), (Some(0), None));
        for (seq, is_accepted, stands) in [(5, false, 5), (9, false, 9), (7, false, 9), (7, true, 7), (8, false, 8)] {
            beside.put(&checkpoint(&signer, seq), is_accepted).unwrap();
            assert_eq!(seqs(&beside), (Some(stands), Some(stands)));
        }
        drop(beside);
        let (_, again) = Beside::open(folder.path(), true).unwrap();
        assert_eq!(seqs(&again), (Some(8), Some(8)));
        assert!(again.is_key_as_left());
        fs::rename(folder.path().join(KEY), folder.path().join("elsewhere")).unwrap();
        assert!(!again.is_key_as_left());
    }

    #[test]
    fn a_key_that_does_not_know_the_log_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let (_, beside) = Beside::open(folder.path(), true).unwrap();
        assert_eq!(beside.signed(), None);
        assert_eq!(told(folder.path()).unvouched(9, 0), Some(unvouched(9)));
        // What is signed by it in the log itself, as a gateway of before left it, tells as well; and where nothing is written
        // there is nothing to know.
        assert_eq!((told(folder.path()).unvouched(9, 4), told(folder.path()).unvouched(0, 0)), (None, None));
        drop(beside);
        let (_, at_first) = Beside::open(folder.path(), false).unwrap();
        assert_eq!(at_first.signed(), Some(Mark::origin()));
    }

    #[test]
    fn who_may_not_read_the_key_is_told_that_something_was_signed() {
        let folder = tempfile::tempdir().unwrap();
        let (signer, beside) = Beside::open(folder.path(), false).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let copied = |name: &str| fs::copy(folder.path().join(name), elsewhere.path().join(name)).map(drop);
        copied(PUBLIC).unwrap();
        assert_eq!(told(elsewhere.path()).unvouched(9, 0), None);
        beside.put(&checkpoint(&signer, 7), false).unwrap();
        copied(PUBLIC).unwrap();
        assert_eq!(told(elsewhere.path()).unvouched(9, 4), Some(unvouched(9)));
        copied(PIN).unwrap();
        assert_eq!(told(elsewhere.path()).unvouched(9, 7), None);
        // With keys that were kept, the log may be alone; but not without a word of theirs.
        let kept = || Trust::of_file(&folder.path().join(PUBLIC)).ok();
        let alone = tempfile::tempdir().unwrap();
        let by_kept = Told::of_folder(alone.path(), kept()).unwrap();
        assert_eq!((by_kept.unvouched(9, 7), by_kept.unvouched(9, 0)), (None, Some(unvouched(9))));
    }
}
