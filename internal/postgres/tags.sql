-- The log's counts of actors and subjects, beside the records: see package evidence, LogCounts. Records that were logged
-- before this table existed have no row here. The numbers are unique, so a wrong count cannot be stored.
CREATE TABLE jurat.tags (
	idx         bigint PRIMARY KEY CHECK (idx >= 0),                  -- place in the log
	actor_seq   bigint NOT NULL CHECK (actor_seq > 0),                -- which one of its actor
	subject_seq bigint CHECK ((subject_seq IS NULL) = (subject IS NULL) AND subject_seq > 0),
	actor       bytea  NOT NULL CHECK (octet_length(actor) = 32),     -- tag of the actor
	subject     bytea  CHECK (octet_length(subject) = 32)             -- tag of the actor that it judges; NULL: it judges none
);
CREATE UNIQUE INDEX tags_by_actor ON jurat.tags (actor, actor_seq);
CREATE UNIQUE INDEX tags_by_subject ON jurat.tags (subject, subject_seq) WHERE subject IS NOT NULL;
CREATE TRIGGER tags_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON jurat.tags FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();

-- Every new record says whether it is counted. An older program that is still connected does not, and its records are
-- refused: once the log counts actors, it counts every record. Both statements change no row.
ALTER TABLE jurat.records ADD COLUMN counted boolean NOT NULL DEFAULT false;
ALTER TABLE jurat.records ALTER COLUMN counted DROP DEFAULT;
