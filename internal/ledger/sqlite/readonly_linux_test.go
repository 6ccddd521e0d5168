package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/disktest"
	"jurat/internal/ledger/storage"
)

// TestReadOnlyDisk checks that a file on a read-only disk is read with everything that was committed, in every state
// that a crash can leave.
func TestReadOnlyDisk(t *testing.T) {
	disktest.Run(t, 40, func(disk *disktest.Disk) {
		for name, left := range map[string][]string{ // the files beside a file in use
			"closed":                  nil,
			"a log and its index":     {"-wal", "-shm"},
			"a log without its index": {"-wal"},
			"an index without a log":  {"-shm"},
		} {
			path := filepath.Join(disk.Path, strings.ReplaceAll(name, " ", "-"), "log.db")
			crashed(t, path, left)
			disk.ReadOnly(t, true)
			copied := filepath.Join(t.TempDir(), "copy.db")
			if err := Backup(t.Context(), path, copied); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if s, err := Open(t.Context(), copied); err != nil {
				t.Errorf("%s: the copy: %v", name, err)
			} else {
				wantRows(t, name, s)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				wantReadOnly(t, name, s)
			}
			disk.ReadOnly(t, false)
			if s, err = Open(t.Context(), path); err != nil { // nothing was damaged
				t.Fatal(err)
			}
			if err := errors.Join(add(t, s, "more", 10), s.Close()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// rows is how many rows crashed appends.
const rows = 20

// crashed leaves a file as a crash does, with the named files beside it.
func crashed(t *testing.T, path string, left []string) {
	t.Helper()
	work := filepath.Join(filepath.Dir(path), "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	s := create(t, filepath.Join(work, "log.db"))
	for i := range rows {
		if err := add(t, s, fmt.Sprint(i), 10_000); err != nil {
			t.Fatal(err)
		}
	}
	if len(left) == 0 || left[0] != "-wal" {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	copied := func(name string) {
		content, err := os.ReadFile(filepath.Join(work, "log.db"+name))
		if err != nil && name != "-shm" { // a closed file has none beside it
			t.Fatal(err)
		}
		if err := os.WriteFile(path+name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copied("")
	for _, name := range left {
		copied(name)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantRows reads everything.
func wantRows(t *testing.T, name string, s *Store) {
	t.Helper()
	if head, err := s.Head(t.Context()); err != nil || head.Size != rows {
		t.Errorf("%s: %d rows, %v", name, head.Size, err)
	}
	if all, err := s.Rows(t.Context(), 0, 2*rows); err != nil || len(all) != rows {
		t.Errorf("%s: %d rows, %v", name, len(all), err)
	}
	if complaints, err := s.Check(t.Context()); err != nil || len(complaints) > 0 {
		t.Errorf("%s: %v, %v", name, complaints, err)
	}
}

// wantReadOnly reads everything, checks that writes are refused, and closes the store.
func wantReadOnly(t *testing.T, name string, s *Store) {
	t.Helper()
	wantRows(t, name, s)
	for what, err := range map[string]error{"ReadOnly": s.ReadOnly(), "Probe": s.Probe(t.Context()), "Append": add(t, s, "new", 10),
		"SetCheckpoint": s.SetCheckpoint(t.Context(), "", "x"), "Expire": s.Expire(t.Context(), "act", nil, nil), "Reclaim": s.Reclaim(t.Context(), nil)} {
		if !errors.Is(err, storage.ErrReadOnly) {
			t.Errorf("%s: %s: %v", name, what, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: closing: %v", name, err)
	}
	if _, err := s.Head(t.Context()); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("%s: after Close: %v", name, err)
	}
}

// TestReadWhileSomebodyBegins checks that a reader without a lock gets an error if another process has begun to write
// meanwhile.
func TestReadWhileSomebodyBegins(t *testing.T) {
	disktest.Run(t, 40, func(disk *disktest.Disk) {
		folder, mirror := filepath.Join(disk.Path, "folder"), filepath.Join(disk.Path, "mirror")
		for _, left := range [][]string{nil, {"-wal"}} {
			crashed(t, filepath.Join(folder, "log.db"), left)
			if _, err := os.Stat(mirror); err != nil {
				disk.Mirror(t, folder, mirror)
			}
			reads, err := Open(t.Context(), filepath.Join(mirror, "log.db"))
			if err != nil {
				t.Fatal(err)
			}
			writes, err := Open(t.Context(), filepath.Join(folder, "log.db"))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(add(t, writes, "new", 10), writes.Close()); err != nil {
				t.Fatal(err)
			}
			if err := reads.Close(); !errors.Is(err, storage.ErrBusy) {
				t.Errorf("with %v: %v", left, err)
			}
			if err := os.RemoveAll(filepath.Join(folder, "work")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestReadOnlyBesideAWriter checks that a process that can only read sees, under SQLite's locks, what another one
// commits.
func TestReadOnlyBesideAWriter(t *testing.T) {
	disktest.Run(t, 40, func(disk *disktest.Disk) {
		folder, mirror := filepath.Join(disk.Path, "folder"), filepath.Join(disk.Path, "mirror")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		writes := create(t, filepath.Join(folder, "log.db"))
		disk.Mirror(t, folder, mirror)
		reads, err := Open(t.Context(), filepath.Join(mirror, "log.db"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := add(t, writes, fmt.Sprint(i), 100_000); err != nil {
				t.Fatal(err)
			}
			if head, err := reads.Head(t.Context()); err != nil || head.Size != int64(i+1) {
				t.Fatalf("%d rows of %d, %v", head.Size, i+1, err)
			}
		}
		if err := errors.Join(reads.Close(), writes.Close()); err != nil {
			t.Error(err)
		}
	})
}
