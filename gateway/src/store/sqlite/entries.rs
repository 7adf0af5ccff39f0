//! What stands in a file's schema, against what the layouts make. Whoever can write the file can put in a trigger that takes
//! rows away as they come, an index or a view that hides them, or a table that swallows them; no row and no hash is wrong then.
//! Every entry has to be one of ours, to the letter. A table that is none of ours is left alone: it does nothing to ours, and tools
//! that copy the file as it grows keep one.

use std::path::Path;

use rusqlite::{Connection, Row};

use super::failure::failure;
use super::schema::LAYOUTS;
use crate::store::{Altered, Error};

/// An entry of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    kind: String,
    name: String,
    table: String,
    /// How it was made. Nothing: by SQLite itself, for a table.
    sql: String,
}

/// What is not as it should be.
#[derive(Debug)]
struct Differences {
    /// Entries of ours that are not there.
    missing: Vec<Entry>,
    /// Entries under a name of ours that are otherwise.
    changed: Vec<Entry>,
    /// Entries that are none of ours.
    foreign: Vec<Entry>,
}

impl Entry {
    fn of_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        // Somebody may have written anything there.
        let text = |index| -> rusqlite::Result<String> {
            Ok(row
                .get_ref(index)?
                .as_bytes_or_null()
                .ok()
                .flatten()
                .map(String::from_utf8_lossy)
                .unwrap_or_default()
                .into())
        };
        let words = |sql: String| sql.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self { kind: text(0)?, name: text(1)?, table: text(2)?, sql: words(text(3)?) })
    }

    fn is_namesake(&self, other: &Self) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
    }

    /// Whether it is a table and nothing else: SQLite goes by what stands in `sql`, whatever is said of it beside that.
    fn is_plain_table(&self) -> bool {
        let said = self.sql.strip_prefix("CREATE TABLE ").unwrap_or_default();
        let name = said.strip_prefix(['"', '[', '`', '\'']).unwrap_or(said);
        let rest = name.strip_prefix(&self.name);
        let is_named =
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$'));
        self.kind == "table" && is_named
    }

    /// Whether it is an index that SQLite itself keeps for a table that is none of ours.
    fn is_of_sqlite(&self, ours: &[Self]) -> bool {
        let is_ours = ours.iter().any(|entry| entry.name.eq_ignore_ascii_case(&self.table));
        self.kind == "index" && self.sql.is_empty() && self.name.starts_with("sqlite_autoindex_") && !is_ours
    }

    /// Whether it can be made again over tables that stand.
    fn is_over_a_table(&self) -> bool {
        ["trigger", "index"].contains(&self.kind.as_str()) && !self.sql.is_empty()
    }

    fn said(&self) -> String {
        format!("the {} {:?} on {:?}", self.kind, self.name, self.table)
    }
}

fn entries(file: &Connection) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = file.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?;
    let rows = statement.query_map([], Entry::of_row)?;
    rows.collect()
}

fn differences(file: &Connection, layout: usize) -> rusqlite::Result<Differences> {
    let ours = Connection::open_in_memory()?;
    LAYOUTS.iter().take(layout).try_for_each(|sql| ours.execute_batch(sql))?;
    let mut missing = entries(&ours)?;
    let all = missing.clone();
    let (mut changed, mut foreign) = (Vec::new(), Vec::new());
    for entry in entries(file)? {
        if let Some(place) = missing.iter().position(|ours| *ours == entry) {
            missing.swap_remove(place);
        } else if all.iter().any(|ours| ours.is_namesake(&entry)) {
            missing.retain(|ours| !ours.is_namesake(&entry));
            changed.push(entry);
        } else if !entry.is_plain_table() && !entry.is_of_sqlite(&all) {
            foreign.push(entry);
        }
    }
    Ok(Differences { missing, changed, foreign })
}

impl Differences {
    fn told(&self) -> Altered {
        let missing = self.missing.iter().map(|entry| format!("{} is missing", entry.said()));
        let changed = self.changed.iter().map(|entry| format!("{} is not the gateway's any more", entry.said()));
        let foreign = self.foreign.iter().map(|entry| format!("{} is not the gateway's", entry.said()));
        let tables = self.missing.iter().chain(&self.changed);
        Altered {
            is_readable: !tables.clone().any(|entry| !["trigger", "index"].contains(&entry.kind.as_str())),
            what: foreign.chain(changed).chain(missing).collect(),
        }
    }
}

/// What is not laid out as the layouts up to this one do it.
pub(super) fn altered(file: &Connection, layout: usize) -> rusqlite::Result<Altered> {
    differences(file, layout).map(|found| found.told())
}

/// Refuses a file with anything that is not ours on our tables. A trigger or an index of ours that is not there is made again.
pub(super) fn hold(file: &Connection, path: &Path, layout: usize) -> Result<(), Error> {
    let wrong = |error| failure(path, error);
    let mut found = differences(file, layout).map_err(wrong)?;
    let (made_again, missing): (Vec<_>, Vec<_>) = found.missing.into_iter().partition(Entry::is_over_a_table);
    found.missing = missing;
    let told = found.told();
    if !told.what.is_empty() {
        return Err(Error::Altered { path: path.to_owned(), what: told.what.join("; ") });
    }
    for entry in made_again {
        file.execute_batch(&entry.sql).map_err(wrong)?;
        tracing::error!(file = %path.display(), "{} was missing, and was made again: somebody took it out", entry.said());
    }
    Ok(())
}
