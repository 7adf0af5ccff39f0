-- Who is known: agents by their keys, operators, and join tokens that were not used. Secrets are not in it, only hashes.
CREATE TABLE identity (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
