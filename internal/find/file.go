package find

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/ledger"
	"jurat/internal/sqlitefile"
)

//go:embed schema.sql
var schema string

// version of the tables, and of the rules by which texts are cut into terms. A file of another version is made again.
const version = 5

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
	db, err := sqlitefile.Open(path, "synchronous(NORMAL)", "secure_delete(ON)", "cache_size(-32000)")
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
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
}

// dropAll removes all tables. Those of a virtual table go with it.
func dropAll(ctx context.Context, tx *sql.Tx) error {
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
	return sqlitefile.Code(err)
}

// A querier is a database or a transaction.
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
