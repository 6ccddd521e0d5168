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
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
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
			_, missing := os.Stat(copied)
			must.Need(t, missing != nil, "a failed backup left a file")
			continue // keys changed each time: it says so
		}
		made++
		must.Hold(t, m.Size >= int64(count), "backup %d has %d records, %d were acknowledged", n, m.Size, count)
		back := installation.Config{Dir: filepath.Join(t.TempDir(), "back")}
		r, err := installation.Restore(ctx, back, installation.RestoreOrder{From: copied, NoneLater: true})
		var damaged *installation.DamagedBackupError
		must.Need(t, !errors.As(err, &damaged), "backup %d: %+v", n, damaged)
		// A value may be there without its record, which was still being sealed. This does no harm.
		harm := func(d fsck.Damage) bool { return !d.Kind.Harmless() }
		must.Need(t, err == nil && !slices.ContainsFunc(r.Damages, harm), "backup %d: %v, %v", n, r, err)
		again := get(installation.Open(ctx, back))
		must.Fail(t, nil, "backup", n)(again.Ledger.Record(ctx, id))
		sealApart(t, again, note())
		must.Do(t, again.Close())
	}
	must.Hold(t, made != 0, "no backup was made")
}

// TestRestoreRefusesDamage: a backup whose log was changed, with a manifest that fits, is not restored.
func TestRestoreRefusesDamage(t *testing.T) {
	ctx := t.Context()
	c, i := anew(t)
	sealApart(t, i, note())
	must.Do(t, i.Close())
	file := filepath.Join(c.Dir, "jurat.db")
	change := ""
	log := get(sqlite.Open(ctx, file))
	rows, err := log.Rows(ctx, 0, 100)
	must.Do(t, errors.Join(err, log.Close()))
	for _, row := range rows {
		if was := row.Payload; bytes.Contains(was, []byte("nurse")) {
			row.Payload = bytes.ReplaceAll(was, []byte("nurse"), []byte("medic"))
			change += fmt.Sprintf("UPDATE records SET %s WHERE idx = %d;", storetest.Content(&row), row.Index)
		}
	}
	must.Need(t, change != "", "there is nothing to change")
	changed(t, file, `DROP TRIGGER records_keep; `+change)
	copied := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(ctx, c, installation.BackupOrder{To: copied}))
	back := filepath.Join(t.TempDir(), "back")
	_, err = installation.Restore(ctx, installation.Config{Dir: back}, installation.RestoreOrder{From: copied, NoneLater: true})
	var damaged *installation.DamagedBackupError
	must.Hold(t, errors.As(err, &damaged) && damaged.Damages[0].Kind == fsck.DamageDigest, "%v", err)
	must.Refuse(t, "", "it was restored")(os.Stat(back))
	wantError(t, "error", installation.ErrLater, errorOf(installation.Restore(ctx, installation.Config{Dir: back}, installation.RestoreOrder{From: copied})))
}

// TestRestoreRefusesFiles: what is no backup, or not as it was made, makes no installation, and no file of a backup lands in another place.
func TestRestoreRefusesFiles(t *testing.T) {
	ctx := t.Context()
	c, i := anew(t)
	sealApart(t, i, note())
	must.Do(t, i.Close())
	copied := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(ctx, c, installation.BackupOrder{To: copied, ApartKeys: true}))
	whole := get(os.ReadFile(copied))
	refused := func(name, from, want string) {
		t.Helper()
		back := filepath.Join(t.TempDir(), "back")
		must.Refuse(t, want, name)(installation.Restore(ctx, installation.Config{Dir: back}, installation.RestoreOrder{From: from, NoneLater: true}))
		must.Refuse(t, "", name)(os.Stat(back))
	}
	spoilt := func(content []byte) string {
		file := filepath.Join(t.TempDir(), "spoilt")
		must.Do(t, os.WriteFile(file, content, 0o600))
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
		content := get(os.ReadFile(file))
		content = content[:len(content)/8192*8192] // without the digest
		sum := sha256.Sum256(content)
		refused(name, spoilt(append(content, sum[:]...)), change.want)
	}
	must.Do(t, os.WriteFile(filepath.Join(c.Dir, "jurat.db"), whole, 0o600))
	for dir, want := range map[string]string{c.Dir: "this file is a", copied: "init --from"} {
		_, _, err := installation.OpenOrCreate(ctx, installation.Config{Dir: dir})
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%s was opened: %v", dir, err)
	}
	if left := get(filepath.Glob(filepath.Join(c.Dir, "jurat.db-[ws]*"))); len(left) > 0 || !bytes.Equal(whole, get(os.ReadFile(filepath.Join(c.Dir, "jurat.db")))) {
		t.Errorf("opening a backup as a log has changed it, or left %v", left)
	}
}

