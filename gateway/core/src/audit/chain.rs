//! The chain: each row carries the SHA-256 of the row before it and of its own content, so that whoever changes one row
//! has to change all that follow. What goes into the hash is what lies in the columns, byte for byte, each value with its
//! kind and length, so that no two rows run together alike and nothing has to be read before it can be checked.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// What the first row is chained to. Named here, so that a change of what goes into a hash is a change of every hash.
const FORM: &[u8] = b"agent-reach audit 1";
/// How many values a row has.
pub const CELLS: usize = 10;

/// One value of a row, as it is stored. Kinds that nobody writes are here because somebody may have written them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// A number.
    Integer(i64),
    /// A number with a fraction; nobody writes one.
    Real(f64),
    /// A text; UTF-8, unless somebody changed it.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

impl<'a> Cell<'a> {
    /// A text that may be missing.
    #[must_use]
    pub fn of_text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, |text| Self::Text(text.as_bytes()))
    }
}

/// The values of a row: when, kind, actor, target, outcome, code, reason, task, digest, count.
pub type Cells<'a> = [Cell<'a>; CELLS];

/// The hash of a row and of all before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What the first row is chained to.
    #[must_use]
    pub fn origin() -> Self {
        Self(Sha256::digest(FORM).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a hash is 64 hexadecimal digits")]
pub struct NoHash;

impl FromStr for Hash {
    type Err = NoHash;

    fn from_str(text: &str) -> Result<Self, NoHash> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NoHash);
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| NoHash)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| NoHash)?;
        }
        Ok(Self(bytes))
    }
}

/// A place in the log: up to and with this row, which has this hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The row's number. 0: before the first.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

impl Mark {
    /// Before the first row.
    #[must_use]
    pub fn origin() -> Self {
        Self { seq: 0, hash: Hash::origin() }
    }

    /// The place of a row that comes next.
    #[must_use]
    pub fn next(&self, cells: &Cells<'_>) -> Self {
        let seq = self.seq + 1;
        Self { seq, hash: link(&self.hash, seq, cells, &mut Vec::new()) }
    }
}

/// The hash of row `seq` that follows one with the hash `before`. The buffer is for the content, to be used again.
#[must_use]
pub fn link(before: &Hash, seq: u64, cells: &Cells<'_>, buffer: &mut Vec<u8>) -> Hash {
    buffer.clear();
    buffer.extend_from_slice(&before.0);
    buffer.extend_from_slice(&seq.to_be_bytes());
    for cell in cells {
        let (kind, bytes): (u8, &[u8]) = match cell {
            Cell::Null => (b'-', &[]),
            Cell::Integer(number) => (b'i', &number.to_be_bytes()),
            Cell::Real(number) => (b'r', &number.to_bits().to_be_bytes()),
            Cell::Text(text) => (b't', text),
            Cell::Blob(bytes) => (b'b', bytes),
        };
        buffer.push(kind);
        buffer.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        buffer.extend_from_slice(bytes);
    }
    Hash(Sha256::digest(buffer).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(cells: &Cells<'_>) -> Hash {
        link(&Hash::origin(), 1, cells, &mut Vec::new())
    }

    #[test]
    fn no_two_rows_run_together_alike() {
        let base = [Cell::Null; CELLS];
        let with = |index: usize, cell| {
            let mut cells = base;
            cells[index] = cell;
            cells
        };
        // One text after the other is the same with either, the letter of their kind included.
        let mut parted = with(2, Cell::Text(b"at"));
        parted[3] = Cell::Text(b"b");
        let mut parted_otherwise = with(2, Cell::Text(b"a"));
        parted_otherwise[3] = Cell::Text(b"tb");
        let rows = [
            base,
            with(2, Cell::Text(b"")),
            with(2, Cell::Blob(b"")),
            with(3, Cell::Text(b"")),
            with(2, Cell::Text(b"0")),
            with(2, Cell::Integer(0)),
            with(2, Cell::Real(0.0)),
            parted,
            parted_otherwise,
        ];
        let hashes: std::collections::BTreeSet<Hash> = rows.iter().map(hash).collect();
        assert_eq!(hashes.len(), rows.len());
    }

    #[test]
    fn a_hash_hangs_on_the_row_before_and_on_the_number() {
        let cells = [Cell::Integer(7); CELLS];
        let mut buffer = Vec::new();
        let first = link(&Hash::origin(), 1, &cells, &mut buffer);
        assert_ne!(first, link(&first, 1, &cells, &mut buffer));
        assert_ne!(first, link(&Hash::origin(), 2, &cells, &mut buffer));
        assert_eq!(Mark::origin().next(&cells), Mark { seq: 1, hash: first });
    }

    /// The form must never change: logs that were written long ago are checked by it. The hash was reckoned apart, in Python.
    #[test]
    fn the_form_is_what_it_was() {
        let cells = [
            Cell::Integer(1_700_000_000_123),
            Cell::Text(b"agent.registered"),
            Cell::Text(b"operator"),
            Cell::Text(b"a@ns"),
            Cell::Text(b"OK"),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Blob(&[7; 32]),
            Cell::Integer(1),
        ];
        assert_eq!(hash(&cells).to_string(), "028e93240aded0200bdcba4239a1d56a50ac33cdf9946fcb4171cf7c218f19ce");
    }

    #[test]
    fn a_hash_is_written_and_read_back() {
        let hash = Hash::origin();
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for wrong in ["", "zz", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Hash>(), Err(NoHash), "{wrong}");
        }
    }
}
