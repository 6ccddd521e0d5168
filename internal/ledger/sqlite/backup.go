package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// Backup writes one committed state of a database into a new file and syncs it. Other processes can read and append
// meanwhile.
func Backup(ctx context.Context, from, to string) error {
	if err := backup(ctx, from, to); err != nil {
		return fmt.Errorf("copying database %s: %w", from, err)
	}
	return nil
}

func backup(ctx context.Context, from, to string) (err error) {
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
