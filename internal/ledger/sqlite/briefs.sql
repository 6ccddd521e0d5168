-- What lists show of records, and the keys under which records are found by what they name: see package brief. Both are
-- derived from the records and can be rebuilt. In meta, 'briefed' is the number of rows, from the beginning of the log,
-- that have briefs.
CREATE TABLE briefs (
	idx   INTEGER PRIMARY KEY CHECK (idx >= 0),               -- place in the log
	line  TEXT NOT NULL,
	names BLOB NOT NULL                                       -- digests, one after the other
) STRICT;

-- Keys are random, so they are indexed by stretches of 2048 places, like digests: see digests.sql.
CREATE TABLE links (
	stretch INTEGER NOT NULL,
	key     INTEGER NOT NULL,
	idx     INTEGER NOT NULL CHECK (idx >> 11 = stretch),
	PRIMARY KEY (stretch, key, idx)
) STRICT, WITHOUT ROWID;
