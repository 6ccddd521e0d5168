package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"jurat/internal/erasure"
	"jurat/internal/keys"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/stamping"
	"jurat/internal/witness"
)

// ErrOwner says that a data folder belongs to another user than this process's.
var ErrOwner = errors.New("it belongs to another user")

// checkOwner returns ErrOwner for a file of another user. Root could open it, but would leave keys that the owner's server cannot read.
func checkOwner(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	uid, another := ownerOf(info)
	if !another {
		return nil
	}
	owner := "#" + strconv.Itoa(uid) // as sudo takes a number
	if account, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		owner = account.Username
	}
	return fmt.Errorf("%w: %s is %s's: run it as that user: sudo -u '%s' jurat …", ErrOwner, path, owner, owner)
}

// Ready returns an error if the log accepts no records, if a helper does not answer, or if a file that sealing or a trial needs is
// unreadable.
func (i *Installation) Ready(ctx context.Context) error {
	if err := i.Ledger.CanAppend(ctx); err != nil {
		return err
	}
	if err := i.Helper.Ready(ctx); err != nil || i.pool != nil {
		return err
	}
	if _, err := i.values.Read(ctx, "none"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading what is sealed apart: %w", err)
	}
	for _, part := range []string{LogKeyFile, keys.Folder, AuthorityFolder, stamping.Folder, sqlite.KeysFolder, erasure.SettingsFolder, erasure.IntentsFolder, ticketsFolder, secretsFolder, witness.SettingsFile} {
		err := filepath.WalkDir(filepath.Join(i.Dir, part), func(path string, entry fs.DirEntry, err error) error {
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			if !entry.Type().IsRegular() {
				return nil
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			return file.Close()
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // tickets may be removed meanwhile
			return fmt.Errorf("reading the installation's files: %w", err)
		}
	}
	return nil
}
