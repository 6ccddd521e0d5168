package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"jurat/internal/ledger/storage"
)

// header is how long a database is at least.
const header = 100

// An opened is a file as this process opened it.
type opened struct {
	path string
	is   fs.FileInfo
}

// remember notes which files are open. The caller has run a transaction, so SQLite has made those beside the database.
func (s *Store) remember() error {
	for _, path := range []string{s.path, s.path + "-wal", s.path + "-shm"} {
		is, err := os.Stat(path)
		if err != nil {
			return err
		}
		s.files = append(s.files, opened{path, is})
	}
	return nil
}

// InPlace implements storage.Placed. SQLite goes on writing to files that were removed, renamed or replaced, and reports success: what it commits there is
// in no file that a later process opens.
func (s *Store) InPlace() error {
	for _, f := range s.files {
		now, err := os.Stat(f.path)
		switch {
		case err == nil && f.path == s.path && now.Size() < header:
			return fmt.Errorf("%w: %s was cut off", storage.ErrMoved, f.path)
		case err == nil && os.SameFile(f.is, now):
		case err == nil:
			return fmt.Errorf("%w: another file is now at %s", storage.ErrMoved, f.path)
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s is gone", storage.ErrMoved, f.path)
		default:
			return fmt.Errorf("%w: %w", storage.ErrMoved, err)
		}
	}
	return nil
}
