package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"jurat/internal/disktest"
	"jurat/internal/filestore"
	"jurat/internal/lock"
	"jurat/internal/must"
	"jurat/internal/storetest"
)

// packed opens a folder with packs, as another process would.
func packed(t testing.TB, dir string) *filestore.Folder {
	f := filestore.NewFolder(dir).Packed(lock.NewFolder(filepath.Join(dir, "locks")), "a", "keys")
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestPackedFolder(t *testing.T) {
	storetest.Files(t, func(t *testing.T) storetest.OpenFiles {
		dir := filepath.Join(t.TempDir(), "data")
		return func(t *testing.T) filestore.Store { return packed(t, dir) }
	})
}

// pair is what belongs together: a value and its key.
func pair(n int) []filestore.File {
	return []filestore.File{{Name: fmt.Sprintf("a/%02x/%d.json", n%256, n), Content: fmt.Appendf(nil, "value %d", n)},
		{Name: fmt.Sprintf("keys/%02x/%d.key", n%256, n), Content: fmt.Appendf(nil, "secret %d", n)}}
}

func create(t *testing.T, f *filestore.Folder, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		must.Do(t, f.CreateAll(t.Context(), pair(n)))
	}
}

func wantPairs(t *testing.T, f *filestore.Folder, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		for _, file := range pair(n) {
			if got, err := f.Read(t.Context(), file.Name); err != nil || !bytes.Equal(got, file.Content) {
				t.Errorf("%s: %q, %v", file.Name, got, err)
			}
		}
	}
}

func names(t *testing.T, f *filestore.Folder) []string {
	t.Helper()
	var list []string
	for _, folder := range []string{"a", "keys"} {
		must.Do(t, f.List(t.Context(), folder, func(name string) error { list = append(list, name); return nil }))
	}
	slices.Sort(list)
	return list
}

func packsIn(t *testing.T, dir, extension string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(dir, "*", "packs", "*"+extension)))(t)
}

