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

// findInFolder finds an installation in a data folder. If there is none, the error has ErrNone in its chain.
func findInFolder(ctx context.Context, c Config) (*place, error) {
	if err := checkParts(ctx, c.Dir); errors.Is(err, ErrNone) {
		looked, failed := filepath.Abs(c.Dir)
		if failed != nil {
			return nil, fmt.Errorf("%w: none of %s is in %s, and where that is cannot be said: %w", err, strings.Join(folderParts, ", "), c.Dir, failed)
		}
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
	return &place{files: filestore.NewFolder(c.Dir), values: sqlite.NewValues(c.Dir), locks: lock.NewFolder(path(locksFolder)), published: ledger.CheckpointFile(path(CheckpointFile)),
		store: func(ctx context.Context) (storage.Store, error) { return sqlite.Open(ctx, path(DatabaseFile)) },
		parts: strings.Join([]string{path(DatabaseFile), path(LogKeyFile), path(CheckpointFile)}, ", ")}, nil
}

// ErrOpen says that users other than its owner can write to a data folder. They could put in their own keys, or remove the log.
var ErrOpen = errors.New("users other than its owner can write to it")

// checkPrivate returns ErrOpen if the group or all users can write to a file or folder. Windows has no such mode bits.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%w: %s has the mode %04o; let only the owner write to it: chmod go-w %s", ErrOpen, path, mode, path)
	}
	return nil
}

// checkParts returns ErrNone if a folder has no part of an installation. If it has only some, the error names a missing part: the operator
// restores it from a backup, and opening never makes a new one.
func checkParts(ctx context.Context, dir string) error {
	var there int
	var missing, err error
	for range 2 { // another process may be making an installation during the first look
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

// folderParts are the parts of every installation in a folder.
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

// createInFolder makes an installation in a missing or empty folder. It appears whole or not at all.
func createInFolder(ctx context.Context, c Config) error {
	return Settle(ctx, c.Dir, func(draft string) error { return furnish(ctx, c, draft) })
}

// furnish makes the authority, the log's key and the log of a new installation.
func furnish(ctx context.Context, c Config, dir string) error {
	if err := os.Mkdir(filepath.Join(dir, keys.Folder), 0o700); err != nil {
		return err
	}
	files := filestore.NewFolder(dir)
	helper := &token.Helper{}
	defer helper.Close()
	first, err := firstFiles(ctx, c, helper)
	for _, f := range first {
		err = errors.Join(err, files.Create(ctx, f.Name, f.Content))
	}
	if err != nil {
		return err
	}
	log, err := openLogKey(ctx, files)
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
