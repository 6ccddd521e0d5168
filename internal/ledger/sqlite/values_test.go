package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/internal/ledger/storage"
	"jurat/internal/must"
)

// valueOf is the value of a number, of its own length and with a key of its own.
func valueOf(n int) storage.Value {
	return storage.Value{Name: fmt.Sprintf("%064x-%016x", n, n), Sealed: bytes.Repeat([]byte{byte(n), 1}, 20+n*n%9000), Key: bytes.Repeat([]byte{byte(n), 2}, keySize/2)}
}

func newValues(t *testing.T, dir string) *Values {
	v := NewValues(dir)
	t.Cleanup(func() { must.Do(t, v.Close()) })
	return v
}

func addValues(t *testing.T, v *Values, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		must.Do(t, v.Add(t.Context(), []storage.Value{valueOf(n)}))
	}
}

// wantValues checks that values are there, with their keys.
func wantValues(t *testing.T, v *Values, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		want := valueOf(n)
		got, err := v.Read(t.Context(), want.Name)
		if err != nil || !bytes.Equal(got.Sealed, want.Sealed) || !bytes.Equal(got.Key, want.Key) {
			t.Errorf("value %d: %d bytes, key %x, %v", n, len(got.Sealed), got.Key, err)
		}
	}
}

func slotFiles(t *testing.T, dir string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(dir, KeysFolder, "*")))(t)
}

// TestValuesOfManyProcesses: several processes with many callers each add at once, each all or none, and find what any has added. Slots are never shared.
func TestValuesOfManyProcesses(t *testing.T) {
	dir := t.TempDir()
	processes := []*Values{newValues(t, dir), newValues(t, dir), newValues(t, dir)}
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() {
			must.Want(t, processes[n%3].Add(t.Context(), []storage.Value{valueOf(2 * n), valueOf(2*n + 1)}), nil)
		})
	}
	all.Wait()
	for n := range 120 {
		wantValues(t, processes[n%3], n)
	}
	must.Want(t, processes[0].Add(t.Context(), []storage.Value{valueOf(1000), valueOf(7)}), fs.ErrExist)
	must.Fail(t, fs.ErrNotExist)(processes[1].Read(t.Context(), valueOf(1000).Name))
	addValues(t, processes[2], 1000)
	wantValues(t, processes[0], 1000)
	n := 0
	must.Do(t, processes[0].Each(t.Context(), func(string) error { n++; return nil }))
	if files := slotFiles(t, dir); n != 121 || len(files) != 1 {
		t.Errorf("%d values, and slots in %v", n, files)
	}
}

// TestAddedTogether: of callers who share a transaction, one whose value is there does not stop the others.
func TestAddedTogether(t *testing.T) {
	v := newValues(t, t.TempDir())
	addValues(t, v, 0)
	v.turn <- struct{}{} // as if another call were at work
	results := make(chan error, 3)
	for _, n := range []int{0, 1, 2} {
		go func() { results <- v.Add(t.Context(), []storage.Value{valueOf(n)}) }()
	}
	gone, leave := context.WithCancel(t.Context())
	withdrawn := make(chan error)
	go func() { withdrawn <- v.Add(gone, []storage.Value{valueOf(3)}) }()
	for waiting := 0; waiting < 4; time.Sleep(time.Millisecond) {
		v.mu.Lock()
		waiting = len(v.adding)
		v.mu.Unlock()
	}
	leave()
	if err := <-withdrawn; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	v.turn.Release()
	refused := 0
	for range 3 {
		if err := <-results; errors.Is(err, fs.ErrExist) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	wantValues(t, v, 0, 1, 2)
	if _, err := v.Read(t.Context(), valueOf(3).Name); refused != 1 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d refused; who did not wait: %v", refused, err)
	}
}

// TestNoRowWithoutKey: where keys cannot be written, no value is added.
func TestNoRowWithoutKey(t *testing.T) {
	dir := t.TempDir()
	v := newValues(t, dir)
	must.Do(t, os.WriteFile(filepath.Join(dir, KeysFolder), nil, 0o600))
	if err := v.Add(t.Context(), []storage.Value{valueOf(1)}); err == nil {
		t.Error("a value without a key is added")
	}
	must.Do(t, os.Remove(filepath.Join(dir, KeysFolder)))
	must.Fail(t, fs.ErrNotExist)(v.Read(t.Context(), valueOf(1).Name))
	addValues(t, v, 1)
	wantValues(t, v, 1)
}

