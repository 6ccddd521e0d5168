package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/internal/lock"
	"jurat/internal/postgres"
)

// An installation in a database is shared by any number of machines, none of which is a special one. The database has the
// log and the small files; the data folder of each machine has what is that machine's own:
//
//	checkpoint      the last checkpoint that this machine has seen, by which it notices a database that was set back
//	cases/          case files that were written here

// findInDatabase looks for an installation in a database.
func findInDatabase(ctx context.Context, c Config) (*place, error) {
	p, files, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := isWhole(ctx, p, files); err != nil {
		return nil, errors.Join(err, p.leave())
	}
	return p, nil
}

// connect reaches a database, whatever is in it.
func connect(ctx context.Context, c Config) (*place, *postgres.Files, error) {
	keys, err := readWrappingKey(c.WrappingKey)
	if err != nil {
		return nil, nil, err
	}
	pool, err := postgres.Connect(ctx, c.DB)
	if err != nil {
		return nil, nil, err
	}
	files := postgres.NewFiles(pool, keys)
	p := &place{files: files, claims: lock.NewDatabase(pool.Config().ConnConfig), pool: pool, parts: "the ledger and log.key in the database, and the checkpoint in " + c.Dir}
	published := ledger.CheckpointFile(filepath.Join(c.Dir, CheckpointFile))
	p.published = published
	p.store = func(ctx context.Context) (storage.Store, error) {
		store, err := postgres.Open(ctx, pool)
		if err != nil {
			return nil, err
		}
		if p.joined, err = join(ctx, published, store); err != nil {
			return nil, errors.Join(err, store.Close())
		}
		return store, nil
	}
	return p, files, nil
}

func readWrappingKey(file string) (*filestore.Keys, error) {
	text, err := filestore.ReadPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("reading wrapping key: %w", err)
	}
	keys, err := filestore.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading wrapping key: %s: %w", file, err)
	}
	return keys, nil
}

// join has a machine that has seen no checkpoint of this log yet begin with the one that the database has. It is the one
// time that a machine takes the database's word for it: a copy of another machine's checkpoint, put there before, spares it.
func join(ctx context.Context, published ledger.CheckpointFile, store storage.Store) (joined bool, err error) {
	seen, err := published.Load(ctx)
	if err != nil || seen != "" {
		return false, err
	}
	signed, err := store.Checkpoint(ctx)
	if err != nil || signed == "" {
		return false, err
	}
	return true, published.Store(ctx, signed)
}

// isWhole returns ErrNone where no installation is in the database, or one that nobody has finished making, and an error
// that says so where only parts of one are, or a wrapping key is missing.
func isWhole(ctx context.Context, p *place, files *postgres.Files) error {
	there, err := files.Prepared(ctx)
	if err != nil {
		return err
	}
	store, err := postgres.Open(ctx, p.pool)
	if errors.Is(err, postgres.ErrNoTables) && !there {
		return ErrNone
	}
	if err != nil {
		return err
	}
	signed, err := store.Checkpoint(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if !there && signed == "" {
		return ErrNone
	}
	if !there {
		return errors.New("the database has a log, and not the keys that belong to it: restore both together")
	}
	if err := files.CheckKeys(ctx); err != nil {
		return fmt.Errorf("a secret in the database cannot be read: %w", err)
	}
	if signed == "" {
		return ErrNone
	}
	return nil
}

// creating is the number of the lock that one machine has while it makes an installation, and for which the others wait.
const creating = `hashtext('jurat: installation')`

// createInDatabase makes an installation in a database, or finishes what another machine has begun and not lived to
// finish. Of several machines that do so at the same moment one does, and the others find it done.
func createInDatabase(ctx context.Context, c Config) (created bool, err error) {
	p, files, err := connect(ctx, c)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, p.leave()) }()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return false, err
	}
	err = p.alone(ctx, func() error {
		created, err = furnishDatabase(ctx, c, p, files)
		return err
	})
	return created, err
}

// alone does something that one machine does at a time.
func (p *place) alone(ctx context.Context, do func() error) (err error) {
	lock, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	session := lock.Hijack() // so that the lock ends with it, and does not come back into the pool
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	if _, err := session.Exec(ctx, `SELECT pg_advisory_lock(`+creating+`)`); err != nil {
		return err
	}
	return do()
}

// tables makes the tables where they are missing, and opens the log's.
func (p *place) tables(ctx context.Context) (*postgres.Store, error) {
	store, err := postgres.Create(ctx, p.pool)
	if err != nil {
		return nil, err
	}
	if err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return postgres.PrepareFiles(ctx, tx) }); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// furnishDatabase makes everything that an installation has from its first day: the authority and the key of the log, all of
// it or nothing, and then the log. A crash between the two leaves keys that have signed nothing, and the next to come uses them.
func furnishDatabase(ctx context.Context, c Config, p *place, files *postgres.Files) (created bool, err error) {
	store, err := p.tables(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := files.CheckKeys(ctx); err != nil {
		return false, fmt.Errorf("a secret in the database cannot be read: %w", err)
	}
	signed, err := store.Checkpoint(ctx)
	if err != nil || signed != "" {
		return false, err // another machine was quicker
	}
	if head, err := store.Head(ctx); err != nil || head.Size > 0 {
		return false, errors.Join(err, errors.New("the database has records and no checkpoint, as a restore that was broken off leaves it: run it again, or DROP SCHEMA jurat CASCADE and begin anew"))
	}
	log, err := openLogKey(ctx, files, &p.Helpers)
	if errors.Is(err, fs.ErrNotExist) {
		draft := filestore.NewDraft()
		m := newMaker(c, &p.Helpers)
		if err := createAuthority(ctx, draft, m, clock(c)()); err != nil {
			return false, err
		}
		if _, err := createLogKey(ctx, draft, m); err != nil {
			return false, err
		}
		if err := files.CreateAll(ctx, draft.All()); err != nil {
			return false, err
		}
		log, err = openLogKey(ctx, files, &p.Helpers)
	}
	if err != nil {
		return false, err
	}
	_, err = ledger.Create(ctx, ledgerConfig(c, p.published, store, log))
	return err == nil, err
}

// Rewrap wraps every secret in the database under the first key of the file with wrapping keys that is not. It can be broken off
// and called again. It returns how many it has wrapped, and the name of that key.
func (i *Installation) Rewrap(ctx context.Context, progress func(done int64)) (done int64, key filestore.ID, err error) {
	files, ok := i.files.(*postgres.Files)
	if !ok {
		return 0, "", errors.New("wrapping secrets again: those of a data folder are not wrapped")
	}
	if done, err = files.Rewrap(ctx, progress); err != nil {
		return done, "", fmt.Errorf("wrapping secrets again: %w", err)
	}
	return done, files.Key(), nil
}
