-- One row. next is the place of the next record to read, and last the id of the record before it, which says which log this is. key is that of
-- the terms. expired is up to where the operator's acts on expiry were followed; dirty: the write-ahead log (1), and free pages of the file (2),
-- may still have what the file had before.
CREATE TABLE state (next INTEGER NOT NULL, last TEXT NOT NULL, key BLOB NOT NULL, expired INTEGER NOT NULL, dirty INTEGER NOT NULL);
INSERT INTO state VALUES (0, '', randomblob(16), 0, 2);

-- Which records have a term. The rowid is the record's place. Small pages (pgsz) have FTS5 skip in the lists of frequent terms: rare texts
-- among frequent terms are found in a quarter of the time, for a seventh more room.
CREATE VIRTUAL TABLE words USING fts5 (terms, content = '', detail = none, tokenize = ascii);
INSERT INTO words (words, rank) VALUES ('hashsize', 16777216), ('pgsz', 500);

-- agent, of a recorder's act: whose act it saw.
CREATE TABLE records (place INTEGER PRIMARY KEY, action TEXT NOT NULL, role TEXT NOT NULL, actor TEXT NOT NULL, agent TEXT NOT NULL, at INTEGER NOT NULL,
    chain TEXT NOT NULL);
CREATE INDEX records_chain ON records (chain) WHERE chain <> '';

-- What the index knows of a chain in which recorders saw something (the place of the last such record, when the acts began and ended, the
-- agents in folded letters), or that is a trial (jurors with their roles, and models, in folded letters). Each name is a line. sum is all
-- that as JSON.
CREATE TABLE chains (chain TEXT PRIMARY KEY, last INTEGER, earliest INTEGER, latest INTEGER, agents TEXT, jurors TEXT, models TEXT, sum TEXT NOT NULL)
    WITHOUT ROWID;
CREATE INDEX chains_last ON chains (last) WHERE last IS NOT NULL;

-- What else is looked up of records, by kind:
--   missed: a recorder does not have so many calls (value) of an agent (name) of a minute (at)
--   event:  a recorder (name) says of itself more than that it is there
--   tried:  a trial (value) judges records of a chain (name)
--   erased: of a record (name, its digest) the operator erased what is at a pointer (value)
CREATE TABLE notes (kind TEXT, name TEXT, at INTEGER, place INTEGER, value TEXT, PRIMARY KEY (kind, name, at, place, value)) WITHOUT ROWID;
