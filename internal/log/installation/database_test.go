package installation_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/evidence"
	"jurat/internal/log/erasure"
	"jurat/internal/log/filestore"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// wrappingKey is a file with a new wrapping key.
func wrappingKey(t *testing.T, more ...string) string {
	t.Helper()
	text := filestore.Generate()
	for _, file := range more {
		text = append(text, get(os.ReadFile(file))...)
	}
	file := filepath.Join(t.TempDir(), "wrapping.key")
	must.Do(t, os.WriteFile(file, text, 0o600))
	return file
}

// patiently waits for a database on a busy machine.
const patiently = "?connect_timeout=60"

// machines returns a function that configures one more machine on a new, empty database.
func machines(t *testing.T) func() installation.Config {
	t.Helper()
	c := installation.Config{DB: rig.Database(t) + patiently, WrappingKey: wrappingKey(t)}
	return func() installation.Config {
		c.Dir = filepath.Join(t.TempDir(), "node")
		return c
	}
}

// begun returns what machines returns, with an installation in the database that the first machine has open.
func begun(t *testing.T) (installation.Config, *installation.Installation, func() installation.Config) {
	t.Helper()
	machine := machines(t)
	c := machine()
	must.Do(t, installation.Create(t.Context(), c))
	return c, open(t, c), machine
}

func execute(t *testing.T, database string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also when the test has ended
	conn := get(pgx.Connect(ctx, database))
	defer conn.Close(ctx)
	for _, s := range statements {
		_, err := conn.Exec(ctx, s)
		must.Need(t, err == nil, "%s: %v", s, err)
	}
}

