CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: the committed size and root of the log, and the last signed checkpoint.
CREATE TABLE head (
	one        INTEGER PRIMARY KEY CHECK (one = 1),
	size       INTEGER NOT NULL CHECK (size >= 0),
	root       BLOB    NOT NULL CHECK (length(root) = 32),
	checkpoint TEXT    NOT NULL
) STRICT;

CREATE TABLE records (
	idx        INTEGER PRIMARY KEY CHECK (idx >= 0),          -- place in the log
	record_id  TEXT    NOT NULL UNIQUE,
	digest     BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
	chain_id   TEXT,                                          -- NULL: in no chain
	chain_seq  INTEGER NOT NULL,                              -- which one of its chain; 0: in no chain
	case_digest BLOB,                                         -- of a submission: what is submitted
	case_seq   INTEGER NOT NULL,                              -- which one of its case; 0: not a submission
	payload    BLOB    NOT NULL,                              -- canonical
	signatures TEXT    NOT NULL                               -- JSON array of base64
) STRICT;
CREATE INDEX records_by_chain ON records (chain_id, chain_seq) WHERE chain_id IS NOT NULL;
CREATE INDEX records_by_case ON records (case_digest, case_seq) WHERE case_digest IS NOT NULL;

-- Apart from the records, which never change: more time stamps can come.
CREATE TABLE timestamps (
	idx      INTEGER NOT NULL REFERENCES records,
	position INTEGER NOT NULL,                                -- in the order in which they came
	kind     TEXT    NOT NULL,
	token    BLOB    NOT NULL,
	PRIMARY KEY (idx, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE hashes (
	idx  INTEGER PRIMARY KEY CHECK (idx >= 0),                -- stored hash index
	hash BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- These triggers stop mistakes. Anyone who can write the file can drop them; signatures and checkpoints show what they
-- changed.
CREATE TRIGGER records_stay    BEFORE DELETE ON records    BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER records_keep    BEFORE UPDATE ON records    BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER hashes_stay     BEFORE DELETE ON hashes     BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER hashes_keep     BEFORE UPDATE ON hashes     BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER timestamps_stay BEFORE DELETE ON timestamps BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER timestamps_keep BEFORE UPDATE ON timestamps BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER head_stays      BEFORE DELETE ON head       BEGIN SELECT RAISE(ABORT, 'the log has a head'); END;
CREATE TRIGGER head_grows      BEFORE UPDATE OF size ON head WHEN NEW.size < OLD.size
                                                           BEGIN SELECT RAISE(ABORT, 'the log does not shrink'); END;
