// Package sqlite keeps a log in one SQLite file. Several processes on one machine may have it open.
//
// The file is in WAL mode with synchronous=FULL: a transaction is durable when COMMIT returns, because the write-ahead
// log was synced; a crash before that leaves no trace of it. Readers see the last committed state and block nobody.
//
// # A record's first time stamp stands in its row
//
// Nearly every record has just one. In SQLite a row of its own for it cost as much as the record's: a statement, a place in another
// tree, a page that is not quite full. What comes later is in a table of its own, since rows of records never change.
//
// # The digest's index is in stretches
//
// An index over random digests has each record write a page of its own, the more the larger the log is. So digests are indexed by
// stretches of 2048 places (their first eight bytes, in SQLite): what is new goes to a few pages, and a search asks one stretch
// after the other, the newest first, about 1.5 µs each: under a millisecond in a log of a million. What is asked for by digest is
// almost always recent. Refused: a unique index, since the record id, which is unique, is part of what the digest is of.
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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"jurat/internal/ledger/storage"
)

//go:embed schema.sql
var schema string

//go:embed waiting.sql
var waitingTable string

//go:embed trials.sql
var trialsIndex string

//go:embed digests.sql
var digestsByPlace string

//go:embed archives.sql
var archivesTable string

//go:embed briefs.sql
var briefsTables string

// unswept marks a file whose deleted texts may still be in free parts of its pages, as earlier programs left them there: see Reclaim.
const unswept = `INSERT INTO meta SELECT 'unswept', '' WHERE EXISTS (SELECT 1 FROM records)`

// versions are the statements that lead to each version of the tables, from 1 on, from the one before. What has been
// given out is never changed: an older file is brought up to date by those that it lacks.
var versions = []string{schema, waitingTable, trialsIndex, digestsByPlace, archivesTable, unswept, briefsTables}

const pageSize = 8192

// Store is a storage.Store in a file. It is safe for concurrent use.
type Store struct {
	path      string
	lockTime  time.Duration
	readers   *sql.DB
	queries   sync.Map // string to *sql.Stmt of readers, which go when those are closed
	writers   *sql.DB  // of one connection
	mover     *mover
	readOnly  error     // why nothing can be written; nil: it can
	briefless bool      // the tables are of a version without briefs, and nothing can be written
	before    *snapshot // of files that are read without a lock; nil: there is a lock
	closed    atomic.Bool
	trouble   atomic.Pointer[trouble] // nil: the last transaction succeeded

	writing           storage.Lock // held while a transaction of this process is at work
	writer            *sql.Conn    // guarded by writing, like the statements on it
	record            *sql.Stmt
	hashes            *sql.Stmt
	timestamp         *sql.Stmt
	wait              *sql.Stmt
	settled           *sql.Stmt
	late              *sql.Stmt // a time stamp of an earlier row
	head              *sql.Stmt
	headNow           *sql.Stmt
	places            *sql.Stmt
	inChain           *sql.Stmt
	ofCase            *sql.Stmt
	brief, manyBriefs *sql.Stmt
	link, manyLinks   *sql.Stmt
}

var (
	_ storage.Store     = (*Store)(nil)
	_ storage.Prober    = (*Store)(nil)
	_ storage.Protected = (*Store)(nil)
)

// Create makes the file with the tables in it, and opens it. It opens a file that has them already, so that it can be
// repeated after a crash; that a log is not begun twice is for ledger.Create to see to.
func Create(ctx context.Context, path string) (*Store, error) {
	made, err := createFile(path)
	if err == nil && made {
		err = beginFile(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("creating database: %w", err)
	}
	s, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("creating database %s: %w", path, err)
	}
	if err := s.prepare(ctx, s.createTables); err != nil {
		return nil, errors.Join(fmt.Errorf("creating database %s: %w", path, err), s.Close())
	}
	return s, nil
}

