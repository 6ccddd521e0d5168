package sqlite

import (
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite" // and the driver "sqlite"
)

// OpenFile opens a file that the processes of one machine share, and makes it if it is missing. What is in it is for its caller to know.
// For the path "" it opens a database in memory, which ends with the returned DB.
//
// The file is in WAL mode. A statement waits up to ten seconds for another process, and a transaction takes the write lock when it
// begins. pragmas are further settings of each connection, such as "synchronous(NORMAL)". SQLite reads the file at the first statement,
// so most errors of the file come later.
func OpenFile(path string, pragmas ...string) (*sql.DB, error) {
	if path == "" {
		db, err := sql.Open("sqlite", ":memory:")
		if err == nil {
			db.SetMaxOpenConns(1) // each connection would have a database of its own
		}
		return db, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	settings := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{"busy_timeout(10000)", "journal_mode(WAL)"}, pragmas...)}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: absolute, RawQuery: settings.Encode()}).String())
}

// Code returns SQLite's primary result code of an error, and 0 for errors that are not SQLite's.
func Code(err error) int {
	var failure *sqlite.Error
	if errors.As(err, &failure) {
		return failure.Code() & 0xff
	}
	return 0
}
