package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/disktest"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/must"
)

// TestFullDisk fills the disk under a running server. Acknowledged records stay, what does not fit is refused with a
// clear message, the server reports that it is not ready and still answers. When there is space again, everything works.
func TestFullDisk(t *testing.T) {
	disktest.Run(t, 12, func(disk *disktest.Disk) {
		dir := filepath.Join(disk.Path, "data")
		r := startIn(t, dir, nil)
		r.ready(t, http.StatusOK)
		token := r.token(t, "fleet", access.Agent)
		for _, name := range []string{"one", "two"} {
			r.spare = append(r.spare, r.token(t, name, access.Auditor))
		}
		var acknowledged []string
		sealOne := func(size int) error {
			answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", fmt.Sprintf(`{"agent_id":"fleet","request_id":"1","timestamp":"2026-01-01T00:00:00Z",
				"model":"m","model_version":"1","prompt":"p","response":%q,"parameters":{}}`, strings.Repeat("x", size)), "Authorization", "Bearer "+token)
			if answer.StatusCode == http.StatusCreated {
				record := must.Get(evidence.Open([]byte(body)))(t)
				acknowledged = append(acknowledged, record.Payload.RecordID)
				return nil
			}
			problem(t, api.ErrUnavailable)(answer, body)
			return errors.New(body)
		}
		filler := filepath.Join(disk.Path, "filler")
		for _, fill := range []bool{true, false} { // first another program fills the disk, then the log itself
			if fill {
				for range 5 {
					must.Do(t, sealOne(2000))
				}
				disk.Fill(t, filler)
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
			r.revokes(t) // a token can be revoked even on a full disk
			if log := r.log.String(); !strings.Contains(log, "no space left") {
				t.Errorf("the server's log does not say why: %s", log)
			}
			r.reads(t, token, acknowledged[0])
			r.starts(t)
			if fill {
				must.Do(t, os.Remove(filler))
			} else {
				disk.Resize(t, 60)
			}
			r.ready(t, http.StatusOK) // no record has to be tried first
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

// revokes revokes a token through a second opening of the installation. The running server must refuse the token at
// once.
func (r *running) revokes(t *testing.T) {
	t.Helper()
	if len(r.spare) == 0 {
		t.Fatal("there is no token to revoke")
	}
	token := r.spare[0]
	r.spare = r.spare[1:]
	second, err := installation.Open(t.Context(), installation.Config{Dir: r.Installation.Dir})
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	register := access.New(access.Config{Ledger: second.Ledger, Keys: second.Keys})
	err = register.Revoke(t.Context(), access.IDOf(token), "stolen", "tester")
	must.Want(t, errors.Join(err, second.Close()), nil)
	problem(t, api.ErrRevoked)(send(t, http.DefaultClient, "GET", r.URL+"/v1/records", "", "Authorization", "Bearer "+token))
}

// starts starts a second server on the same folder.
func (r *running) starts(t *testing.T) {
	t.Helper()
	again := startIn(t, r.Installation.Dir, nil)
	again.ready(t, http.StatusServiceUnavailable)
	// Its ticket is a file, for which there may just be no room.
	if _, err := again.SignInLink(t.Context(), "operator", access.Operator); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the sign-in link: %v", err)
	}
	must.Want(t, again.stop(), nil)
}

// reads asks for a record.
func (r *running) reads(t *testing.T, token, id string) {
	t.Helper()
	answers(t, http.StatusOK, http.DefaultClient, "GET", r.URL+"/v1/records/"+id, "", "Authorization", "Bearer "+token)
}

// whole ends the server, examines its log, and opens it again.
func whole(t *testing.T, r *running, dir string, acknowledged int) {
	t.Helper()
	must.Do(t, errors.Join(r.stop(), r.Installation.Close()))
	damages, size, err := installation.Fsck(t.Context(), installation.Config{Dir: dir}, nil)
	if err != nil || len(damages) > 0 || size < int64(acknowledged) {
		t.Errorf("%d records, %d acknowledged: %v, %v", size, acknowledged, damages, err)
	}
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: dir}))(t)
	must.Want(t, errors.Join(i.Ledger.CanAppend(t.Context()), i.Close()), nil)
}

// TestReadOnlyDisk: an installation on a read-only disk can be read, in every state that a crash can leave. Writes get a
// clear message, and no file changes.
func TestReadOnlyDisk(t *testing.T) {
	disktest.Run(t, 30, func(disk *disktest.Disk) {
		dir := filepath.Join(disk.Path, "data")
		c := installation.Config{Dir: dir}
		i, _, err := installation.OpenOrCreate(t.Context(), c)
		must.Do(t, err)
		grant := func(i *installation.Installation) error {
			_, _, err := access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys}).Grant(t.Context(),
				access.Order{Name: "noa", Roles: []access.Role{access.Auditor}, For: time.Hour, Reason: "test", By: "operator"})
			return err
		}
		must.Do(t, grant(i))
		reads := func(what string) {
			t.Helper()
			i, err := installation.Open(t.Context(), c)
			if err != nil {
				t.Errorf("%s: opening: %v", what, err)
				return
			}
			if size, err := i.Ledger.Size(t.Context()); err != nil || size == 0 {
				t.Errorf("%s: %d records, %v", what, size, err)
			}
			for _, err := range []error{i.Ledger.ReadOnly(), i.Ledger.CanAppend(t.Context())} {
				if !errors.Is(err, ledger.ErrReadOnly) || !strings.Contains(err.Error(), dir) {
					t.Errorf("%s: what it takes: %v", what, err)
				}
			}
			if err := grant(i); !errors.Is(err, ledger.ErrReadOnly) {
				t.Errorf("%s: granting: %v", what, err)
			}
			if err := i.Close(); err != nil {
				t.Errorf("%s: closing: %v", what, err)
			}
			damages, size, err := installation.Fsck(t.Context(), c, nil)
			if err != nil || len(damages) > 0 || size == 0 {
				t.Errorf("%s: examining %d records: %v, %v", what, size, damages, err)
			}
		}
		disk.Mirror(t, dir, filepath.Join(disk.Path, "mirror"))
		c.Dir, dir = filepath.Join(disk.Path, "mirror"), filepath.Join(disk.Path, "mirror")
		reads("beside a process that writes")
		c.Dir, dir = i.Dir, i.Dir
		must.Do(t, i.Close())
		disk.ReadOnly(t, true)
		reads("closed")
		if err := installation.Create(t.Context(), installation.Config{Dir: disk.Path + "/other"}); !errors.Is(err, syscall.EROFS) {
			t.Errorf("creating: %v", err)
		}
		disk.ReadOnly(t, false)
		r := startIn(t, dir, nil)
		r.ready(t, http.StatusOK)
		whole(t, r, dir, 0)
	})
}
