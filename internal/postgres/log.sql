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
	root        bytea  CHECK (octet_length(root) = 32),               -- of the log that ends here; NULL: the batch continues
	hashes      bytea  NOT NULL CHECK (octet_length(hashes) > 0 AND octet_length(hashes) % 32 = 0), -- tree hashes that this record completes, by level
	signatures  bytea[] NOT NULL,
	kinds       text[]  NOT NULL,                                     -- of the time stamps that it was sealed with
	tokens      bytea[] NOT NULL CHECK (cardinality(tokens) = cardinality(kinds)),
	payload     bytea   NOT NULL                                      -- canonical
);
ALTER TABLE jurat.records SET (toast_tuple_target = 8160);
ALTER TABLE jurat.records ALTER payload SET STORAGE EXTERNAL, ALTER tokens SET STORAGE EXTERNAL;
CREATE INDEX records_by_chain ON jurat.records (chain_id, chain_seq) WHERE chain_id IS NOT NULL;
CREATE INDEX records_by_case ON jurat.records (case_digest, case_seq) WHERE case_digest IS NOT NULL;

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
CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON jurat.records FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER timestamps_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON jurat.timestamps FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER head_stays BEFORE DELETE OR TRUNCATE ON jurat.head FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