// TestKeysPutBack: values without their keys, as a backup has them, get them again beside the keys of what was added meanwhile.
func TestKeysPutBack(t *testing.T) {
	dir := t.TempDir()
	v := newValues(t, dir)
	addValues(t, v, 1, 2, 3)
	must.Do(t, v.DestroyKey(t.Context(), valueOf(2).Name))
	away := filepath.Join(t.TempDir(), "away")
	must.Do(t, os.Rename(filepath.Join(dir, KeysFolder), away))
	addValues(t, v, 4)
	if got, err := v.Read(t.Context(), valueOf(1).Name); err != nil || got.Key != nil {
		t.Errorf("key %x, %v", got.Key, err)
	}
	must.Do(t, os.CopyFS(filepath.Join(dir, KeysFolder), os.DirFS(away)))
	for _, file := range slotFiles(t, dir) {
		must.Do(t, os.Chmod(file, 0o600))
	}
	addValues(t, v, 5)
	wantValues(t, v, 1, 3, 4, 5)
	if got, err := v.Read(t.Context(), valueOf(2).Name); err != nil || got.Key != nil {
		t.Errorf("a destroyed key is back: %x, %v", got.Key, err)
	}
}

// TestValuesWithoutKeys: values without keys make no file of keys, and what is in their slots of an earlier one is gone.
func TestValuesWithoutKeys(t *testing.T) {
	dir := t.TempDir()
	v := newValues(t, dir)
	bare := storage.Value{Name: valueOf(1).Name, Sealed: valueOf(1).Sealed}
	must.Do(t, v.Add(t.Context(), []storage.Value{bare}))
	if files := slotFiles(t, dir); len(files) > 0 {
		t.Error(files)
	}
	addValues(t, v, 2)
	bare.Name = valueOf(3).Name
	slots := must.Get(os.OpenFile(slotFiles(t, dir)[0], os.O_WRONLY, 0))(t)
	must.Get(slots.WriteAt(append(valueOf(3).Key, owner(bare.Name)...), 3*slotSize))(t) // as a crash left it
	must.Do(t, slots.Close())
	must.Do(t, v.Add(t.Context(), []storage.Value{bare}))
	if got, err := v.Read(t.Context(), bare.Name); err != nil || got.Key != nil {
		t.Errorf("key %x, %v", got.Key, err)
	}
}

// TestKeyWithoutRow: a key is destroyed also where its row is lost, or leads to another's key, which stays: copies of the row may be elsewhere.
func TestKeyWithoutRow(t *testing.T) {
	for _, change := range []string{`DELETE FROM apart WHERE id = 2`, `UPDATE apart SET id = iif(id = 2, -3, -2) WHERE id IN (2, 3); UPDATE apart SET id = -id WHERE id < 0`} {
		dir := t.TempDir()
		v := newValues(t, dir)
		addValues(t, v, 1, 2, 3)
		must.Do(t, v.store.transact(t.Context(), func(ctx context.Context) error {
			_, err := v.store.writer.ExecContext(ctx, change)
			return err
		}))
		must.Do(t, v.DestroyKey(t.Context(), valueOf(2).Name))
		slots := must.Get(os.ReadFile(slotFiles(t, dir)[0]))(t)
		for n := range 3 {
			if kept := bytes.Contains(slots, valueOf(n+1).Key); kept != (n+1 != 2) {
				t.Errorf("%s: the key of value %d is there: %v", change, n+1, kept)
			}
		}
	}
}

// TestNoNumberTwice: the slot of a value that was removed is not used again, so keys that are put back fit nothing else.
func TestNoNumberTwice(t *testing.T) {
	v := newValues(t, t.TempDir())
	addValues(t, v, 1, 2)
	before := must.Get(v.find(t.Context(), valueOf(2).Name))(t)
	must.Do(t, errors.Join(v.DestroyKey(t.Context(), valueOf(2).Name), v.Remove(t.Context(), valueOf(2).Name)))
	addValues(t, v, 3)
	if after := must.Get(v.find(t.Context(), valueOf(3).Name))(t); after.id <= before.id {
		t.Errorf("the number %d after %d", after.id, before.id)
	}
}

// TestRoomOfRemovedValues: what is removed gives its room back.
func TestRoomOfRemovedValues(t *testing.T) {
	dir := t.TempDir()
	v := NewValues(dir)
	long := storage.Value{Name: valueOf(0).Name, Sealed: make([]byte, 4<<20)}
	addValues(t, v, 1)
	must.Do(t, v.Add(t.Context(), []storage.Value{long}))
	addValues(t, v, 2)
	must.Do(t, v.Remove(t.Context(), long.Name))
	wantValues(t, v, 1, 2)
	must.Do(t, v.Close())
	if info := must.Get(os.Stat(filepath.Join(dir, ValuesFile)))(t); info.Size() > 1<<20 {
		t.Errorf("the file still has %d bytes", info.Size())
	}
}

