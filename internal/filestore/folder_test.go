package filestore_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"jurat/internal/filestore"
	"jurat/internal/storetest"
)

func TestFolder(t *testing.T) {
	storetest.Files(t, func(t *testing.T) storetest.OpenFiles {
		dir := filepath.Join(t.TempDir(), "data")
		return func(*testing.T) filestore.Store { return filestore.NewFolder(dir) }
	})
}

// TestFolderIsPrivate: nobody but the owner reads what is kept, and a secret that others can read is refused.
func TestFolderIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	c := filestore.NewFolder(filepath.Join(t.TempDir(), "data"))
	for _, name := range []string{"a/b.key", "a/b.json"} {
		if err := c.Create(t.Context(), name, []byte("content")); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]os.FileMode{c.Where(name): 0o600, c.Where("a"): 0o700} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: mode %v, want %o", file, info.Mode(), want)
			}
		}
		if err := os.Chmod(c.Where(name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Read(t.Context(), "a/b.key"); err == nil || !strings.Contains(err.Error(), "mode 0640") {
		t.Errorf("a secret that others can read: %v", err)
	}
	if _, err := c.Read(t.Context(), "a/b.json"); err != nil {
		t.Error(err)
	}
}

// TestFolderListsWhatACrashLeft: what is half written may hold what somebody said, so whoever looks for that finds it.
func TestFolderListsWhatACrashLeft(t *testing.T) {
	c := filestore.NewFolder(t.TempDir())
	if err := c.Create(t.Context(), "a/b.key", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Where("a/.new-123"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := c.List(t.Context(), "a", func(name string) error { names = append(names, name); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a/.new-123", "a/b.key"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// TestOverwriteReachesEveryName: what is written over is gone from whatever else leads to the same file.
func TestOverwriteReachesEveryName(t *testing.T) {
	c := filestore.NewFolder(t.TempDir())
	if err := c.Create(t.Context(), "a.key", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(c.Where("a.key"), c.Where("b.key")); err != nil {
		t.Fatal(err)
	}
	if err := c.Overwrite(t.Context(), "a.key", make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Read(t.Context(), "b.key"); err != nil || string(got) != "\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDraft(t *testing.T) {
	storetest.Files(t, func(t *testing.T) storetest.OpenFiles {
		draft := filestore.NewDraft()
		return func(*testing.T) filestore.Store { return draft }
	})
}
