package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger/storage"
)

//go:embed files.sql
var filesTable string

// filesPatience is how long one call for a file waits for the database.
const filesPatience = 15 * time.Second

// Files is a filestore.Store in a database. It is safe for concurrent use, also by several machines.
type Files struct {
	pool     *pgxpool.Pool
	keys     *filestore.Keys
	patience time.Duration // shorter in tests
}

var _ filestore.Store = (*Files)(nil)

// NewFiles returns the file store in a database in which PrepareFiles has made the table. The caller closes the pool.
func NewFiles(pool *pgxpool.Pool, keys *filestore.Keys) *Files {
	return &Files{pool: pool, keys: keys, patience: filesPatience}
}

// PrepareFiles makes the table if it is missing. The schema jurat must exist. The caller makes sure that only one process prepares at a time.
func PrepareFiles(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, filesTable)
	return err
}

// Prepared reports whether PrepareFiles has made the table.
func (s *Files) Prepared(ctx context.Context) (there bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT to_regclass('jurat.files') IS NOT NULL`).Scan(&there)
	return there, err
}

// Key returns the ID of the key that wraps new files.
func (s *Files) Key() filestore.ID { return s.keys.IDs()[0] }

func (s *Files) Where(name string) string { return name + " in the database" }

// do runs an operation, and repeats it after an error that again accepts: undone if it must not be done twice, undoneOrBroken if it may.
func (s *Files) do(ctx context.Context, op, name string, again func(error) bool, f func(context.Context) error) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err := retry(ctx, s.pool.Reset, func(err error) bool { return again(err) && !isAnswer(err) }, func() error { return f(ctx) })
	if err == nil {
		err = ctx.Err() // a COMMIT that the caller stopped waiting for succeeds without the standby that the server waits for
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: s.Where(name), Err: Explain(err)}
	}
	return nil
}

// isAnswer reports whether an error says what is in the file store, not that the store could not be asked.
func isAnswer(err error) bool {
	answers := []error{fs.ErrNotExist, fs.ErrExist, fs.ErrInvalid, filestore.ErrDamaged, filestore.ErrOtherKey}
	return slices.ContainsFunc(answers, func(answer error) bool { return errors.Is(err, answer) })
}

// exec executes a statement in a transaction of its own, with one message to the server. It returns otherwise if the statement changed no row.
func (s *Files) exec(ctx context.Context, otherwise error, statement string, arguments ...any) error {
	batch, changed := new(pgx.Batch), int64(0)
	batch.Queue(settings, true)
	batch.Queue(statement, arguments...).Exec(func(tag pgconn.CommandTag) error { changed = tag.RowsAffected(); return nil })
	err := s.pool.SendBatch(ctx, batch).Close()
	if err == nil && changed == 0 {
		return otherwise
	}
	return err
}

// transact runs f in a transaction.
func (s *Files) transact(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settings, true); err != nil {
			return err
		}
		return f(tx)
	})
}

func (s *Files) Read(ctx context.Context, name string) (content []byte, err error) {
	err = s.do(ctx, "read", name, undoneOrBroken, func(ctx context.Context) error {
		content, err = s.read(ctx, s.pool, `SELECT content, wrapped FROM jurat.files WHERE name = $1`, name)
		return err
	})
	return content, err
}

func (s *Files) read(ctx context.Context, from querier, query, name string, arguments ...any) ([]byte, error) {
	var content []byte
	var key filestore.ID
	err := from.QueryRow(ctx, query, append([]any{name}, arguments...)...).Scan(&content, &key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return s.keys.Unwrap(name, key, content)
}

// Create implements filestore.Store. Of two concurrent callers, the second waits for the first and gets fs.ErrExist.
func (s *Files) Create(ctx context.Context, name string, content []byte) error {
	return s.put(ctx, undone, "create", name, content, `INSERT INTO jurat.files (name, content, wrapped) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`)
}

func (s *Files) Replace(ctx context.Context, name string, content []byte) error {
	return s.put(ctx, undoneOrBroken, "replace", name, content, `INSERT INTO jurat.files (name, content, wrapped) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET content = excluded.content, wrapped = excluded.wrapped`)
}

func (s *Files) put(ctx context.Context, again func(error) bool, op, name string, content []byte, statement string) error {
	return s.do(ctx, op, name, again, func(ctx context.Context) error {
		key, stored := s.keys.Wrap(name, content)
		return s.exec(ctx, fs.ErrExist, statement, name, stored, key)
	})
}

// CreateAll makes several new files, all or none, with one statement. If one of them exists, the error wraps fs.ErrExist.
func (s *Files) CreateAll(ctx context.Context, files []filestore.File) error {
	if len(files) == 0 {
		return nil
	}
	for _, file := range files[1:] { // do examines the first
		if !fs.ValidPath(file.Name) {
			return &fs.PathError{Op: "create", Path: file.Name, Err: fs.ErrInvalid}
		}
	}
	return s.do(ctx, "create", files[0].Name, undone, func(ctx context.Context) error {
		names, contents, keys := make([]string, len(files)), make([][]byte, len(files)), make([]string, len(files))
		for n, file := range files {
			key, stored := s.keys.Wrap(file.Name, file.Content)
			names[n], contents[n], keys[n] = file.Name, stored, string(key)
		}
		err := s.exec(ctx, nil, `INSERT INTO jurat.files (name, content, wrapped) SELECT * FROM unnest($1::text[], $2::bytea[], $3::text[])`, names, contents, keys)
		if errors.Is(translate(err), storage.ErrNotUnique) {
			return fs.ErrExist
		}
		return err
	})
}

// Rename implements filestore.Store. It wraps the content again, because a wrapping is bound to the file's name.
func (s *Files) Rename(ctx context.Context, from, to string) error {
	return s.do(ctx, "rename", from, undone, func(ctx context.Context) error {
		if !fs.ValidPath(to) {
			return fs.ErrInvalid
		}
		return s.transact(ctx, func(tx pgx.Tx) error {
			content, err := s.read(ctx, tx, `SELECT content, wrapped FROM jurat.files WHERE name = $1 FOR UPDATE`, from)
			if err != nil || from == to {
				return err
			}
			if _, err := tx.Exec(ctx, `DELETE FROM jurat.files WHERE name = $1`, to); err != nil {
				return err
			}
			key, stored := s.keys.Wrap(to, content)
			_, err = tx.Exec(ctx, `UPDATE jurat.files SET name = $2, content = $3, wrapped = $4 WHERE name = $1`, from, to, stored, key)
			return err
		})
	})
}

// Remove implements filestore.Store. After a connection broke, it may report that a file is missing which it has removed.
func (s *Files) Remove(ctx context.Context, name string) error {
	return s.do(ctx, "remove", name, undoneOrBroken, func(ctx context.Context) error {
		return s.exec(ctx, fs.ErrNotExist, `DELETE FROM jurat.files WHERE name = $1`, name)
	})
}

// page is how many names are read at a time.
const page = 1000

func (s *Files) List(ctx context.Context, folder string, found func(name string) error) error {
	after := ""
	for {
		var names []string
		err := s.do(ctx, "list", folder, undoneOrBroken, func(ctx context.Context) error {
			var err error // '0' comes right after '/'
			names, err = texts[string](ctx, s.pool, `SELECT name FROM jurat.files WHERE name >= $1 || '/' AND name < $1 || '0' AND name > $2
				ORDER BY name LIMIT $3`, folder, after, page)
			return err
		})
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := found(name); err != nil {
				return err
			}
		}
		if len(names) < page {
			return nil
		}
		after = names[len(names)-1]
	}
}

// CheckKeys returns an error that wraps filestore.ErrOtherKey if there are files that these keys do not unwrap. It reads the index only, not the files.
func (s *Files) CheckKeys(ctx context.Context) error {
	// This lists the distinct values of an index, each looked up after the one before.
	used, err := texts[filestore.ID](ctx, s.pool, `WITH RECURSIVE used AS (
		SELECT min(wrapped) AS id FROM jurat.files
		UNION ALL SELECT (SELECT min(wrapped) FROM jurat.files WHERE wrapped > used.id) FROM used WHERE used.id IS NOT NULL
	) SELECT id FROM used WHERE id IS NOT NULL`)
	if err != nil {
		return err
	}
	for _, id := range used {
		if !s.keys.Has(id) {
			return fmt.Errorf("%w: %s; the given key is %s", filestore.ErrOtherKey, id, s.keys)
		}
	}
	return nil
}

// Rewrap wraps every file under the first key that is not wrapped under it yet, and returns how many it wrapped. It
// can be interrupted and called again: at every moment each file is wrapped under one of the given keys.
func (s *Files) Rewrap(ctx context.Context, progress func(done int64)) (done int64, err error) {
	first := s.keys.IDs()[0]
	for after := ""; ; {
		names, err := texts[string](ctx, s.pool, `SELECT name FROM jurat.files WHERE wrapped <> $1 AND name > $2 ORDER BY name LIMIT $3`, first, after, page)
		if err != nil {
			return done, err
		}
		for _, name := range names {
			is, err := s.rewrap(ctx, name, first)
			if err != nil {
				return done, fmt.Errorf("wrapping %s: %w", name, err)
			}
			if is {
				done++
				progress(done)
			}
			after = name
		}
		if len(names) < page {
			return done, nil
		}
	}
}

func (s *Files) rewrap(ctx context.Context, name string, first filestore.ID) (done bool, err error) {
	err = s.transact(ctx, func(tx pgx.Tx) error {
		content, err := s.read(ctx, tx, `SELECT content, wrapped FROM jurat.files WHERE name = $1 AND wrapped <> $2 FOR UPDATE`, name, first)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // since its name was read, the file was removed, or wrapped by another process
		}
		if err != nil {
			return err
		}
		key, stored := s.keys.Wrap(name, content)
		_, err = tx.Exec(ctx, `UPDATE jurat.files SET content = $2, wrapped = $3 WHERE name = $1`, name, stored, key)
		done = true
		return err
	})
	return done, err
}
