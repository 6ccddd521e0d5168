package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"jurat/internal/ledger/storage"
)

// readable is the first version of the tables that are read as those of the last.
const readable = 5

// ReadOnly implements storage.Protected.
func (s *Store) ReadOnly() error { return s.readOnly }

// protected says why a file or its folder cannot be written; nil: as far as the system says, they can.
func protected(path string) error {
	for _, needed := range []string{filepath.Dir(path), path} {
		if why := writable(needed); why != nil {
			return fmt.Errorf("%w: %w", storage.ErrReadOnly, why)
		}
	}
	return nil
}

// openReadOnly opens a file where nothing can be written: a disk that is mounted for reading, or a folder of somebody else.
func openReadOnly(ctx context.Context, path string, why error) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: absolute, lockTime: lockTime, writing: storage.NewLock(), readOnly: why}
	settings, err := s.readingAlone()
	if err != nil {
		return nil, err
	}
	if err := s.openReaders(settings); err != nil {
		return nil, err
	}
	version, err := version(ctx, s.readers)
	if err == nil && version < readable {
		err = fmt.Errorf("its tables have the version %d, and are brought up to date when it is opened once where it can be written", version)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", why, err), s.Close())
	}
	s.briefless = version < withBriefs
	return s, nil
}

// readingAlone says how SQLite reads the file and the write-ahead log that a crash, or a process that is running, has left beside it. All that
// is committed is read, and nothing is written.
//
// With a log, SQLite wants the file for its index (-shm), which it cannot make here. Where that is there, a process may be at work that has
// the folder for writing, and SQLite heeds its locks. Where it is missing there is none: then the index is in memory, which SQLite wants an
// exclusive lock for, and that it does not get on a file that is not written; or, without any log, the file is all there is.
func (s *Store) readingAlone() (url.Values, error) {
	settings := url.Values{"mode": {"ro"}}
	log, err := exists(s.path + "-wal")
	if err != nil {
		return nil, err
	}
	index, err := exists(s.path + "-shm")
	switch {
	case err != nil:
		return nil, err
	case log && index:
		return settings, nil
	case log:
		settings.Set("vfs", "unix-none")
		settings.Set("_pragma", "locking_mode(EXCLUSIVE)")
	default:
		settings.Set("immutable", "1")
	}
	s.before, err = s.snapshot()
	return settings, err
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// A snapshot is how the files were that are read without a lock.
type snapshot struct {
	database, log         time.Time
	databaseSize, logSize int64
}

func (s *Store) snapshot() (*snapshot, error) {
	database, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	l := &snapshot{database: database.ModTime(), databaseSize: database.Size()}
	log, err := os.Stat(s.path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.log, l.logSize = log.ModTime(), log.Size()
	return l, nil
}

// stood returns ErrBusy if somebody has written to the files while they were read without a lock: they began after this opened them.
func (s *Store) stood() error {
	if s.before == nil {
		return nil
	}
	now, err := s.snapshot()
	if err == nil && *now != *s.before {
		err = fmt.Errorf("%w: it began to write to %s while that was read here, so what was read may not fit together: read it again", storage.ErrBusy, s.path)
	}
	return err
}

// openReaders opens the connections that read, as they are everywhere.
func (s *Store) openReaders(settings url.Values) (err error) {
	for name, value := range map[string]string{"_busy_timeout": "5000", "_query_only": "1", "_dqs": "0", "_defensive": "1", "_error_rc": "1"} {
		settings.Set(name, value)
	}
	if s.readers, err = sql.Open("sqlite", dataSource(s.path, settings)); err != nil {
		return err
	}
	s.readers.SetMaxOpenConns(4)
	s.readers.SetMaxIdleConns(4)
	return nil
}
