package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/internal/lock"
	"jurat/internal/postgres"
	"jurat/internal/token"
)

// A place is where an installation is: the data folder of one machine, or a database that several machines share.
type place struct {
	files     filestore.Store
	values    storage.Values // that are sealed apart
	locks     lock.Locks
	published ledger.Published // the last checkpoint that this machine has seen
	pool      *pgxpool.Pool    // of the shared database; nil: the installation is in a folder
	joined    bool             // this machine had no checkpoint, and took the one in the database

	Helper token.Helper // signs with keys on tokens

	store func(context.Context) (storage.Store, error) // opens the log's store
	parts string                                       // names the parts that must belong together, for messages
}

// find finds an installation. If there is no installation, the error has ErrNone in its chain.
func find(ctx context.Context, c Config) (*place, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.DB != "" {
		return findInDatabase(ctx, c)
	}
	return findInFolder(ctx, c)
}

// leave releases the place's locks, helper and connections. The caller has closed its store.
func (p *place) leave() error {
	err := p.locks.Close()
	p.Helper.Close()
	if values, is := p.values.(io.Closer); is {
		err = errors.Join(err, values.Close())
	}
	if p.pool != nil {
		p.pool.Close()
	}
	return err
}

// check returns an error if a configuration names no data folder, or names a database and lacks a wrapping key or a vacant folder.
func (c Config) check() error {
	switch {
	case c.Dir == "":
		return errors.New("no data folder is named")
	case c.DB == "":
		return nil
	}
	if err := postgres.CheckURL(c.DB); err != nil {
		return err
	}
	if c.WrappingKey == "" {
		return ErrNoWrappingKey
	}
	for _, part := range []string{LogKeyFile, DatabaseFile} {
		if _, err := os.Stat(filepath.Join(c.Dir, part)); err == nil {
			return fmt.Errorf("the folder %s holds an installation of its own (%s): name another folder for this machine's own files", c.Dir, part)
		}
	}
	return nil
}

// Where returns where an installation is, for messages. The text contains no password.
func (c Config) Where() string {
	if c.DB == "" {
		return c.Dir
	}
	u, err := url.Parse(c.DB)
	switch {
	case err != nil || u.Path == "" || u.Path == "/":
		return "the database"
	case u.Host == "": // the URL names a socket, or the environment names the host
		return "the database " + filepath.Base(u.Path)
	}
	return fmt.Sprintf("the database %s on %s", filepath.Base(u.Path), u.Host)
}

// Database returns the pool of the shared database, or nil if the installation is a folder of one machine.
func (i *Installation) Database() *pgxpool.Pool { return i.pool }

// Joined reports whether this machine had no checkpoint of the log before it opened the installation. In that case it trusted the database
// for the latest checkpoint.
func (i *Installation) Joined() bool { return i.joined }

// A Place is an installation that is not open, or the place of a future one. Package backup copies from it and to it.
type Place struct {
	Files  filestore.Store
	Values storage.Values
	Pool   *pgxpool.Pool // of the shared database; nil: the installation is in a folder

	at      *place
	secrets *postgres.Files // only in a database
	config  Config
}

// Find finds an installation. If there is no installation, the error has ErrNone in its chain.
func Find(ctx context.Context, c Config) (*Place, error) {
	at, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Place{Files: at.files, Values: at.values, Pool: at.pool, at: at, config: c}, nil
}

// Reach connects to a database, whether it holds an installation or not. It returns an error if the Config is not
// valid, and the errors of postgres.Connect.
func Reach(ctx context.Context, c Config) (*Place, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	at, files, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Place{Files: at.files, Values: at.values, Pool: at.pool, at: at, secrets: files, config: c}, nil
}

// Leave releases the place's locks, helper and connections. It joins the errors of releasing them.
func (p *Place) Leave() error { return p.at.leave() }

// Fill makes an installation in a database that holds none, and keeps other machines from doing so meanwhile. It calls fill with the log,
// which is empty or holds what an earlier attempt left. If there is an installation, the error has fs.ErrExist in its chain.
func (p *Place) Fill(ctx context.Context, fill func(log *postgres.Store) error) error {
	return p.at.alone(ctx, func() (err error) {
		log, err := p.at.tables(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, log.Close()) }()
		if signed, err := log.Checkpoint(ctx); err != nil || signed != "" {
			return errors.Join(err, fmt.Errorf("%w: there is an installation in %s", fs.ErrExist, p.config.Where()))
		}
		if err := p.secrets.CheckKeys(ctx); err != nil {
			return err
		}
		return fill(log)
	})
}
