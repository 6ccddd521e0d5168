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
	"jurat/internal/stamping"
	"jurat/internal/witness"
)

// ErrOwner says that a data folder belongs to another user than the one who opens it.
var ErrOwner = errors.New("it belongs to another user")

// checkOwner refuses to act in somebody else's data folder. Root could, and would leave keys there that the owner's server cannot read.
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

// Ready returns an error if the log takes no records, or if what a seal or a trial needs cannot be read.
func (i *Installation) Ready(ctx context.Context) error {
	if err := i.Ledger.CanAppend(ctx); err != nil {
		return err
	}
	if err := i.Helpers.Ready(ctx); err != nil || i.pool != nil {
		return err
	}
	for _, part := range []string{LogKeyFile, keys.Folder, AuthorityFolder, stamping.Folder, erasure.KeysFolder, "apart", ticketsFolder, secretsFolder, witness.SettingsFile} {
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
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // which may go while it is looked at, as tickets do
			return fmt.Errorf("what the installation needs cannot be read: %w", err)
		}
	}
	return nil
}
