package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
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
		must.Hold(t, err == nil && bytes.Equal(got.Sealed, want.Sealed) && bytes.Equal(got.Key, want.Key),
			"value %d: %d bytes, key %x, %v", n, len(got.Sealed), got.Key, err)
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
	files := slotFiles(t, dir)
	must.Hold(t, n == 121 && len(files) == 1, "%d values, and slots in %v", n, files)
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
	must.Want(t, <-withdrawn, context.Canceled)
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
	_, err := v.Read(t.Context(), valueOf(3).Name)
	must.Hold(t, refused == 1 && errors.Is(err, fs.ErrNotExist), "%d refused; who did not wait: %v", refused, err)
}

// TestNoRowWithoutKey: where keys cannot be written, no value is added.
func TestNoRowWithoutKey(t *testing.T) {
	dir := t.TempDir()
	v := newValues(t, dir)
	must.Do(t, os.WriteFile(filepath.Join(dir, KeysFolder), nil, 0o600))
	err := v.Add(t.Context(), []storage.Value{valueOf(1)})
	must.Hold(t, err != nil, "a value without a key is added")
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
	got, err := v.Read(t.Context(), valueOf(1).Name)
	must.Hold(t, err == nil && got.Key == nil, "key %x, %v", got.Key, err)
	must.Do(t, os.CopyFS(filepath.Join(dir, KeysFolder), os.DirFS(away)))
	for _, file := range slotFiles(t, dir) {
		must.Do(t, os.Chmod(file, 0o600))
	}
	addValues(t, v, 5)
	wantValues(t, v, 1, 3, 4, 5)
	got, err = v.Read(t.Context(), valueOf(2).Name)
	must.Hold(t, err == nil && got.Key == nil, "a destroyed key is back: %x, %v", got.Key, err)
}

// TestValuesWithoutKeys: values without keys make no file of keys, and what is in their slots of an earlier one is gone.
func TestValuesWithoutKeys(t *testing.T) {
	dir := t.TempDir()
	v := newValues(t, dir)
	bare := storage.Value{Name: valueOf(1).Name, Sealed: valueOf(1).Sealed}
	must.Do(t, v.Add(t.Context(), []storage.Value{bare}))
	files := slotFiles(t, dir)
	must.Hold(t, len(files) <= 0, "%v", files)
	addValues(t, v, 2)
	bare.Name = valueOf(3).Name
	slots := must.Get(os.OpenFile(slotFiles(t, dir)[0], os.O_WRONLY, 0))(t)
	must.Get(slots.WriteAt(append(valueOf(3).Key, owner(bare.Name)...), 3*slotSize))(t) // as a crash left it
	must.Do(t, slots.Close())
	must.Do(t, v.Add(t.Context(), []storage.Value{bare}))
	got, err := v.Read(t.Context(), bare.Name)
	must.Hold(t, err == nil && got.Key == nil, "key %x, %v", got.Key, err)
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
			must.Equal(t, bytes.Contains(slots, valueOf(n+1).Key), (n+1 != 2))
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
	after := must.Get(v.find(t.Context(), valueOf(3).Name))(t)
	must.Hold(t, after.id > before.id, "the number %d after %d", after.id, before.id)
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
	info := must.Get(os.Stat(filepath.Join(dir, ValuesFile)))(t)
	must.Hold(t, info.Size() <= 1<<20, "the file still has %d bytes", info.Size())
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
		err := v.Each(t.Context(), func(string) error { return nil })
		must.Hold(t, err == nil || errors.Is(err, storage.ErrDamaged), "page %d: %v", page, err)
		_ = v.Close() // it may complain of the damage
	}
	must.Hold(t, most >= len(numbers)-2, "at most %d of %d values were read", most, len(numbers))
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

// TestFolderReplacedWhileValuesOpen: the folder is replaced by a copy while the file is opened for the first time. Nothing is read from the copy or added to
// it, and the values are used again when the folder is back.
func TestFolderReplacedWhileValuesOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	must.Do(t, os.Mkdir(dir, 0o700))
	log := create(t, filepath.Join(dir, logFile))
	earlier := NewValues(dir)
	addValues(t, earlier, 1)
	must.Do(t, earlier.Close())
	must.Do(t, os.CopyFS(dir+"-copy", os.DirFS(dir)))
	v := newValues(t, dir)
	asked := 0
	v.InPlace = func() error {
		defer func() {
			if asked++; asked == 1 { // right after the answer
				must.Do(t, os.Rename(dir, dir+"-away"))
				must.Do(t, os.Rename(dir+"-copy", dir))
			}
		}()
		return log.InPlace()
	}
	must.Want(t, v.Add(t.Context(), []storage.Value{valueOf(2)}), storage.ErrMoved)
	must.Fail(t, storage.ErrMoved)(v.Read(t.Context(), valueOf(1).Name))
	must.Do(t, os.Rename(dir, dir+"-copy"))
	must.Do(t, os.Rename(dir+"-away", dir))
	addValues(t, v, 3)
	wantValues(t, v, 1, 3)
	must.Fail(t, fs.ErrNotExist)(newValues(t, dir+"-copy").Read(t.Context(), valueOf(2).Name))
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
	files := slotFiles(t, dir)
	must.Hold(t, len(files) == 1 && strings.HasSuffix(files[0], ".keys"), "%v", files)
}

