package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"jurat/internal/ledger/storage"
)

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
	if err == nil {
		t.Error("Append succeeded, but appended nothing")
	}
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
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(other.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatal(status, err)
	}
	names := fmt.Sprintf("process %d (", other.Process.Pid)
	outcome := make(chan error, 8)
	for n := range cap(outcome) { // each attempt waits by itself
		go func() { outcome <- add(t, s, fmt.Sprint(n), 10) }()
	}
	for range cap(outcome) {
		select {
		case err := <-outcome:
			if !errors.Is(err, storage.ErrBusy) || !strings.Contains(err.Error(), names) || !strings.Contains(err.Error(), "SIGSTOP") {
				t.Errorf("appending: %v, want the name of %s", err, names)
			}
		case <-time.After(time.Minute):
			t.Fatal("it waits without end")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Probe(ctx); !errors.Is(err, storage.ErrBusy) || !strings.Contains(err.Error(), names) {
		t.Errorf("asking whether the log accepts records: %v", err)
	}
	if err := s.Reclaim(t.Context(), nil); !errors.Is(err, storage.ErrBusy) {
		t.Errorf("reclaiming: %v", err)
	}
	if _, err := s.Head(t.Context()); err != nil {
		t.Errorf("reading: %v", err)
	}
	if err := errors.Join(other.Process.Signal(syscall.SIGCONT), other.Wait()); err != nil {
		t.Fatal(err)
	}
	s.lockTime = lockTime
	if err := errors.Join(s.Probe(t.Context()), add(t, s, "afterwards", 10)); err != nil {
		t.Error(err)
	}
}
