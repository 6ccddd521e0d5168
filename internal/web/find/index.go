// Package find answers who said something and when, and which trials match a search: over a whole log, in a fraction of a second.
//
// # The index of words is a file that can be made again
//
// The index is a SQLite file beside the log, find.db in the data folder of each machine. It holds no original: if it is missing, damaged, of
// another version or of another log, the next use makes it again from the records, and reports progress. So the log's database stays as it is, and
// PostgreSQL and SQLite share one search. If the folder cannot be written, the index is in memory. Follow reads what any process appended since the
// last time, a batch in a transaction: sealing a record costs nothing for it. Several processes may do that at once; each goes on where another ended.
//
// # Words are found by pieces of them, and every hit is checked
//
// SQLite's full-text index (FTS5) says which records have which terms. A term stands for a piece of three characters, or of two where one of them
// is of a script that is written without spaces. So every quotation is found in any language, from three letters or two characters of Japanese on,
// with its punctuation. Letter case, compatible forms (NFKC) and the length of white space make no difference. Other terms stand for an actor, an
// action or a chain. A record that has all terms is opened, and shown only if it has the text itself: in a string of prompt, context, response,
// tools_used, metadata, changes or modified_response.
//
// A term is a hash under a key that each file has for itself. FTS5 keeps neither texts nor where in a record a term is: in a million records of two
// kilobytes that is about a byte for each different piece of a record. Refused: the trigrams of FTS5, which do not find Japanese words of two, and
// its deletion of words by their text, because the text of an expired record is gone.
//
// # What was sealed apart is in no index, and what has expired leaves it
//
// The index is made of records as the log has them, with commitments in the place of what was sealed apart. As soon as the content of expired
// records is gone, the index is emptied, its file and its write-ahead log are cut off, and it is made again from what is left. Even before that a
// record that has expired is not shown, because it cannot be opened.
//
// # A search says nothing about what its reader may not read
//
// A reader who may not read everything brings a Scope: the trials or the actor that the search is limited to. It limits the candidates, before they
// are opened or counted, so neither hits nor pages depend on other records.
package find

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"jurat/evidence"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/sqlite"
	"jurat/jury"
)

// An Index finds records by their words, and by who sealed them, how and when. It is safe for concurrent use, also by
// several processes with the same file.
type Index struct {
	ledger *ledger.Ledger
	db     *sql.DB
	key    []byte // of the terms

	following chan struct{} // holds one element while one caller reads the log
	next      atomic.Int64  // the place of the next record to read, when the file was last looked at
	size      atomic.Int64  // of the log, when it was last looked at
}

// Open opens the index of a log in a file, "" for one in memory. Follow fills it. Its errors are those of the file and
// of reading the log.
func Open(ctx context.Context, l *ledger.Ledger, path string) (*Index, error) {
	db, err := openFile(ctx, l, path)
	if err != nil {
		return nil, err
	}
	x := &Index{ledger: l, db: db, following: make(chan struct{}, 1)}
	var next int64
	// An empty index may have followed another log's acts on expiry. It is not made again: others that have it open have its key.
	_, err = db.ExecContext(ctx, "UPDATE state SET expired = 0 WHERE next = 0 AND expired > 0")
	if err == nil {
		err = db.QueryRowContext(ctx, "SELECT next, key FROM state").Scan(&next, &x.key)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the index of words: %w", err), db.Close())
	}
	x.next.Store(next)
	return x, nil
}

// Close closes the file.
func (x *Index) Close() error { return x.db.Close() }

// Progress says how much of the log the index had when Follow was called last.
func (x *Index) Progress() (done, total int64) {
	done = x.next.Load()
	return done, max(done, x.size.Load())
}

// A doc is what the index takes from a record.
type doc struct {
	place  int64
	action evidence.ActionType
	role   evidence.Role
	actor  string
	agent  string // of a recorder's act: whose act it saw
	at     time.Time
	chain  string
	texts  []string // folded
	bytes  int
	sum           // of its chain, as far as this record alone says
	notes  []note // of what is looked up otherwise
}

// A sum is what the index knows of a chain.
type sum struct {
	Sight  *Sight   `json:"sight,omitempty"` // what recorders saw in it; nil: nothing
	Last   int64    `json:"last,omitempty"`  // the place of the last record about that
	Jurors []string `json:"jurors,omitempty"`
	Models []string `json:"models,omitempty"`
}

// plus adds what a later record says.
func (s *sum) plus(d *doc) {
	if d.Sight != nil {
		if s.Sight == nil {
			s.Sight = new(*d.Sight)
		} else {
			s.Sight.plus(d.Sight)
		}
		s.Last = d.place
	}
	s.Jurors, s.Models = union(s.Jurors, d.Jurors), union(s.Models, d.Models)
}

type note struct {
	kind, name string
	at         int64
	value      string
}

func docOf(place int64, p *evidence.Payload) *doc {
	d := &doc{place: place, action: p.ActionType, role: p.Role(), actor: p.Actor(), at: p.Time(), chain: p.ChainID}
	for _, passage := range Passages(p) {
		if text := Fold(passage.Text); text != "" {
			d.texts, d.bytes = append(d.texts, text), d.bytes+len(text)
		}
	}
	d.seat(p)
	d.note(p)
	return d
}