// TestDamagedTable destroys each page in turn. A value is read as it was or said to be damaged, and most can be read.
func TestDamagedTable(t *testing.T) {
	dir := t.TempDir()
	v := NewValues(dir)
	var numbers []int
	for n := range 60 {
		numbers = append(numbers, n)
	}
	addValues(t, v, numbers...)
	must.Do(t, v.Close())
	path := filepath.Join(dir, ValuesFile)
	whole := must.Get(os.ReadFile(path))(t)
	most := 0
	for page := 1; page < len(whole)/pageSize; page++ {
		damaged := slices.Clone(whole)
		for i := range pageSize {
			damaged[page*pageSize+i] = byte(i*7 + page)
		}
		must.Do(t, os.WriteFile(path, damaged, 0o600))
		v, read := NewValues(dir), 0
		for _, n := range numbers {
			switch got, err := v.Read(t.Context(), valueOf(n).Name); {
			case err == nil && bytes.Equal(got.Key, valueOf(n).Key):
				read++ // whether its content is whole is for who decrypts it to say
			case !errors.Is(err, storage.ErrDamaged):
				t.Errorf("page %d, value %d: %x, %v", page, n, got.Key, err)
			}
		}
		most = max(most, read)
		if err := v.Each(t.Context(), func(string) error { return nil }); err != nil && !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("page %d: %v", page, err)
		}
		_ = v.Close() // it may complain of the damage
	}
	if most < len(numbers)-2 {
		t.Errorf("at most %d of %d values were read", most, len(numbers))
	}
}

// TestIndexOfAnotherRow: an index that leads to the row of another value, whose key would be destroyed, is damage.
func TestIndexOfAnotherRow(t *testing.T) {
	dir := t.TempDir()
	v := NewValues(dir)
	addValues(t, v, 1, 2)
	must.Do(t, v.Close())
	path := filepath.Join(dir, ValuesFile)
	content := must.Get(os.ReadFile(path))(t)
	entry := append(packName(valueOf(2).Name), 2) // its name and the number of its row
	var index []byte                              // its page; in the row itself the name may stand before a byte like that of the number
	for page := range slices.Chunk(content, pageSize) {
		if page[0] == 0x0a && bytes.Contains(page, entry) { // a leaf of an index
			index = page
		}
	}
	must.Equal(t, bytes.Count(index, entry), 1)
	index[bytes.Index(index, entry)+len(entry)-1] = 1
	must.Do(t, os.WriteFile(path, content, 0o600))
	v = newValues(t, dir)
	must.Want(t, v.DestroyKey(t.Context(), valueOf(2).Name), storage.ErrDamaged)
	wantValues(t, v, 1)
}

// TestMovedValues: what would be added to a file that was moved away is not acknowledged.
func TestMovedValues(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	must.Do(t, os.Mkdir(dir, 0o700))
	v := NewValues(dir)
	addValues(t, v, 1)
	must.Do(t, os.Rename(dir, dir+"-away"))
	must.Want(t, v.Add(t.Context(), []storage.Value{valueOf(2)}), storage.ErrMoved)
	must.Do(t, os.Rename(dir+"-away", dir))
	addValues(t, v, 2)
	wantValues(t, v, 1, 2)
	must.Do(t, v.Close())
	must.Want(t, NewValues(filepath.Join(dir, "none")).Add(t.Context(), []storage.Value{valueOf(1)}), fs.ErrNotExist)
}

// TestKilledWhileAdding kills processes that add. What one acknowledged is there, and of one call everything or nothing.
func TestKilledWhileAdding(t *testing.T) {
	const folder = "JURAT_TEST_VALUES"
	if dir := os.Getenv(folder); dir != "" {
		v := NewValues(dir)
		for n := os.Getpid() * 1000; ; n += 2 {
			must.Do(t, v.Add(t.Context(), []storage.Value{valueOf(n), valueOf(n + 1)}))
			fmt.Println("\nadded", n)
		}
	}
	dir := t.TempDir()
	for range 5 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), folder+"="+dir)
		out := must.Get(child.StdoutPipe())(t)
		must.Do(t, child.Start())
		var added []int
		for lines := bufio.NewScanner(out); len(added) < 3 && lines.Scan(); {
			var n int
			if _, err := fmt.Sscanf(lines.Text(), "added %d", &n); err == nil {
				added = append(added, n, n+1)
			}
		}
		must.Do(t, child.Process.Kill())
		_ = child.Wait() // it was killed
		v := NewValues(dir)
		wantValues(t, v, added...)
		names := map[string]bool{}
		must.Do(t, v.Each(t.Context(), func(name string) error { names[name] = true; return nil }))
		for n := child.Process.Pid * 1000; n < child.Process.Pid*1000+1000; n += 2 {
			if names[valueOf(n).Name] != names[valueOf(n+1).Name] {
				t.Errorf("half of what was added with %d is there", n)
			} else if names[valueOf(n).Name] {
				wantValues(t, v, n, n+1)
			}
		}
		must.Do(t, v.Close())
	}
	if files := slotFiles(t, dir); len(files) != 1 || !strings.HasSuffix(files[0], ".keys") {
		t.Error(files)
	}
}
