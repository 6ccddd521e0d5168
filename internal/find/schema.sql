CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- A stretch of the log, from the place begin to before the place after. Its last record's id says which log this is.
-- trials has for each place the number of its trial, 0 for none, in 4 bytes; empty if no place is in a trial.
-- earliest and latest are the times that its actors claim, in milliseconds since 1970.
CREATE TABLE stretches (begin INTEGER PRIMARY KEY, after INTEGER NOT NULL, last TEXT NOT NULL, earliest INTEGER NOT NULL, latest INTEGER NOT NULL, trials BLOB NOT NULL);

-- Which records of a stretch have a piece.
CREATE TABLE pieces (stretch INTEGER, piece INTEGER, places BLOB NOT NULL, PRIMARY KEY (stretch, piece)) WITHOUT ROWID;

-- Which of 64 slots have a stretch with a piece, as bits. A slot is 4,096 places, and a stretch belongs to the slot in which it begins.
CREATE TABLE blocks (block INTEGER, piece INTEGER, slots INTEGER NOT NULL, PRIMARY KEY (block, piece)) WITHOUT ROWID;

CREATE TABLE records (place INTEGER PRIMARY KEY, id TEXT NOT NULL, action TEXT NOT NULL, role TEXT NOT NULL, actor TEXT NOT NULL, at INTEGER NOT NULL, chain TEXT NOT NULL,
    agent TEXT NOT NULL); -- of a recorder's act: whose act it saw
CREATE INDEX records_actor ON records (actor, place);
CREATE INDEX records_agent ON records (agent, place) WHERE agent <> '';
CREATE INDEX records_action ON records (action, place);
CREATE INDEX records_chain ON records (chain, place);

CREATE TABLE trials (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);

-- Jurors with their roles, and models, in folded letters.
CREATE TABLE seats (stretch INTEGER, kind TEXT, name TEXT, trial INTEGER, PRIMARY KEY (stretch, kind, name, trial)) WITHOUT ROWID;

-- What recorders saw in a chain, of each stretch: the place of its last record there, when its acts began and ended, the agents in folded
-- letters, one in each line, and the summary as JSON.
CREATE TABLE recorded (stretch INTEGER, chain TEXT, last INTEGER NOT NULL, earliest INTEGER NOT NULL, latest INTEGER NOT NULL, agents TEXT NOT NULL, summary TEXT NOT NULL,
    PRIMARY KEY (stretch, chain)) WITHOUT ROWID;
CREATE INDEX recorded_last ON recorded (last);
CREATE INDEX recorded_chain ON recorded (chain, last);

-- What recorders say that they do not have: how many calls of an agent, by the minute.
CREATE TABLE missed (place INTEGER, agent TEXT, minute INTEGER, calls INTEGER NOT NULL, PRIMARY KEY (place, agent, minute)) WITHOUT ROWID;
CREATE INDEX missed_agent ON missed (agent, minute);

-- What recorders say of themselves, apart from their signs of life.
CREATE TABLE events (place INTEGER PRIMARY KEY, recorder TEXT NOT NULL);
CREATE INDEX events_recorder ON events (recorder, place);

-- Which trials judged records of a chain.
CREATE TABLE tried (stretch INTEGER, chain TEXT, trial TEXT, PRIMARY KEY (stretch, chain, trial)) WITHOUT ROWID;
CREATE INDEX tried_chain ON tried (chain);

-- Of which records something was erased.
CREATE TABLE erased (place INTEGER, digest BLOB, pointer TEXT, PRIMARY KEY (place, digest, pointer)) WITHOUT ROWID;
CREATE INDEX erased_digest ON erased (digest);
