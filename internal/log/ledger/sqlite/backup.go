package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"

	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger/storage"
)

// BackupFormat is the format and version of backups: a log, the values sealed apart of it, and the small files of its installation, in one
// SQLite file. Its last bytes, which SQLite does not read, are the SHA-256 of all others.
const BackupFormat = "jurat/backup/v2"

// backupTables are what a backup has besides a log's tables. A file is in rows of at most partSize bytes, since one row is in memory as a whole.
const (
	backupTables = `CREATE TABLE files (path TEXT, part INTEGER, content BLOB NOT NULL, PRIMARY KEY (path, part)) STRICT;`
	partSize     = 1 << 20
)

// backupForm is the form of backups. No program takes it for a log's.
var backupForm = form{logSchema + valuesSchema + backupTables, BackupFormat + " of log " + logForm.version + " and values " + valuesForm.version}

// CopyFile writes one committed state of a database into a new file, whose path is absolute. Others can read and append meanwhile.
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
	return errors.Join(connected(absolute, settings, do), source.stood())
}

// connected calls do with one connection to a file, whose path is absolute.
func connected(path string, settings url.Values, do func(*sql.DB) error) error {
	settings.Set("_busy_timeout", "5000")
	db, err := sql.Open("sqlite", dataSource(path, settings))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(translate(do(db)), db.Close())
}

// moveValues copies values to a file that has none, with the numbers that say which keys are theirs. No number is given twice.
func moveValues(ctx context.Context, from *sql.DB, to string) error {
	if _, err := from.ExecContext(ctx, `ATTACH ? AS copy`, to); err != nil {
		return err
	}
	_, err := from.ExecContext(ctx, `BEGIN; INSERT INTO copy.apart SELECT id, name, keys, sealed FROM main.apart;
		DELETE FROM copy.sqlite_sequence WHERE name = 'apart'; INSERT INTO copy.sqlite_sequence SELECT name, seq FROM main.sqlite_sequence WHERE name = 'apart'; COMMIT`)
	return errors.Join(err, ctx.Err())
}

// A Draft is a backup that is being made.
type Draft struct {
	path string
	db   *sql.DB
}

