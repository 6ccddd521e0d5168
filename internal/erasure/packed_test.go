package erasure

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"jurat/internal/filestore"
	"jurat/internal/lock"
	"jurat/internal/must"
)

// packedVault returns a store whose files are in packs, as an installation has it.
func packedVault(t testing.TB, dir string) (*Store, *filestore.Folder) {
	files := filestore.NewFolder(dir).Packed(lock.NewFolder(filepath.Join(dir, "locks")), ValuesFolder, KeysFolder)
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return NewStore(files), files
}

func listed(t *testing.T, v *Store) (names []string) {
	t.Helper()
	must.Do(t, v.List(t.Context(), func(_, name string) error { names = append(names, name); return nil }))
	slices.Sort(names)
	return slices.Compact(names)
}

// TestKilledWhileKeeping kills a process at each step of keeping. What was kept before opens, and what is there of the other belongs to it.
func TestKilledWhileKeeping(t *testing.T) {
	dir := t.TempDir()
	v, files := packedVault(t, dir)
	first, second := saying(map[string]string{"/prompt": "one", "/response": "two"}), saying(map[string]string{"/prompt": "three", "/context": "four"})
	type killed struct {
		step, dir string
		first     bool // was acknowledged
	}
	var all []killed
	acknowledged := false
	files.After = func(step string) {
		to := filepath.Join(t.TempDir(), "killed")
		must.Do(t, os.CopyFS(to, os.DirFS(dir)))
		for _, folder := range []string{KeysFolder, ValuesFolder} { // CopyFS forgets the modes
			packs, err := filepath.Glob(filepath.Join(to, filepath.FromSlash(folder), "packs", "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, pack := range packs {
				must.Do(t, os.Chmod(pack, 0o600))
			}
		}
		all = append(all, killed{step, to, acknowledged})
	}
	must.Do(t, v.Keep(t.Context(), first))
	acknowledged = true
	must.Do(t, v.Keep(t.Context(), second))
	if len(all) != 8 { // two packs are made; each keeping has three steps
		t.Fatal(all)
	}
	for _, k := range all {
		after, _ := packedVault(t, k.dir)
		under := first // what was being kept
		if k.first {
			under = second
			wantOpen(t, after, first, "/prompt", nil)
			wantOpen(t, after, first, "/response", nil)
		}
		for _, name := range listed(t, after) {
			explained := func(pointer string) bool { return name == Name(under.Digest, pointer) }
			if !slices.ContainsFunc(under.Payload.SealedApart, explained) && (!k.first || !slices.Contains([]string{Name(first.Digest, "/prompt"), Name(first.Digest, "/response")}, name)) {
				t.Errorf("after %q: nobody knows %s", k.step, name)
			}
		}
		for _, pointer := range under.Payload.SealedApart {
			if _, err := after.Open(t.Context(), under.Digest, pointer); err != nil && !errors.Is(err, ErrNone) {
				t.Errorf("after %q: %s: %v", k.step, pointer, err)
			}
		}
		if err := after.Forget(t.Context(), under); err != nil {
			t.Error(err)
		}
		third := saying(map[string]string{"/prompt": "five"})
		must.Do(t, after.Keep(t.Context(), third))
		wantOpen(t, after, third, "/prompt", nil)
	}
}

// TestDestroyedInThePackOfAnother crashes a destruction at each step while another process keeps what it wrote. Whenever the key is
// overwritten, no copy of it is anywhere.
func TestDestroyedInThePackOfAnother(t *testing.T) {
	for n, step := range []string{"key overwritten", "key removed", "value removed"} {
		dir := t.TempDir()
		recorder, _ := packedVault(t, dir)
		r := saying(map[string]string{"/prompt": secret, "/response": "I see"})
		must.Do(t, recorder.Keep(t.Context(), r))
		key, err := recorder.files.Read(t.Context(), placeOf(r.Digest, "/prompt").key)
		if err != nil {
			t.Fatal(err)
		}
		eraser, _ := packedVault(t, dir)
		eraser.After = func(string) {
			if n--; n < 0 {
				panic(step)
			}
		}
		func() {
			defer func() { _ = recover() }()
			must.Do(t, eraser.Destroy(t.Context(), r.Digest, "/prompt"))
		}()
		if err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(file)
			if bytes.Contains(content, key) {
				t.Errorf("after %q: %s has the key", step, file)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		wantOpen(t, recorder, r, "/prompt", ErrNone)
		wantOpen(t, recorder, r, "/response", nil)
		must.Do(t, newEraser(t, dir).Destroy(t.Context(), r.Digest, "/prompt"))
		if names := listed(t, recorder); len(names) != 1 || names[0] != Name(r.Digest, "/response") {
			t.Errorf("after %q: %v", step, names)
		}
	}
}

func newEraser(t *testing.T, dir string) *Store {
	v, _ := packedVault(t, dir)
	return v
}