// TestMachinesBeginAtOnce: several machines start at once on an empty database. One makes the installation, all open it, and each seals. An
// actor has one key everywhere, and each machine reads what the others sealed.
func TestMachinesBeginAtOnce(t *testing.T) {
	const count = 5
	machine := machines(t)
	opened := make([]*installation.Installation, count)
	made := make([]bool, count)
	sealed := make([]*evidence.Record, count)
	var all sync.WaitGroup
	for n := range count {
		c := machine()
		all.Go(func() {
			var err error
			if opened[n], made[n], err = installation.OpenOrCreate(t.Context(), c); err != nil {
				t.Error(err)
				return
			}
			sealed[n], err = sealRequest(t, opened[n], "r")
			must.Hold(t, err == nil, "%v", err)
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	creators := 0
	for n, i := range opened {
		defer i.Close()
		if made[n] {
			creators++
		}
		must.Equal(t, sealed[n].Payload.Signers[0].KeyID, sealed[0].Payload.Signers[0].KeyID, "machine", n)
		must.Hold(t, i.Ledger.Origin() == opened[0].Ledger.Origin(), "machine %d has another log: %s", n, i.Ledger.Origin())
		for _, r := range sealed {
			must.Fail(t, nil, "machine", n, "does not have", r.Payload.RecordID)(i.Ledger.Record(t.Context(), r.Payload.RecordID))
		}
	}
	must.Hold(t, creators == 1, "%d have made it", creators)
	must.Hold(t, opened[0].Database != nil, "Create does not report the database")
	c := machine()
	wantKinds(t, c)
	wantError(t, "made twice", fs.ErrExist, installation.Create(t.Context(), c))
}

// TestHalfMade: a machine that dies while it makes an installation leaves none, and the next machine finishes it.
func TestHalfMade(t *testing.T) {
	for name, undo := range map[string][]string{
		"before the log":    {`UPDATE jurat.head SET checkpoint = ''`},
		"before the keys":   {`UPDATE jurat.head SET checkpoint = ''`, `DELETE FROM jurat.files`},
		"before the folder": {`UPDATE jurat.head SET checkpoint = ''`, `DROP TABLE jurat.files`},
		"at once":           {`DROP SCHEMA jurat CASCADE`},
	} {
		t.Run(name, func(t *testing.T) {
			machine := machines(t)
			c := machine()
			must.Do(t, installation.Create(t.Context(), c))
			execute(t, c.DB, undo...)
			c = machine()
			wantError(t, "half an installation", installation.ErrNone, errorOf(installation.Open(t.Context(), c)))
			i, made, err := installation.OpenOrCreate(t.Context(), c)
			must.Need(t, err == nil && made, "%v %v", made, err)
			defer i.Close()
			get(sealRequest(t, i, "r"))
			wantKinds(t, c)
		})
	}
}

// TestPartsOfADatabase: a missing part is not replaced by a new one.
func TestPartsOfADatabase(t *testing.T) {
	for name, undo := range map[string][]string{
		"the key of the log":    {`DELETE FROM jurat.files WHERE name = 'log.key'`},
		"the small files":       {`DROP TABLE jurat.files`},
		"the authority":         {`DELETE FROM jurat.files WHERE name LIKE 'authority/%'`},
		"the last checkpoint":   {`UPDATE jurat.head SET checkpoint = ''`},
		"the tables of the log": {`DROP TABLE jurat.records CASCADE`},
		"what it is wrapped by": {`UPDATE jurat.files SET wrapped = '' WHERE name = 'log.key'`},
		"what it is a secret of": {`UPDATE jurat.files SET content = (SELECT content FROM jurat.files WHERE name = 'authority/root.key')
			WHERE name = 'authority/authority.key'`},
	} {
		t.Run(name, func(t *testing.T) {
			c, i, machine := begun(t)
			get(sealRequest(t, i, "r"))
			execute(t, c.DB, undo...)
			for _, c := range []installation.Config{c, machine()} {
				_, _, err := installation.OpenOrCreate(t.Context(), c)
				must.Hold(t, err != nil && (!errors.Is(err, installation.ErrNone) || name == "the last checkpoint"), "%v", err)
			}
		})
	}
}

// TestWrappingKeyIsNeeded: without the key, with another key, or with a key file that other users can read, nothing else happens.
func TestWrappingKeyIsNeeded(t *testing.T) {
	c, i, machine := begun(t)
	get(sealRequest(t, i, "r"))
	refused := func(name, file string, want error, text string) {
		t.Helper()
		other := machine()
		other.WrappingKey = file
		_, _, err := installation.OpenOrCreate(t.Context(), other)
		must.Hold(t, err != nil && (want == nil || errors.Is(err, want)) && strings.Contains(err.Error(), text), "%s: %v", name, err)
		entries, _ := os.ReadDir(other.Dir)
		must.Hold(t, len(entries) == 0, "%s: it has left %v", name, entries)
	}
	refused("none", "", installation.ErrNoWrappingKey, "")
	refused("not there", filepath.Join(t.TempDir(), "none"), fs.ErrNotExist, "wrapping key")
	refused("another", wrappingKey(t), filestore.ErrOtherKey, "secret")
	broken := wrappingKey(t)
	must.Do(t, os.WriteFile(broken, []byte("nothing"), 0o600))
	refused("broken", broken, nil, "line 1")
	if runtime.GOOS != "windows" {
		must.Do(t, os.Chmod(c.WrappingKey, 0o644))
		refused("one that others can read", c.WrappingKey, nil, "0644")
	}
}

// TestRewrapWhileMachinesRun: a wrapping key is changed machine by machine, and every machine can always read its secrets.
func TestRewrapWhileMachinesRun(t *testing.T) {
	c, i, machine := begun(t)
	get(sealRequest(t, i, "r"))
	both, late := machine(), machine()
	both.WrappingKey = wrappingKey(t, c.WrappingKey)
	changed := open(t, both)
	first := get(sealRequest(t, changed, "r"))
	draft := get(evidence.NewDraft(note()))
	get(changed.Keys.Signers(t.Context(), draft.Role(), draft.Actor())) // made under the new key
	n, _, err := changed.Rewrap(t.Context(), func(int64) {})
	must.Hold(t, err == nil && n >= 3, "%d secrets, %v", n, err)
	newOnly := filepath.Join(t.TempDir(), "new.key")
	lines := strings.SplitAfter(string(get(os.ReadFile(both.WrappingKey))), "\n")
	must.Do(t, os.WriteFile(newOnly, []byte(strings.Join(lines[:2], "")), 0o600))
	late.WrappingKey = newOnly
	r := get(sealRequest(t, open(t, late), "r"))
	must.Hold(t, r.Payload.Signers[0] == first.Payload.Signers[0], "the agent has another key now")
	wantError(t, "with the old key", filestore.ErrOtherKey, errorOf(installation.Open(t.Context(), c)))
	_, _, err = i.Rewrap(t.Context(), func(int64) {})
	must.Hold(t, errors.Is(err, filestore.ErrOtherKey), "with the old key: %v", err)
	folder, _ := made(t)
	_, _, err = open(t, folder).Rewrap(t.Context(), func(int64) {})
	must.Hold(t, err != nil, "a data folder has no wrapped secrets")
}

// TestDatabaseThatWasSetBack: a machine remembers the checkpoint that it has seen. A machine without one trusts the database, and says so.
func TestDatabaseThatWasSetBack(t *testing.T) {
	c, i, machine := begun(t)
	get(sealRequest(t, i, "first"))
	get(i.Ledger.Checkpoint(t.Context()))
	other := machine()
	second := open(t, other)
	must.Hold(t, !i.Joined && second.Joined, "joined: %t, %t", i.Joined, second.Joined)
	again := open(t, other)
	must.Hold(t, !again.Joined, "joined twice")
	// A copy of the database in its present state, to which all go back later.
	u := get(url.Parse(c.DB))
	copied := strings.TrimPrefix(u.Path, "/") + "_copy"
	copyDatabase(t, rig.Admin(t, c.DB), strings.TrimPrefix(u.Path, "/"), copied)
	u.Path = "/" + copied

	i = open(t, c)
	get(sealRequest(t, i, "second"))
	get(i.Ledger.Checkpoint(t.Context()))
	c.DB, other.DB = u.String(), u.String()
	wantError(t, "the machine that has seen the later checkpoint", ledger.ErrBehind, open(t, c).Ledger.CanAppend(t.Context()))
	wantError(t, "the machine that has not seen it", nil, open(t, other).Ledger.CanAppend(t.Context()))
	elsewhere := machine()
	elsewhere.DB = rig.Database(t) + patiently
	elsewhere.Dir = c.Dir // a machine that was there before, and a database that is empty
	_, _, err := installation.OpenOrCreate(t.Context(), elsewhere)
	must.Hold(t, err != nil, "Create began a new log although this machine remembers another")
}

// copyDatabase copies a database. No other connection may be open meanwhile.
func copyDatabase(t *testing.T, admin, from, to string) {
	t.Helper()
	u := get(url.Parse(admin))
	u.Path = "/postgres"
	execute(t, u.String(), `ALTER DATABASE `+from+` ALLOW_CONNECTIONS false`,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+from+`'`,
		`CREATE DATABASE `+to+` OWNER jurat TEMPLATE `+from, `ALTER DATABASE `+from+` ALLOW_CONNECTIONS true`)
	t.Cleanup(func() { execute(t, u.String(), `DROP DATABASE `+to+` WITH (FORCE)`) })
}

// TestEraseOnAnyMachine: what one machine has sealed apart, another machine discloses and erases. After that, no machine
// can open it.
func TestEraseOnAnyMachine(t *testing.T) {
	_, i, machine := begun(t)
	c := machine()
	other := open(t, c)
	r := sealApart(t, i, note(), "/prompt", "/metadata/user")
	wantDisclosed(t, other, r, "/metadata/user", "/prompt")
	get(other.Apart.Erase(t.Context(), order(r, "/prompt")))
	wantDisclosed(t, i, r, "/metadata/user")
	must.Fail(t, nil)(i.Apart.Erase(t.Context(), order(r, "/prompt")))
	var n int
	name := erasure.Name(r.Digest, "/prompt")
	err := i.Database.QueryRow(t.Context(), `SELECT count(*) FROM jurat.files WHERE name LIKE '%' || $1 || '%'`, name).Scan(&n)
	must.Hold(t, err == nil && n == 0, "%d rows are left of it, %v", n, err)
	wantKinds(t, c)
}

// TestEraseCrashesOnAMachine: after a crash of one machine at any step of an erasure, another machine finishes it.
func TestEraseCrashesOnAMachine(t *testing.T) {
	c, i, machine := begun(t)
	for step := 1; ; step++ {
		r := sealApart(t, i, note(), "/prompt")
		victim := open(t, c)
		if !crash(victim, step, func() { victim.Apart.Erase(t.Context(), order(r, "/prompt")) }) {
			must.Hold(t, step >= 5, "only %d steps", step)
			break
		}
		other := open(t, machine())
		_, err := other.Apart.Erase(t.Context(), order(r, "/prompt"))
		must.Need(t, err == nil, "after step %d: %v", step, err)
		wantDisclosed(t, i, r)
	}
	wantKinds(t, machine())
}

// TestRotateOnAnyMachine: after one machine replaces a key, no machine signs with the old one.
func TestRotateOnAnyMachine(t *testing.T) {
	_, i, machine := begun(t)
	c := machine()
	other := open(t, c)
	before := get(sealRequest(t, i, "r"))
	get(sealRequest(t, other, "r"))
	must.Do(t, other.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	after := get(sealRequest(t, i, "r"))
	must.Hold(t, after.Payload.Signers[0] != before.Payload.Signers[0], "a machine signed with the old key")
	r := get(sealRequest(t, other, "r"))
	must.Hold(t, r.Payload.Signers[0] == after.Payload.Signers[0], "two machines sign with two keys")
	wantKinds(t, c)
}

// TestSettingsOnAnyMachine: a setting made on one machine applies on all.
func TestSettingsOnAnyMachine(t *testing.T) {
	_, i, machine := begun(t)
	other := open(t, machine())
	must.Do(t, other.Apart.Set(t.Context(), erasure.Setting{Actor: "nurse", Pointers: []string{"/prompt"}}))
	if d, err := i.Apart.Apart(t.Context(), get(evidence.NewDraft(note()))); err != nil || len(d.Apart()) != 1 {
		t.Errorf("%v, %v", d, err)
	}
	list, err := i.Apart.Settings(t.Context())
	must.Hold(t, err == nil && len(list) == 1, "%v, %v", list, err)
	must.Do(t, i.Apart.Unset(t.Context(), "nurse"))
	d, err := other.Apart.Apart(t.Context(), get(evidence.NewDraft(note())))
	must.Hold(t, err == nil && len(d.Apart()) == 0, "%v, %v", d, err)
}

// TestClaimsOnMachines: a trial is conducted on one machine at a time.
func TestClaimsOnMachines(t *testing.T) {
	_, i, machine := begun(t)
	other := open(t, machine())
	_, release, err := i.Locks.Lock(t.Context(), "trial-1")
	must.Do(t, err)
	if _, _, err := other.Locks.Lock(t.Context(), "trial-1"); !errors.Is(err, lock.ErrTaken) {
		t.Error(err)
	}
	release()
	_, release, err = other.Locks.Lock(t.Context(), "trial-1")
	must.Do(t, err)
	release()
}

// TestPlaces: a machine's own folder is not taken for a data folder, and no description contains a password.
func TestPlaces(t *testing.T) {
	folder, _ := made(t)
	c := machines(t)()
	password, _ := get(url.Parse(c.DB)).User.Password()
	for db, want := range map[string]string{"postgres:///jurat?host=/run/postgresql&password=p": "the database jurat", "postgres://": "the database",
		"postgres://me:secret@db.example:5433/jurat?sslmode=require": "the database jurat on db.example:5433", "postgres://%": "the database"} {
		must.Equal(t, (installation.Config{DB: db}).Where(), want, db)
	}
	must.Hold(t, !strings.Contains(c.Where(), password) && strings.Contains(c.Where(), "127.0.0.1"), "it is in %s", c.Where())
	mixed := c
	mixed.Dir = folder.Dir
	gone := c
	gone.DB = strings.Replace(c.DB, "/test", "/none", 1)
	for name, c := range map[string]installation.Config{"a data folder": mixed, "no database": gone, "no folder": {DB: c.DB, WrappingKey: c.WrappingKey},
		"no URL": {Dir: c.Dir, DB: "jurat", WrappingKey: c.WrappingKey}} {
		_, _, err := installation.OpenOrCreate(t.Context(), c)
		must.Hold(t, err != nil && !strings.Contains(err.Error(), password), "%s: %v", name, err)
	}
}

// kept describes an installation with every part: keys of several actors, one of them replaced; texts sealed apart, one
// of them erased; a setting; an outside authority; and a checkpoint.
type kept struct {
	log    string
	apart  *evidence.Record
	signer evidence.KeyID
}

func fillUp(t *testing.T, i *installation.Installation) kept {
	t.Helper()
	get(sealRequest(t, i, "r"))
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "a", "", nil, because))
	k := kept{log: i.Ledger.Origin(), signer: get(sealRequest(t, i, "r")).Payload.Signers[0].KeyID}
	k.apart = sealApart(t, i, note(), "/prompt", "/metadata/user")
	get(i.Apart.Erase(t.Context(), order(k.apart, "/prompt")))
	must.Do(t, i.Apart.Set(t.Context(), erasure.Setting{Actor: "nurse", Pointers: []string{"/prompt"}}))
	for n := range 30 {
		if n == 20 {
			get(i.Ledger.Checkpoint(t.Context()))
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
	must.Hold(t, i.Ledger.Origin() == k.log, "it is another log: %s", i.Ledger.Origin())
	r := get(sealRequest(t, i, "r"))
	must.Hold(t, r.Payload.Signers[0].KeyID == k.signer, "it signs with %s, but signed with %s before", r.Payload.Signers[0].KeyID, k.signer)
	wantDisclosed(t, i, k.apart, "/metadata/user")
	d, err := i.Apart.Apart(t.Context(), get(evidence.NewDraft(note())))
	must.Hold(t, err == nil && len(d.Apart()) == 1, "its setting is gone: %v, %v", d, err)
	get(i.Ledger.Checkpoint(t.Context()))
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
				must.Do(t, i.Close())
				copied := filepath.Join(t.TempDir(), "copy")
				told := int64(0)
				m, err := installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied, ApartKeys: true, Progress: func(done, _ int64) { told = done }})
				must.Need(t, err == nil && told != 0, "%v %v", told, err)
				must.Hold(t, m.Log == k.log && m.Size != 0 && m.Root != "", "%+v", m)
				target := to(t)
				get(installation.Restore(t.Context(), target, installation.RestoreOrder{From: copied, NoneLater: true}))
				wantKept(t, target, k)
				left, _ := filepath.Glob(filepath.Join(target.Dir, ".jurat-restore-*"))
				must.Hold(t, len(left) == 0, "it has left %v", left)
				if target.DB == "" {
					return
				}
				_, err = installation.Restore(t.Context(), target, installation.RestoreOrder{From: copied, NoneLater: true})
				must.Hold(t, err != nil, "restored over a later checkpoint that this machine has seen")
				target.Dir = filepath.Join(t.TempDir(), "other")
				wantError(t, "restored over an installation", fs.ErrExist, errorOf(installation.Restore(t.Context(), target, installation.RestoreOrder{From: copied, NoneLater: true})))
			})
		}
	}
}

