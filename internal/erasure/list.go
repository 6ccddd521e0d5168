package erasure

import (
	"context"
	"errors"
	"path"
	"regexp"
	"strings"
)

// fileName is how the files of an entry are called.
var fileName = regexp.MustCompile(`^[0-9a-f]{64}-[0-9a-f]{16}$`)

// List calls found with where every file in the store is: with the Name of its entry, or with "" for one that is no
// entry's, such as what a crash left half written.
func (v *Store) List(ctx context.Context, found func(file, name string) error) error {
	return errors.Join(v.list(ctx, ValuesFolder, valueExtension, found), v.list(ctx, KeysFolder, keyExtension, found))
}

func (v *Store) list(ctx context.Context, folder, extension string, found func(file, name string) error) error {
	return v.files.List(ctx, folder, func(file string) error {
		name, ok := strings.CutSuffix(path.Base(file), extension)
		if !ok || !fileName.MatchString(name) || path.Base(path.Dir(file)) != name[:2] {
			name = ""
		}
		return found(v.files.Where(file), name)
	})
}