// seat takes the jurors and models that an act of a trial names: an opening names those who are to speak, and each act the model that
// spoke.
func (d *doc) seat(p *evidence.Payload) {
	if !inTrial(p.ChainID) {
		return
	}
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if name = Fold(name); name != "" {
				*list = append(*list, name)
			}
		}
	}
	if d.role == evidence.RoleJuror || d.role == evidence.RoleJudge {
		add(&d.Jurors, d.actor)
		add(&d.Models, p.Model, p.ModelVersion)
	}
	if p.ActionType != evidence.PhaseOpening {
		return
	}
	body, err := jury.DecodeBody(p.ActionType, p.Response)
	opening, ok := body.(*jury.Opening)
	if err != nil || !ok { // package trial reports an unreadable opening
		return
	}
	for _, s := range opening.Settings.Everyone() {
		add(&d.Jurors, s.JurorID, s.RoleName)
		add(&d.Models, s.Model)
	}
}

func inTrial(chain string) bool { return strings.HasPrefix(chain, evidence.TrialPrefix) }

//go:embed schema.sql
var schema string

// version of the tables, and of the rules by which texts are cut into terms. A file of another version is made again.
const version = 6

// openFile opens the file of the index of a log, and makes it if it is missing, damaged, of another version or of another log. For the
// path "", or if the folder cannot be written, the index is in memory.
func openFile(ctx context.Context, l *ledger.Ledger, path string) (*sql.DB, error) {
	db, err := openTables(ctx, l, path)
	switch code := codeOf(err); {
	case err == nil:
		return db, nil
	case path == "":
		return nil, fmt.Errorf("making an index of words in memory: %w", err)
	case code == sqlite3.SQLITE_READONLY, code == sqlite3.SQLITE_CANTOPEN, code == sqlite3.SQLITE_PERM:
		return openFile(ctx, l, "")
	case code == sqlite3.SQLITE_CORRUPT, code == sqlite3.SQLITE_NOTADB:
		if err := removeFile(path); err != nil {
			return nil, fmt.Errorf("replacing the index of words: %w", err)
		}
		db, err = openTables(ctx, l, path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the index of words in %s: %w", path, err)
	}
	return db, nil
}

var errOther = errors.New("the index of words is of another log")

func openTables(ctx context.Context, l *ledger.Ledger, path string) (*sql.DB, error) {
	// What is deleted is overwritten. A commit does not wait for the disk, because the log has everything.
	db, err := sqlite.OpenFile(path, "synchronous(NORMAL)", "secure_delete(ON)", "cache_size(-32000)")
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, l, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if path != "" {
		if err := os.Chmod(path, 0o600); err != nil { // it has names, and terms of words beside their key
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// prepare makes the tables of a new file, and makes those anew of a file of another version or of another log. Processes that come to this at the
// same moment do it one after the other, so the second finds it done: a file that was replaced would leave them with two, each under the key of one.
func prepare(ctx context.Context, l *ledger.Ledger, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	var has int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return err
	}
	if has == version {
		if err := checkLog(ctx, l, tx); !errors.Is(err, errOther) {
			return err
		}
	}
	if err := dropAll(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d; PRAGMA secure_delete = ON", version)); err != nil {
		return err
	}
	return tx.Commit()
}

// dropAll removes all tables, and leaves what they had in free pages, as change.empty does. Those of a virtual table go with it.
func dropAll(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "PRAGMA secure_delete = OFF"); err != nil {
		return err
	}
	for {
		names, err := list(ctx, tx, one[string], "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY sql NOT LIKE 'CREATE VIRTUAL%' LIMIT 1")
		if err != nil || len(names) == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DROP TABLE "`+strings.ReplaceAll(names[0], `"`, `""`)+`"`); err != nil {
			return err
		}
	}
}

// checkLog returns errOther if the log does not have the last record of the index at its place: a log that was restored from an older
// backup may have grown differently since.
func checkLog(ctx context.Context, l *ledger.Ledger, tx *sql.Tx) error {
	var next int64
	var last string
	if err := tx.QueryRowContext(ctx, "SELECT next, last FROM state").Scan(&next, &last); err != nil || next == 0 {
		return err
	}
	size, err := l.Size(ctx)
	switch {
	case err != nil:
		return err
	case size < next:
		return errOther
	}
	rows, err := l.RowsFrom(ctx, next-1, 1)
	if err == nil && rows[0].RecordID != last {
		err = errOther
	}
	return err
}

func removeFile(path string) (err error) {
	for _, end := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(path + end); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// codeOf returns SQLite's primary code of an error; 0 for other errors.
func codeOf(err error) int {
	if errors.Is(err, os.ErrPermission) {
		return sqlite3.SQLITE_PERM
	}
	return sqlite.Code(err)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// list returns the rows of an answer. into returns the addresses of a row's columns.
func list[T any](ctx context.Context, db querier, into func(*T) []any, query string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var row T
		if err := rows.Scan(into(&row)...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// one is the address of the column of a row that has one.
func one[T any](row *T) []any { return []any{row} }
