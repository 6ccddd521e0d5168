CREATE TABLE jurat.meta (
	name  text PRIMARY KEY,
	value text NOT NULL
);

-- One row. Every writer locks it but does not update it: old row versions would slow down every reader.
CREATE TABLE jurat.head (
	one        boolean PRIMARY KEY CHECK (one),
	checkpoint text    NOT NULL                                       -- the last signed one
);

CREATE TABLE jurat.records (
	idx         bigint PRIMARY KEY CHECK (idx >= 0),                  -- place in the log
	chain_seq   bigint NOT NULL,                                      -- place in its chain, from 1; 0: in no chain
	case_seq    bigint NOT NULL,                                      -- place in its case, from 1; 0: not a submission
	record_id   text   COLLATE "C" NOT NULL UNIQUE,
	digest      bytea  NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
	chain_id    text   COLLATE "C",                                   -- NULL: in no chain
	case_digest bytea  CHECK (octet_length(case_digest) = 32),        -- of a submission: digest of what is submitted
	dictionary  bigint  NOT NULL,                                     -- what packed is compressed with; 0: without a dictionary; -1: it is not compressed
	stamps      integer NOT NULL CHECK (stamps >= 0),                 -- how many time stamps packed holds
	packed      bytea   NOT NULL                                      -- payload, signatures and time stamps: see package storage
);
ALTER TABLE jurat.records SET (toast_tuple_target = 8160);
ALTER TABLE jurat.records ALTER packed SET STORAGE EXTERNAL;
CREATE INDEX records_by_chain ON jurat.records (chain_id, chain_seq) WHERE chain_id IS NOT NULL;
CREATE INDEX records_by_case ON jurat.records (case_digest, case_seq) WHERE case_digest IS NOT NULL;
-- The records in the chains of trials, in log order: a reader that follows trials skips the records of agents.
CREATE INDEX records_in_trials ON jurat.records (idx) WHERE chain_id >= 'trial-' AND chain_id < 'trial.';

-- Time stamps that came after the record was sealed. The record itself never changes.
CREATE TABLE jurat.timestamps (
	idx      bigint  NOT NULL REFERENCES jurat.records,
	position integer NOT NULL,                                        -- order of arrival
	kind     text    NOT NULL,
	token    bytea   NOT NULL,
	PRIMARY KEY (idx, position)
);

-- Time stamps that are still missing. The transaction that stores the stamp, and the act about it, deletes the row.
CREATE TABLE jurat.waiting (
	authority text   COLLATE "C" NOT NULL CHECK (authority <> ''),
	idx       bigint NOT NULL REFERENCES jurat.records,
	since     bigint NOT NULL,                                        -- milliseconds since 1970
	PRIMARY KEY (authority, idx)
);

-- These triggers stop mistakes. The owner of the tables can drop them; signatures and checkpoints show what an owner
-- changed.
CREATE FUNCTION jurat.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'restrict_violation';
END $$;
-- What rows are compressed with: synthetic records, never a user's.
CREATE TABLE jurat.dictionaries (
	n    bigint PRIMARY KEY CHECK (n > 0),
	text bytea  NOT NULL
);
CREATE TRIGGER dictionaries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON jurat.dictionaries FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();

CREATE TRIGGER head_stays BEFORE DELETE OR TRUNCATE ON jurat.head FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
-- Rows whose content is to be removed, and the act that says so. See package storage.
CREATE TABLE jurat.expiring (
	idx bigint PRIMARY KEY REFERENCES jurat.records,
	act text   NOT NULL CHECK (act <> '')                             -- record id
);

-- A row that is to expire may lose its content. Every other change to it is refused.
CREATE FUNCTION jurat.only_expires() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM jurat.expiring WHERE idx = OLD.idx) THEN
		RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'restrict_violation';
	END IF;
	IF TG_OP = 'DELETE' THEN
		RETURN OLD;
	END IF;
	OLD.packed := NEW.packed; OLD.dictionary := NEW.dictionary; OLD.stamps := 0;
	IF NEW IS DISTINCT FROM OLD OR EXISTS (SELECT 1 FROM jurat.waiting WHERE idx = OLD.idx) THEN
		RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'restrict_violation';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER records_stay BEFORE DELETE OR TRUNCATE ON jurat.records FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER records_keep BEFORE UPDATE ON jurat.records FOR EACH ROW EXECUTE FUNCTION jurat.only_expires();
CREATE TRIGGER timestamps_stay BEFORE UPDATE OR TRUNCATE ON jurat.timestamps FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER timestamps_keep BEFORE DELETE ON jurat.timestamps FOR EACH ROW EXECUTE FUNCTION jurat.only_expires();
-- What lists show of records, and the keys under which records are found by what they name: see package brief. Both are
-- derived from the records and can be rebuilt.
CREATE TABLE jurat.briefs (
	idx   bigint PRIMARY KEY CHECK (idx >= 0),                        -- place in the log
	line  text  NOT NULL,
	names bytea NOT NULL                                              -- digests, concatenated
);
CREATE TABLE jurat.links (
	key bigint NOT NULL,
	idx bigint NOT NULL,
	PRIMARY KEY (key, idx)
);
CREATE INDEX links_by_place ON jurat.links (idx);
-- The head, the hashes of the tree, and the log's counts of actors and subjects, beside the records: see package evidence, LogCounts. The numbers are unique,
-- so a wrong count cannot be stored.
CREATE TABLE jurat.tags (
	idx         bigint PRIMARY KEY CHECK (idx >= 0),                  -- place in the log
	root        bytea  CHECK (octet_length(root) = 32),               -- of the log that ends here; NULL: the batch continues
	hashes      bytea  NOT NULL CHECK (octet_length(hashes) > 0 AND octet_length(hashes) % 32 = 0), -- of the tree, which this record completes, by level
	actor_seq   bigint CHECK ((actor_seq IS NULL) = (actor IS NULL) AND actor_seq > 0), -- which one of its actor; NULL: it is not counted
	subject_seq bigint CHECK ((subject_seq IS NULL) = (subject IS NULL) AND subject_seq > 0),
	actor       bytea  CHECK (octet_length(actor) = 32),              -- tag of the actor
	subject     bytea  CHECK (octet_length(subject) = 32)             -- tag of the actor that it judges; NULL: it judges none
);
CREATE UNIQUE INDEX tags_by_actor ON jurat.tags (actor, actor_seq);
CREATE UNIQUE INDEX tags_by_subject ON jurat.tags (subject, subject_seq) WHERE subject IS NOT NULL;
CREATE TRIGGER tags_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON jurat.tags FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
