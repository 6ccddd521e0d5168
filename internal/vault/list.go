package vault

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// fileName is how the files of an entry are called.
var fileName = regexp.MustCompile(`^[0-9a-f]{64}-[0-9a-f]{16}$`)

// List calls found with every file in the vault: with the Name of its entry, or with "" for one that is no entry's,
// such as what a crash left half written.
func (v *Vault) List(found func(file, name string) error) error {
	return errors.Join(list(filepath.Join(v.dir, ValuesFolder), valueExtension, found), list(filepath.Join(v.dir, KeysFolder), keyExtension, found))
}

func list(folder, extension string, found func(file, name string) error) error {
	return filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was ever sealed apart, or it was destroyed while this looked
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, ok := strings.CutSuffix(d.Name(), extension)
		if !ok || !fileName.MatchString(name) || filepath.Base(filepath.Dir(file)) != name[:2] {
			name = ""
		}
		return found(file, name)
	})
}
