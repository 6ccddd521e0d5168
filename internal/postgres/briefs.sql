-- What lists show of records, and under which keys records are found by what they name: see package brief. Both are made of the records, and
-- can be made again. How many rows at the beginning have them stands in meta under 'briefed'.
CREATE TABLE jurat.briefs (
	idx   bigint PRIMARY KEY CHECK (idx >= 0),                        -- place in the log
	line  text  NOT NULL,
	names bytea NOT NULL                                              -- digests, one after the other
);
CREATE TABLE jurat.links (
	key bigint NOT NULL,
	idx bigint NOT NULL,
	PRIMARY KEY (key, idx)
);
CREATE INDEX links_by_place ON jurat.links (idx);
