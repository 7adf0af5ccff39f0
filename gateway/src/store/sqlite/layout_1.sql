-- What a task is born with is written once and never moved. Where it is now is a row of its own: in `open` while
-- there is work to do, in `done` afterwards, so that what is hot stays small. `no` ties the rows together.
CREATE TABLE task (
    no INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    birth TEXT NOT NULL
) STRICT;

CREATE TABLE open (
    no INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    version INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    agent TEXT,
    state TEXT NOT NULL
) STRICT;
CREATE INDEX open_due ON open (due_at, id);

CREATE TABLE done (
    no INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    version INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    agent TEXT,
    state TEXT NOT NULL
) STRICT;
CREATE INDEX done_finished ON done (finished_at, id);
CREATE INDEX done_agent ON done (agent, id) WHERE agent IS NOT NULL;
-- Nearly all finished work is completed (phase 4), and is found without this index.
CREATE INDEX done_badly ON done (phase, id) WHERE phase <> 4;

CREATE TABLE key (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    task_no INTEGER NOT NULL REFERENCES task (no),
    expires_at INTEGER,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX key_task ON key (task_no);
CREATE INDEX key_expiry ON key (expires_at, scope, key) WHERE expires_at IS NOT NULL;

CREATE TABLE agent (
    id TEXT PRIMARY KEY,
    content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row that readiness checks write.
CREATE TABLE probe (
    no INTEGER PRIMARY KEY CHECK (no = 1),
    times INTEGER NOT NULL
) STRICT;
INSERT INTO probe VALUES (1, 0);