// MakeBackup makes a backup of a closed copy of a log, which has a head. fill puts the rest into it, and returns what the backup says about itself.
// After an error the file is of no use: the caller gives it its name when it is complete. The path is absolute.
func MakeBackup(ctx context.Context, path string, fill func(*Draft, storage.Head) (about string, err error)) error {
	if err := connected(path, url.Values{"mode": {"rw"}}, func(db *sql.DB) error {
		if err := logForm.known(ctx, db); err != nil {
			return err
		}
		// What SQLite counted for itself may go. Other tables that jurat did not make are refused before more is copied: restore would not take them.
		if _, err := db.ExecContext(ctx, `PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
			DROP TABLE IF EXISTS sqlite_stat1; DROP TABLE IF EXISTS sqlite_stat4;`+valuesSchema+backupTables); err != nil {
			return err
		}
		if err := backupForm.only(ctx, db); err != nil {
			return err
		}
		from := &runner{on: db}
		head, err := storage.HeadIn(ctx, from)
		if err = errors.Join(err, from.close()); err != nil {
			return err
		}
		about, err := fill(&Draft{path, db}, head)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, `UPDATE meta SET value = ?1 WHERE name = 'schema'; INSERT INTO meta VALUES ('about', ?2)`, backupForm.version, about)
		return err
	}); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	sum, err := hash(ctx, file, info.Size())
	if err == nil {
		_, err = file.Write(sum)
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// Put puts a small file into a backup.
func (d *Draft) Put(ctx context.Context, name string, content io.Reader) error {
	text := make([]byte, partSize)
	for part := 0; ; part++ {
		n, err := io.ReadFull(content, text)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		if n > 0 || part == 0 {
			if _, err := d.db.ExecContext(ctx, `INSERT INTO files VALUES (?, ?, ?)`, name, part, text[:n]); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// PutValues puts the values of a data folder into a backup.
func (d *Draft) PutValues(ctx context.Context, dir string) error {
	from := filepath.Join(dir, filepath.FromSlash(ValuesFile))
	if there, err := exists(from); !there {
		return err
	}
	return reading(from, func(db *sql.DB) error { return moveValues(ctx, db, d.path) })
}

// OpenBackup opens the log in a backup for reading. It checks that every byte of the file is as it was written, and that it has no tables but those of a
// backup. It also returns what the backup says about itself.
func OpenBackup(ctx context.Context, path string) (s *Store, about string, err error) {
	defer fault.While(&err, "opening backup %s", path)
	absolute, err := filepath.Abs(path)
	if err == nil {
		err = checkDigest(ctx, absolute)
	}
	if err != nil {
		return nil, "", err
	}
	if s, err = openReadOnly(ctx, absolute, backupForm, errors.New("a backup is only read")); err != nil {
		return nil, "", translate(err)
	}
	if err = backupForm.only(ctx, s.readers); err == nil {
		err = translate(s.readers.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'about'`).Scan(&about))
	}
	if err != nil {
		return nil, "", errors.Join(err, s.Close())
	}
	return s, about, nil
}

// alone returns settings with which SQLite reads nothing but one file: what is beside a backup, under the names of its journals, was not checked.
func alone() url.Values { return url.Values{"mode": {"ro"}, "immutable": {"1"}} }

func checkDigest(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // closing a file that was only read loses nothing
	info, err := file.Stat()
	if err != nil {
		return err
	}
	sum, err := hash(ctx, file, info.Size()-sha256.Size)
	if err != nil {
		return err
	}
	last, err := io.ReadAll(io.LimitReader(file, sha256.Size+1))
	if err == nil && !bytes.Equal(sum, last) {
		err = errors.New("the file is damaged, cut off, or no backup: its last 32 bytes are not the SHA-256 of all before them")
	}
	return err
}

// hash returns the SHA-256 of the next bytes of a file.
func hash(ctx context.Context, file io.Reader, size int64) ([]byte, error) {
	sum := sha256.New()
	for done := int64(0); done < size; {
		n, err := io.CopyN(sum, file, min(size-done, 16<<20))
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		done += n
	}
	return sum.Sum(nil), nil
}

// only returns an error if a database has other tables than the form's, such as a view, which could say something else at each reading.
func (f form) only(ctx context.Context, in *sql.DB) (err error) {
	made, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	made.SetMaxOpenConns(1) // each connection would have a database of its own
	_, err = made.ExecContext(ctx, f.schema)
	want, failed := tables(ctx, made)
	has, unread := tables(ctx, in)
	err = errors.Join(err, failed, unread)
	for _, made := range slices.Concat(has, want) {
		if err == nil && !(slices.Contains(has, made) && slices.Contains(want, made)) {
			err = fmt.Errorf("its tables are not those of a %q: what jurat did not make must be dropped, and what it made must be there: %.100q", f.version, made)
		}
	}
	return err
}

// insignificant is what statements of one meaning may differ in.
var insignificant = regexp.MustCompile(`(--[^\n]*|\s)+`)

// tables returns the statements that made all but the triggers, which do nothing while a database is only read.
func tables(ctx context.Context, in rowQuerier) (all []string, err error) {
	var text []byte
	if err := in.QueryRowContext(ctx, `SELECT json_group_array(concat_ws(' ', type, name, tbl_name, sql) ORDER BY type, name) FROM sqlite_schema
		WHERE type <> 'trigger'`).Scan(&text); err != nil {
		return nil, translate(err)
	}
	err = json.Unmarshal(text, &all)
	for i := range all {
		all[i] = insignificant.ReplaceAllString(all[i], " ")
	}
	return all, err
}

// Files calls found for each small file in a backup, part by part.
func (s *Store) Files(ctx context.Context, found func(name string, part int64, content []byte) error) error {
	return engine{s}.Read(ctx, func(from storage.Reader) error {
		return from.Run(ctx, storage.Statement{Text: `SELECT path, part, content FROM files ORDER BY path, part`, Row: func(scan storage.Scan) error {
			var name string
			var part int64
			var content []byte
			if err := scan(&name, &part, &content); err != nil {
				return err
			}
			return found(name, part, content)
		}})
	})
}

// UnpackValues makes the file of values in a folder that has none, from a backup.
func (s *Store) UnpackValues(ctx context.Context, dir string) error {
	path, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(ValuesFile)))
	if err == nil {
		err = mkdir(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	values, err := begin(ctx, path, valuesForm, "FULL")
	if err != nil {
		return err
	}
	return errors.Join(connected(s.path, alone(), func(db *sql.DB) error { return moveValues(ctx, db, path) }), values.Close())
}
