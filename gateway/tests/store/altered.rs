//! Somebody who puts something into the file that runs when rows come, or stands in a table's place: the file is refused, by name;
//! and while a gateway has it open, no row is lost unseen.

use std::path::Path;

use reach_core::audit::Event;
use reach_gateway::store::sqlite::{AuditFile, SqliteStore};
use reach_gateway::store::{AuditLog, Command, Error, Store};
use reach_schemas::AuditKind;
use rusqlite::Connection;

use crate::make::{self, at, directory, tell};

const ROW: &str = "seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER, kind TEXT, actor TEXT, target TEXT, outcome TEXT,
    code TEXT, reason TEXT, task_id BLOB, digest BLOB, count INTEGER, hash BLOB";

fn refusal(n: u64) -> Command {
    Command::Audit(vec![Event::new(at(n), AuditKind::CallRefused, "spy@ns")])
}

fn sql(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

/// Writes an entry into the schema past all that SQLite checks.
fn planted(kind: &str, name: &str, table: &str, made_by: &str) -> String {
    format!(
        "PRAGMA writable_schema = on;
         INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ('{kind}', '{name}', '{table}', 0, '{made_by}');
         PRAGMA writable_schema = off;"
    )
}

#[tokio::test]
async fn whatever_is_not_ours_on_our_tables_is_refused_by_its_name_and_left_as_it_is() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    tell(&make::open(&path), refusal(1)).await;
    let whole = std::fs::read(&path).unwrap();
    let swallows = "CREATE TRIGGER zz BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END";
    let view = "ALTER TABLE audit RENAME TO kept; CREATE VIEW audit AS SELECT * FROM kept;
                CREATE TRIGGER zz INSTEAD OF INSERT ON audit BEGIN SELECT 1; END";
    let cases = [
        (format!("{swallows};"), "the trigger \"zz\" on \"audit\" is not the gateway's"),
        ("CREATE TRIGGER zz AFTER INSERT ON task BEGIN DELETE FROM task; END".to_owned(), "\"zz\" on \"task\""),
        (
            "DROP TRIGGER audit_insert; CREATE TRIGGER audit_insert BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END"
                .to_owned(),
            "the trigger \"audit_insert\" on \"audit\" is not the gateway's any more",
        ),
        (view.to_owned(), "the view \"audit\""),
        ("CREATE INDEX zz ON audit (kind)".to_owned(), "the index \"zz\""),
        ("CREATE VIEW zz AS SELECT * FROM audit".to_owned(), "the view \"zz\""),
        (format!("DROP TABLE audit; CREATE TABLE audit ({ROW}, UNIQUE (kind) ON CONFLICT IGNORE)"), "the table \"audit\""),
        ("DROP TABLE audit_checkpoint".to_owned(), "the table \"audit_checkpoint\" on \"audit_checkpoint\" is missing"),
    ];
    for (alteration, words) in cases {
        std::fs::write(&path, &whole).unwrap();
        sql(&path, &alteration);
        let altered = std::fs::read(&path).unwrap();
        let told = AuditFile::open(&path).unwrap().altered().unwrap().what.join("; ");
        assert!(told.contains(words), "{alteration}: {told}");
        let error = SqliteStore::open(make::config(&path)).unwrap_err();
        assert!(matches!(&error, Error::Altered { what, .. } if what.contains(words)), "{alteration}: {error:?}");
        assert!(std::fs::read(&path).unwrap() == altered, "{alteration}");
    }
    // What calls itself something else is refused by SQLite itself, to whoever opens the file.
    for disguised in [planted("table", "zz", "zz", swallows), planted("trigger", "audit_insert", "audit", swallows)] {
        std::fs::write(&path, &whole).unwrap();
        sql(&path, &disguised);
        assert!(AuditFile::open(&path).and_then(|file| file.altered()).is_err(), "{disguised}");
        assert!(SqliteStore::open(make::config(&path)).is_err(), "{disguised}");
    }
}

#[tokio::test]
async fn a_guard_that_was_taken_out_is_made_again_and_tables_of_others_are_left_alone() {
    let directory = directory();
    let path = directory.path().join("reach.db");
    tell(&make::open(&path), refusal(1)).await;
    assert_eq!(AuditFile::open(&path).unwrap().altered().unwrap().what, [""; 0]);
    sql(&path, "CREATE TABLE \"_copy\" (id TEXT PRIMARY KEY, seq INTEGER); ANALYZE");
    assert_eq!(AuditFile::open(&path).unwrap().altered().unwrap().what, [""; 0]);
    sql(&path, "DROP TRIGGER audit_delete; DROP INDEX done_badly");
    let told = AuditFile::open(&path).unwrap().altered().unwrap();
    assert!(told.is_readable && told.what.len() == 2, "{told:?}");
    let store = make::open(&path);
    assert_eq!(store.audit_altered().await.unwrap().what, [""; 0]);
    let refused = Connection::open(&path).unwrap().execute("DELETE FROM audit", []).unwrap_err().to_string();
    assert!(refused.contains("never taken away"), "{refused}");
}

#[tokio::test]
async fn what_is_put_in_while_the_file_is_open_keeps_no_row_out_unseen() {
    let swallows = "CREATE TRIGGER zz BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END";
    let takes_back = "CREATE TRIGGER zz AFTER INSERT ON audit BEGIN DELETE FROM audit WHERE seq = NEW.seq; END";
    for trigger in [swallows, takes_back] {
        let directory = directory();
        let path = directory.path().join("reach.db");
        let store = make::open(&path);
        tell(&store, refusal(1)).await;
        sql(&path, &format!("DROP TRIGGER audit_delete; {trigger}"));
        tell(&store, refusal(2)).await;
        assert_eq!(store.audit_head().await.unwrap().seq, 2, "{trigger}");
        assert!(store.audit_altered().await.unwrap().what[0].contains("\"zz\""));
    }
    let view =
        "CREATE VIEW audit AS SELECT * FROM kept; CREATE TRIGGER zz INSTEAD OF INSERT ON audit BEGIN SELECT 1; END"
            .to_owned();
    let table = format!("CREATE TABLE audit ({ROW}, UNIQUE (kind) ON CONFLICT IGNORE)");
    for instead in [view, table] {
        let directory = directory();
        let path = directory.path().join("reach.db");
        let store = make::open(&path);
        tell(&store, refusal(1)).await;
        sql(&path, &format!("ALTER TABLE audit RENAME TO kept; {instead}"));
        // The first of its kind may still come in; the next is told to be lost.
        let first = store.apply(vec![refusal(2)]).await;
        let next = store.apply(vec![refusal(3)]).await;
        assert!(next.is_err(), "{instead}: {first:?} {next:?}");
        assert!(!store.audit_altered().await.unwrap().is_readable);
    }
}
