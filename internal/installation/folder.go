package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"jurat/internal/cabinet"
	"jurat/internal/claim"
	"jurat/internal/keyring"
	"jurat/internal/ledger"
	"jurat/internal/ledger/sqlite"
)

// findInFolder looks for an installation in a data folder.
func findInFolder(c Config) (*place, error) {
	if err := checkParts(c.Dir); errors.Is(err, ErrNone) {
		looked, _ := filepath.Abs(c.Dir) // where that is not known, the name that was given has been said
		return nil, fmt.Errorf("%w: none of %s is in %s", err, strings.Join(folderParts, ", "), looked)
	} else if err != nil {
		return nil, err
	}
	path := func(part string) string { return filepath.Join(c.Dir, part) }
	return &place{files: cabinet.NewFolder(c.Dir), claims: claim.NewFolder(path(claimsFolder)), published: ledger.CheckpointFile(path(checkpointFile)),
		store: func(ctx context.Context) (ledger.Store, error) { return sqlite.Open(ctx, path(databaseFile)) },
		parts: strings.Join([]string{path(databaseFile), path(logKeyFile), path(checkpointFile)}, ", ")}, nil
}

// checkParts returns ErrNone where no part of an installation is, and an error that names the part where only some are:
// what is missing is restored from a backup, and never made anew by opening.
func checkParts(dir string) error {
	there, missing, err := lookForParts(dir)
	if err == nil && there > 0 && missing != nil {
		// An installation appears all at once, perhaps in the middle of the look at it.
		there, missing, err = lookForParts(dir)
	}
	if err == nil && there == 0 {
		return ErrNone
	}
	return errors.Join(err, missing)
}

// folderParts are those that every installation in a folder has.
var folderParts = []string{logKeyFile, databaseFile, keyring.Folder, clockFolder}

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
	if err := checkVacant(c.Dir); err != nil {
		return err
	}
	dir := filepath.Clean(c.Dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // where a link leads to an empty folder, that one is replaced, and the link stays
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(parent, ".jurat-new-*") // mode 0700; beside it, because rename stays on one file system
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft) // nothing, once it has been renamed
	if err := furnish(ctx, c, draft); err != nil {
		return err
	}
	return install(draft, dir)
}

// install gives a finished installation its name, and makes the name durable. Remove takes away a folder only when it
// is empty, and Rename replaces none (os.Rename not even an empty one): of several processes that get here, one does.
func install(draft, dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A crash here leaves nothing under this name, and the draft beside it.
	if err := os.Rename(draft, dir); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func checkVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("the folder %s is not empty", dir)
	}
	return nil
}

// furnish makes everything that an installation has from its first day.
func furnish(ctx context.Context, c Config, dir string) error {
	if err := os.Mkdir(filepath.Join(dir, keyring.Folder), 0o700); err != nil {
		return err
	}
	files := cabinet.NewFolder(dir)
	if err := createAuthority(files, clock(c)()); err != nil {
		return err
	}
	log, err := createLogKey(files)
	if err != nil {
		return err
	}
	store, err := sqlite.Create(ctx, filepath.Join(dir, databaseFile))
	if err != nil {
		return err
	}
	book, err := ledger.Create(ctx, ledgerConfig(c, ledger.CheckpointFile(filepath.Join(dir, checkpointFile)), store, log))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return book.Close()
}