// TestBackupHasNoWrappingKey: a backup of a database does not contain the wrapping key, and is complete without it.
func TestBackupHasNoWrappingKey(t *testing.T) {
	c, i, _ := begun(t)
	get(sealRequest(t, i, "r"))
	copied := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied}))
	secret := bytes.TrimSpace(bytes.SplitN(get(os.ReadFile(c.WrappingKey)), []byte("\n"), 2)[1])
	content := get(os.ReadFile(copied))
	must.Hold(t, !bytes.Contains(content, secret) && bytes.Count(content, []byte("PRIVATE KEY")) >= 4, "it contains the wrapping key, or lacks private keys")
	must.Equal(t, get(os.Stat(copied)).Mode(), 0o600, "it has mode")
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
					get(i.Ledger.Checkpoint(t.Context()))
				}
				time.Sleep(10 * time.Millisecond) // otherwise everything that is sealed meanwhile is examined
			}
		})
	}
	for range 2 {
		size := get(i.Ledger.Size(t.Context()))
		copied := filepath.Join(t.TempDir(), "copy")
		m := get(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied, ApartKeys: true}))
		must.Hold(t, m.Size >= size, "%d records, but %d were acknowledged before", m.Size, size)
		restored := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
		get(installation.Restore(t.Context(), restored, installation.RestoreOrder{From: copied, NoneLater: true}))
	}
}

