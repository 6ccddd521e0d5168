-- Time stamps that are still to come. A row goes in the transaction that stores the stamp, with the act that says so.
CREATE TABLE waiting (
	authority TEXT    NOT NULL CHECK (authority <> ''),
	idx       INTEGER NOT NULL REFERENCES records,
	since     INTEGER NOT NULL,                               -- milliseconds since 1970
	PRIMARY KEY (authority, idx)
) STRICT, WITHOUT ROWID;
