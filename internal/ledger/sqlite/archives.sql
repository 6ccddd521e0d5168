-- Archive files that hold what rows have shed. Their ranges follow one another without a gap, from the beginning of the
-- log.
CREATE TABLE archives (
	first  INTEGER PRIMARY KEY CHECK (first >= 0),            -- index of the first row
	past   INTEGER NOT NULL CHECK (past > first),             -- index after the last
	file   TEXT    NOT NULL CHECK (file <> ''),
	digest BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
	shed   INTEGER NOT NULL CHECK (shed IN (0, 1))            -- 1: the rows have shed
) STRICT;
CREATE TRIGGER archives_stay   BEFORE DELETE ON archives   BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER archives_follow BEFORE INSERT ON archives WHEN NEW.first <> (SELECT coalesce(max(past), 0) FROM archives)
                                                           BEGIN SELECT RAISE(ABORT, 'archives follow one another'); END;
CREATE TRIGGER archives_keep   BEFORE UPDATE OF first, past ON archives
                                                           BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Rows that are shedding, within one transaction. They are deleted and inserted again without what an archive holds:
-- SQLite merges pages after rows are deleted, but not after rows become smaller.
CREATE TABLE shedding (
	idx         INTEGER PRIMARY KEY,
	record_id   TEXT    NOT NULL,
	digest      BLOB    NOT NULL,
	chain_id    TEXT,
	chain_seq   INTEGER NOT NULL,
	case_digest BLOB,
	case_seq    INTEGER NOT NULL,
	stamps      INTEGER NOT NULL                              -- time stamps that the archive has
) STRICT;
CREATE TRIGGER shedding_fits BEFORE INSERT ON shedding
	WHEN NOT EXISTS (SELECT 1 FROM archives WHERE first <= NEW.idx AND NEW.idx < past) OR EXISTS (SELECT 1 FROM waiting WHERE idx = NEW.idx)
	BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
DROP TRIGGER records_stay;
CREATE TRIGGER records_stay BEFORE DELETE ON records WHEN NOT EXISTS (SELECT 1 FROM shedding WHERE idx = OLD.idx)
	BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
DROP TRIGGER timestamps_stay;
CREATE TRIGGER timestamps_stay BEFORE DELETE ON timestamps WHEN NOT EXISTS (SELECT 1 FROM shedding WHERE idx = OLD.idx AND OLD.position < stamps)
	BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
