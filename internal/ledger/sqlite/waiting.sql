-- Time stamps that are still missing. The transaction that stores the stamp, and the act about it, deletes the row.
CREATE TABLE waiting (
	authority TEXT    NOT NULL CHECK (authority <> ''),
	idx       INTEGER NOT NULL REFERENCES records,
	since     INTEGER NOT NULL,                               -- milliseconds since 1970
	PRIMARY KEY (authority, idx)
) STRICT, WITHOUT ROWID;
