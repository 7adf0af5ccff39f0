-- What the operator laid down and is kept whole, such as the policy; each change counts its version up by one.
CREATE TABLE document (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    content TEXT NOT NULL
) STRICT;
