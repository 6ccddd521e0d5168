-- The log's counts of actors and subjects, beside the records: see package evidence, LogCounts. Records that were logged
-- before this table existed have no row here. The numbers are unique, so a wrong count cannot be stored.
CREATE TABLE tags (
	idx         INTEGER PRIMARY KEY CHECK (idx >= 0),         -- place in the log
	actor       BLOB    NOT NULL CHECK (length(actor) = 32),  -- tag of the actor
	actor_seq   INTEGER NOT NULL CHECK (actor_seq > 0),       -- which one of its actor
	subject     BLOB    CHECK (length(subject) = 32),         -- tag of the actor that it judges; NULL: it judges none
	subject_seq INTEGER CHECK ((subject_seq IS NULL) = (subject IS NULL) AND subject_seq > 0)
) STRICT;
CREATE UNIQUE INDEX tags_by_actor ON tags (actor, actor_seq);
CREATE UNIQUE INDEX tags_by_subject ON tags (subject, subject_seq) WHERE subject IS NOT NULL;
CREATE TRIGGER tags_stay BEFORE DELETE ON tags BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER tags_keep BEFORE UPDATE ON tags BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Once the log counts actors, it counts every record. An older program that still has the file open would not: what it
-- appends is refused when it sets the head. A trigger on the records would make each append slower by some 8 %.
CREATE TRIGGER head_counted BEFORE UPDATE OF size ON head
	WHEN NOT EXISTS (SELECT 1 FROM tags WHERE idx = NEW.size - 1) AND EXISTS (SELECT 1 FROM tags)
	BEGIN SELECT RAISE(ABORT, 'the log counts actors, and this program does not: start the current program'); END;
