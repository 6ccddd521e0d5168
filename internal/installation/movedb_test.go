package installation_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/disktest"
	"jurat/internal/erasure"
	"jurat/internal/installation"
	"jurat/internal/ledger"
)

// kept describes an installation with every part: keys of several actors, one of them replaced; texts sealed apart, one
// of them erased; a setting; an outside authority; and a checkpoint.
type kept struct {
	log    string
	apart  *evidence.Record
	signer evidence.KeyID
}

func fillUp(t *testing.T, i *installation.Installation) kept {
	t.Helper()
	must(sealRequest(t, i, "r"))
	succeeds(t, i.Registrar.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	k := kept{log: i.Ledger.Origin(), signer: must(sealRequest(t, i, "r")).Payload.Signers[0].KeyID}
	k.apart = sealApart(t, i, note(), "/prompt", "/metadata/user")
	must(i.Eraser.Erase(t.Context(), order(k.apart, "/prompt")))
	succeeds(t, i.Apart.Set(t.Context(), erasure.Setting{Actor: "nurse", Pointers: []string{"/prompt"}}))
	for n := range 30 {
		if n == 20 {
			must(i.Ledger.Checkpoint(t.Context()))
		}
		p := note()
		p.AgentID = "agent-" + strconv.Itoa(n)
		sealApart(t, i, p, "/prompt")
	}
	return k
}

// wantKept compares a restored installation with the original.
func wantKept(t *testing.T, c installation.Config, k kept) {
	t.Helper()
	i := open(t, c)
	if i.Ledger.Origin() != k.log {
		t.Errorf("it is another log: %s", i.Ledger.Origin())
	}
	if r := must(sealRequest(t, i, "r")); r.Payload.Signers[0].KeyID != k.signer {
		t.Errorf("it signs with %s, but signed with %s before", r.Payload.Signers[0].KeyID, k.signer)
	}
	wantDisclosed(t, i, k.apart, "/metadata/user")
	if apart, _, err := i.Apart.Apart(t.Context(), must(evidence.NewDraft(note()))); err != nil || len(apart) != 1 {
		t.Errorf("its setting is gone: %v, %v", apart, err)
	}
	must(i.Ledger.Checkpoint(t.Context()))
	wantKinds(t, c)
}

// TestMove: a backup of a folder is restored to a database and to a folder, and one of a database to both.
func TestMove(t *testing.T) {
	t.Parallel()
	inFolder := func(t *testing.T) installation.Config {
		return installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	}
	inDatabase := func(t *testing.T) installation.Config { return machines(t)() }
	places := map[string]func(t *testing.T) installation.Config{"a folder": inFolder, "a database": inDatabase}
	for fromName, from := range places {
		for toName, to := range places {
			t.Run("from "+fromName+" to "+toName, func(t *testing.T) {
				c := from(t)
				i := created(t, c)
				k := fillUp(t, i)
				succeeds(t, i.Close())
				copied := filepath.Join(t.TempDir(), "copy")
				told := int64(0)
				m, err := installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied, ApartKeys: true, Progress: func(done, _ int64) { told = done }})
				if err != nil || told == 0 {
					t.Fatal(told, err)
				}
				if m.Log != k.log || m.Size == 0 || m.Files["log.key"] == "" || m.Files["jurat.db"] == "" {
					t.Errorf("%+v", m)
				}
				target := to(t)
				must(installation.Restore(t.Context(), target, installation.RestoreOrder{From: copied, NoneLater: true}))
				wantKept(t, target, k)
				if left, _ := filepath.Glob(filepath.Join(target.Dir, ".jurat-restore-*")); len(left) > 0 {
					t.Errorf("it has left %v", left)
				}
				if target.DB == "" {
					return
				}
				if _, err := installation.Restore(t.Context(), target, installation.RestoreOrder{From: copied, NoneLater: true}); err == nil {
					t.Error("restored over a later checkpoint that this machine has seen")
				}
				target.Dir = filepath.Join(t.TempDir(), "other")
				if _, err := installation.Restore(t.Context(), target, installation.RestoreOrder{From: copied, NoneLater: true}); !errors.Is(err, fs.ErrExist) {
					t.Errorf("restored over an installation: %v", err)
				}
			})
		}
	}
}

