package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
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
