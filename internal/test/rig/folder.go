package rig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"jurat/internal/test/must"
)

// Tree returns the modes of a folder and everything below it, by relative name with slashes. The folder itself is ".".
func Tree(t testing.TB, folder string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		found[filepath.ToSlash(name)] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Files returns the content of each regular file below a folder, by path. A program may be at work in it: if a file goes
// away or changes its name meanwhile, all are read again, so that none is missed.
func Files(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	for {
		found := map[string][]byte{}
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			found[path], err = os.ReadFile(path)
			return err
		})
		switch {
		case err == nil && len(found) > 0:
			return found
		case err == nil:
			t.Fatalf("no file is in %s", folder)
		case !errors.Is(err, fs.ErrNotExist) || t.Context().Err() != nil:
			t.Fatal(err)
		}
		must.Get(os.Stat(folder))(t)
	}
}
