package filestore_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"jurat/internal/log/filestore"
	"jurat/internal/test/must"
	"jurat/internal/test/storetest"
)

func TestFolder(t *testing.T) {
	storetest.Files(t, func(t *testing.T) storetest.OpenFiles {
		dir := filepath.Join(t.TempDir(), "data")
		return func(*testing.T) filestore.Store { return filestore.NewFolder(dir) }
	})
}

// TestFolderIsPrivate checks that only the owner can read the files, and that a secret that others can read is
// refused.
func TestFolderIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	c := filestore.NewFolder(filepath.Join(t.TempDir(), "data"))
	for _, name := range []string{"a/b.key", "a/b.json"} {
		must.Do(t, c.Create(t.Context(), name, []byte("content")))
		for file, want := range map[string]os.FileMode{c.Where(name): 0o600, c.Where("a"): 0o700} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: mode %v, want %o", file, info.Mode(), want)
			}
		}
		must.Do(t, os.Chmod(c.Where(name), 0o640))
	}
	must.Refuse(t, "mode 0640", "a secret that others can read")(c.Read(t.Context(), "a/b.key"))
	must.Fail(t, nil)(c.Read(t.Context(), "a/b.json"))
}

// TestFolderListsWhatACrashLeft checks that List finds unfinished files: they may contain texts that must be erased.
func TestFolderListsWhatACrashLeft(t *testing.T) {
	c := filestore.NewFolder(t.TempDir())
	must.Do(t, c.Create(t.Context(), "a/b.key", nil))
	must.Do(t, os.WriteFile(c.Where("a/.new-123"), nil, 0o600))
	var names []string
	must.Do(t, c.List(t.Context(), "a", func(name string) error { names = append(names, name); return nil }))
	want := []string{"a/.new-123", "a/b.key"}
	must.Hold(t, slices.Equal(names, want), "%v, want %v", names, want)
}
