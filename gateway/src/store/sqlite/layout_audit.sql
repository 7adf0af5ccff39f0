-- The audit log. A row is written once, in the commit of what it tells of, and never changed or taken away: the triggers
-- refuse it to whoever comes through SQL, and the hashes show it of whoever comes past it. The numbers leave none out. There
-- is no index: an index is one more place to hide a row from a search. AUTOINCREMENT has SQLite remember the highest number
-- it gave out, so that an end that was cut off is missed.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    target TEXT,
    outcome TEXT NOT NULL,
    code TEXT,
    reason TEXT,
    task_id BLOB,
    digest BLOB,
    count INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE TRIGGER audit_update BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'rows of the audit log are never changed'); END;
CREATE TRIGGER audit_delete BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'rows of the audit log are never taken away'); END;
-- An INSERT OR REPLACE would take a row away without asking the trigger above.
CREATE TRIGGER audit_insert BEFORE INSERT ON audit
    WHEN NEW.seq <= (SELECT coalesce(max(seq), 0) FROM audit)
    BEGIN SELECT RAISE(ABORT, 'rows of the audit log are only added at its end'); END;

-- Places in the log that the gateway signed.
CREATE TABLE audit_checkpoint (
    seq INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    at INTEGER NOT NULL,
    key BLOB NOT NULL,
    signature BLOB NOT NULL
) STRICT;
CREATE TRIGGER audit_checkpoint_update BEFORE UPDATE ON audit_checkpoint
    BEGIN SELECT RAISE(ABORT, 'checkpoints of the audit log are never changed'); END;
CREATE TRIGGER audit_checkpoint_delete BEFORE DELETE ON audit_checkpoint
    BEGIN SELECT RAISE(ABORT, 'checkpoints of the audit log are never taken away'); END;
CREATE TRIGGER audit_checkpoint_insert BEFORE INSERT ON audit_checkpoint
    WHEN NEW.seq <= (SELECT coalesce(max(seq), 0) FROM audit_checkpoint)
    BEGIN SELECT RAISE(ABORT, 'checkpoints of the audit log are only added at its end'); END;
