-- What lists show of records, and under which keys records are found by what they name: see package brief. Both are made of the records, and
-- can be made again. How many rows at the beginning have them stands in meta under 'briefed'.
CREATE TABLE briefs (
	idx   INTEGER PRIMARY KEY CHECK (idx >= 0),               -- place in the log
	line  TEXT NOT NULL,
	names BLOB NOT NULL                                       -- digests, one after the other
) STRICT;

-- Keys are random, so they stand by stretches of 2048 places, as digests do: see digests.sql.
CREATE TABLE links (
	stretch INTEGER NOT NULL,
	key     INTEGER NOT NULL,
	idx     INTEGER NOT NULL CHECK (idx >> 11 = stretch),
	PRIMARY KEY (stretch, key, idx)
) STRICT, WITHOUT ROWID;
