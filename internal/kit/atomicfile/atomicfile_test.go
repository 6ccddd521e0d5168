package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"jurat/internal/test/must"
)

func TestCreateNeverReplaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a", "b", "file")
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch err := Create(file, []byte("text"), 0o600); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, fs.ErrExist):
				t.Errorf("Create: %v, want fs.ErrExist", err)
			}
		})
	}
	wg.Wait()
	must.Equal(t, won.Load(), 1)
	check(t, file, "text", 0o600)
}

func TestReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first", "", "second"} {
		must.Do(t, Replace(file, []byte(text), 0o644))
		check(t, file, text, 0o644)
	}
}

func TestFailureLeavesWhatWasThere(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(folder, "taken"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(folder, "taken", "inside"), nil, 0o600))
	must.Say(t, Replace(filepath.Join(folder, "taken"), []byte("x"), 0o600), "", "a folder was replaced by a file")
	check(t, filepath.Join(folder, "taken", "inside"), "", 0o600)
}

func TestSyncFolders(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "a", "b")
	must.Do(t, os.MkdirAll(below, 0o700))
	for _, folder := range []string{below, below + "/", top} {
		must.Want(t, SyncFolders(folder, top+"/"), nil, folder)
	}
	must.Want(t, SyncFolders(filepath.Join(top, "none"), top), fs.ErrNotExist)
	must.Say(t, SyncFolders(below, filepath.Join(top, "c")), "", "SyncFolders accepted a folder outside of the top folder")
}

func check(t *testing.T, file, want string, mode os.FileMode) {
	t.Helper()
	got, err := os.ReadFile(file)
	must.Hold(t, err == nil && string(got) == want, "file holds %q, %v; want %q", got, err, want)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
		t.Errorf("mode is %v, want %v", info.Mode(), mode)
	}
	leftovers, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".new-*"))
	must.Hold(t, len(leftovers) == 0, "left behind: %v", leftovers)
}
