package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"jurat/internal/disktest"
	"jurat/internal/ledger/storage"
	"jurat/internal/must"
)

// TestValuesOnFullDisk: a full disk is an error of those who did not get room, and leaves nothing of them. A key can be destroyed there.
func TestValuesOnFullDisk(t *testing.T) {
	disktest.Run(t, 4, func(disk *disktest.Disk) {
		v := newValues(t, disk.Path)
		addValues(t, v, 1)
		large := storage.Value{Name: valueOf(2).Name, Sealed: make([]byte, 8<<20), Key: valueOf(2).Key}
		if err := v.Add(t.Context(), []storage.Value{large}); !errors.Is(err, storage.ErrDiskFull) {
			t.Errorf("a value larger than the disk: %v", err)
		}
		addValues(t, v, 2)
		wantValues(t, v, 1, 2)
		disk.Fill(t, filepath.Join(disk.Path, "full"))
		must.Do(t, v.DestroyKey(t.Context(), valueOf(1).Name))
		if got, err := v.Read(t.Context(), valueOf(1).Name); err != nil || got.Key != nil {
			t.Errorf("key %x, %v", got.Key, err)
		}
		wantValues(t, v, 2)
	})
}

// TestNoRoomForAKey: where there is no room for a key, its value is not added.
func TestNoRoomForAKey(t *testing.T) {
	dir := t.TempDir()
	v := newValues(t, dir)
	addValues(t, v, 1)
	slots := slotFiles(t, dir)[0]
	must.Do(t, os.Rename(slots, slots+"-away"))
	must.Do(t, os.Symlink("/dev/full", slots))
	if err := v.Add(t.Context(), []storage.Value{valueOf(2)}); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	must.Do(t, os.Rename(slots+"-away", slots))
	if _, err := v.Read(t.Context(), valueOf(2).Name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the value without a key: %v", err)
	}
	wantValues(t, v, 1)
}

// TestValuesThatCannotBeWritten: on a disk that cannot be written, what was kept is read.
func TestValuesThatCannotBeWritten(t *testing.T) {
	disktest.Run(t, 4, func(disk *disktest.Disk) {
		v := NewValues(disk.Path)
		addValues(t, v, 1)
		must.Do(t, v.Close())
		disk.ReadOnly(t, true)
		v = NewValues(disk.Path)
		wantValues(t, v, 1)
		if err := v.Add(t.Context(), []storage.Value{valueOf(2)}); !errors.Is(err, storage.ErrReadOnly) {
			t.Error(err)
		}
		must.Do(t, v.Close())
		disk.ReadOnly(t, false)
	})
}