// TestRestoreBrokenOff: an interrupted restore leaves no installation, and the next restore completes it.
func TestRestoreBrokenOff(t *testing.T) {
	t.Parallel()
	folder := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	i := created(t, folder)
	k := fillUp(t, i)
	must.Do(t, i.Close())
	copied := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(t.Context(), folder, installation.BackupOrder{To: copied, ApartKeys: true}))
	for name, undo := range map[string][]string{
		"before the checkpoint":  {`UPDATE jurat.head SET checkpoint = ''`},
		"before the small files": {`UPDATE jurat.head SET checkpoint = ''`, `DELETE FROM jurat.files`},
		"among the small files":  {`UPDATE jurat.head SET checkpoint = ''`, `DELETE FROM jurat.files WHERE name > 'b'`},
	} {
		t.Run(name, func(t *testing.T) {
			machine := machines(t)
			c := machine()
			order := installation.RestoreOrder{From: copied, NoneLater: true}
			get(installation.Restore(t.Context(), c, order))
			execute(t, c.DB, undo...)
			c = machine()
			_, _, err := installation.OpenOrCreate(t.Context(), c)
			must.Hold(t, err != nil && strings.Contains(err.Error(), "restore"), "half an installation: %v", err)
			get(installation.Restore(t.Context(), c, order))
			wantKept(t, c, k)
		})
	}
}

