CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE head (
	one        INTEGER PRIMARY KEY CHECK (one = 1),
	checkpoint TEXT    NOT NULL                               -- the last signed one
) STRICT;
INSERT INTO head VALUES (1, '');

-- Payload digests are random. In an index over all of them, every record of a large log would write a page of its own.
-- So they are indexed by stretches of 2048 places: new entries go to a few pages at the end, and a search reads one
-- stretch after the other, the newest first. No digest can occur twice, because record ids are unique and the digest
-- covers the record id.
--
-- Payload, signatures, and the time stamps that a record was sealed with, are compressed together. The other table holds
-- the stamps that came later.
CREATE TABLE records (
	idx        INTEGER PRIMARY KEY CHECK (idx >= 0),          -- place in the log
	record_id  ANY     NOT NULL UNIQUE,                       -- the bytes of a UUID
	digest     BLOB    NOT NULL CHECK (length(digest) = 32),
	chain_id   TEXT,                                          -- NULL: in no chain
	chain_seq  INTEGER NOT NULL,                              -- which one of its chain; 0: in no chain
	case_digest BLOB,                                         -- of a submission: what is submitted
	case_seq   INTEGER NOT NULL,                              -- which one of its case; 0: not a submission
	dictionary INTEGER NOT NULL,                              -- what packed is compressed with; 0: without a dictionary; -1: it is not compressed
	stamps     INTEGER NOT NULL CHECK (stamps >= 0),          -- how many time stamps packed holds
	packed     BLOB    NOT NULL                               -- see package storage
) STRICT;
CREATE INDEX records_by_digest ON records (idx >> 11, substr(digest, 1, 8));
CREATE INDEX records_by_chain ON records (chain_id, chain_seq) WHERE chain_id IS NOT NULL;
CREATE INDEX records_by_case ON records (case_digest, case_seq) WHERE case_digest IS NOT NULL;
-- The records in the chains of trials, in log order: a reader that follows trials skips the records of agents.
CREATE INDEX records_in_trials ON records (idx) WHERE chain_id >= 'trial-' AND chain_id < 'trial.';

-- Apart from the records, which never change: more time stamps can come.
CREATE TABLE timestamps (
	idx      INTEGER NOT NULL REFERENCES records,
	position INTEGER NOT NULL,                                -- in the order in which they came
	kind     TEXT    NOT NULL,
	token    BLOB    NOT NULL,
	PRIMARY KEY (idx, position)
) STRICT, WITHOUT ROWID;

-- What rows are compressed with: synthetic records, never a user's.
CREATE TABLE dictionaries (
	n    INTEGER PRIMARY KEY CHECK (n > 0),
	text BLOB NOT NULL
) STRICT;
CREATE TRIGGER dictionaries_stay BEFORE DELETE ON dictionaries BEGIN SELECT RAISE(ABORT, 'rows are compressed with it'); END;
CREATE TRIGGER dictionaries_keep BEFORE UPDATE ON dictionaries BEGIN SELECT RAISE(ABORT, 'rows are compressed with it'); END;

-- These triggers stop mistakes. Anyone who can write the file can drop them; signatures and checkpoints show what they
-- changed.
CREATE TRIGGER records_keep    BEFORE UPDATE ON records    BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER timestamps_keep BEFORE UPDATE ON timestamps BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER head_stays      BEFORE DELETE ON head       BEGIN SELECT RAISE(ABORT, 'the log has a head'); END;
-- Time stamps that are still missing. The transaction that stores the stamp, and the act about it, deletes the row.
CREATE TABLE waiting (
	authority TEXT    NOT NULL CHECK (authority <> ''),
	idx       INTEGER NOT NULL REFERENCES records,
	since     INTEGER NOT NULL,                               -- milliseconds since 1970
	PRIMARY KEY (authority, idx)
) STRICT, WITHOUT ROWID;
-- Rows whose content is to be removed, and the act that says so. See package storage.
CREATE TABLE expiring (
	idx INTEGER PRIMARY KEY REFERENCES records,
	act TEXT NOT NULL CHECK (act <> '')                       -- record id
) STRICT;
CREATE TRIGGER expiring_fits BEFORE INSERT ON expiring WHEN EXISTS (SELECT 1 FROM waiting WHERE idx = NEW.idx)
	BEGIN SELECT RAISE(ABORT, 'it waits for a time stamp'); END;

