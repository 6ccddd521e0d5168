-- The small files of an installation. Once given out, these statements are never changed: later ones are added after them.
CREATE TABLE IF NOT EXISTS jurat.files (
	name    text COLLATE "C" PRIMARY KEY, -- a path with slashes
	content bytea NOT NULL,               -- wrapped
	wrapped text COLLATE "C" NOT NULL     -- under which wrapping key
);
CREATE INDEX IF NOT EXISTS files_wrapped ON jurat.files (wrapped);