// TestRestoreReadsOnce: what is put into a database is what was examined. A backup that is another afterwards changes nothing.
func TestRestoreReadsOnce(t *testing.T) {
	folder := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	i := created(t, folder)
	k := fillUp(t, i)
	must.Do(t, i.Close())
	copied := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(t.Context(), folder, installation.BackupOrder{To: copied, ApartKeys: true}))
	c := machines(t)()
	get(installation.Restore(t.Context(), c, installation.RestoreOrder{From: copied, NoneLater: true, Progress: func(_, _ int64) {
		if examined := get(filepath.Glob(filepath.Join(c.Dir, ".jurat-restore-*", "checkpoint"))); len(examined) > 0 {
			must.Do(t, os.Truncate(copied, 0))
		}
	}}))
	must.Hold(t, len(get(os.ReadFile(copied))) <= 0, "nothing was examined")
	wantKept(t, c, k)
}

// TestRestoreOlderToDatabase: a log that lacks records under its published checkpoint is restored, but accepts no
// records.
func TestRestoreOlderToDatabase(t *testing.T) {
	c, i, machine := begun(t)
	get(sealRequest(t, i, "r"))
	copied := filepath.Join(t.TempDir(), "copy")
	get(installation.MakeBackup(t.Context(), c, installation.BackupOrder{To: copied}))
	get(sealRequest(t, i, "r"))
	later := get(i.Ledger.Checkpoint(t.Context()))
	target := machines(t)()
	r := get(installation.Restore(t.Context(), target, installation.RestoreOrder{From: copied, Checkpoint: later}))
	must.Hold(t, r.Missing == 1 && r.Known == 2, "%+v", r)
	wantError(t, "error", ledger.ErrBehind, open(t, target).Ledger.CanAppend(t.Context()))
	must.Do(t, open(t, machine()).Ledger.CanAppend(t.Context()))
}
