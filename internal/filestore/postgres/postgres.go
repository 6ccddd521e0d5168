// Package postgres keeps the small files of an installation in a table of a PostgreSQL database, which many machines share.
//
// All of it is wrapped, under a key that the database does not have: see package filestore. So whoever writes into the database gives no
// machine a key, a setting or a certificate of his own. What was written over or removed is gone for everybody who asks the database, and not at once from its disks:
// docs/threat-model.md says where else it may be.
package postgres

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/database"
	"jurat/internal/filestore"
)

//go:embed schema.sql
var schema string

// patience is how long one call waits for the database.
const patience = 15 * time.Second

// A Store is a filestore.Store in a database. It is safe for concurrent use, also by several machines.
type Store struct {
	pool     *pgxpool.Pool
	keys     *filestore.Keys
	patience time.Duration // tests have less
}

var _ filestore.Store = (*Store)(nil)

// New returns the file store in a database, whose table Prepare has made. The pool stays the caller's to close.
func New(pool *pgxpool.Pool, keys *filestore.Keys) *Store {
	return &Store{pool: pool, keys: keys, patience: patience}
}

// Prepare makes the table where it is missing, in the schema jurat, which is there. Only one may do so at a time.
func Prepare(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, schema)
	return err
}

// Prepared reports whether Prepare has made the table.
func (s *Store) Prepared(ctx context.Context) (there bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT to_regclass('jurat.files') IS NOT NULL`).Scan(&there)
	return there, err
}

// Key names the key under which files are wrapped.
func (s *Store) Key() filestore.ID { return s.keys.IDs()[0] }

// Where implements filestore.Store.
func (s *Store) Where(name string) string { return name + " in the database" }

// once does what may not be done twice, and does it again only where it certainly was not done.
func (s *Store) once(ctx context.Context, op, name string, f func(context.Context) error) error {
	return s.do(ctx, op, name, database.Undone, f)
}

// often does what may be done twice, and does it again also where nobody knows whether it was done.
func (s *Store) often(ctx context.Context, op, name string, f func(context.Context) error) error {
	return s.do(ctx, op, name, database.UndoneOrBroken, f)
}

func (s *Store) do(ctx context.Context, op, name string, again func(error) bool, f func(context.Context) error) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err := database.Retry(ctx, s.pool.Reset, func(err error) bool { return again(err) && !isAnswer(err) }, func() error { return f(ctx) })
	if err == nil {
		err = ctx.Err() // a COMMIT that is not waited for any more succeeds, and no standby has it that the server waits for
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: s.Where(name), Err: database.Explain(err)}
	}
	return nil
}

// isAnswer reports whether an error says what is in the file store, and not that it could not be asked.
func isAnswer(err error) bool {
	for _, answer := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrInvalid, filestore.ErrDamaged, filestore.ErrOtherKey} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

// durably has a transaction be on disk when it is committed, whatever the server's, the database's or the role's default is. An
// even stronger setting is left.
const durably = `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
	ELSE current_setting('synchronous_commit') END, true)`

// exec executes a statement in a transaction of its own, with one question to the server.
func (s *Store) exec(ctx context.Context, statement string, arguments ...any) (tag pgconn.CommandTag, err error) {
	batch := new(pgx.Batch)
	batch.Queue(durably)
	batch.Queue(statement, arguments...).Exec(func(t pgconn.CommandTag) error { tag = t; return nil })
	err = s.pool.SendBatch(ctx, batch).Close()
	return tag, err
}

// transact runs f in a transaction.
func (s *Store) transact(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, durably); err != nil {
			return err
		}
		return f(tx)
	})
}

// changed turns a statement that changed nothing into an error.
func changed(tag pgconn.CommandTag, err, otherwise error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return otherwise
	}
	return err
}

// Read implements filestore.Store.
func (s *Store) Read(ctx context.Context, name string) (content []byte, err error) {
	err = s.often(ctx, "read", name, func(ctx context.Context) error {
		content, err = s.read(ctx, s.pool, name, `SELECT content, wrapped FROM jurat.files WHERE name = $1`)
		return err
	})
	return content, err
}

func (s *Store) read(ctx context.Context, from querier, name, query string) ([]byte, error) {
	var content []byte
	var key filestore.ID
	err := from.QueryRow(ctx, query, name).Scan(&content, &key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return s.keys.Unwrap(name, key, content)
}

type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// Create implements filestore.Store. Whoever comes second waits for the first, and learns that there is one.
func (s *Store) Create(ctx context.Context, name string, content []byte) error {
	return s.put(ctx, s.once, "create", name, content, `INSERT INTO jurat.files (name, content, wrapped) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`)
}

// Replace implements filestore.Store.
func (s *Store) Replace(ctx context.Context, name string, content []byte) error {
	return s.put(ctx, s.often, "replace", name, content, `INSERT INTO jurat.files (name, content, wrapped) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET content = excluded.content, wrapped = excluded.wrapped`)
}

// A doer is Store.once or Store.often.
type doer func(ctx context.Context, op, name string, f func(context.Context) error) error

func (s *Store) put(ctx context.Context, do doer, op, name string, content []byte, statement string) error {
	return do(ctx, op, name, func(ctx context.Context) error {
		key, stored := s.keys.Wrap(name, content)
		tag, err := s.exec(ctx, statement, name, stored, key)
		return changed(tag, err, fs.ErrExist)
	})
}

// CreateAll makes several new files, all or none: with one that is there already, none.
func (s *Store) CreateAll(ctx context.Context, files map[string][]byte) error {
	return s.transact(ctx, func(tx pgx.Tx) error {
		for name, content := range files {
			key, stored := s.keys.Wrap(name, content)
			tag, err := tx.Exec(ctx, `INSERT INTO jurat.files (name, content, wrapped) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`, name, stored, key)
			if err := changed(tag, err, fs.ErrExist); err != nil {
				return &fs.PathError{Op: "create", Path: s.Where(name), Err: err}
			}
		}
		return nil
	})
}

const selectForUpdate = `SELECT content, wrapped FROM jurat.files WHERE name = $1 FOR UPDATE`

// Rename implements filestore.Store. As what is wrapped is bound to its name, it is wrapped again.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	return s.once(ctx, "rename", from, func(ctx context.Context) error {
		if !fs.ValidPath(to) {
			return fs.ErrInvalid
		}
		return s.transact(ctx, func(tx pgx.Tx) error {
			content, err := s.read(ctx, tx, from, selectForUpdate)
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

// Remove implements filestore.Store.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.once(ctx, "remove", name, func(ctx context.Context) error {
		tag, err := s.exec(ctx, `DELETE FROM jurat.files WHERE name = $1`, name)
		return changed(tag, err, fs.ErrNotExist)
	})
}

// Overwrite implements filestore.Store. The database writes a new version of the row and forgets the old one later: this
// does for whoever asks the database, and for its copies from then on.
func (s *Store) Overwrite(ctx context.Context, name string, content []byte) error {
	return s.often(ctx, "overwrite", name, func(ctx context.Context) error {
		return s.transact(ctx, func(tx pgx.Tx) error {
			old, err := s.read(ctx, tx, name, selectForUpdate)
			switch {
			case errors.Is(err, filestore.ErrDamaged): // what cannot be read can be written over all the same
				old = nil
			case err != nil:
				return err
			}
			key, stored := s.keys.Wrap(name, append(append([]byte{}, content...), old[min(len(content), len(old)):]...))
			_, err = tx.Exec(ctx, `UPDATE jurat.files SET content = $2, wrapped = $3 WHERE name = $1`, name, stored, key)
			return err
		})
	})
}

// page is how many names are read at a time.
const page = 1000

// List implements filestore.Store.
func (s *Store) List(ctx context.Context, folder string, found func(name string) error) error {
	after := ""
	for {
		var names []string
		err := s.often(ctx, "list", folder, func(ctx context.Context) error {
			// '0' comes right after '/'.
			rows, err := s.pool.Query(ctx, `SELECT name FROM jurat.files WHERE name >= $1 || '/' AND name < $1 || '0' AND name > $2 ORDER BY name LIMIT $3`, folder, after, page)
			if err == nil {
				names, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
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