// TestBackupHasNoWrappingKey: a backup of a database does not contain the wrapping key, and is complete without it.
func TestBackupHasNoWrappingKey(t *testing.T) {
	c, i, _ := begun(t)
	must(sealRequest(t, i, "r"))
	copied := filepath.Join(t.TempDir(), "copy")
	must(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied}))
	secret := bytes.TrimSpace(bytes.SplitN(must(os.ReadFile(c.WrappingKey)), []byte("\n"), 2)[1])
	private := 0
	for name, mode := range disktest.Tree(t, copied) {
		file := filepath.Join(copied, name)
		if info := must(os.Stat(file)); info.IsDir() {
			continue
		}
		if content := must(os.ReadFile(file)); bytes.Contains(content, secret) {
			t.Errorf("%s contains the wrapping key", name)
		}
		if strings.HasSuffix(name, ".key") {
			private++
			if mode != 0o600 {
				t.Errorf("%s has mode %o", name, mode)
			}
		}
	}
	if private < 4 {
		t.Errorf("%d private keys", private)
	}
}

// TestBackupOfADatabaseInUse: backups are whole that are made while machines seal, create keys for new actors and change
// keys.
func TestBackupOfADatabaseInUse(t *testing.T) {
	t.Parallel()
	c, i, machine := begun(t)
	other := open(t, machine())
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer stop()
	for n, i := range []*installation.Installation{i, other} {
		busy.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				p := note()
				p.AgentID = "agent-" + strconv.Itoa(n) + "-" + strconv.Itoa(k/5)
				sealApart(t, i, p, "/prompt")
				if k%50 == 0 {
					must(i.Ledger.Checkpoint(t.Context()))
				}
				time.Sleep(10 * time.Millisecond) // otherwise everything that is sealed meanwhile is examined
			}
		})
	}
	for range 2 {
		size := must(i.Ledger.Size(t.Context()))
		copied := filepath.Join(t.TempDir(), "copy")
		m := must(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied, ApartKeys: true}))
		if m.Size < size {
			t.Errorf("%d records, but %d were acknowledged before", m.Size, size)
		}
		restored := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
		must(installation.Restore(t.Context(), restored, installation.RestoreOrder{From: copied, NoneLater: true}))
	}
}

// TestRestoreBrokenOff: an interrupted restore leaves no installation, and the next restore completes it.
func TestRestoreBrokenOff(t *testing.T) {
	t.Parallel()
	folder := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	i := created(t, folder)
	k := fillUp(t, i)
	succeeds(t, i.Close())
	copied := filepath.Join(t.TempDir(), "copy")
	must(installation.MakeBackup(t.Context(), folder, installation.BackupOrder{To: copied, ApartKeys: true}))
	for name, undo := range map[string][]string{
		"before the checkpoint":  {`UPDATE jurat.head SET checkpoint = ''`},
		"before the small files": {`UPDATE jurat.head SET checkpoint = ''`, `DELETE FROM jurat.files`},
		"among the small files":  {`UPDATE jurat.head SET checkpoint = ''`, `DELETE FROM jurat.files WHERE name > 'b'`},
	} {
		t.Run(name, func(t *testing.T) {
			machine := machines(t)
			c := machine()
			order := installation.RestoreOrder{From: copied, NoneLater: true}
			must(installation.Restore(t.Context(), c, order))
			execute(t, c.DB, undo...)
			c = machine()
			if _, _, err := installation.OpenOrCreate(t.Context(), c); err == nil || !strings.Contains(err.Error(), "restore") {
				t.Errorf("half an installation: %v", err)
			}
			must(installation.Restore(t.Context(), c, order))
			wantKept(t, c, k)
		})
	}
}

// TestRestoreOlderToDatabase: a log that lacks records under its published checkpoint is restored, but accepts no
// records.
func TestRestoreOlderToDatabase(t *testing.T) {
	c, i, machine := begun(t)
	must(sealRequest(t, i, "r"))
	copied := filepath.Join(t.TempDir(), "copy")
	must(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied}))
	must(sealRequest(t, i, "r"))
	later := must(i.Ledger.Checkpoint(t.Context()))
	target := machines(t)()
	r := must(installation.Restore(t.Context(), target, installation.RestoreOrder{From: copied, Checkpoint: later}))
	if r.Missing != 1 || r.Known != 2 {
		t.Errorf("%+v", r)
	}
	if err := open(t, target).Ledger.CanAppend(t.Context()); !errors.Is(err, ledger.ErrBehind) {
		t.Errorf("%v", err)
	}
	succeeds(t, open(t, machine()).Ledger.CanAppend(t.Context()))
}
