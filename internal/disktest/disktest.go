// Package disktest gives a test a small disk of its own, which the test can fill or make read-only. That works only on
// Linux. It also lists the files below a folder.
package disktest

import (
	"io/fs"
	"path/filepath"
	"testing"
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
