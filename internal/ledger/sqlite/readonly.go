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

	"jurat/internal/fault"
	"jurat/internal/ledger/storage"
)

func (s *Store) ReadOnly() error { return s.readOnly }

// protected says why a file or its folder cannot be written. It returns nil if they can, or if the system does not
// tell.
func protected(path string) error {
	for _, needed := range []string{filepath.Dir(path), path} {
		if why := writable(needed); why != nil {
			return fmt.Errorf("%w: %w", storage.ErrReadOnly, why)
		}
	}
	return nil
}

// openReadOnly opens a file that cannot be written: on a read-only disk, or in another user's folder.
func openReadOnly(ctx context.Context, path string, form form, why error) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := newStore(absolute, form)
	s.readOnly = why
	settings, err := s.readingAlone()
	if err != nil {
		return nil, err
	}
	if err := s.openReaders(settings); err != nil {
		return nil, err
	}
	if err := form.known(ctx, s.readers); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", why, err), s.Close())
	}
	return s, nil
}

// readingAlone returns the settings with which SQLite reads the file and its write-ahead log, which a crash or a
// running process left beside it. It reads all that is committed, and writes nothing.
//
// To read a write-ahead log, SQLite needs the log's index file (-shm), which it cannot make here.
//
//   - If that file exists, a process that can write the folder may be running. SQLite then respects its locks.
//   - If it is missing, no such process runs. SQLite then keeps the index in memory. For that it demands an exclusive
//     lock, which it cannot get on a read-only file, so it runs without locks (unix-none).
//   - If there is no write-ahead log, the file alone contains everything.
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

// A snapshot is the state of files that are read without a lock: the database, and its write-ahead log if there is one.
type snapshot [2]struct {
	changed time.Time
	size    int64
}

func (s *Store) snapshot() (*snapshot, error) {
	l := new(snapshot)
	for i, path := range []string{s.path, s.path + "-wal"} {
		is, err := os.Stat(path)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		l[i].changed, l[i].size = is.ModTime(), is.Size()
	}
	return l, nil
}

// stood returns storage.ErrBusy if a process that started later wrote to files that this store read without a lock.
func (s *Store) stood() error {
	if s.before == nil {
		return nil
	}
	now, err := s.snapshot()
	if err == nil && *now != *s.before {
		err = fmt.Errorf("%w: it wrote to %s while this process read it, so the answers may be inconsistent: read it again", storage.ErrBusy, s.path)
	}
	return err
}

// openReaders opens the pool of reading connections.
func (s *Store) openReaders(settings url.Values) error {
	for name, value := range map[string]string{"_busy_timeout": "5000", "_query_only": "1", "_dqs": "0", "_defensive": "1", "_error_rc": "1"} {
		settings.Set(name, value)
	}
	db, err := sql.Open("sqlite", dataSource(s.path, settings))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	s.readers, s.reader = db, &runner{on: db}
	return nil
}

// Backup writes one committed state of a database into a new file and syncs it. Other processes can read and append
// meanwhile.
func Backup(ctx context.Context, from, to string) (err error) {
	defer fault.While(&err, "copying database %s", from)
	absolute, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	source, settings := &Store{path: absolute}, url.Values{"mode": {"rw"}}
	if protected(absolute) != nil {
		if settings, err = source.readingAlone(); err != nil {
			return err
		}
	}
	settings.Set("_busy_timeout", "5000")
	db, err := sql.Open("sqlite", dataSource(absolute, settings))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), source.stood()) }()
	// SQLite copies within one read transaction: the copy lacks later commits, and they do not wait for it.
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return errors.Join(translate(err), ctx.Err())
	}
	file, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Chmod(0o600), file.Sync(), file.Close())
}