// Open opens a file that Create has made. One that is missing is an fs.ErrNotExist. Where nothing can be written it is opened for reading,
// and what would write returns ledger.ErrReadOnly.
func Open(ctx context.Context, path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("opening database: %w", err)
	}
	if why := protected(path); why != nil {
		s, err := openReadOnly(ctx, path, why)
		if err != nil {
			return nil, fmt.Errorf("opening database %s: %w", path, translate(err))
		}
		return s, nil
	}
	if err := giveWay(path); err != nil {
		return nil, fmt.Errorf("opening database %s: %w", path, err)
	}
	s, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("opening database %s: %w", path, whyNotOpened(path, err))
	}
	if err := s.prepare(ctx, s.update); err != nil {
		return nil, errors.Join(fmt.Errorf("opening database %s: %w", path, whyNotOpened(path, err)), s.Close())
	}
	return s, nil
}

// createFile makes an empty file that only its owner can read; SQLite gives the same mode to the files beside it. An
// existing one is not touched: closing a file that SQLite has open would drop the locks of this process on it.
func createFile(path string) (made bool, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A crash here leaves an empty file, which SQLite takes for a database without tables.
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return false, errors.Join(err, file.Close())
	}
	return true, errors.Join(file.Sync(), file.Close(), folder.Sync(), folder.Close())
}

// beginFile settles what can only be settled before anything is in the file: that the room of what is archived can be given back,
// see Reclaim, which settles it later where a crash comes first.
func beginFile(ctx context.Context, path string) (err error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dataSource(absolute, url.Values{"mode": {"rw"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, fmt.Sprintf(`PRAGMA page_size = %d; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA user_version = 0`, pageSize))
	return translate(err)
}

func open(ctx context.Context, path string) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// Pages hold a usual record whole. Larger ones make a commit of one record write more than it must.
	// Waiting for a lock is not left to SQLite, which does not hear of contexts: see begin.
	// What is deleted is overwritten: texts that have gone into an archive, or have expired there, must not stay in free parts of pages.
	settings := url.Values{"mode": {"rw"}, "_busy_timeout": {"0"}, "_pragma": {fmt.Sprintf("page_size(%d)", pageSize), fmt.Sprintf("wal_autocheckpoint(%d)", movedByCommit), "secure_delete(1)"}, "_journal_mode": {"WAL"},
		"_synchronous": {"FULL"}, "_foreign_keys": {"1"}, "_dqs": {"0"}, "_defensive": {"1"}, "_error_rc": {"1"}}
	s := &Store{path: absolute, lockTime: lockTime, writing: storage.NewLock()}
	if s.writers, err = sql.Open("sqlite", dataSource(absolute, settings)); err != nil {
		return nil, err
	}
	s.writers.SetMaxOpenConns(1)
	if err := s.openReaders(settings); err != nil { // only recovery after a crash makes one of them wait
		return nil, errors.Join(err, s.writers.Close())
	}
	waiting, cancel := context.WithTimeoutCause(ctx, s.lockTime, errWaited)
	defer cancel()
	if err := s.retry(waiting, func() (err error) { s.writer, err = s.writers.Conn(waiting); return translate(err) }); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.mover, err = newMover(absolute); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func dataSource(path string, settings url.Values) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String()
}

// first runs the first transaction. Foreign keys are not enforced in it: a table that is made anew is the same under them.
func (s *Store) first(ctx context.Context, do func(context.Context) error) error {
	if err := s.exec(`PRAGMA foreign_keys = OFF`); err != nil {
		return err
	}
	return errors.Join(s.transact(ctx, do), s.exec(`PRAGMA foreign_keys = ON`))
}

// prepare runs the first transaction and makes the statements of the later ones.
func (s *Store) prepare(ctx context.Context, first func(context.Context) error) error {
	if err := s.first(ctx, first); err != nil {
		return err
	}
	for text, statement := range map[string]**sql.Stmt{
		`INSERT INTO records (idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, payload, signatures, kind, token)
			VALUES (?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?)`: &s.record,
		`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?3)
			INSERT INTO hashes (idx, hash) SELECT ?1 + i, substr(?2, 32 * i + 1, 32) FROM n`: &s.hashes,
		`UPDATE head SET size = ?, root = ?`:                                      &s.head,
		`INSERT INTO timestamps (idx, position, kind, token) VALUES (?, ?, ?, ?)`: &s.timestamp,
		`INSERT INTO timestamps (idx, position, kind, token)
			SELECT ?1, coalesce((SELECT max(position) + 1 FROM timestamps WHERE idx = ?1), kind IS NOT NULL), ?2, ?3 FROM records WHERE idx = ?1
			AND (kind, token) IS NOT (?2, ?3) AND NOT EXISTS (SELECT 1 FROM timestamps WHERE idx = ?1 AND kind = ?2 AND token = ?3)`: &s.late,
		`INSERT INTO waiting (authority, idx, since) VALUES (?, ?, ?)`: &s.wait,
		`DELETE FROM waiting WHERE authority = ? AND idx = ?`:          &s.settled,
		insertBrief + briefColumns:                                     &s.brief,
		insertBrief + manyRows:                                         &s.manyBriefs,
		insertLink + briefColumns:                                      &s.link,
		insertLink + manyRows:                                          &s.manyLinks,

		selectHead: &s.headNow,
		`SELECT record_id, idx FROM json_each(?) CROSS JOIN records ON record_id = value`: &s.places,
		// The last count is the number: the log counts without gaps.
		`SELECT chain_seq FROM records WHERE chain_id = ? ORDER BY chain_seq DESC LIMIT 1`:  &s.inChain,
		`SELECT case_seq FROM records WHERE case_digest = ? ORDER BY case_seq DESC LIMIT 1`: &s.ofCase,
	} {
		prepared, err := s.writer.PrepareContext(ctx, text)
		if err != nil {
			return translate(err)
		}
		*statement = prepared
	}
	return nil
}

func (s *Store) createTables(ctx context.Context) error {
	var tables int
	if err := s.writer.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return translate(err)
	}
	if tables > 0 {
		return s.update(ctx)
	}
	if err := s.updateFrom(ctx, 0); err != nil {
		return err
	}
	_, err := s.writer.ExecContext(ctx, `INSERT INTO head VALUES (1, 0, ?, '')`, storage.EmptyHead.Root[:])
	return translate(err)
}

