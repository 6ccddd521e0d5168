package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"jurat/internal/fault"
)

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
