package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/test/must"
)

func open(t *testing.T, path string, pragmas ...string) *sql.DB {
	t.Helper()
	db := must.Get(sqlite.OpenFile(path, pragmas...))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func do(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	must.Need(t, err == nil, "%s: %v", statement, err)
}

// TestFileIsShared: every character of a path is part of the file's name, two connections share the file, and each has the settings.
func TestFileIsShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a file?mode=ro#100%.db")
	one, other := open(t, path, "synchronous(NORMAL)"), open(t, path)
	do(t, one, "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (7)")
	for name, want := range map[string]string{"journal_mode": "wal", "busy_timeout": "10000", "synchronous": "1"} {
		var got string
		err := one.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&got)
		must.Hold(t, err == nil && got == want, "%s is %s, %v; want %s", name, got, err, want)
	}
	var n int
	err := other.QueryRowContext(t.Context(), "SELECT n FROM t").Scan(&n)
	must.Hold(t, err == nil && n == 7, "the other connection reads %d, %v", n, err)
	found, err := filepath.Glob(filepath.Dir(path) + "/a file?mode=ro#100%.db")
	must.Hold(t, err == nil && len(found) == 1, "found %v, %v", found, err)
}

// TestFileInMemory: all callers of a database in memory see one database, and another one is apart.
func TestFileInMemory(t *testing.T) {
	db := open(t, "")
	do(t, db, "CREATE TABLE t (n INTEGER)")
	done := make(chan error)
	for i := range 8 {
		go func() { _, err := db.Exec(fmt.Sprintf("INSERT INTO t VALUES (%d)", i)); done <- err }()
	}
	for range 8 {
		must.Want(t, <-done, nil)
	}
	_, err := open(t, "").ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	must.Hold(t, sqlite.Code(err) == sqlite3.SQLITE_ERROR, "another database: %v", err)
	must.Equal(t, sqlite.Code(fmt.Errorf("not of SQLite")), 0)
}
