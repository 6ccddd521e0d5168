package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// TestReadOnlyDisk checks that a file on a read-only disk is read with everything that was committed, in every state
// that a crash can leave.
func TestReadOnlyDisk(t *testing.T) {
	rig.OnDisk(t, 40, func(disk *rig.Disk) {
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
			if err := CopyFile(t.Context(), path, copied); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if s, err := Open(t.Context(), copied); err != nil {
				t.Errorf("%s: the copy: %v", name, err)
			} else {
				wantRows(t, name, s)
				must.Want(t, s.Close(), nil)
			}
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				wantReadOnly(t, name, s)
			}
			disk.ReadOnly(t, false)
			s, err = Open(t.Context(), path)
			must.Do(t, err) // nothing was damaged
			must.Want(t, errors.Join(add(t, s, "more", 10), s.Close()), nil)
		}
	})
}

// rows is how many rows crashed appends.
const rows = 20

// crashed leaves a file as a crash does, with the named files beside it.
func crashed(t *testing.T, path string, left []string) {
	t.Helper()
	work := filepath.Join(filepath.Dir(path), "work")
	must.Do(t, os.MkdirAll(work, 0o700))
	s := create(t, filepath.Join(work, "log.db"))
	for i := range rows {
		must.Do(t, add(t, s, fmt.Sprint(i), 10_000))
	}
	if len(left) == 0 || left[0] != "-wal" {
		must.Do(t, s.Close())
	}
	copied := func(name string) {
		content, err := os.ReadFile(filepath.Join(work, "log.db"+name))
		must.Need(t, err == nil || name == "-shm", "%v", err) // a closed file has none beside it
		must.Do(t, os.WriteFile(path+name, content, 0o600))
	}
	copied("")
	for _, name := range left {
		copied(name)
	}
	must.Do(t, s.Close())
}

// wantRows reads everything.
func wantRows(t *testing.T, name string, s *Store) {
	t.Helper()
	head, err := s.Head(t.Context())
	must.Hold(t, err == nil && head.Size == rows, "%s: %d rows, %v", name, head.Size, err)
	all, err := s.Rows(t.Context(), 0, 2*rows)
	must.Hold(t, err == nil && len(all) == rows, "%s: %d rows, %v", name, len(all), err)
	complaints, err := s.Check(t.Context())
	must.Hold(t, err == nil && len(complaints) == 0, "%s: %v, %v", name, complaints, err)
}

// wantReadOnly reads everything, checks that writes are refused, and closes the store.
func wantReadOnly(t *testing.T, name string, s *Store) {
	t.Helper()
	wantRows(t, name, s)
	for what, err := range map[string]error{"ReadOnly": s.ReadOnly(), "Probe": s.Probe(t.Context()), "Append": add(t, s, "new", 10),
		"SetCheckpoint": s.SetCheckpoint(t.Context(), "", "x"), "Expire": s.Expire(t.Context(), "act", nil, nil), "Reclaim": s.Reclaim(t.Context(), nil)} {
		must.Hold(t, errors.Is(err, storage.ErrReadOnly), "%s: %s: %v", name, what, err)
	}
	must.Want(t, s.Close(), nil)
	must.Fail(t, storage.ErrClosed)(s.Head(t.Context()))
}

// TestReadWhileSomebodyBegins checks that a reader without a lock gets an error if another process has begun to write
// meanwhile.
func TestReadWhileSomebodyBegins(t *testing.T) {
	rig.OnDisk(t, 40, func(disk *rig.Disk) {
		folder, mirror := filepath.Join(disk.Path, "folder"), filepath.Join(disk.Path, "mirror")
		for _, left := range [][]string{nil, {"-wal"}} {
			crashed(t, filepath.Join(folder, "log.db"), left)
			if _, err := os.Stat(mirror); err != nil {
				disk.Mirror(t, folder, mirror)
			}
			reads := must.Get(Open(t.Context(), filepath.Join(mirror, "log.db")))(t)
			writes := must.Get(Open(t.Context(), filepath.Join(folder, "log.db")))(t)
			must.Do(t, errors.Join(add(t, writes, "new", 10), writes.Close()))
			must.Want(t, reads.Close(), storage.ErrBusy)
			must.Do(t, os.RemoveAll(filepath.Join(folder, "work")))
		}
	})
}