// changed changes a database behind everybody's back.
func changed(t *testing.T, file, statements string) {
	t.Helper()
	db := get(sql.Open("sqlite", file))
	_, err := db.ExecContext(t.Context(), statements)
	must.Do(t, errors.Join(err, db.Close()))
}

// TestRestoreRefusesFirst: what can be refused without reading the backup is refused before.
func TestRestoreRefusesFirst(t *testing.T) {
	full := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(full, installation.CheckpointFile), nil, 0o600))
	key := wrappingKey(t)
	for want, c := range map[string]installation.Config{
		"is not empty":         {Dir: full},
		"has already seen":     {Dir: full, DB: "postgres://127.0.0.1:1/x", WrappingKey: key},
		"wrapping key":         {Dir: t.TempDir(), DB: "postgres://127.0.0.1:1/x"},
		"reading wrapping key": {Dir: t.TempDir(), DB: "postgres://127.0.0.1:1/x", WrappingKey: "missing"},
		"127.0.0.1:1":          {Dir: t.TempDir(), DB: "postgres://127.0.0.1:1/x", WrappingKey: key},
	} {
		_, err := installation.Restore(t.Context(), c, installation.RestoreOrder{From: "missing", NoneLater: true})
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%q: %v", want, err)
	}
}

// TestBackupOfOtherTables: what SQLite counts for itself prevents no backup. A table that jurat did not make is named.
func TestBackupOfOtherTables(t *testing.T) {
	c, i := anew(t)
	sealApart(t, i, note())
	must.Do(t, i.Close())
	file := filepath.Join(c.Dir, installation.DatabaseFile)
	changed(t, file, `ANALYZE`)
	get(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: filepath.Join(t.TempDir(), "copy")}))
	changed(t, file, `CREATE INDEX mine ON head (one)`)
	_, err := installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: filepath.Join(t.TempDir(), "copy")})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "CREATE INDEX mine"), "%v", err)
}

// TestBackupFile: a backup has one name and content: it replaces nothing, also in new folders and under names that SQLite or the system reads otherwise, and
// nothing beside it is read.
func TestBackupFile(t *testing.T) {
	ctx := t.Context()
	c, i := anew(t)
	sealApart(t, i, note(), "/prompt")
	must.Do(t, i.Close())
	t.Chdir(t.TempDir())
	for _, to := range []string{"new/and/new/copy", "folder/", "file:copy?mode=memory"} {
		get(installation.MakeBackup(ctx, c, installation.BackupOrder{To: to}))
		get(installation.Restore(ctx, installation.Config{Dir: filepath.Join(t.TempDir(), "back")}, installation.RestoreOrder{From: strings.TrimSuffix(to, "/"), NoneLater: true}))
	}
	for _, to := range []string{"", ".", "folder", "new/and"} {
		wantError(t, "over what is there: "+to, fs.ErrExist, errorOf(installation.MakeBackup(ctx, c, installation.BackupOrder{To: to})))
	}
	ended, end := context.WithCancel(ctx)
	wantError(t, "ended", context.Canceled, errorOf(installation.MakeBackup(ended, c, installation.BackupOrder{To: "ended", Progress: func(_, _ int64) { end() }})))
	wantError(t, "over what has come", fs.ErrExist, errorOf(installation.MakeBackup(ctx, c, installation.BackupOrder{To: "other", Progress: func(_, _ int64) {
		drafts, err := filepath.Glob("other.unfinished-*/jurat.db")
		must.Hold(t, err == nil && len(drafts) == 1 && get(os.Stat(filepath.Dir(drafts[0]))).Mode().Perm() == 0o700,
			"%v %v %v", "a killed backup would leave", drafts, err)
		must.Do(t, os.WriteFile("other", []byte("other"), 0o600))
	}})))
	text := get(os.ReadFile("other"))
	must.Hold(t, string(text) == "other", "the backup has replaced what came meanwhile")
	left := get(filepath.Glob("*"))
	must.Hold(t, slices.Equal(left, []string{"file:copy?mode=memory", "folder", "new", "other"}), "it left %v", left)
	writeAhead(t, "folder", `UPDATE head SET checkpoint = 'x'`)
	get(installation.Restore(ctx, installation.Config{Dir: "back"}, installation.RestoreOrder{From: "folder", NoneLater: true}))
	open(t, installation.Config{Dir: "back"})
}

// writeAhead puts a write-ahead log with a change beside a database, as if it had one.
func writeAhead(t *testing.T, file, change string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "other")
	must.Do(t, os.WriteFile(other, get(os.ReadFile(file)), 0o600))
	db := get(sql.Open("sqlite", other))
	defer db.Close()
	_, err := db.ExecContext(t.Context(), `PRAGMA journal_mode = WAL; `+change)
	must.Do(t, err)
	must.Do(t, os.WriteFile(file+"-wal", get(os.ReadFile(other+"-wal")), 0o600))
}

