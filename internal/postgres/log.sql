CREATE TABLE jurat.meta (
	name  text PRIMARY KEY,
	value text NOT NULL
);

-- One row. Whoever appends locks it, and changes nothing in it, so that no old versions of it are left for everybody to step over.
CREATE TABLE jurat.head (
	one        boolean PRIMARY KEY CHECK (one),
	checkpoint text    NOT NULL                                       -- the last signed one
);

CREATE TABLE jurat.records (
	idx         bigint PRIMARY KEY CHECK (idx >= 0),                  -- place in the log
	chain_seq   bigint NOT NULL,                                      -- which one of its chain; 0: in no chain
	case_seq    bigint NOT NULL,                                      -- which one of its case; 0: not a submission
	record_id   text   COLLATE "C" NOT NULL UNIQUE,
	digest      bytea  NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
	chain_id    text   COLLATE "C",                                   -- NULL: in no chain
	case_digest bytea  CHECK (octet_length(case_digest) = 32),        -- of a submission: what is submitted
	root        bytea  CHECK (octet_length(root) = 32),               -- of the log that ends here; NULL: the batch goes on
	hashes      bytea  NOT NULL CHECK (octet_length(hashes) > 0 AND octet_length(hashes) % 32 = 0), -- that this record completes, by level
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
	position integer NOT NULL,                                        -- in the order in which they came
	kind     text    NOT NULL,
	token    bytea   NOT NULL,
	PRIMARY KEY (idx, position)
);

-- Time stamps that are still to come. A row goes in the transaction that stores the stamp, with the act that says so.
CREATE TABLE jurat.waiting (
	authority text   COLLATE "C" NOT NULL CHECK (authority <> ''),
	idx       bigint NOT NULL REFERENCES jurat.records,
	since     bigint NOT NULL,                                        -- milliseconds since 1970
	PRIMARY KEY (authority, idx)
);

-- These stop mistakes. Whoever owns the tables can drop them: signatures and checkpoints are against that.
CREATE FUNCTION jurat.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON jurat.records FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER timestamps_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON jurat.timestamps FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER head_stays BEFORE DELETE OR TRUNCATE ON jurat.head FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
