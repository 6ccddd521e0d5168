// Package sqlite keeps a log in one SQLite file, and what is sealed apart of its records in another. Several processes on one machine may have them open.
//
// The file is in WAL mode with synchronous=FULL. A transaction is durable when COMMIT returns, because SQLite has
// synced the write-ahead log. After a crash before that, nothing of it remains. Readers see the last committed state
// and block no other process.
//
// The methods of a Store return the errors that storage.Store names. A method that writes returns storage.ErrBusy,
// wrapped, if it waited too long for the lock. SQLite's own errors are wrapped in storage.ErrDiskFull, ErrReadOnly or
// fs.ErrPermission, and in storage.ErrDamaged if the file is damaged or not a database. All others are passed on as
// they are.
//
// # What a record is sealed with is in its row
//
// Payload, signatures and time stamps are compressed together: see storage.Packed. Later stamps are in a table of
// their own, because rows of records never change.
//
// # The digest index is split into stretches
//
// In an index over random digests every record writes a page of its own, and more so the larger the log is. So
// digests (their first eight bytes, in SQLite) are indexed by stretches of 2048 places. New entries go to a few
// pages. A search reads one stretch after the other, the newest first. Each takes about 1.5 µs, so a search takes
// under a millisecond in a log of a million records. A digest that is looked up is almost always recent. Refused: a
// unique index, because the record id is unique and the digest covers it.
//
// # Values are in a table, and their keys are not
//
// A destroyed key, not a deleted row, is what erases a value that is sealed apart: the journal, free pages and copies of
// a database keep what was in a row. So a row of Values has only the encrypted value, of which every copy is harmless,
// and no key is ever in a database of this package. A key is in a file of slots, which also say whose key they have, in the slot that has the
// number of its row. It is destroyed where it is, overwritten and synced, and this program has no other copy.
//
// Rows get their numbers while their process holds the database's lock, so no slot is written by two. A key is synced
// before its row is committed, so a row that is there has its key. A crash in between leaves a key in a slot without a
// row, which the next row overwrites. No number is given twice: who destroys a key late would reach another's.
//
// A file of slots has a random number, which its rows name. Where it is missing, new values begin another: a backup may
// have been restored without it, and it can be put back beside the new one.
package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger/storage"
)

// A form is what tables a file has, and their version. Files of before were made by programs that were never released.
type form struct{ schema, version string }

//go:embed schema.sql
var logSchema string

var logForm = form{logSchema, "16"}

const (
	pageSize = 8192
	// movedAt is about how many pages the write-ahead log has when a commit moves it into the database file, if the disk has room: see pace.
	movedAt = 1024
)

// Store is a storage.Store in a file. It is safe for concurrent use.
type Store struct {
	*storage.SQL
	path     string
	form     form
	unsafe   bool // see UnsafeCreate
	lockTime time.Duration
	readers  *sql.DB
	reader   *runner   // on readers, which closes its statements
	writers  *sql.DB   // of one connection
	readOnly error     // why the file cannot be written; nil if it can
	before   *snapshot // of files that are read without a lock; nil if there is a lock
	files    []opened  // none: they are open for reading only
	closed   atomic.Bool
	trouble  atomic.Pointer[trouble] // nil if the last transaction succeeded

	writing  storage.Lock // held while a transaction of this process runs
	writer   *sql.Conn    // guarded by writing, like the next members
	prepared *runner      // on it
	still    bool         // commits leave the write-ahead log where it is
}

var _ storage.Store = (*Store)(nil)

// Create makes the file and its tables, and opens it. It accepts a file that has them already, so that it can be
// repeated after a crash. ledger.Create makes sure that a log is not begun twice.
func Create(ctx context.Context, path string) (*Store, error) {
	return begin(ctx, path, logForm, "FULL")
}

