package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"jurat/internal/disktest"
	"jurat/internal/filestore"
	"jurat/internal/must"
)

// TestPackOnFullDisk: a full disk is an error of those who did not get room, and leaves nothing of them.
func TestPackOnFullDisk(t *testing.T) {
	disktest.Run(t, 1, func(disk *disktest.Disk) {
		f := packed(t, filepath.Join(disk.Path, "data"))
		create(t, f, 0)
		big := []filestore.File{{Name: "a/big.json", Content: make([]byte, 2<<20)}, {Name: "keys/big.key", Content: []byte("key")}}
		small := pair(1)
		errs := make([]error, 9)
		var all sync.WaitGroup
		for n := range errs {
			all.Go(func() {
				files := big
				if n == 4 {
					files = small
				}
				errs[n] = f.CreateAll(context.WithoutCancel(t.Context()), files)
			})
		}
		all.Wait()
		for n, err := range errs {
			if (err != nil) != (n != 4) {
				t.Errorf("caller %d: %v", n, err)
			}
		}
		if got := names(t, f); len(got) != 4 {
			t.Error(got)
		}
		wantPairs(t, f, 0, 1)
		create(t, f, 2)
		wantPairs(t, packed(t, filepath.Join(disk.Path, "data")), 0, 1, 2)
	})
}

// TestDestroyedAgainOnFullDisk: what was destroyed before a crash, and its room given back, is destroyed again though the disk is full by now.
func TestDestroyedAgainOnFullDisk(t *testing.T) {
	disktest.Run(t, 4, func(disk *disktest.Disk) {
		dir := filepath.Join(disk.Path, "data")
		f := packed(t, dir)
		big := filestore.File{Name: "a/big.json", Content: bytes.Repeat([]byte("a text that is erased "), 50_000)}
		must.Do(t, f.CreateAll(t.Context(), []filestore.File{big}))
		must.Do(t, f.Remove(t.Context(), big.Name))
		full := must.Get(os.Create(filepath.Join(disk.Path, "full")))(t)
		if _, err := full.Write(make([]byte, 5<<20)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		if err := f.Remove(t.Context(), big.Name); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}
