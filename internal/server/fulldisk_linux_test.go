package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/installation"
	"jurat/internal/ledger"
)

// smallDisk, when it is set, is a folder that this process may mount a file system on, in a name space of its own.
const smallDisk = "JURAT_TEST_SMALL_DISK"

// onSmallDisk runs a test again in a process that has a disk of so many megabytes for itself.
func onSmallDisk(t *testing.T, megabytes int, test func(disk string)) {
	if disk := os.Getenv(smallDisk); disk != "" {
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", megabytes)); err != nil {
			t.Fatal(err)
		}
		test(disk)
		return
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := again.CombinedOutput()
	var refused *exec.ExitError
	if err != nil && !errors.As(err, &refused) {
		t.Skipf("this system lets nobody have a name space of his own: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFullDisk fills the disk under a running server: what was acknowledged stays, what does not fit is refused in clear words, the
// server says that it is not ready and goes on answering, and everything works again when there is room.
func TestFullDisk(t *testing.T) {
	onSmallDisk(t, 12, func(disk string) {
		dir := filepath.Join(disk, "data")
		r := startIn(t, dir, nil)
		r.ready(t, http.StatusOK)
		token := r.token(t, "fleet", access.Agent)
		var acknowledged []string
		sealOne := func(size int) error {
			answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", fmt.Sprintf(`{"agent_id":"fleet","request_id":"1","timestamp":"2026-01-01T00:00:00Z",
				"model":"m","model_version":"1","prompt":"p","response":%q,"parameters":{}}`, strings.Repeat("x", size)), "Authorization", "Bearer "+token)
			if answer.StatusCode == http.StatusCreated {
				record, err := evidence.Open([]byte(body))
				if err != nil {
					t.Fatal(err)
				}
				acknowledged = append(acknowledged, record.Payload.RecordID)
				return nil
			}
			problem(t, answer, body, api.ErrUnavailable)
			return errors.New(body)
		}
		filler := filepath.Join(disk, "filler")
		for _, fill := range []bool{true, false} { // somebody else fills the disk; the log does
			if fill {
				for range 5 {
					if err := sealOne(2000); err != nil {
						t.Fatal(err)
					}
				}
				fillUp(t, filler)
				r.ready(t, http.StatusServiceUnavailable) // before any record has failed
			}
			var refused error
			for n := 0; refused == nil; n++ {
				if n == 10_000 {
					t.Fatal("the disk does not become full")
				}
				refused = sealOne(100_000)
			}
			for range 3 {
				if err := sealOne(100_000); err == nil {
					t.Log("one more had room")
				}
			}
			r.ready(t, http.StatusServiceUnavailable)
			if log := r.log.String(); !strings.Contains(log, "no space left") {
				t.Errorf("the server's log does not say why: %s", log)
			}
			r.reads(t, token, acknowledged[0])
			if fill {
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
			} else if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=60m"); err != nil {
				t.Fatal(err)
			}
			r.ready(t, http.StatusOK) // without a record that dares to try
			if err := sealOne(100_000); err != nil {
				t.Errorf("with room: %v", err)
			}
		}
		for _, id := range acknowledged {
			r.reads(t, token, id)
		}
		whole(t, r, dir, len(acknowledged))
	})
}

func fillUp(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// ready asks whether the server is.
func (r *running) ready(t *testing.T, want int) {
	t.Helper()
	answer, body := send(t, http.DefaultClient, "GET", r.URL+"/readyz", "")
	if answer.StatusCode != want {
		t.Errorf("/readyz: %s %s, want %d", answer.Status, body, want)
	}
}

// reads asks for a record.
func (r *running) reads(t *testing.T, token, id string) {
	t.Helper()
	if answer, body := send(t, http.DefaultClient, "GET", r.URL+"/v1/records/"+id, "", "Authorization", "Bearer "+token); answer.StatusCode != http.StatusOK {
		t.Errorf("reading %s: %s %s", id, answer.Status, body)
	}
}

// whole ends the server, examines its log, and opens it again.
func whole(t *testing.T, r *running, dir string, acknowledged int) {
	t.Helper()
	if err := errors.Join(r.stop(), r.Installation.Close()); err != nil {
		t.Fatal(err)
	}
	damages, size, err := installation.Fsck(t.Context(), installation.Config{Dir: dir}, nil)
	if err != nil || len(damages) > 0 || size < int64(acknowledged) {
		t.Errorf("%d records, %d acknowledged: %v, %v", size, acknowledged, damages, err)
	}
	i, err := installation.Open(t.Context(), installation.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(i.Ledger.CanAppend(t.Context()), i.Close()); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyDisk: on a disk that takes nothing an installation is refused in clear words, and nothing of it is harmed.
func TestReadOnlyDisk(t *testing.T) {
	onSmallDisk(t, 30, func(disk string) {
		dir := filepath.Join(disk, "data")
		c := installation.Config{Dir: dir}
		i, _, err := installation.OpenOrCreate(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		remount := func(flags uintptr) {
			if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT|flags, "size=30m"); err != nil {
				t.Fatal(err)
			}
		}
		remount(syscall.MS_RDONLY)
		if _, err := installation.Open(t.Context(), c); !errors.Is(err, ledger.ErrReadOnly) || !strings.Contains(err.Error(), dir) {
			t.Errorf("opening: %v", err)
		}
		if _, _, err := installation.Fsck(t.Context(), c, nil); !errors.Is(err, ledger.ErrReadOnly) {
			t.Errorf("examining: %v", err)
		}
		if err := installation.Create(t.Context(), installation.Config{Dir: disk + "/other"}); !errors.Is(err, syscall.EROFS) {
			t.Errorf("creating: %v", err)
		}
		remount(0)
		r := startIn(t, dir, nil)
		r.ready(t, http.StatusOK)
		whole(t, r, dir, 0)
	})
}