-- Rows that expire, within one transaction. They are deleted and inserted again: SQLite merges pages after rows are
-- deleted, but not after rows become smaller.
CREATE TABLE emptied (
	idx         INTEGER PRIMARY KEY,
	record_id   ANY     NOT NULL,
	digest      BLOB    NOT NULL,
	chain_id    TEXT,
	chain_seq   INTEGER NOT NULL,
	case_digest BLOB,
	case_seq    INTEGER NOT NULL,
	dictionary  INTEGER NOT NULL,
	packed      BLOB    NOT NULL
) STRICT;
CREATE TRIGGER emptied_fits BEFORE INSERT ON emptied WHEN NOT EXISTS (SELECT 1 FROM expiring WHERE idx = NEW.idx)
	BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER records_stay BEFORE DELETE ON records WHEN NOT EXISTS (SELECT 1 FROM emptied WHERE idx = OLD.idx)
	BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER timestamps_stay BEFORE DELETE ON timestamps WHEN NOT EXISTS (SELECT 1 FROM emptied WHERE idx = OLD.idx)
	BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
-- What lists show of records, and the keys under which records are found by what they name: see package brief. Both are
-- derived from the records and can be rebuilt.
CREATE TABLE briefs (
	idx   INTEGER PRIMARY KEY CHECK (idx >= 0),               -- place in the log
	line  TEXT NOT NULL,
	names BLOB NOT NULL                                       -- digests, one after the other
) STRICT;

-- Keys are random, so they are indexed by stretches of 2048 places, like digests.
CREATE TABLE links (
	stretch INTEGER NOT NULL,
	key     INTEGER NOT NULL,
	idx     INTEGER NOT NULL CHECK (idx >> 11 = stretch),
	PRIMARY KEY (stretch, key, idx)
) STRICT, WITHOUT ROWID;
-- The head, the hashes of the tree, and the log's counts of actors and subjects, beside the records: see package evidence, LogCounts. The numbers are unique,
-- so a wrong count cannot be stored.
-- Tags of actors, each once: they are random, and many records have the same.
CREATE TABLE actors (
	n   INTEGER PRIMARY KEY,
	tag BLOB NOT NULL UNIQUE CHECK (length(tag) = 32)
) STRICT;
CREATE TABLE tags (
	idx         INTEGER PRIMARY KEY CHECK (idx >= 0),         -- place in the log
	root        BLOB    CHECK (length(root) = 32),            -- of the log that ends here; NULL: the batch continues
	hashes      BLOB    NOT NULL CHECK (length(hashes) > 0 AND length(hashes) % 32 = 0), -- of the tree, which this record completes, by level
	actor       INTEGER REFERENCES actors,                    -- NULL: it is not counted
	actor_seq   INTEGER CHECK ((actor_seq IS NULL) = (actor IS NULL) AND actor_seq > 0), -- which one of its actor
	subject     INTEGER REFERENCES actors,                    -- the actor that it judges; NULL: it judges none
	subject_seq INTEGER CHECK ((subject_seq IS NULL) = (subject IS NULL) AND subject_seq > 0)
) STRICT;
CREATE UNIQUE INDEX tags_by_actor ON tags (actor, actor_seq);
CREATE UNIQUE INDEX tags_by_subject ON tags (subject, subject_seq) WHERE subject IS NOT NULL;
CREATE TRIGGER actors_stay BEFORE DELETE ON actors BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER actors_keep BEFORE UPDATE ON actors BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER tags_stay BEFORE DELETE ON tags BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER tags_keep BEFORE UPDATE ON tags BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
