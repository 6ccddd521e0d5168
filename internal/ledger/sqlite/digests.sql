-- Payload digests are random. In an index over all of them, every record of a large log would write a page of its own.
-- So they are indexed by stretches of 2048 places: new entries go to a few pages at the end, and a search reads one
-- stretch after the other, the newest first. No digest can occur twice, because record ids are unique and the digest
-- covers the record id. An old table is copied, because SQLite cannot make a unique column non-unique.
--
-- The time stamp that a record was sealed with is in its row: nearly every record has exactly one, and a row of its own
-- would cost as much as the record's row. The other table holds the stamps that came with the first or later.
CREATE TABLE records_next (
	idx        INTEGER PRIMARY KEY CHECK (idx >= 0),          -- place in the log
	record_id  TEXT    NOT NULL UNIQUE,
	digest     BLOB    NOT NULL CHECK (length(digest) = 32),
	chain_id   TEXT,                                          -- NULL: in no chain
	chain_seq  INTEGER NOT NULL,                              -- which one of its chain; 0: in no chain
	case_digest BLOB,                                         -- of a submission: what is submitted
	case_seq   INTEGER NOT NULL,                              -- which one of its case; 0: not a submission
	payload    BLOB    NOT NULL,                              -- canonical
	signatures TEXT    NOT NULL,                              -- JSON array of base64
	kind       TEXT,                                          -- of its first time stamp; NULL: it has none, or it came later
	token      BLOB CHECK ((token IS NULL) = (kind IS NULL))
) STRICT;
INSERT INTO records_next SELECT r.idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, payload, signatures, kind, token
	FROM records r LEFT JOIN timestamps t ON t.idx = r.idx AND t.position = 0;
DROP TRIGGER timestamps_stay;
DELETE FROM timestamps WHERE position = 0;
CREATE TRIGGER timestamps_stay BEFORE DELETE ON timestamps BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
DROP TABLE records;
ALTER TABLE records_next RENAME TO records;
CREATE INDEX records_by_digest ON records (idx >> 11, substr(digest, 1, 8));
CREATE INDEX records_by_chain ON records (chain_id, chain_seq) WHERE chain_id IS NOT NULL;
CREATE INDEX records_by_case ON records (case_digest, case_seq) WHERE case_digest IS NOT NULL;
CREATE INDEX records_in_trials ON records (idx) WHERE chain_id >= 'trial-' AND chain_id < 'trial.';
CREATE TRIGGER records_stay BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER records_keep BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