// update brings an older file's tables up to this program's version, in the transaction that found them older.
func (s *Store) update(ctx context.Context) error {
	version, err := version(ctx, s.writer)
	if err != nil {
		return err
	}
	return s.updateFrom(ctx, version)
}

func (s *Store) updateFrom(ctx context.Context, version int) error {
	if version == len(versions) {
		return nil
	}
	for _, statements := range versions[version:] {
		if _, err := s.writer.ExecContext(ctx, statements); err != nil {
			return translate(err)
		}
	}
	_, err := s.writer.ExecContext(ctx, `INSERT OR REPLACE INTO meta VALUES ('schema', ?)`, strconv.Itoa(len(versions)))
	return translate(err)
}

// version is that of the tables in the file, which must be one that this program knows.
func version(ctx context.Context, in querier) (int, error) {
	var tables int
	err := in.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'meta'`).Scan(&tables)
	if err != nil {
		return 0, translate(err)
	}
	if tables == 0 {
		return 0, errors.New("this file is not a ledger")
	}
	var text string
	if err := in.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'schema'`).Scan(&text); err != nil {
		return 0, translate(err)
	}
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 || version > len(versions) {
		return 0, fmt.Errorf("the tables have the version %q, this program knows 1 to %d", text, len(versions))
	}
	return version, nil
}

// Close implements storage.Store. It waits for the transaction that is at work. The last to close the file has SQLite
// move the write-ahead log into it, which a statement left open would prevent.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.writing <- struct{}{}
	defer s.writing.Release()
	var errs []error
	for _, statement := range []*sql.Stmt{s.record, s.hashes, s.timestamp, s.wait, s.settled, s.late, s.head, s.headNow, s.places, s.inChain, s.ofCase, s.brief, s.manyBriefs, s.link, s.manyLinks} {
		if statement != nil {
			errs = append(errs, statement.Close())
		}
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	if s.mover != nil {
		errs = append(errs, s.mover.close())
	}
	if s.writers != nil {
		errs = append(errs, s.writers.Close())
	}
	return errors.Join(append(errs, s.readers.Close(), s.stood())...)
}
