CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- A stretch of the log, from the place begin to before the place after. Its last record's id says which log this is.
-- trials has for each place the number of its trial, 0 for none, in 4 bytes; empty if no place is in a trial.
-- earliest and latest are the times that its actors claim, in milliseconds since 1970.
CREATE TABLE stretches (begin INTEGER PRIMARY KEY, after INTEGER NOT NULL, last TEXT NOT NULL, earliest INTEGER NOT NULL, latest INTEGER NOT NULL, trials BLOB NOT NULL);

-- Which records of a stretch have a piece.
CREATE TABLE pieces (stretch INTEGER, piece INTEGER, places BLOB NOT NULL, PRIMARY KEY (stretch, piece)) WITHOUT ROWID;

-- Which of 64 slots have a stretch with a piece, as bits. A slot is 4,096 places, and a stretch belongs to the slot in which it begins.
CREATE TABLE blocks (block INTEGER, piece INTEGER, slots INTEGER NOT NULL, PRIMARY KEY (block, piece)) WITHOUT ROWID;

CREATE TABLE records (place INTEGER PRIMARY KEY, id TEXT NOT NULL, action TEXT NOT NULL, role TEXT NOT NULL, actor TEXT NOT NULL, at INTEGER NOT NULL, chain TEXT NOT NULL);
CREATE INDEX records_actor ON records (actor, place);
CREATE INDEX records_action ON records (action, place);
CREATE INDEX records_chain ON records (chain, place);

CREATE TABLE trials (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);

-- Jurors with their roles, and models, in folded letters.
CREATE TABLE seats (stretch INTEGER, kind TEXT, name TEXT, trial INTEGER, PRIMARY KEY (stretch, kind, name, trial)) WITHOUT ROWID;

-- Archives that could not be read: their records are missing here.
CREATE TABLE gaps (begin INTEGER PRIMARY KEY, after INTEGER NOT NULL);