// TestFullPacks finds files in packs that are full, which have an index, and in one that is not.
func TestFullPacks(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	f.SmallPacks(500)
	const most = 100
	var want []string
	for n := range most {
		create(t, f, n)
		want = append(want, pair(n)[0].Name, pair(n)[1].Name)
	}
	slices.Sort(want)
	all := make([]int, most)
	for n := range all {
		all[n] = n
	}
	wantPairs(t, f, all...)
	must.Do(t, f.Close())
	if n := len(packsIn(t, dir, ".index")); n < 10 {
		t.Errorf("%d packs are full", n)
	}
	other := packed(t, dir)
	wantPairs(t, other, all...)
	slices.Reverse(all)
	wantPairs(t, other, all...)
	if got := names(t, other); !slices.Equal(got, want) {
		t.Errorf("%d names, want %d", len(got), len(want))
	}
	if _, err := other.Read(t.Context(), "keys/00/1000.key"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, index := range packsIn(t, dir, ".index") { // it is only a help
		must.Do(t, os.Remove(index))
	}
	wantPairs(t, packed(t, dir), all...)
}

// TestPackIsContinued: processes that come one after another add to the same packs.
func TestPackIsContinued(t *testing.T) {
	dir := t.TempDir()
	for n := range 10 {
		f := packed(t, dir)
		create(t, f, n)
		must.Do(t, f.Close())
	}
	if packs := packsIn(t, dir, ".pack"); len(packs) != 2 {
		t.Error(packs)
	}
	wantPairs(t, packed(t, dir), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
}

// TestManyPack: several processes with many callers each add at once, and each finds the files of all.
func TestManyPack(t *testing.T) {
	dir := t.TempDir()
	folders := []*filestore.Folder{packed(t, dir), packed(t, dir), packed(t, dir)}
	for _, f := range folders {
		f.SmallPacks(4000)
	}
	var all sync.WaitGroup
	const callers, each = 8, 20
	for c := range callers {
		all.Go(func() {
			for n := range each {
				if err := folders[c%3].CreateAll(t.Context(), pair(c*each+n)); err != nil {
					t.Error(err)
				}
				wantPairs(t, folders[(c+1)%3], c*each+n)
			}
		})
	}
	all.Wait()
	for n := range callers * each {
		wantPairs(t, folders[n%3], n)
	}
	if got := names(t, folders[0]); len(got) != 2*callers*each {
		t.Errorf("%d names", len(got))
	}
}

// TestNothingIsLeftOfAPackedSecret: what another process destroys is in no file any more, while the pack is written to and afterwards.
func TestNothingIsLeftOfAPackedSecret(t *testing.T) {
	dir := t.TempDir()
	f, other := packed(t, dir), packed(t, dir)
	create(t, f, 1, 2, 3)
	key, value := pair(2)[1].Name, pair(2)[0].Name
	must.Do(t, other.Overwrite(t.Context(), key, make([]byte, len("secret 2"))))
	if got, err := f.Read(t.Context(), key); err != nil || !bytes.Equal(got, make([]byte, len("secret 2"))) {
		t.Errorf("%q, %v", got, err)
	}
	if err := other.Overwrite(t.Context(), key, make([]byte, 100)); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("an overwriting that is longer: %v", err)
	}
	create(t, f, 4)
	for _, name := range []string{key, value} {
		must.Do(t, other.Remove(t.Context(), name))
		for _, c := range []*filestore.Folder{f, other} {
			if _, err := c.Read(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
			if err := c.Remove(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("removed twice: %v", err)
			}
			if err := c.Overwrite(t.Context(), name, []byte("0")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("overwritten after it was removed: %v", err)
			}
		}
	}
	create(t, f, 5)
	wantPairs(t, other, 1, 3, 4, 5)
	if got := names(t, f); len(got) != 8 || slices.Contains(got, key) {
		t.Error(got)
	}
	for _, file := range packsIn(t, dir, "") {
		content, err := os.ReadFile(file)
		if err != nil || bytes.Contains(content, []byte("secret 2")) || bytes.Contains(content, []byte("value 2")) {
			t.Errorf("%s still has it, or %v", file, err)
		}
	}
}

// TestPacksArePrivate: only the owner can read packs, and a pack that others can read is refused.
func TestPacksArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 1)
	must.Do(t, f.Close())
	for name, mode := range disktest.Tree(t, dir) {
		if name != "." && mode.Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, mode)
		}
	}
	for _, file := range packsIn(t, dir, ".pack") {
		must.Do(t, os.Chmod(file, 0o640))
	}
	if _, err := f.Read(t.Context(), pair(1)[1].Name); err == nil || !strings.Contains(err.Error(), "mode 0640") {
		t.Errorf("a pack of secrets that others can read: %v", err)
	}
	if _, err := f.Read(t.Context(), pair(1)[0].Name); err != nil {
		t.Errorf("a pack without secrets that others can read: %v", err)
	}
}

// TestWherePacked names the pack that has a file.
func TestWherePacked(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 1)
	if where := f.Where(pair(1)[0].Name); !strings.HasPrefix(where, "1.json in "+filepath.Join(dir, "a", "packs")) || !strings.HasSuffix(where, ".pack") {
		t.Error(where)
	}
}

