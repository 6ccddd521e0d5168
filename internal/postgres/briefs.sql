-- What lists show of records, and the keys under which records are found by what they name: see package brief. Both are
-- derived from the records and can be rebuilt. In meta, 'briefed' is the number of rows, from the beginning of the log,
-- that have briefs.
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
