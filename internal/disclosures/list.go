package disclosures

import (
	"errors"
	"path"
	"regexp"
	"strings"
)

// fileName is how the files of an entry are called.
var fileName = regexp.MustCompile(`^[0-9a-f]{64}-[0-9a-f]{16}$`)

// List calls found with where every file in the store is: with the Name of its entry, or with "" for one that is no
// entry's, such as what a crash left half written.
func (v *Store) List(found func(file, name string) error) error {
	return errors.Join(v.list(ValuesFolder, valueExtension, found), v.list(KeysFolder, keyExtension, found))
}

func (v *Store) list(folder, extension string, found func(file, name string) error) error {
	return v.files.List(folder, func(file string) error {
		name, ok := strings.CutSuffix(path.Base(file), extension)
		if !ok || !fileName.MatchString(name) || path.Base(path.Dir(file)) != name[:2] {
			name = ""
		}
		return found(v.files.Where(file), name)
	})
}