// TestBackupOfKeys: a backup has no key to what is sealed apart unless they are asked for, and then in rows of bounded size.
func TestBackupOfKeys(t *testing.T) {
	c, i := anew(t)
	sealApart(t, i, note(), "/prompt")
	must.Do(t, i.Close())
	files := get(filepath.Glob(filepath.Join(c.Dir, sqlite.KeysFolder, "*")))
	slots := get(os.ReadFile(files[0]))
	key := slots[48:80]
	must.Do(t, os.WriteFile(files[0], append(slots, make([]byte, 5<<20)...), 0o600))
	for _, with := range []bool{false, true} {
		copied := filepath.Join(t.TempDir(), "copy")
		get(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied, ApartKeys: with}))
		must.Hold(t, !bytes.Equal(key, make([]byte, 32)) && bytes.Contains(get(os.ReadFile(copied)), key) == with,
			"with keys: %v; it is otherwise in the backup", with)
		back := installation.Config{Dir: filepath.Join(t.TempDir(), "back")}
		get(installation.Restore(t.Context(), back, installation.RestoreOrder{From: copied, NoneLater: true}))
		restored, err := os.ReadFile(filepath.Join(back.Dir, sqlite.KeysFolder, filepath.Base(files[0])))
		must.Hold(t, with == (err == nil) && (!with || bytes.Equal(restored, get(os.ReadFile(files[0])))),
			"with keys: %v, %d bytes are restored, %v", with, len(restored), err)
		db := get(sql.Open("sqlite", copied))
		var longest int
		must.Do(t, errors.Join(db.QueryRowContext(t.Context(), `SELECT max(length(content)) FROM files`).Scan(&longest), db.Close()))
		must.Hold(t, longest <= 1<<20, "a row has %d bytes", longest)
	}
}

// TestBackupOfANewInstallation: an installation without any signed record can be restored, too.
func TestBackupOfANewInstallation(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	must.Do(t, installation.Create(t.Context(), c))
	copied := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied}))
	restored := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	get(installation.Restore(t.Context(), restored, installation.RestoreOrder{From: copied, NoneLater: true}))
	open(t, restored)
}

// TestBackupRefusesLinks: what is a link in the folder is refused before anything is copied, the databases too, beside which other files may be missing.
func TestBackupRefusesLinks(t *testing.T) {
	for _, name := range []string{"jurat.db", "keys"} {
		c, i := anew(t)
		must.Do(t, i.Close())
		at, elsewhere := filepath.Join(c.Dir, name), filepath.Join(t.TempDir(), name)
		must.Do(t, errors.Join(os.Rename(at, elsewhere), os.Symlink(elsewhere, at)))
		copied := filepath.Join(t.TempDir(), "copy")
		must.Refuse(t, "not a regular file", name)(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied}))
		left := get(os.ReadDir(filepath.Dir(copied)))
		must.Hold(t, len(left) == 0, "%s: it left %v", name, left)
	}
}

// TestHole: the network loses every packet of a machine, without an error. A caller that waits for the database without
// a deadline gets an error. When the network is back, the machine works.
func TestHole(t *testing.T) {
	t.Parallel()
	proxy, through := rig.NewProxy(t, rig.Database(t))
	key := wrappingKey(t)
	i := created(t, installation.Config{Dir: t.TempDir() + "/node", DB: through, WrappingKey: key})
	defer i.Close()
	defer proxy.GoOn() // before the machine is closed
	signers := get(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
	sealed := get(i.Ledger.Seal(t.Context(), get(evidence.NewDraft(note())), signers))
	held, release, err := i.Locks.Lock(t.Context(), "trial-1")
	must.Do(t, err)
	defer release()
	table := get(schedule.OpenTable(t.Context(), i.Database, ""))
	defer table.Close()

	ctx := context.Background() // the callers have no deadline
	work := map[string]func() error{
		"reading":             func() error { _, err := i.Ledger.Record(ctx, sealed.Payload.RecordID); return err },
		"sealing":             func() error { _, err := i.Ledger.Seal(ctx, get(evidence.NewDraft(note())), signers); return err },
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
		must.Hold(t, err != nil, "%s: there was an answer", name)
	}
	<-held.Done() // others may have claimed the trial meanwhile
	proxy.GoOn()
	for name, err := range do() {
		must.Hold(t, err == nil, "%s, when the network is back: %v", name, err)
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
		out, err := exec.Command("umount", dir).CombinedOutput()
		must.Hold(t, err == nil, "%s", out)
	})
	mkdir(t, filepath.Join(dir, "lost+found"))
	mkdir(t, filepath.Join(dir, ".jurat-new-dead"))
	c := installation.Config{Dir: dir}
	must.Do(t, installation.Create(t.Context(), c))
	seal(t, open(t, c))
	for name := range rig.Tree(t, dir) {
		must.Hold(t, !strings.HasPrefix(name, ".jurat") && name != "jurat-making", "%s was left over", name)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v: want a folder that only its owner can read", info.Mode(), err)
	}
}

