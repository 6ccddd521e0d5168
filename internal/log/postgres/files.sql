-- The small files of an installation. Released statements never change: later changes add statements after these.
CREATE TABLE IF NOT EXISTS jurat.files (
	name    text COLLATE "C" PRIMARY KEY, -- a path with slashes
	content bytea NOT NULL,               -- encrypted with the wrapping key
	wrapped text COLLATE "C" NOT NULL     -- ID of the wrapping key
);
CREATE INDEX IF NOT EXISTS files_wrapped ON jurat.files (wrapped);
