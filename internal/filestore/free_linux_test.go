package filestore_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"jurat/internal/atomicfile"
	"jurat/internal/filestore"
	"jurat/internal/must"
)

// taken returns the bytes that the packs of a folder take on the disk, and their length.
func taken(t *testing.T, dir string) (blocks, length int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		blocks, length = blocks+info.Sys().(*syscall.Stat_t).Blocks*512, length+info.Size()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return blocks, length
}

// givesBack skips a test where the file system gives no room back.
func givesBack(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	file := must.Get(os.Create(filepath.Join(dir, "zeros")))(t)
	defer file.Close() //nolint:errcheck // only its room counts
	must.Get(file.Write(make([]byte, 1<<20)))(t)
	must.Do(t, errors.Join(file.Sync(), atomicfile.Free(file, 0, 1<<20)))
	if blocks, _ := taken(t, dir); blocks > 0 {
		t.Skip("this file system gives no room back")
	}
}

// TestRoomOfWhatIsDestroyed: what is destroyed gives back its room, and what stands before and after it in the pack reads as before, for processes that had the pack open, too.
func TestRoomOfWhatIsDestroyed(t *testing.T) {
	givesBack(t)
	dir := filepath.Join(t.TempDir(), "data")
	f, other := packed(t, dir), packed(t, dir)
	create(t, f, 0)
	big := filestore.File{Name: "a/big.json", Content: bytes.Repeat([]byte("a text that is erased "), 50_000)}
	must.Do(t, f.CreateAll(t.Context(), []filestore.File{big}))
	create(t, f, 1)
	wantPairs(t, other, 0, 1)
	packs := filepath.Join(dir, "a")
	before, length := taken(t, packs)
	must.Do(t, f.Remove(t.Context(), big.Name))
	after, kept := taken(t, packs)
	if kept != length {
		t.Errorf("the packs have %d bytes, and had %d", kept, length)
	}
	if given := before - after; given < int64(len(big.Content))-2*4096 {
		t.Errorf("%d bytes are given back, of %d", given, len(big.Content))
	}
	create(t, other, 2)
	for _, one := range []*filestore.Folder{f, other, packed(t, dir)} {
		wantPairs(t, one, 0, 1, 2)
		if got, err := one.Read(t.Context(), big.Name); err == nil {
			t.Errorf("what was destroyed reads %d bytes", len(got))
		}
	}
}
