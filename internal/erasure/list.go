package erasure

import (
	"context"
	"errors"
	"path"
	"regexp"
	"strings"
)

// fileName matches the names of an entry's files, without their extension.
var fileName = regexp.MustCompile(`^[0-9a-f]{64}-[0-9a-f]{16}$`)

// List calls found for every file in the store, with its place and the Name of its entry. For a file that belongs to
// no entry, such as one that a crash left half written, the name is "". Its errors are those of the file store and of
// found.
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
