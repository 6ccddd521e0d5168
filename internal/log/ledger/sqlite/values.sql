-- What is sealed apart. No key is ever in this file.
CREATE TABLE apart (
	id     INTEGER PRIMARY KEY AUTOINCREMENT, -- and the slot of its key; none is given twice
	name   BLOB    NOT NULL UNIQUE,
	keys   INTEGER NOT NULL,                  -- which file of slots has its key
	sealed BLOB    NOT NULL
) STRICT;