// TestDamagedPack: a pack that cannot be read stops nobody from adding, and whoever looks for a file is told.
func TestDamagedPack(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 1)
	must.Do(t, f.Close())
	for _, file := range packsIn(t, dir, ".pack") {
		if err := errors.Join(os.Remove(file), os.WriteFile(filepath.Join(filepath.Dir(file), strings.Repeat("0", 32)+".pack"), bytes.Repeat([]byte("x"), 1000), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	other := packed(t, dir)
	create(t, other, 2, 3)
	wantPairs(t, packed(t, dir), 2, 3)
	key := pair(3)[1].Name
	if err := packed(t, dir).Remove(t.Context(), key); !errors.Is(err, filestore.ErrDamaged) {
		t.Errorf("a file is removed that may be in the damaged pack, too: %v", err)
	}
	for _, file := range packsIn(t, dir, ".pack") {
		if content, err := os.ReadFile(file); err != nil || bytes.Contains(content, []byte("secret 3")) {
			t.Errorf("%s still has what was removed, or %v", file, err)
		}
	}
	var listed []string
	if err := other.List(t.Context(), "a", func(name string) error { listed = append(listed, name); return nil }); !errors.Is(err, filestore.ErrDamaged) || len(listed) != 2 {
		t.Errorf("%v, %v", listed, err)
	}
	if _, err := other.Read(t.Context(), pair(1)[0].Name); !errors.Is(err, filestore.ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
}

// TestPackOfZeros: some file systems have the length of a new file on disk before its bytes. Nothing was in such a pack.
func TestPackOfZeros(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 1)
	for _, folder := range []string{"a", "keys"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, folder, "packs", strings.Repeat("0", 32)+".pack"), make([]byte, 32), 0o600))
	}
	other := packed(t, dir)
	wantPairs(t, other, 1)
	create(t, other, 2)
	if n := len(packsIn(t, dir, ".pack")); n != 4 {
		t.Errorf("%d packs", n)
	}
}

// copyOf copies a folder as a process leaves it that is killed now.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "killed")
	err := os.CopyFS(to, os.DirFS(dir))
	for n := 0; errors.Is(err, fs.ErrNotExist) && n < 100; n++ { // an index was given its name while the folder was read
		err = errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(dir)))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range disktest.Tree(t, to) {
		perm := fs.FileMode(0o600)
		if mode.IsDir() {
			perm = 0o700
		}
		must.Do(t, os.Chmod(filepath.Join(to, name), perm))
	}
	return to
}

// TestKilledWhilePacking kills a process at each step of adding to packs. What was acknowledged is there, what was not is there whole or not
// at all, and the next process goes on.
func TestKilledWhilePacking(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	f.SmallPacks(300) // so that packs are begun, too
	killed, acknowledged := map[string][]string{}, map[string]int{}
	n := 0
	f.After = func(step string) {
		to := copyOf(t, dir)
		killed[step] = append(killed[step], to)
		acknowledged[to] = n
	}
	for ; n < 12; n++ {
		create(t, f, n)
	}
	for _, step := range []string{"pack made in a", "pack made in keys", "written in a", "written in keys", "synced"} {
		if len(killed[step]) == 0 {
			t.Errorf("no process was killed after %q: %v", step, killed)
		}
		for _, to := range killed[step] {
			wantAfterCrash(t, to, acknowledged[to])
		}
	}
}

// wantAfterCrash checks a folder in which the first pairs were acknowledged, and the next perhaps not.
func wantAfterCrash(t *testing.T, dir string, acknowledged int) {
	t.Helper()
	f := packed(t, dir)
	for n := range acknowledged {
		wantPairs(t, f, n)
	}
	last := pair(acknowledged)
	for _, file := range last {
		if got, err := f.Read(t.Context(), file.Name); err == nil && !bytes.Equal(got, file.Content) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was not acknowledged: %q, %v", got, err)
		}
	}
	if got := names(t, f); len(got) < 2*acknowledged || len(got) > 2*acknowledged+2 {
		t.Errorf("%d names after %d acknowledged pairs", len(got), acknowledged)
	}
	create(t, f, 1000, 1001)
	wantPairs(t, packed(t, dir), 1000, 1001)
	for n := range acknowledged {
		wantPairs(t, packed(t, dir), n)
	}
}