// says appends one record whose payload is this text.
func says(t *testing.T, s *Store, id, text string) {
	t.Helper()
	err := s.Append(t.Context(), func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		stored, err := tlog.StoredHashesForRecordHash(head.Size, tlog.RecordHash([]byte(text)), hashes)
		token := evidence.DigestOf([]byte("stamp of " + text))
		return storage.Batch{Rows: []storage.Row{{Index: head.Size, RecordID: id, Digest: evidence.DigestOf([]byte(text)), Payload: []byte(text),
			Signatures: [][]byte{{1}}, Timestamps: []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token[:]}}}}, Hashes: stored, Next: storage.Head{Size: head.Size + 1}}, err
	})
	must.Do(t, err)
}

// marks are bytes of what the rows are stored as, which is compressed.
func marks(t *testing.T, s *Store, from, n int64) (list [][]byte) {
	t.Helper()
	rows, err := s.Rows(t.Context(), from, n)
	must.Need(t, err == nil && int64(len(rows)) == n, "%v %v", len(rows), err)
	for i, r := range rows {
		if i%23 != 0 {
			continue // the search takes long
		}
		b := r.Packed.Blob
		list = append(list, b[len(b)/2-8:len(b)/2+8], b[len(b)-16:])
	}
	return list
}

// left counts the remains of deleted rows in the database, its write-ahead log, and other files beside it.
func left(t *testing.T, path string, marks [][]byte) map[string]int {
	t.Helper()
	found := map[string]int{}
	files, err := filepath.Glob(path + "*")
	must.Need(t, err == nil && len(files) != 0, "%v %v", files, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		must.Need(t, err == nil || errors.Is(err, fs.ErrNotExist), "%v", err)
		for _, mark := range marks {
			found[filepath.Base(file)] += bytes.Count(content, mark)
		}
	}
	maps.DeleteFunc(found, func(_ string, n int) bool { return n == 0 })
	return found
}

// noise is a text that cannot be compressed much.
func noise(random *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return string(b)
}

// TestNothingIsLeftOfWhatExpired checks that no byte of expired rows remains in the database's files.
func TestNothingIsLeftOfWhatExpired(t *testing.T) {
	const n, kept = 512, "kept text, which is long enough to be found"
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		says(t, s, fmt.Sprint(i), noise(random, 20+random.IntN([]int{50, 700, 10_000, 40_000}[random.IntN(4)])))
	}
	says(t, s, kept, kept)
	gone, stay := marks(t, s, 0, n), marks(t, s, n, 1)
	must.Need(t, len(left(t, path, gone)) != 0, "the search does not find texts that are there")
	for from := int64(0); from < n; from += 128 {
		rows := must.Get(s.Rows(t.Context(), from, 128))(t)
		indexes := make([]int64, len(rows))
		briefs := make([]storage.StoredBrief, len(rows))
		for i := range rows {
			indexes[i], briefs[i] = rows[i].Index, storage.StoredBrief{Index: rows[i].Index, Line: []byte("{}")}
			rows[i].Entry, rows[i].ExpiredBy, rows[i].Packed = []byte("entry"), "act", storage.Packed{}
		}
		must.Do(t, s.PutExpiring(t.Context(), "act", indexes))
		must.Do(t, s.Expire(t.Context(), "act", rows, briefs))
	}
	for range 2 { // a second run finds nothing to do
		must.Do(t, s.Reclaim(t.Context(), nil))
	}
	found := left(t, path, gone)
	must.Hold(t, len(found) <= 0, "left: %v", found)
	must.Hold(t, len(left(t, path, stay)) != 0, "a row that did not expire is missing")
	complaints, err := s.Check(t.Context())
	must.Hold(t, err == nil && len(complaints) <= 0, "%v, %v", complaints, err)
}

// TestWriteAheadLogIsMoved checks that committed pages get into the database file, and that the write-ahead log does not grow for ever.
func TestWriteAheadLogIsMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	before := fileSize(t, path)
	for n := range 12 { // of a megabyte each
		must.Do(t, add(t, s, fmt.Sprintf("record-%d", n), 1<<20))
	}
	size := fileSize(t, path)
	must.Hold(t, size >= before+movedAt*pageSize/2, "the file has %d bytes", size)
	size = fileSize(t, path+"-wal")
	must.Hold(t, size <= (movedAt+1000)*pageSize, "the write-ahead log has %d bytes", size)
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info := must.Get(os.Stat(path))(t)
	return info.Size()
}

// TestByDigestInEveryStretch finds records in the first, a middle and the last stretch of the digest index.
func TestByDigestInEveryStretch(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	const n = 3*2048 + 5
	must.Do(t, addMany(t, s, n))
	for _, index := range []int64{0, 1, 2047, 2048, 4095, 4096, 6143, 6144, n - 1} {
		rows, err := s.Rows(t.Context(), index, 1)
		must.Need(t, err == nil && len(rows) == 1, "%v %v", rows, err)
		row, err := s.ByDigest(t.Context(), rows[0].Digest)
		must.Hold(t, err == nil && row.Index == index && row.RecordID == rows[0].RecordID, "%d is found at %d, %v", index, row.Index, err)
		other := rows[0].Digest
		other[31] ^= 1 // what the index has of it is the same
		row, err = s.ByDigest(t.Context(), other)
		must.Hold(t, err != nil, "another digest is found at %d", row.Index)
	}
}

// addMany appends n records at once, with empty hashes.
func addMany(t *testing.T, s *Store, n int64) error {
	return s.Append(t.Context(), func(storage.Head, storage.Committed) (storage.Batch, error) {
		batch := storage.Batch{Hashes: make([]tlog.Hash, tlog.StoredHashCount(n)), Next: storage.Head{Size: n}}
		for i := range n {
			payload := fmt.Appendf(nil, "payload %d", i)
			batch.Rows = append(batch.Rows, storage.Row{Index: i, RecordID: fmt.Sprintf("record-%d", i), Digest: evidence.DigestOf(payload), Payload: payload})
		}
		return batch, nil
	})
}