// TestCreateCrashed: a crash before the installation is finished leaves none. A crash after it leaves a whole one, at any point of the
// moves.
func TestCreateCrashed(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	must.Do(t, installation.Create(t.Context(), installation.Config{Dir: whole}))
	entries, err := os.ReadDir(whole)
	must.Need(t, err == nil && len(entries) >= 4, "%v %v", entries, err)
	for _, reversed := range []bool{false, true} {
		for moved := range len(entries) + 1 {
			dir := filepath.Join(t.TempDir(), "data")
			made := filepath.Join(dir, ".jurat-made")
			must.Do(t, os.MkdirAll(made, 0o700))
			order := slices.Clone(entries)
			if reversed {
				slices.Reverse(order)
			}
			for n, e := range order {
				to := made
				if n < moved {
					to = dir
				}
				out, err := exec.Command("cp", "-a", filepath.Join(whole, e.Name()), to).CombinedOutput()
				must.Need(t, err == nil, "%s", out)
			}
			c := installation.Config{Dir: dir}
			if moved == 0 {
				must.Say(t, installation.Create(t.Context(), c), "not empty", "made another over it")
			}
			i, err := installation.Open(t.Context(), c)
			must.Need(t, err == nil, "%d moved: %v", moved, err)
			seal(t, i)
			must.Do(t, i.Close())
			must.Refuse(t, "", moved, "moved", made)(os.Stat(made))
		}
	}
	draft := filepath.Join(t.TempDir(), "data")
	must.Do(t, os.MkdirAll(filepath.Join(draft, ".jurat-new-1"), 0o700))
	must.Do(t, os.Rename(filepath.Join(whole, "log.key"), filepath.Join(draft, ".jurat-new-1", "log.key")))
	wantError(t, "half an installation", installation.ErrNone, errorOf(installation.Open(t.Context(), installation.Config{Dir: draft})))
}

// TestCreateInTheWay: a file that appeared in the folder meanwhile is not overwritten.
func TestCreateInTheWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	must.Do(t, os.MkdirAll(filepath.Join(dir, ".jurat-made"), 0o700))
	for _, file := range []string{"log.key", ".jurat-made/log.key"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(file), 0o600))
	}
	must.Refuse(t, "cannot be moved there")(installation.Open(t.Context(), installation.Config{Dir: dir}))
	text, err := os.ReadFile(filepath.Join(dir, "log.key"))
	must.Hold(t, err == nil && string(text) == "log.key", "%q, %v", text, err)
}

// wantNothingLeft searches every file of a data folder for a text.
func wantNothingLeft(t *testing.T, c installation.Config, after, text string) {
	t.Helper()
	for path, content := range rig.Files(t, c.Dir) {
		n := bytes.Count(content, []byte(text))
		must.Hold(t, n <= 0, "after %s, %s has the text %d times", after, path, n)
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
	must.Do(t, past.Close())
	c.Now = nil
	i := open(t, c)
	sealMany(t, i, 1)
	secretly := sealApart(t, i, note(), "/prompt", "/metadata/user")
	get(i.Apart.Erase(t.Context(), order(secretly, "/prompt", "/metadata/user")))
	wantNothingLeft(t, c, "erase", secret)
	done, err := i.Expire(t.Context(), expireOrder())
	must.Need(t, err == nil && done.Records != 0, "%v %v", done, err)
	wantExpired(t, i, first)
	wantNothingLeft(t, c, "expire", text)
	wantNoMarks(t, c.Dir, there)
	must.Do(t, i.Close())
	wantNothingLeft(t, c, "closing", text)
	wantNothingLeft(t, c, "closing", secret)
	wantNoMarks(t, c.Dir, there)
}

// TestVouch: an installation does not vouch for records that its own keys have not signed.
func TestVouch(t *testing.T) {
	config, mine := made(t)
	_, theirs := made(t)
	i := open(t, config)
	must.Do(t, i.Vouch(t.Context(), mine))
	must.Say(t, i.Vouch(t.Context(), mine, theirs), "", "Vouch accepted a record of another installation")
	changed := *mine
	changed.Signatures = [][]byte{append([]byte{}, mine.Signatures[0]...)}
	changed.Signatures[0][9] ^= 1
	must.Say(t, i.Vouch(t.Context(), &changed), "", "Vouch accepted a record with an invalid signature")
}
