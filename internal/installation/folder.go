package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"jurat/internal/filestore"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
	"jurat/internal/lock"
	"jurat/internal/token"
)

// findInFolder looks for an installation in a data folder.
func findInFolder(ctx context.Context, c Config) (*place, error) {
	if err := checkParts(ctx, c.Dir); errors.Is(err, ErrNone) {
		looked, _ := filepath.Abs(c.Dir) // where that is not known, the name that was given has been said
		return nil, fmt.Errorf("%w: none of %s is in %s", err, strings.Join(folderParts, ", "), looked)
	} else if err != nil {
		return nil, err
	}
	path := func(part string) string { return filepath.Join(c.Dir, part) }
	if err := checkOwner(path(LogKeyFile)); err != nil {
		return nil, err
	}
	for _, part := range []string{c.Dir, path(keys.Folder), path(DatabaseFile), path(LogKeyFile)} {
		if err := checkPrivate(part); err != nil {
			return nil, err
		}
	}
	return &place{files: filestore.NewFolder(c.Dir), claims: lock.NewFolder(path(claimsFolder)), published: ledger.CheckpointFile(path(CheckpointFile)),
		store: func(ctx context.Context) (storage.Store, error) { return sqlite.Open(ctx, path(DatabaseFile)) },
		parts: strings.Join([]string{path(DatabaseFile), path(LogKeyFile), path(CheckpointFile)}, ", ")}, nil
}

// ErrOpen says that others than its owner can write to a data folder: they could put keys of theirs into it, or take its log away.
var ErrOpen = errors.New("others than the owner can write to it")

// checkPrivate refuses a file or folder that the group or everybody can write to. Windows has no such bits, and shows none.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%w: %s has the mode %04o; take that away from the others: chmod go-w %s", ErrOpen, path, mode, path)
	}
	return nil
}

// checkParts returns ErrNone where no part of an installation is, and an error that names the part where only some are:
// what is missing is restored from a backup, and never made anew by opening.
func checkParts(ctx context.Context, dir string) error {
	var there int
	var missing, err error
	for range 2 { // somebody may be making an installation in the middle of the first look at it
		if err := Settled(ctx, dir); err != nil {
			return err
		}
		if there, missing, err = lookForParts(dir); err != nil || missing == nil {
			break
		}
	}
	if err == nil && there == 0 {
		return ErrNone
	}
	return errors.Join(err, missing)
}

// folderParts are those that every installation in a folder has.
var folderParts = []string{LogKeyFile, DatabaseFile, keys.Folder, AuthorityFolder}

func lookForParts(dir string) (there int, missing, err error) {
	for _, part := range folderParts {
		switch _, err := os.Stat(filepath.Join(dir, part)); {
		case err == nil:
			there++
		case !errors.Is(err, fs.ErrNotExist):
			return there, missing, err
		case missing == nil:
			missing = err
		}
	}
	return there, missing, nil
}

// createInFolder makes an installation in a folder that does not exist or is empty. It appears whole or not at all.
func createInFolder(ctx context.Context, c Config) error {
	return Settle(ctx, c.Dir, func(draft string) error { return furnish(ctx, c, draft) })
}

// furnish makes everything that an installation has from its first day.
func furnish(ctx context.Context, c Config, dir string) error {
	if err := os.Mkdir(filepath.Join(dir, keys.Folder), 0o700); err != nil {
		return err
	}
	files := filestore.NewFolder(dir)
	m := newMaker(c, &token.Helpers{})
	defer m.helpers.Close() // what they signed is verified
	if err := createAuthority(ctx, files, m, clock(c)()); err != nil {
		return err
	}
	log, err := createLogKey(ctx, files, m)
	if err != nil {
		return err
	}
	store, err := sqlite.Create(ctx, filepath.Join(dir, DatabaseFile))
	if err != nil {
		return err
	}
	book, err := ledger.Create(ctx, ledgerConfig(c, ledger.CheckpointFile(filepath.Join(dir, CheckpointFile)), store, log))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return book.Close()
}
