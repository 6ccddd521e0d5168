package installation

import (
	"context"
	"errors"
	"fmt"
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

// A place is where an installation is: the data folder of one machine, or a database that many share.
type place struct {
	files     filestore.Store
	claims    lock.Claims
	published ledger.Published // the last checkpoint that this machine has seen
	pool      *pgxpool.Pool    // of the database that is shared; nil: a folder of one machine
	joined    bool             // this machine had no checkpoint yet, and took the database's

	Helpers token.Helpers // that keep keys on tokens

	store func(context.Context) (storage.Store, error) // opens it
	parts string                                       // what must fit together, for people
}

// find looks for an installation. Where there is none, the error has ErrNone in its chain.
func find(ctx context.Context, c Config) (*place, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.DB != "" {
		return findInDatabase(ctx, c)
	}
	return findInFolder(ctx, c)
}

// leave lets go of what a place holds, after its store was closed.
func (p *place) leave() error {
	err := errors.Join(p.claims.Close(), p.Helpers.Close())
	if p.pool != nil {
		p.pool.Close()
	}
	return err
}

// check refuses a configuration that names no place.
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
			return fmt.Errorf("the folder %s holds an installation of its own (%s): name another one for what this machine keeps for itself", c.Dir, part)
		}
	}
	return nil
}

// Where says where an installation is, to people. It has no password in it.
func (c Config) Where() string {
	if c.DB == "" {
		return c.Dir
	}
	u, err := url.Parse(c.DB)
	switch {
	case err != nil || u.Path == "" || u.Path == "/":
		return "the database"
	case u.Host == "": // it is reached by a socket, or where the environment says
		return "the database " + filepath.Base(u.Path)
	}
	return fmt.Sprintf("the database %s on %s", filepath.Base(u.Path), u.Host)
}

// Database returns the database that several machines share, or nil where the installation is a folder of one.
func (i *Installation) Database() *pgxpool.Pool { return i.pool }

// Joined reports whether this machine had no checkpoint of the log before it opened the installation, and so took the
// database's word for the latest.
func (i *Installation) Joined() bool { return i.joined }

// A Place is where an installation is, or is to be, that is not open: for whoever copies it.
type Place struct {
	Files filestore.Store
	Pool  *pgxpool.Pool // of the database that is shared; nil: a folder of one machine

	at      *place
	secrets *postgres.Files // in a database
	config  Config
}

// Find looks for an installation. Where there is none, the error has ErrNone in its chain.
func Find(ctx context.Context, c Config) (*Place, error) {
	at, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Place{Files: at.files, Pool: at.pool, at: at, config: c}, nil
}

// Reach reaches a database, whatever is in it.
func Reach(ctx context.Context, c Config) (*Place, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	at, files, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Place{Files: at.files, Pool: at.pool, at: at, secrets: files, config: c}, nil
}

// Leave lets go of it.
func (p *Place) Leave() error { return p.at.leave() }

// Fill makes an installation in a database in which there is none, while no other machine does. The log that fill is given is empty,
// or what an attempt before has left.
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
