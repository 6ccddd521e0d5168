package installation_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/court/schedule"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/test/disktest"
	"jurat/internal/test/pgtest"
	"jurat/internal/test/storetest"
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
			wantError(t, "error", nil, i.Keys.Rotate(ctx, evidence.RoleAgent, "first", "", nil, keys.Why{By: "me", Reason: "test"}))
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
	changed(t, file, `DROP TRIGGER records_keep; `+change)
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
	wantError(t, "error", installation.ErrLater, errorOf(installation.Restore(ctx, installation.Config{Dir: back}, installation.RestoreOrder{From: copied})))
}

// TestRestoreRefusesFiles: what is no backup, or not as it was made, makes no installation, and no file of a backup lands in another place.
func TestRestoreRefusesFiles(t *testing.T) {
	ctx := t.Context()
	c, i := anew(t)
	sealApart(t, i, note())
	succeeds(t, i.Close())
	copied := filepath.Join(t.TempDir(), "copy")
	must(installation.MakeBackup(ctx, c, installation.BackupOrder{To: copied, ApartKeys: true}))
	whole := must(os.ReadFile(copied))
	refused := func(name, from, want string) {
		t.Helper()
		back := filepath.Join(t.TempDir(), "back")
		if _, err := installation.Restore(ctx, installation.Config{Dir: back}, installation.RestoreOrder{From: from, NoneLater: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(back); err == nil {
			t.Errorf("%s: something is there", name)
		}
	}
	spoilt := func(content []byte) string {
		file := filepath.Join(t.TempDir(), "spoilt")
		succeeds(t, os.WriteFile(file, content, 0o600))
		return file
	}
	refused("a folder", c.Dir, "is a folder")
	refused("a log", filepath.Join(c.Dir, "jurat.db"), "SHA-256")
	refused("nothing", spoilt(nil), "SHA-256")
	for at := 0; at < len(whole); at += 997 {
		content := bytes.Clone(whole)
		content[at] ^= 1
		refused(fmt.Sprint("byte ", at), spoilt(content), "SHA-256")
		refused(fmt.Sprint("cut at ", at), spoilt(whole[:at]), "SHA-256")
	}
	for name, change := range map[string]struct{ statement, want string }{
		"a path above it": {`UPDATE files SET path = '../x' WHERE path = 'log.key'`, "no file of a backup"},
		"a path by root":  {`UPDATE files SET path = '/etc/x' WHERE path = 'log.key'`, "no file of a backup"},
		"the log":         {`UPDATE files SET path = 'jurat.db-wal' WHERE path = 'log.key'`, "no file of a backup"},
		"a folder":        {`UPDATE files SET path = 'keys' WHERE path = 'log.key'`, "keys"},
		"no key":          {`DELETE FROM files WHERE path = 'log.key'`, "log.key"},
		"a view":          {`ALTER TABLE files RENAME TO others; CREATE VIEW files AS SELECT path, part, content FROM others`, "its tables are not"},
		"a view's name":   {`ALTER TABLE meta RENAME TO others; CREATE VIEW meta AS SELECT name, value FROM others`, "not a ledger"},
		"a backslash":     {`UPDATE files SET path = 'keys/a\b' WHERE path = 'log.key'`, "no file of a backup"},
		"another log":     {`UPDATE meta SET value = json_set(value, '$.log', 'other') WHERE name = 'about'`, "but the backup says other"},
		"another size":    {`UPDATE meta SET value = json_set(value, '$.size', 7) WHERE name = 'about'`, "but the backup says 7"},
		"another version": {`UPDATE meta SET value = 'jurat/backup/v1 of log 13'`, "of the jurat that made a backup"},
		"a log's version": {`UPDATE meta SET value = '14'`, "not a"},
	} {
		file := spoilt(whole)
		changed(t, file, change.statement)
		content := must(os.ReadFile(file))
		content = content[:len(content)/8192*8192] // without the digest
		sum := sha256.Sum256(content)
		refused(name, spoilt(append(content, sum[:]...)), change.want)
	}
	succeeds(t, os.WriteFile(filepath.Join(c.Dir, "jurat.db"), whole, 0o600))
	for dir, want := range map[string]string{c.Dir: "this file is a", copied: "init --from"} {
		if _, _, err := installation.OpenOrCreate(ctx, installation.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s was opened: %v", dir, err)
		}
	}
	if left := must(filepath.Glob(filepath.Join(c.Dir, "jurat.db-[ws]*"))); len(left) > 0 || !bytes.Equal(whole, must(os.ReadFile(filepath.Join(c.Dir, "jurat.db")))) {
		t.Errorf("opening a backup as a log has changed it, or left %v", left)
	}
}

// changed changes a database behind everybody's back.
func changed(t *testing.T, file, statements string) {
	t.Helper()
	db := must(sql.Open("sqlite", file))
	_, err := db.ExecContext(t.Context(), statements)
	succeeds(t, errors.Join(err, db.Close()))
}

// TestRestoreRefusesFirst: what can be refused without reading the backup is refused before.
func TestRestoreRefusesFirst(t *testing.T) {
	full := t.TempDir()
	succeeds(t, os.WriteFile(filepath.Join(full, installation.CheckpointFile), nil, 0o600))
	key := wrappingKey(t)
	for want, c := range map[string]installation.Config{
		"is not empty":         {Dir: full},
		"has already seen":     {Dir: full, DB: "postgres://127.0.0.1:1/x", WrappingKey: key},
		"wrapping key":         {Dir: t.TempDir(), DB: "postgres://127.0.0.1:1/x"},
		"reading wrapping key": {Dir: t.TempDir(), DB: "postgres://127.0.0.1:1/x", WrappingKey: "missing"},
		"127.0.0.1:1":          {Dir: t.TempDir(), DB: "postgres://127.0.0.1:1/x", WrappingKey: key},
	} {
		_, err := installation.Restore(t.Context(), c, installation.RestoreOrder{From: "missing", NoneLater: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestBackupOfOtherTables: what SQLite counts for itself prevents no backup. A table that jurat did not make is named.
func TestBackupOfOtherTables(t *testing.T) {
	c, i := anew(t)
	sealApart(t, i, note())
	succeeds(t, i.Close())
	file := filepath.Join(c.Dir, installation.DatabaseFile)
	changed(t, file, `ANALYZE`)
	must(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: filepath.Join(t.TempDir(), "copy")}))
	changed(t, file, `CREATE INDEX mine ON head (size)`)
	_, err := installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: filepath.Join(t.TempDir(), "copy")})
	if err == nil || !strings.Contains(err.Error(), "CREATE INDEX mine") {
		t.Error(err)
	}
}

// TestBackupFile: a backup has one name and content: it replaces nothing, also in new folders and under names that SQLite or the system reads otherwise, and
// nothing beside it is read.
func TestBackupFile(t *testing.T) {
	ctx := t.Context()
	c, i := anew(t)
	sealApart(t, i, note(), "/prompt")
	succeeds(t, i.Close())
	t.Chdir(t.TempDir())
	for _, to := range []string{"new/and/new/copy", "folder/", "file:copy?mode=memory"} {
		must(installation.MakeBackup(ctx, c, installation.BackupOrder{To: to}))
		must(installation.Restore(ctx, installation.Config{Dir: filepath.Join(t.TempDir(), "back")}, installation.RestoreOrder{From: strings.TrimSuffix(to, "/"), NoneLater: true}))
	}
	for _, to := range []string{"", ".", "folder", "new/and"} {
		wantError(t, "over what is there: "+to, fs.ErrExist, errorOf(installation.MakeBackup(ctx, c, installation.BackupOrder{To: to})))
	}
	ended, end := context.WithCancel(ctx)
	wantError(t, "ended", context.Canceled, errorOf(installation.MakeBackup(ended, c, installation.BackupOrder{To: "ended", Progress: func(_, _ int64) { end() }})))
	wantError(t, "over what has come", fs.ErrExist, errorOf(installation.MakeBackup(ctx, c, installation.BackupOrder{To: "other", Progress: func(_, _ int64) {
		drafts, err := filepath.Glob("other.unfinished-*/jurat.db")
		if err != nil || len(drafts) != 1 || must(os.Stat(filepath.Dir(drafts[0]))).Mode().Perm() != 0o700 {
			t.Error("a killed backup would leave", drafts, err)
		}
		succeeds(t, os.WriteFile("other", []byte("other"), 0o600))
	}})))
	if text := must(os.ReadFile("other")); string(text) != "other" {
		t.Error("the backup has replaced what came meanwhile")
	}
	if left := must(filepath.Glob("*")); !slices.Equal(left, []string{"file:copy?mode=memory", "folder", "new", "other"}) {
		t.Errorf("it left %v", left)
	}
	writeAhead(t, "folder", `UPDATE head SET checkpoint = 'x'`)
	must(installation.Restore(ctx, installation.Config{Dir: "back"}, installation.RestoreOrder{From: "folder", NoneLater: true}))
	open(t, installation.Config{Dir: "back"})
}

// writeAhead puts a write-ahead log with a change beside a database, as if it had one.
func writeAhead(t *testing.T, file, change string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "other")
	succeeds(t, os.WriteFile(other, must(os.ReadFile(file)), 0o600))
	db := must(sql.Open("sqlite", other))
	defer db.Close()
	_, err := db.ExecContext(t.Context(), `PRAGMA journal_mode = WAL; `+change)
	succeeds(t, err)
	succeeds(t, os.WriteFile(file+"-wal", must(os.ReadFile(other+"-wal")), 0o600))
}

// TestBackupOfKeys: a backup has no key to what is sealed apart unless they are asked for, and then in rows of bounded size.
func TestBackupOfKeys(t *testing.T) {
	c, i := anew(t)
	sealApart(t, i, note(), "/prompt")
	succeeds(t, i.Close())
	files := must(filepath.Glob(filepath.Join(c.Dir, sqlite.KeysFolder, "*")))
	slots := must(os.ReadFile(files[0]))
	key := slots[48:80]
	succeeds(t, os.WriteFile(files[0], append(slots, make([]byte, 5<<20)...), 0o600))
	for _, with := range []bool{false, true} {
		copied := filepath.Join(t.TempDir(), "copy")
		must(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied, ApartKeys: with}))
		if bytes.Equal(key, make([]byte, 32)) || bytes.Contains(must(os.ReadFile(copied)), key) != with {
			t.Errorf("with keys: %v; it is otherwise in the backup", with)
		}
		back := installation.Config{Dir: filepath.Join(t.TempDir(), "back")}
		must(installation.Restore(t.Context(), back, installation.RestoreOrder{From: copied, NoneLater: true}))
		restored, err := os.ReadFile(filepath.Join(back.Dir, sqlite.KeysFolder, filepath.Base(files[0])))
		if with != (err == nil) || with && !bytes.Equal(restored, must(os.ReadFile(files[0]))) {
			t.Errorf("with keys: %v, %d bytes are restored, %v", with, len(restored), err)
		}
		db := must(sql.Open("sqlite", copied))
		var longest int
		succeeds(t, errors.Join(db.QueryRowContext(t.Context(), `SELECT max(length(content)) FROM files`).Scan(&longest), db.Close()))
		if longest > 1<<20 {
			t.Errorf("a row has %d bytes", longest)
		}
	}
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
		if left := must(os.ReadDir(filepath.Dir(copied))); len(left) > 0 {
			t.Errorf("%s: it left %v", name, left)
		}
	}
}