// TestTornPack cuts a pack off at each byte of its last entry, as a crash of the machine may.
func TestTornPack(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 0, 1)
	list := packsIn(t, dir, ".pack")
	before := map[string]int64{}
	for _, file := range list {
		info := must.Get(os.Stat(file))(t)
		before[file] = info.Size()
	}
	create(t, f, 2)
	for _, file := range list {
		info := must.Get(os.Stat(file))(t)
		for size := before[file]; size < info.Size(); size++ {
			torn := copyOf(t, dir)
			name := must.Get(filepath.Rel(dir, file))(t)
			must.Do(t, os.Truncate(filepath.Join(torn, name), size))
			wantAfterCrash(t, torn, 2)
		}
	}
}

// TestWithdrawn: who does not wait for the packs has an error, and nothing is added later.
func TestWithdrawn(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	ended, cancel := context.WithCancel(t.Context())
	f.After = func(string) { cancel() }
	create(t, f, 0) // a caller at work, which ends the context
	if err := f.CreateAll(ended, pair(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	create(t, f, 2)
	if got := names(t, f); len(got) != 4 {
		t.Error(got)
	}
}

// TestTakenBack: a reader that has seen files that were taken back finds what was added instead, whatever its length.
func TestTakenBack(t *testing.T) {
	for _, instead := range [][]int{{3}, {30}, {3, 4}, {30, 40, 50}} {
		dir := t.TempDir()
		f, reader := packed(t, dir), packed(t, dir)
		create(t, f, 1)
		sizes := map[string]int64{}
		for _, file := range packsIn(t, dir, ".pack") {
			info := must.Get(os.Stat(file))(t)
			sizes[file] = info.Size()
		}
		create(t, f, 2)
		wantPairs(t, reader, 1, 2)
		must.Do(t, f.Close())
		for file, size := range sizes {
			must.Do(t, os.Truncate(file, size))
		}
		create(t, packed(t, dir), instead...)
		wantPairs(t, reader, append(instead, 1)...)
		if got, err := reader.Read(t.Context(), pair(2)[0].Name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was taken back: %q, %v", got, err)
		}
	}
}

// TestMadeAgain: of a file that was removed and made again the last one is found, wherever it is, and a removal reaches all that are there.
func TestMadeAgain(t *testing.T) {
	for _, most := range []int64{1, 1 << 20} { // in packs of their own, and in one
		dir := t.TempDir()
		f := packed(t, dir)
		f.SmallPacks(most)
		create(t, f, 1)
		key := pair(1)[1].Name
		must.Do(t, f.Remove(t.Context(), key))
		create(t, f, 1, 1)
		must.Do(t, f.Close())
		wantPairs(t, f, 1)
		must.Do(t, f.Remove(t.Context(), key))
		if got, err := f.Read(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestPacksMovedAway: who moves the folder of the packs away while a process adds gets a new one.
func TestPacksMovedAway(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 1)
	must.Do(t, os.Rename(filepath.Join(dir, "keys"), filepath.Join(dir, "moved")))
	create(t, f, 2)
	wantPairs(t, packed(t, dir), 2)
}

// Files that are added at once are written together up to a size. Each is read as it was, wherever the writing was split.
func TestManySizesAtOnce(t *testing.T) {
	f := packed(t, t.TempDir())
	for range 2 { // the pack keeps the room that it wrote from
		var files []filestore.File
		for n, size := range []int{0, 1, 40 << 10, 64 << 10, 64<<10 + 1, 0, 60 << 10, 60 << 10, 60 << 10, 60 << 10, 60 << 10, 300 << 10, 7} {
			content := bytes.Repeat([]byte{byte('a' + n)}, size)
			files = append(files, filestore.File{Name: fmt.Sprintf("a/%d-%d", len(names(t, f)), n), Content: content})
		}
		must.Do(t, f.CreateAll(t.Context(), files))
		for _, file := range files {
			if got, err := f.Read(t.Context(), file.Name); err != nil || !bytes.Equal(got, file.Content) {
				t.Errorf("%s: %d bytes, %v, want %d bytes", file.Name, len(got), err, len(file.Content))
			}
		}
	}
}
