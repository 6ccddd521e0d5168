package installation_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/storetest"
)

// TestBackupInUse: backups are made while actors sign for the first time, seal apart and change keys. Each backup is
// whole, has every record acknowledged before it began, and works on its own.
func TestBackupInUse(t *testing.T) {
	ctx := t.Context()
	c, i := anew(t)
	defer i.Close()
	var last struct {
		sync.Mutex
		id string
		n  int
	}
	seal := func(name string) {
		p := note()
		p.AgentID, p.RequestID = name, name
		r := sealApart(t, i, p, "/prompt")
		last.Lock()
		last.id, last.n = r.Payload.RecordID, last.n+1
		last.Unlock()
	}
	seal("first")
	ending, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	busy.Go(func() {
		for n := 0; ending.Err() == nil && n < 300; n++ { // so many, however long a busy machine takes for the backups
			seal("agent-" + strconv.Itoa(n/10))
			time.Sleep(10 * time.Millisecond)
		}
	})
	busy.Go(func() {
		for n := 0; ending.Err() == nil && n < 15; n++ {
			if err := i.Registrar.Rotate(ctx, evidence.RoleAgent, "first", "", nil, keys.Why{By: "me", Reason: "test"}); err != nil {
				t.Error(err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	defer busy.Wait()
	defer stop()
	made := 0
	for n := range 4 {
		last.Lock()
		id, count := last.id, last.n
		last.Unlock()
		copied := filepath.Join(t.TempDir(), "copy")
		m, err := installation.MakeBackup(ctx, c, installation.BackupOrder{To: copied, ApartKeys: true})
		if err != nil {
			if _, missing := os.Stat(copied); missing == nil {
				t.Fatal("a failed backup left a file")
			}
			continue // keys changed each time: it says so
		}
		made++
		if m.Size < int64(count) {
			t.Errorf("backup %d has %d records, %d were acknowledged", n, m.Size, count)
		}
		back := installation.Config{Dir: filepath.Join(t.TempDir(), "back")}
		r, err := installation.Restore(ctx, back, installation.RestoreOrder{From: copied, NoneLater: true})
		var damaged *installation.DamagedBackupError
		if errors.As(err, &damaged) {
			t.Fatalf("backup %d: %v", n, damaged.Damages)
		}
		// A value may be there without its record, which was still being sealed. This does no harm.
		harm := func(d fsck.Damage) bool { return !d.Kind.Harmless() }
		if err != nil || slices.ContainsFunc(r.Damages, harm) {
			t.Fatalf("backup %d: %v, %v", n, r, err)
		}
		again := must(installation.Open(ctx, back))
		if _, err := again.Ledger.Record(ctx, id); err != nil {
			t.Errorf("backup %d lacks a record that was acknowledged before it: %v", n, err)
		}
		sealApart(t, again, note())
		succeeds(t, again.Close())
	}
	if made == 0 {
		t.Error("no backup was made")
	}
}

// TestRestoreRefusesDamage: a backup whose log was changed, with a manifest that fits, is not restored.
func TestRestoreRefusesDamage(t *testing.T) {
	ctx := t.Context()
	c, i := anew(t)
	sealApart(t, i, note())
	succeeds(t, i.Close())
	file := filepath.Join(c.Dir, "jurat.db")
	change := ""
	log := must(sqlite.Open(ctx, file))
	rows, err := log.Rows(ctx, 0, 100)
	succeeds(t, errors.Join(err, log.Close()))
	for _, row := range rows {
		if was := row.Payload; bytes.Contains(was, []byte("nurse")) {
			row.Payload = bytes.ReplaceAll(was, []byte("nurse"), []byte("medic"))
			change += fmt.Sprintf("UPDATE records SET %s WHERE idx = %d;", storetest.Content(&row), row.Index)
		}
	}
	if change == "" {
		t.Fatal("there is nothing to change")
	}
	db := must(sql.Open("sqlite", file))
	_, err = db.ExecContext(ctx, `DROP TRIGGER records_keep; `+change)
	succeeds(t, errors.Join(err, db.Close()))
	copied := filepath.Join(t.TempDir(), "copy")
	must(installation.MakeBackup(ctx, c, installation.BackupOrder{To: copied}))
	back := filepath.Join(t.TempDir(), "back")
	_, err = installation.Restore(ctx, installation.Config{Dir: back}, installation.RestoreOrder{From: copied, NoneLater: true})
	var damaged *installation.DamagedBackupError
	if !errors.As(err, &damaged) || damaged.Damages[0].Kind != fsck.DamageDigest {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(back); err == nil {
		t.Error("it was restored")
	}
	if _, err := installation.Restore(ctx, installation.Config{Dir: back}, installation.RestoreOrder{From: copied}); !errors.Is(err, installation.ErrLater) {
		t.Errorf("%v", err)
	}
}

// TestRestoreStaysInTheBackup: neither the manifest nor links make a restore read files outside the backup.
func TestRestoreStaysInTheBackup(t *testing.T) {
	ctx := t.Context()
	c, i := anew(t)
	sealApart(t, i, note())
	succeeds(t, i.Close())
	for name, spoil := range map[string]func(copied string) error{
		"a folder that is a link": func(copied string) error {
			elsewhere := filepath.Join(t.TempDir(), "keys")
			return errors.Join(os.Rename(filepath.Join(copied, "keys"), elsewhere), os.Symlink(elsewhere, filepath.Join(copied, "keys")))
		},
		"a file that is a link": func(copied string) error {
			elsewhere := filepath.Join(t.TempDir(), "jurat.db")
			return errors.Join(os.Rename(filepath.Join(copied, "jurat.db"), elsewhere), os.Symlink(elsewhere, filepath.Join(copied, "jurat.db")))
		},
		"a path above it": func(copied string) error { return manifest(copied, "../x") },
		"a path by root":  func(copied string) error { return manifest(copied, "/etc/hostname") },
		"the whole of it": func(copied string) error { return manifest(copied, ".") },
		"a folder":        func(copied string) error { return manifest(copied, "keys") },
	} {
		copied, back := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "back")
		must(installation.MakeBackup(ctx, c, installation.BackupOrder{To: copied, ApartKeys: true}))
		succeeds(t, spoil(copied))
		if _, err := installation.Restore(ctx, installation.Config{Dir: back}, installation.RestoreOrder{From: copied, NoneLater: true}); err == nil {
			t.Errorf("%s: restored", name)
		}
		if _, err := os.Stat(back); err == nil {
			t.Errorf("%s: something is there", name)
		}
	}
}

// manifest adds a file to the manifest of a backup.
func manifest(copied, name string) error {
	file := filepath.Join(copied, "backup.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	added := strings.Replace(string(text), `"files": {`, `"files": {"`+name+`":"00",`, 1)
	if added == string(text) {
		return errors.New("the manifest names no files")
	}
	return os.WriteFile(file, []byte(added), 0o600)
}

// TestBackupOfANewInstallation: an installation without any signed record can be restored, too.
func TestBackupOfANewInstallation(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	succeeds(t, installation.Create(t.Context(), c))
	copied := filepath.Join(t.TempDir(), "copy")
	must(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied}))
	restored := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	must(installation.Restore(t.Context(), restored, installation.RestoreOrder{From: copied, NoneLater: true}))
	open(t, restored)
}

// TestBackupRefusesLinks: what is a link in the folder is refused before anything is copied, the databases too, beside which other files may be missing.
func TestBackupRefusesLinks(t *testing.T) {
	for _, name := range []string{"jurat.db", "keys"} {
		c, i := anew(t)
		succeeds(t, i.Close())
		at, elsewhere := filepath.Join(c.Dir, name), filepath.Join(t.TempDir(), name)
		succeeds(t, errors.Join(os.Rename(at, elsewhere), os.Symlink(elsewhere, at)))
		copied := filepath.Join(t.TempDir(), "copy")
		if _, err := installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(copied, "jurat.db")); err == nil {
			t.Errorf("%s: the log was copied", name)
		}
	}
}