// TestHole: the network loses every packet of a machine, without an error. A caller that waits for the database without
// a deadline gets an error. When the network is back, the machine works.
func TestHole(t *testing.T) {
	t.Parallel()
	proxy, through := pgtest.NewProxy(t, pgtest.Database(t))
	key := wrappingKey(t)
	i := created(t, installation.Config{Dir: t.TempDir() + "/node", DB: through, WrappingKey: key})
	defer i.Close()
	defer proxy.GoOn() // before the machine is closed
	signers := must(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
	sealed := must(i.Ledger.Seal(t.Context(), must(evidence.NewDraft(note())), signers))
	held, release, err := i.Locks.Lock(t.Context(), "trial-1")
	succeeds(t, err)
	defer release()
	table := must(schedule.OpenTable(t.Context(), i.Database, ""))
	defer table.Close()

	ctx := context.Background() // the callers have no deadline
	work := map[string]func() error{
		"reading":             func() error { _, err := i.Ledger.Record(ctx, sealed.Payload.RecordID); return err },
		"sealing":             func() error { _, err := i.Ledger.Seal(ctx, must(evidence.NewDraft(note())), signers); return err },
		"a key":               func() error { _, err := i.Keys.Signers(ctx, evidence.RoleAgent, "another"); return err },
		"the database itself": func() error { _, err := i.Database.Exec(ctx, `SELECT 1`); return err },
		"the queue":           func() error { _, err := schedule.OpenTable(ctx, i.Database, ""); return err },
		"a claim": func() error {
			_, release, err := i.Locks.Lock(ctx, "trial-2")
			if err == nil {
				release()
			}
			return err
		},
	}
	do := func() map[string]error {
		type outcome struct {
			name string
			err  error
		}
		outcomes, all := make(chan outcome), map[string]error{}
		for name, f := range work {
			go func() { outcomes <- outcome{name, f()} }()
		}
		timeout := time.After(3 * time.Minute)
		for len(all) < len(work) {
			select {
			case o := <-outcomes:
				all[o.name] = o.err
			case <-timeout:
				t.Fatalf("some callers still wait; the others returned %v", all)
			}
		}
		return all
	}
	proxy.Stop()
	for name, err := range do() {
		if err == nil {
			t.Errorf("%s: there was an answer", name)
		}
	}
	<-held.Done() // others may have claimed the trial meanwhile
	proxy.GoOn()
	for name, err := range do() {
		if err != nil {
			t.Errorf("%s, when the network is back: %v", name, err)
		}
	}
}

// TestCreateOnMountPoint: a folder that cannot be renamed or removed becomes an installation, even if it contains
// remains of file systems or crashed processes.
func TestCreateOnMountPoint(t *testing.T) {
	dir := mkdir(t, filepath.Join(t.TempDir(), "data"))
	if out, err := exec.Command("mount", "-t", "tmpfs", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%s", out)
		}
	})
	mkdir(t, filepath.Join(dir, "lost+found"))
	mkdir(t, filepath.Join(dir, ".jurat-new-dead"))
	c := installation.Config{Dir: dir}
	succeeds(t, installation.Create(t.Context(), c))
	seal(t, open(t, c))
	for name := range disktest.Tree(t, dir) {
		if strings.HasPrefix(name, ".jurat") || name == "jurat-making" {
			t.Errorf("%s was left over", name)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v: want a folder that only its owner can read", info.Mode(), err)
	}
}

