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

	"jurat/internal/sqlitefile"
)

//go:embed schema.sql
var schema string

// version of the tables, and of the rules by which texts are cut into pieces. A file of another version is made again.
const version = 4

// openFile opens the file of an index, and makes it if it is missing, damaged or of another version. For the path "", or
// if the folder cannot be written, the index is in memory.
func openFile(ctx context.Context, path string) (*sql.DB, error) {
	if path == "" {
		return openMemory(ctx)
	}
	db, err := openTables(ctx, path)
	switch code := codeOf(err); {
	case err == nil:
		return db, nil
	case code == sqlite3.SQLITE_READONLY, code == sqlite3.SQLITE_CANTOPEN, code == sqlite3.SQLITE_PERM:
		return openMemory(ctx)
	case code == sqlite3.SQLITE_CORRUPT, code == sqlite3.SQLITE_NOTADB, errors.Is(err, errVersion):
		if err := removeFile(path); err != nil {
			return nil, fmt.Errorf("replacing the index of words: %w", err)
		}
		db, err = openTables(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the index of words in %s: %w", path, err)
	}
	return db, nil
}

func openMemory(ctx context.Context) (*sql.DB, error) {
	db, err := openTables(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("making an index of words in memory: %w", err)
	}
	return db, nil
}

var errVersion = errors.New("the index of words is of another version")

func openTables(ctx context.Context, path string) (*sql.DB, error) {
	// What is deleted is overwritten. A commit does not wait for the disk, because the log has everything.
	db, err := sqlitefile.Open(path, "synchronous(NORMAL)", "secure_delete(ON)", "cache_size(-32000)")
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if path != "" {
		if err := os.Chmod(path, 0o600); err != nil { // it shows words of records
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// prepare makes the tables of a new file. It returns errVersion for a file of another version.
func prepare(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	var has int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil || has == version {
		return err
	}
	if has != 0 {
		return errVersion
	}
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
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

// marks returns n placeholders for values in a list.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