// TestReadOnlyBesideAWriter checks that a process that can only read sees, under SQLite's locks, what another one
// commits.
func TestReadOnlyBesideAWriter(t *testing.T) {
	rig.OnDisk(t, 40, func(disk *rig.Disk) {
		folder, mirror := filepath.Join(disk.Path, "folder"), filepath.Join(disk.Path, "mirror")
		must.Do(t, os.Mkdir(folder, 0o700))
		writes := create(t, filepath.Join(folder, "log.db"))
		disk.Mirror(t, folder, mirror)
		reads := must.Get(Open(t.Context(), filepath.Join(mirror, "log.db")))(t)
		for i := range rows {
			must.Do(t, add(t, writes, fmt.Sprint(i), 100_000))
			head, err := reads.Head(t.Context())
			must.Need(t, err == nil && head.Size == int64(i+1), "%d rows of %d, %v", head.Size, i+1, err)
		}
		must.Want(t, errors.Join(reads.Close(), writes.Close()), nil)
	})
}

// stopping, if set, is the database in which this process stops itself in the middle of a transaction.
const stopping = "JURAT_TEST_STOPPING"

// TestStopsInATransaction is the process that TestStoppedProcess starts.
func TestStopsInATransaction(t *testing.T) {
	path := os.Getenv(stopping)
	if path == "" {
		return // it is for another process
	}
	s := create(t, path)
	err := s.Append(t.Context(), func(storage.Head, storage.Committed) (storage.Batch, error) {
		return storage.Batch{}, errors.Join(stop(), errors.New("nothing to append"))
	})
	must.Hold(t, err != nil, "Append succeeded, but appended nothing")
}

// stop stops this process, and returns when it goes on. The signal is for this thread: one for the process goes to whichever thread takes it, and
// where processors are scarce this one came to the end of the process before that.
func stop() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, _, failed := syscall.Syscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP)); failed != 0 {
		return failed
	}
	return nil
}