// TestCreateCrashed: a crash before the installation is finished leaves none. A crash after it leaves a whole one, at any point of the
// moves.
func TestCreateCrashed(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	succeeds(t, installation.Create(t.Context(), installation.Config{Dir: whole}))
	entries, err := os.ReadDir(whole)
	if err != nil || len(entries) < 4 {
		t.Fatal(entries, err)
	}
	for _, reversed := range []bool{false, true} {
		for moved := range len(entries) + 1 {
			dir := filepath.Join(t.TempDir(), "data")
			made := filepath.Join(dir, ".jurat-made")
			succeeds(t, os.MkdirAll(made, 0o700))
			order := slices.Clone(entries)
			if reversed {
				slices.Reverse(order)
			}
			for n, e := range order {
				to := made
				if n < moved {
					to = dir
				}
				if out, err := exec.Command("cp", "-a", filepath.Join(whole, e.Name()), to).CombinedOutput(); err != nil {
					t.Fatalf("%s", out)
				}
			}
			c := installation.Config{Dir: dir}
			if moved == 0 {
				if err := installation.Create(t.Context(), c); err == nil || !strings.Contains(err.Error(), "not empty") {
					t.Errorf("made another over it: %v", err)
				}
			}
			i, err := installation.Open(t.Context(), c)
			if err != nil {
				t.Fatalf("%d moved: %v", moved, err)
			}
			seal(t, i)
			succeeds(t, i.Close())
			if _, err := os.Stat(made); err == nil {
				t.Errorf("%d moved: %s is still there", moved, made)
			}
		}
	}
	draft := filepath.Join(t.TempDir(), "data")
	succeeds(t, os.MkdirAll(filepath.Join(draft, ".jurat-new-1"), 0o700))
	succeeds(t, os.Rename(filepath.Join(whole, "log.key"), filepath.Join(draft, ".jurat-new-1", "log.key")))
	wantError(t, "half an installation", installation.ErrNone, errorOf(installation.Open(t.Context(), installation.Config{Dir: draft})))
}

