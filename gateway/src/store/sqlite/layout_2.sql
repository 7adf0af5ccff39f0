-- What is to be told to the world, in the order in which it was made. `message` never changes; `sending` does, and the
-- columns before it are what the indexes need of it: `due_at` while it is to be sent, `ended_at` afterwards.
CREATE TABLE outbox (
    no INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    task_id BLOB NOT NULL,
    host TEXT NOT NULL,
    message TEXT NOT NULL,
    state INTEGER NOT NULL,
    due_at INTEGER,
    ended_at INTEGER,
    sending TEXT NOT NULL
) STRICT;
CREATE INDEX outbox_host ON outbox (host, due_at, no) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_due ON outbox (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_ended ON outbox (ended_at, no) WHERE ended_at IS NOT NULL;
CREATE INDEX outbox_task ON outbox (task_id, id);
-- Nearly all of it is delivered (state 1), and is found without this index.
CREATE INDEX outbox_state ON outbox (state, id) WHERE state <> 1;