// TestStoppedProcess checks that a stopped process with the lock does not block others for ever. The error names the
// process, and everything works again when it is resumed.
func TestStoppedProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	s.lockTime = 300 * time.Millisecond
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStopsInATransaction$")
	other.Env = append(os.Environ(), stopping+"="+path)
	runtime.LockOSThread() // the signal comes when the thread that started the process ends, not when the program ends
	defer runtime.UnlockOSThread()
	other.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must.Do(t, other.Start())
	var status syscall.WaitStatus
	_, err := syscall.Wait4(other.Process.Pid, &status, syscall.WUNTRACED, nil)
	must.Need(t, err == nil && status.Stopped(), "%v %v", status, err)
	names := fmt.Sprintf("process %d (", other.Process.Pid)
	outcome := make(chan error, 8)
	for n := range cap(outcome) { // each attempt waits by itself
		go func() { outcome <- add(t, s, fmt.Sprint(n), 10) }()
	}
	for range cap(outcome) {
		select {
		case err := <-outcome:
			must.Hold(t, errors.Is(err, storage.ErrBusy) && strings.Contains(err.Error(), names) && strings.Contains(err.Error(), "SIGSTOP"),
				"appending: %v, want the name of %s", err, names)
		case <-time.After(time.Minute):
			t.Fatal("it waits without end")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = s.Probe(ctx)
	must.Hold(t, errors.Is(err, storage.ErrBusy) && strings.Contains(err.Error(), names), "asking whether the log accepts records: %v", err)
	must.Want(t, s.Reclaim(t.Context(), nil), storage.ErrBusy)
	must.Fail(t, nil)(s.Head(t.Context()))
	must.Do(t, errors.Join(other.Process.Signal(syscall.SIGCONT), other.Wait()))
	s.lockTime = lockTime
	must.Want(t, errors.Join(s.Probe(t.Context()), add(t, s, "afterwards", 10)), nil)
}

// TestRevocationsOnFullDisk fills the disk with records. Revocations by other processes and a restart leave room for more of them.
func TestRevocationsOnFullDisk(t *testing.T) {
	rig.OnDisk(t, 16, func(disk *rig.Disk) {
		path := filepath.Join(disk.Path, "log.db")
		s := create(t, path)
		var full error
		for n := 0; full == nil; n++ {
			full = add(t, s, fmt.Sprint("record ", n), 100_000)
		}
		must.Want(t, full, storage.ErrDiskFull)
		for n := range 6 {
			if n == 5 {
				must.Do(t, s.Close())
			}
			other := must.Get(Open(t.Context(), path))(t)
			must.Want(t, addAs(t, other, fmt.Sprint("revocation ", n), 10_000, true), nil)
			must.Do(t, other.Close())
		}
		disk.Resize(t, 64)
		s = must.Get(Open(t.Context(), path))(t)
		must.Want(t, errors.Join(add(t, s, "with room", 10), s.Close()), nil)
		must.Equal(t, fileSize(t, path) > 8<<20, true) // what had to wait in the write-ahead log
	})
}

// TestValuesOnFullDisk: a full disk is an error of those who did not get room, and leaves nothing of them. A key can be destroyed there.
func TestValuesOnFullDisk(t *testing.T) {
	rig.OnDisk(t, 4, func(disk *rig.Disk) {
		v := newValues(t, disk.Path)
		addValues(t, v, 1)
		large := storage.Value{Name: valueOf(2).Name, Sealed: make([]byte, 8<<20), Key: valueOf(2).Key}
		must.Want(t, v.Add(t.Context(), []storage.Value{large}), storage.ErrDiskFull)
		addValues(t, v, 2)
		wantValues(t, v, 1, 2)
		disk.Fill(t, filepath.Join(disk.Path, "full"))
		must.Do(t, v.DestroyKey(t.Context(), valueOf(1).Name))
		got, err := v.Read(t.Context(), valueOf(1).Name)
		must.Hold(t, err == nil && got.Key == nil, "key %x, %v", got.Key, err)
		wantValues(t, v, 2)
	})
}

// TestValuesLeaveTheReserve: a value does not take the room that a revocation has freed for further ones.
func TestValuesLeaveTheReserve(t *testing.T) {
	rig.OnDisk(t, 16, func(disk *rig.Disk) {
		log, v, filler := create(t, filepath.Join(disk.Path, logFile)), newValues(t, disk.Path), filepath.Join(disk.Path, "full")
		must.Do(t, add(t, log, "record", 10))
		addValues(t, v, 1)
		disk.Fill(t, filler)
		must.Do(t, addAs(t, log, "revocation", 10, true))
		must.Want(t, v.Add(t.Context(), []storage.Value{valueOf(2)}), storage.ErrDiskFull)
		must.Do(t, os.Remove(filler))
		addValues(t, v, 2)
		wantValues(t, v, 1, 2)
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
	must.Want(t, v.Add(t.Context(), []storage.Value{valueOf(2)}), syscall.ENOSPC)
	must.Do(t, os.Rename(slots+"-away", slots))
	must.Fail(t, fs.ErrNotExist)(v.Read(t.Context(), valueOf(2).Name))
	wantValues(t, v, 1)
}

// TestValuesThatCannotBeWritten: on a disk that cannot be written, what was kept is read.
func TestValuesThatCannotBeWritten(t *testing.T) {
	rig.OnDisk(t, 4, func(disk *rig.Disk) {
		v := NewValues(disk.Path)
		addValues(t, v, 1)
		must.Do(t, v.Close())
		disk.ReadOnly(t, true)
		v = NewValues(disk.Path)
		wantValues(t, v, 1)
		must.Want(t, v.Add(t.Context(), []storage.Value{valueOf(2)}), storage.ErrReadOnly)
		must.Do(t, v.Close())
		disk.ReadOnly(t, false)
	})
}