// TestCreateInTheWay: a file that appeared in the folder meanwhile is not overwritten.
func TestCreateInTheWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	succeeds(t, os.MkdirAll(filepath.Join(dir, ".jurat-made"), 0o700))
	for _, file := range []string{"log.key", ".jurat-made/log.key"} {
		succeeds(t, os.WriteFile(filepath.Join(dir, file), []byte(file), 0o600))
	}
	if _, err := installation.Open(t.Context(), installation.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "cannot be moved there") {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "log.key")); err != nil || string(text) != "log.key" {
		t.Errorf("%q, %v", text, err)
	}
}

// wantNothingLeft searches every file of a data folder for a text.
func wantNothingLeft(t *testing.T, c installation.Config, after, text string) {
	t.Helper()
	for path, content := range disktest.Files(t, c.Dir) {
		if n := bytes.Count(content, []byte(text)); n > 0 {
			t.Errorf("after %s, %s has the text %d times", after, path, n)
		}
	}
}

// TestNoTextIsLeftInTheDatabase: a deleted or erased text is in no file of the data folder, whether the
// installation is open or closed.
func TestNoTextIsLeftInTheDatabase(t *testing.T) {
	const text = "the parcel of Anna"
	then := time.Now().AddDate(-1, 0, 0)
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Now: func() time.Time { return then }}
	past := created(t, c)
	var first *evidence.Record
	for n := range 256 { // of many lengths, so that some fill pages and others leave space in them
		p := note()
		p.Timestamp = then.UTC().Format(time.RFC3339)
		p.Prompt = jsontext.Value(`"` + strings.Repeat(text, 1+n*n%700) + `"`)
		if r := sealApart(t, past, p); first == nil {
			first = r
		}
	}
	there := marks(t, c)
	succeeds(t, past.Close())
	c.Now = nil
	i := open(t, c)
	sealMany(t, i, 1)
	secretly := sealApart(t, i, note(), "/prompt", "/metadata/user")
	must(i.Apart.Erase(t.Context(), order(secretly, "/prompt", "/metadata/user")))
	wantNothingLeft(t, c, "erase", secret)
	if done, err := i.Expire(t.Context(), expireOrder()); err != nil || done.Records == 0 {
		t.Fatal(done, err)
	}
	wantExpired(t, i, first)
	wantNothingLeft(t, c, "expire", text)
	wantNoMarks(t, c.Dir, there)
	succeeds(t, i.Close())
	wantNothingLeft(t, c, "closing", text)
	wantNothingLeft(t, c, "closing", secret)
	wantNoMarks(t, c.Dir, there)
}

// TestVouch: an installation does not vouch for records that its own keys have not signed.
func TestVouch(t *testing.T) {
	config, mine := made(t)
	_, theirs := made(t)
	i := open(t, config)
	succeeds(t, i.Vouch(t.Context(), mine))
	if err := i.Vouch(t.Context(), mine, theirs); err == nil {
		t.Error("Vouch accepted a record of another installation")
	}
	changed := *mine
	changed.Signatures = [][]byte{append([]byte{}, mine.Signatures[0]...)}
	changed.Signatures[0][9] ^= 1
	if err := i.Vouch(t.Context(), &changed); err == nil {
		t.Error("Vouch accepted a record with an invalid signature")
	}
}
