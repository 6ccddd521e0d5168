package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"jurat/internal/fault"
	"jurat/internal/ledger/storage"
)

// BackupFormat is the format and version of backups: a log, the values sealed apart of it, and the small files of its installation, in one
// SQLite file. Its last bytes, which SQLite does not read, are the SHA-256 of all others.
const BackupFormat = "jurat/backup/v2"

// backupForm is what makes a backup of a log's file. No program takes it for a log.
var backupForm = form{`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;` + valuesSchema +
	`CREATE TABLE files (path TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
	UPDATE meta SET value = ?1 WHERE name = 'schema'; INSERT INTO meta VALUES ('about', ?2)`, BackupFormat + " of log " + logForm.version}

// CopyFile writes one committed state of a database into a new file. Other processes can read and append meanwhile.
func CopyFile(ctx context.Context, from, to string) error {
	return reading(from, func(db *sql.DB) error {
		// SQLite copies within one read transaction: the copy lacks later commits, and they do not wait for it.
		if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
			return errors.Join(err, ctx.Err())
		}
		return os.Chmod(to, 0o600)
	})
}

// reading opens a database that others may use, also on a medium that cannot be written.
func reading(from string, do func(*sql.DB) error) (err error) {
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
	db.SetMaxOpenConns(1)
	return errors.Join(translate(do(db)), db.Close(), source.stood())
}

// moveValues copies values to a file that has none, with the numbers that say which keys are theirs. No number is given twice.
func moveValues(ctx context.Context, from, to string) error {
	return reading(from, func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, `ATTACH ? AS copy`, to); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, `BEGIN; INSERT INTO copy.apart SELECT id, name, keys, sealed FROM main.apart;
			DELETE FROM copy.sqlite_sequence; INSERT INTO copy.sqlite_sequence SELECT name, seq FROM main.sqlite_sequence; COMMIT`)
		return errors.Join(err, ctx.Err())
	})
}

// MakeBackup makes a backup of a closed copy of a log. fill puts small files into it, and the values of a data folder. about is what the backup
// says about itself. After an error the file is of no use: the caller gives it its name when it is complete.
func MakeBackup(ctx context.Context, path, about string, fill func(put func(name string, content []byte) error, values func(dir string) error) error) error {
	if err := reading(path, func(db *sql.DB) error {
		if err := logForm.known(ctx, db); err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, backupForm.schema, backupForm.version, about); err != nil {
			return err
		}
		return fill(func(name string, content []byte) error {
			_, err := db.ExecContext(ctx, `INSERT INTO files VALUES (?, ?)`, name, content)
			return err
		}, func(dir string) error {
			from := filepath.Join(dir, filepath.FromSlash(ValuesFile))
			if there, err := exists(from); !there {
				return err
			}
			return moveValues(ctx, from, path)
		})
	}); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err = io.Copy(sum, file); err == nil {
		_, err = file.Write(sum.Sum(nil))
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// OpenBackup opens the log in a backup for reading, and checks that every byte of the file is as it was written. It also returns what the backup
// says about itself.
func OpenBackup(ctx context.Context, path string) (s *Store, about string, err error) {
	defer fault.While(&err, "opening backup %s", path)
	if err := checkDigest(path); err != nil {
		return nil, "", err
	}
	if s, err = openReadOnly(ctx, path, backupForm, errors.New("a backup is only read")); err != nil {
		return nil, "", translate(err)
	}
	if err := s.readers.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'about'`).Scan(&about); err != nil {
		return nil, "", errors.Join(translate(err), s.Close())
	}
	return s, about, nil
}

func checkDigest(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // closing a file that was only read loses nothing
	info, err := file.Stat()
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, file, max(0, info.Size()-sha256.Size)); err != nil {
		return err
	}
	last, err := io.ReadAll(file)
	if err == nil && !bytes.Equal(sum.Sum(nil), last) {
		err = errors.New("the file is damaged, cut off, or no backup: its last 32 bytes are not the SHA-256 of all before them")
	}
	return err
}

// Files calls found for each small file in a backup.
func (s *Store) Files(ctx context.Context, found func(name string, content []byte) error) error {
	return engine{s}.Read(ctx, func(from storage.Reader) error {
		return from.Run(ctx, storage.Statement{Text: `SELECT path, content FROM files ORDER BY path`, Row: func(scan storage.Scan) error {
			var name string
			var content []byte
			if err := scan(&name, &content); err != nil {
				return err
			}
			return found(name, content)
		}})
	})
}

// UnpackValues makes the file of values in a folder that has none, from a backup.
func (s *Store) UnpackValues(ctx context.Context, dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(ValuesFile))
	if err := mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	values, err := begin(ctx, path, valuesForm, "FULL")
	if err != nil {
		return err
	}
	return errors.Join(moveValues(ctx, s.path, path), values.Close())
}