func begin(ctx context.Context, path string, form form, synchronous string) (_ *Store, err error) {
	defer fault.While(&err, "creating database %s", path)
	made, err := createFile(path)
	if err == nil && made {
		err = beginFile(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, path, form, synchronous)
	if err == nil {
		s.unsafe = synchronous == "OFF"
		err = s.prepare(ctx, s.createTables)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Open opens a file that Create has made. If the file is missing, the error
// wraps fs.ErrNotExist. If the file or its folder cannot be written, Open opens it for reading, and methods that
// write return storage.ErrReadOnly.
func Open(ctx context.Context, path string) (_ *Store, err error) {
	defer fault.While(&err, "opening database %s", path)
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	if why := protected(path); why != nil {
		s, err := openReadOnly(ctx, path, logForm, why)
		return s, translate(err)
	}
	if err := giveWay(path); err != nil {
		return nil, err
	}
	s, err := open(ctx, path, logForm, "FULL")
	if err == nil {
		err = s.prepare(ctx, s.known)
	}
	if err != nil {
		return nil, whyNotOpened(path, err)
	}
	return s, nil
}

// createFile makes an empty file that only its owner can read. SQLite gives its other files the same mode. It does
// not open an existing file: closing it would drop this process's locks on it.
func createFile(path string) (made bool, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A crash here leaves an empty file, which SQLite treats as a database without tables.
	return true, errors.Join(file.Sync(), file.Close(), atomicfile.SyncFolders(filepath.Dir(path), filepath.Dir(path)))
}

// beginFile makes settings that SQLite accepts only for an empty file: the page size, and that free pages can be
// removed later. If a crash comes first, Reclaim makes them later.
func beginFile(ctx context.Context, path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return connected(absolute, url.Values{"mode": {"rw"}}, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, fmt.Sprintf(`PRAGMA page_size = %d; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA user_version = 0`, pageSize))
		return err
	})
}

func open(ctx context.Context, path string, form form, synchronous string) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// A typical record fits on one page. With larger pages, the commit of one record would write more than it must.
	// SQLite does not wait for locks (_busy_timeout), because it knows no contexts: see retry.
	// Deleted content is overwritten (secure_delete), so that expired texts do not stay in free parts of pages.
	settings := url.Values{"mode": {"rw"}, "_busy_timeout": {"0"}, "_synchronous": {synchronous}, "_foreign_keys": {"1"}, "_dqs": {"0"}, "_defensive": {"1"},
		"_error_rc": {"1"}, "_pragma": {fmt.Sprintf("page_size(%d)", pageSize), fmt.Sprintf("wal_autocheckpoint(%d)", movedAt), "secure_delete(1)"}}
	s := newStore(absolute, form)
	if s.writers, err = sql.Open("sqlite", dataSource(absolute, settings)); err != nil {
		return nil, err
	}
	s.writers.SetMaxOpenConns(1)
	if err := s.openReaders(settings); err != nil { // readers wait only during recovery after a crash
		return nil, errors.Join(err, s.writers.Close())
	}
	waiting, cancel := context.WithTimeoutCause(ctx, s.lockTime, errWaited)
	defer cancel()
	if err := s.retry(waiting, func() error { return s.connect(waiting) }); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect makes the connection that writes. A file of another form stays as it is: it may be a backup, in which one other byte is damage.
func (s *Store) connect(ctx context.Context) (err error) {
	if s.writer == nil {
		if s.writer, err = s.writers.Conn(ctx); err != nil {
			return translate(err)
		}
		s.prepared = &runner{on: s.writer}
	}
	var tables int
	if err = s.writer.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err == nil && tables > 0 {
		err = s.known(ctx)
	}
	if err == nil {
		_, err = s.writer.ExecContext(ctx, `PRAGMA journal_mode = WAL`)
	}
	return translate(err)
}

func newStore(path string, form form) *Store {
	s := &Store{path: path, form: form, lockTime: lockTime, writing: storage.NewLock()}
	s.SQL = storage.NewSQL(engine{s}, dialect)
	return s
}

func dataSource(path string, settings url.Values) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String()
}

// prepare runs the first transaction, and notes which files are open. After an error it closes them.
func (s *Store) prepare(ctx context.Context, first func(context.Context) error) error {
	err := s.transact(ctx, first)
	if err == nil {
		err = s.remember()
	}
	if err != nil {
		err = errors.Join(err, s.Close())
	}
	return err
}

func (s *Store) createTables(ctx context.Context) error {
	var tables int
	if err := s.writer.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return translate(err)
	}
	if tables > 0 {
		return s.known(ctx)
	}
	_, err := s.writer.ExecContext(ctx, s.form.schema+`; INSERT INTO meta VALUES ('schema', ?)`, s.form.version)
	return translate(err)
}

func (s *Store) known(ctx context.Context) error { return s.form.known(ctx, s.writer) }

type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// known returns an error if the file is not a ledger, or its tables have another version than this program's.
func (f form) known(ctx context.Context, in rowQuerier) error {
	var tables int
	if err := in.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'meta' AND type = 'table'`).Scan(&tables); err != nil {
		return translate(err)
	}
	if tables == 0 {
		return errors.New("this file is not a ledger")
	}
	var has string
	if err := in.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'schema'`).Scan(&has); err != nil {
		return translate(err)
	}
	if backup := strings.HasPrefix(has, "jurat/backup/"); has != f.version && (backup || f.version == backupForm.version) {
		return fmt.Errorf("this file is a %q and not a %q; 'jurat init --from FILE' of the jurat that made a backup makes an installation from it", has, f.version)
	}
	return storage.Known(has, f.version)
}

// Close implements storage.Store. It waits for the running transaction. When the last process closes the file, SQLite
// moves the write-ahead log into it, if the disk has room for that. An open statement would prevent it.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.writing <- struct{}{}
	defer s.writing.Release()
	last, err := s.leave()
	errs := []error{err}
	if s.writer != nil {
		errs = append(errs, s.prepared.close(), s.writer.Close())
	}
	if s.writers != nil {
		errs = append(errs, s.writers.Close())
	}
	errs = append(errs, s.readers.Close())
	if last != nil {
		errs = append(errs, last.Close())
	}
	return errors.Join(append(errs, s.stood())...)
}

// UnsafeCreate is Create for tests, in a folder that goes with the test: nothing is synced, and no room is reserved.
// A crash of the machine may lose everything.
func UnsafeCreate(ctx context.Context, path string) (*Store, error) {
	file, err := emptyFile()
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("creating database: %w", err)
	}
	return begin(ctx, path, logForm, "OFF")
}

// emptyFile is a database with all tables: to make them takes longer than to copy them.
var emptyFile = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "jurat-empty-log-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "log.db")
	s, err := begin(context.Background(), path, logForm, "OFF")
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

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
	if s.form == backupForm {
		return alone(), nil
	}
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
