package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"jurat/internal/erasure"
	"jurat/internal/fault"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/internal/postgres"
)

// Any number of machines share an installation in a database, and none of them is special. The database holds the log and the small files.
// The data folder of each machine holds that machine's own files:
//
//	checkpoint      the last checkpoint that this machine has seen, which reveals a database that was set back
//	cases/          case files that were written here

// findInDatabase finds an installation in a database, or returns ErrNone.
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

// connect connects to a database, whether it holds an installation or not.
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
	p := &place{files: files, values: erasure.InFiles{Files: files}, locks: postgres.NewLocks(pool.Config().ConnConfig), pool: pool, parts: "the ledger and log.key in the database, and the checkpoint in " + c.Dir}
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

// join stores the database's checkpoint on a machine that has seen no checkpoint of this log. A machine trusts the database for a
// checkpoint only this once. An operator who copies another machine's checkpoint there first avoids even that.
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

// isWhole returns ErrNone if the database holds no installation, or an unfinished one. If it holds only some parts of one, or a wrapping
// key is missing, the error says so.
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
	if !there { // another machine may have begun since: it writes the keys before the log's first checkpoint
		if there, err = files.Prepared(ctx); err != nil {
			return err
		}
	}
	if !there {
		return errors.New("the database has a log, but lacks the keys that belong to it: restore both together")
	}
	if err := files.CheckKeys(ctx); err != nil {
		return fmt.Errorf("a secret in the database cannot be read: %w", err)
	}
	if signed == "" {
		return ErrNone
	}
	return nil
}

// creating is the number of the lock that a machine holds while it makes an installation.
const creating = `hashtext('jurat: installation')`

// createInDatabase makes an installation in a database, or finishes one that another machine began before it crashed. If several machines
// call it at once, one makes the installation, and the others get created = false.
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

// alone calls do while this machine holds the lock. Other machines wait for it.
func (p *place) alone(ctx context.Context, do func() error) (err error) {
	lock, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	session := lock.Hijack() // closing this connection releases the lock; the pool must not reuse it
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	if _, err := session.Exec(ctx, `SELECT pg_advisory_lock(`+creating+`)`); err != nil {
		return err
	}
	return do()
}

// tables creates missing tables, and opens the log's store.
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

// furnishDatabase makes the authority and the log's key in one transaction, and then the log. A crash between the two leaves keys that have
// signed nothing. The next call uses them.
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
		return false, err // another machine made it first
	}
	if head, err := store.Head(ctx); err != nil || head.Size > 0 {
		return false, errors.Join(err, errors.New("the database has records but no checkpoint, as after an interrupted restore: run the restore again, or DROP SCHEMA jurat CASCADE and start anew"))
	}
	log, err := openLogKey(ctx, files)
	if errors.Is(err, fs.ErrNotExist) {
		first, err := firstFiles(ctx, c, &p.Helper)
		if err != nil {
			return false, err
		}
		if err := files.CreateAll(ctx, first); err != nil {
			return false, err
		}
		if log, err = openLogKey(ctx, files); err != nil {
			return false, err
		}
	} else if err != nil {
		return false, err
	}
	_, err = ledger.Create(ctx, ledgerConfig(c, p.published, store, log))
	return err == nil, err
}

// Rewrap wraps every secret in the database under the first key of the wrapping-key file, unless it is already. If it is interrupted, the
// caller calls it again. It returns how many secrets it wrapped, and the name of the key. For a data folder it returns an error.
func (i *Installation) Rewrap(ctx context.Context, progress func(done int64)) (done int64, key filestore.ID, err error) {
	defer fault.While(&err, "wrapping secrets again")
	files, ok := i.files.(*postgres.Files)
	if !ok {
		return 0, "", errors.New("secrets in a data folder are not wrapped")
	}
	if done, err = files.Rewrap(ctx, progress); err != nil {
		return done, "", err
	}
	return done, files.Key(), nil
}
