package ledger_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	sqlitedriver "modernc.org/sqlite"

	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	expect "jurat/internal/test/must"
	"jurat/internal/test/rig"
)

var errCrashed = errors.New("the process is gone")

// A crashing process writes to a folder until its n-th write. At that moment the folder is copied. Later writes of
// the process do not reach the copy.
type crashing struct {
	storage.Store
	t      *testing.T
	folder folder
	copied folder
	n      int
	when   string // "before" the write, "in" the middle of it, "after" it
	dead   bool
}

func (c *crashing) crash() error {
	c.t.Helper()
	expect.Do(c.t, os.CopyFS(string(c.copied), os.DirFS(string(c.folder))))
	c.dead = true
	return errCrashed
}

// write runs the write unless the process is dead, or dies at this write.
func (c *crashing) write(do func(middle func() error) error) error {
	if c.dead {
		return errCrashed
	}
	c.n--
	if c.n != 0 {
		return do(func() error { return nil })
	}
	switch c.when {
	case "before":
		return c.crash()
	case "in":
		err := do(c.crash)
		if !c.dead { // these writes have no middle
			return c.crash()
		}
		return errors.Join(err, errCrashed)
	default:
		return errors.Join(do(func() error { return nil }), c.crash())
	}
}

func (c *crashing) Append(ctx context.Context, plan storage.Plan) error {
	return c.write(func(middle func() error) error {
		return c.Store.Append(ctx, func(head storage.Head, log storage.Committed) (storage.Batch, error) {
			batch, err := plan(head, log)
			return batch, errors.Join(err, middle())
		})
	})
}

func (c *crashing) SetCheckpoint(ctx context.Context, old, next string) error {
	return c.write(func(func() error) error { return c.Store.SetCheckpoint(ctx, old, next) })
}

// publishing is the Published of the same process.
type publishing struct {
	ledger.CheckpointFile
	c *crashing
}

func (p publishing) Store(ctx context.Context, checkpoint string) error {
	return p.c.write(func(middle func() error) error {
		// A crash in the middle leaves an unfinished file beside it.
		draft := filepath.Join(string(p.c.folder), ".checkpoint-draft")
		if err := os.WriteFile(draft, []byte(checkpoint[:len(checkpoint)/2]), 0o600); err != nil {
			return err
		}
		if err := errors.Join(middle(), os.Remove(draft)); err != nil {
			return err
		}
		return p.CheckpointFile.Store(ctx, checkpoint)
	})
}

// TestCrashes kills the process at every write of a log in a folder: before it, in the middle and after it.
// Acknowledged records are there once, every record is complete, and the log continues to work.
func TestCrashes(t *testing.T) {
	runs := 0
	for _, when := range []string{"before", "in", "after"} {
		for n := 1; ; n++ {
			dead := false
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				c := &crashing{t: t, folder: folder(t.TempDir()), copied: folder(t.TempDir() + "/copy"), n: n, when: when}
				acknowledged := c.work(t)
				if dead = c.dead; !dead {
					return
				}
				c.copied.goesOn(t, acknowledged)
			})
			if !dead {
				break
			}
			runs++
		}
	}
	expect.Hold(t, runs >= 3*13, "only %d crashes", runs)
}

// work creates a log and seals while the process lives. It returns the ids that were acknowledged.
func (c *crashing) work(t *testing.T) (acknowledged []string) {
	store := must(sqlite.Create(t.Context(), c.folder.database()))
	t.Cleanup(func() { store.Close() })
	c.Store = store
	cfg := config(c)
	cfg.Published = publishing{c.folder.published(), c}
	l, err := ledger.Create(t.Context(), cfg)
	if err != nil {
		wantError(t, err, errCrashed)
		return nil
	}
	for i := range 6 {
		draft := act(fmt.Sprintf(`,"record_id":"01890000-0000-7000-8000-%012d"`, i))
		if _, err := l.Seal(t.Context(), draft, actor); err == nil {
			acknowledged = append(acknowledged, draft.RecordID)
		} else {
			wantError(t, err, errCrashed)
		}
		if i%2 == 1 {
			if _, err := l.Checkpoint(t.Context()); err != nil {
				wantError(t, err, errCrashed)
			}
		}
	}
	return acknowledged
}

// goesOn opens what a crash has left, or creates the log if it did not exist yet. It examines all of it, and appends.
func (f folder) goesOn(t *testing.T, acknowledged []string) {
	t.Helper()
	l, err := f.open(t)
	if errors.Is(err, ledger.ErrNoLog) && len(acknowledged) == 0 {
		l, err = f.create(t), nil
	}
	succeeds(t, err)
	wantOnce(t, l, acknowledged)
	wantError(t, l.CanAppend(t.Context()), nil)
	seal(t, l, "")
	must(l.Checkpoint(t.Context()))
	wantError(t, l.Close(), nil)
	wantClean(t, f.fsck(t))
}

// TestPowerCut cuts the write-ahead log off at every few bytes of its last transaction, and adds garbage there.
// Records acknowledged before are complete, and the last record is there completely or not at all.
func TestPowerCut(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	var acknowledged []string
	for range 3 {
		acknowledged = append(acknowledged, seal(t, l, "").Payload.RecordID)
	}
	wal := f.database() + "-wal"
	before := must(os.ReadFile(wal))
	last := seal(t, l, "").Payload.RecordID
	after := must(os.ReadFile(wal))
	database, checkpoint := must(os.ReadFile(f.database())), must(os.ReadFile(filepath.Join(string(f), "checkpoint")))
	expect.Need(t, len(after) > len(before), "the write-ahead log had %d bytes and has %d", len(before), len(after))
	l.Close()
	lost, kept := 0, 0
	for cut := len(before); cut <= len(after); cut += 4093 {
		for _, rest := range [][]byte{nil, make([]byte, len(after)-cut), before[:min(len(before), len(after)-cut)]} {
			again := folder(t.TempDir())
			for name, content := range map[string][]byte{again.database(): database, again.database() + "-wal": append(after[:cut:cut], rest...),
				filepath.Join(string(again), "checkpoint"): checkpoint} {
				succeeds(t, os.WriteFile(name, content, 0o600))
			}
			there := acknowledged
			if has(t, again, last) {
				there = append(there[:len(there):len(there)], last)
				kept++
			} else {
				lost++
			}
			again.goesOn(t, there)
		}
	}
	expect.Hold(t, lost >= 10, "the last record was lost %d times, kept %d times", lost, kept)
}

// has opens a folder like a process would, and closes it again.
func has(t *testing.T, f folder, id string) bool {
	t.Helper()
	l := must(f.open(t))
	defer l.Close()
	_, err := l.Record(t.Context(), id)
	expect.Hold(t, err == nil || errors.Is(err, ledger.ErrNotFound), "%v", err)
	return err == nil
}

// settlerFolder, if set, makes this test binary a process that settles what waits for "one" in that folder. It dies
// where the database calls die().
const settlerFolder = "JURAT_TEST_SETTLER"

func (f folder) settleAndDie() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	err = sqlitedriver.RegisterScalarFunction("die", 0, func(*sqlitedriver.FunctionContext, []driver.Value) (driver.Value, error) {
		if err := self.Kill(); err != nil {
			return nil, err
		}
		select {} // the signal comes
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, err := sqlite.Open(ctx, f.database())
	if err != nil {
		return err
	}
	c := f.config(store)
	c.Stamper, c.Settler = silent("one"), clock{}
	l, err := ledger.Open(ctx, c)
	if err != nil {
		return err
	}
	pending, err := l.Waiting(ctx, "one", 0, 10)
	if err != nil {
		return err
	}
	n, err := l.Settle(ctx, lateStamps(pending), actor)
	return fmt.Errorf("settled %d, %w", n, err)
}

// TestKilledWhileSettling kills a process inside the settling transaction, after each of its writes. Everything still
// waits, no act says otherwise, and the next run settles it.
func TestKilledWhileSettling(t *testing.T) {
	for _, after := range []string{"INSERT ON records", "INSERT ON tags", "DELETE ON waiting", "INSERT ON timestamps"} {
		t.Run(after, func(t *testing.T) {
			f := folder(t.TempDir())
			f.create(t).Close()
			l := f.with(t, silent("one"))
			sealMany(t, l, 3)
			f.exec(t, `CREATE TRIGGER dies AFTER `+after+` BEGIN SELECT die(); END`)
			child := exec.CommandContext(t.Context(), must(os.Executable()))
			child.Env = append(os.Environ(), settlerFolder+"="+string(f))
			out, err := child.CombinedOutput()
			expect.Need(t, err != nil && !child.ProcessState.Exited(), "it was not killed: %v\n%s", err, out)
			f.exec(t, `DROP TRIGGER dies`)
			f.wantSound(t)
			l = f.with(t, silent("one"))
			wantOwing(t, l, "one 3")
			expect.Equal(t, len(lateActs(t, l)), 0, "acts")
			expect.Give(l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 10))), actor))(t, 3)
			wantOwing(t, l, "")
			f.wantSound(t)
		})
	}
}

// TestCutOffWhileSettling ends the connection to PostgreSQL inside the settling transaction, after each of its
// writes. Everything still waits, no act says otherwise, and the next run settles it.
func TestCutOffWhileSettling(t *testing.T) {
	f := onPostgres(t, rig.Database(t))
	f.create(t).Close()
	l := f.with(t, silent("one"))
	sealMany(t, l, 3)
	for _, after := range []string{"DELETE ON jurat.waiting", "INSERT ON jurat.timestamps", "INSERT ON jurat.records"} {
		f.execPostgres(t, `CREATE FUNCTION jurat.die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`,
			`CREATE TRIGGER dies AFTER `+after+` EXECUTE FUNCTION jurat.die()`)
		n, err := l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 10))), actor)
		expect.Hold(t, err != nil, "%s: settled %d", after, n)
		f.execPostgres(t, `DROP FUNCTION jurat.die CASCADE`)
		wantOwing(t, l, "one 3")
		expect.Equal(t, len(lateActs(t, l)), 0, after, "acts")
	}
	expect.Give(l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 10))), actor))(t, 3)
	wantOwing(t, l, "")
	f.wantSound(t)
}

// execPostgres runs statements as the superuser.
func (f folder) execPostgres(t *testing.T, statements ...string) {
	t.Helper()
	pool := must(pgxpool.New(t.Context(), rig.Admin(t, must(f.url()))))
	defer pool.Close()
	for _, statement := range statements {
		_, err := pool.Exec(t.Context(), statement)
		expect.Need(t, err == nil, "%s: %v", statement, err)
	}
}

var errFault = errors.New("fault")

// faulty fails at the n-th write, before or after it is done, or, if early, before it begins. If blind, it also fails
// reads after that. What a process leaves that ends there, TestCrashes is about.
type faulty struct {
	storage.Store
	n      int
	early  bool
	stored bool
	blind  bool
	failed bool
}

func (f *faulty) String() string {
	return fmt.Sprintf("write %d, early %v, stored %v, blind %v", f.n, f.early, f.stored, f.blind)
}

func (f *faulty) fails() bool {
	f.n--
	f.failed = f.failed || f.n == 0
	return f.n == 0
}

func (f *faulty) write(do func() error) error {
	if !f.fails() {
		return do()
	}
	var err error
	if f.stored {
		err = do()
	}
	return errors.Join(err, errFault)
}

func (f *faulty) Append(ctx context.Context, plan storage.Plan) error {
	if f.early {
		return f.write(func() error { return f.Store.Append(ctx, plan) })
	}
	fails := f.fails()
	err := f.Store.Append(ctx, func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := plan(head, log)
		if fails && !f.stored {
			err = errFault
		}
		return batch, err
	})
	if fails {
		err = errors.Join(err, errFault)
	}
	return err
}

func (f *faulty) SetCheckpoint(ctx context.Context, old, next string) error {
	return f.write(func() error { return f.Store.SetCheckpoint(ctx, old, next) })
}

func (f *faulty) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	if f.blind && f.failed {
		return storage.Row{}, errFault
	}
	return f.Store.ByRecordID(ctx, id)
}

// outside is a Published that fails with the store.
type outside struct {
	f          *faulty
	checkpoint string
}

func (o *outside) Load(context.Context) (string, error) { return o.checkpoint, nil }

func (o *outside) Store(_ context.Context, checkpoint string) error {
	return o.f.write(func() error {
		o.checkpoint = checkpoint
		return nil
	})
}

// workFaulty repeats what fails, as a caller would, and returns what was acknowledged.
func workFaulty(t *testing.T, c ledger.Config) (acknowledged []string) {
	var l *ledger.Ledger
	again(t, func() (err error) {
		l, err = ledger.Create(t.Context(), c)
		if errors.Is(err, ledger.ErrExists) {
			l, err = ledger.Open(t.Context(), c)
		}
		return err
	})
	for i := range 5 {
		draft := act(`,"record_id":"` + numbered(i) + `"`)
		again(t, func() error {
			_, err := l.Seal(t.Context(), draft, actor)
			if errors.Is(err, ledger.ErrDuplicate) {
				return nil
			}
			return err
		})
		acknowledged = append(acknowledged, draft.RecordID)
		if i%2 == 0 {
			again(t, func() error { return only(l.Checkpoint(t.Context())) })
		}
	}
	return acknowledged
}

// opener returns functions that make an empty store, and that open the same one as the next process would.
func opener(t *testing.T, f folder) (create, open func() storage.Store) {
	closing := func(s storage.Store, err error) storage.Store {
		succeeds(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	create = func() storage.Store { return closing(f.createStore(t.Context())) }
	open = func() storage.Store { return closing(f.openStore(t.Context())) }
	return create, open
}

// TestFaults fails every write in turn, stored or not; on PostgreSQL, where a new log takes longer, every fourth, in each
// way another one. Then it opens the store again and examines everything.
func TestFaults(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		testFaults(t, 1, func(t *testing.T) (create, open func() storage.Store) { return opener(t, folder(t.TempDir())) })
	})
	t.Run("postgres", func(t *testing.T) {
		f := onPostgres(t, rig.Database(t))
		testFaults(t, 4, func(t *testing.T) (create, open func() storage.Store) {
			f.execPostgres(t, `DROP SCHEMA IF EXISTS jurat CASCADE`)
			return opener(t, f)
		})
	})
}

func testFaults(t *testing.T, step int, database func(*testing.T) (create, open func() storage.Store)) {
	runs := 0
	for first, mode := range []faulty{{early: true}, {stored: false}, {stored: true}, {stored: false, blind: true}, {stored: true, blind: true}} {
		for n := 1 + first%step; ; n += step {
			f := mode
			f.n = n
			t.Run(f.String(), func(t *testing.T) {
				create, reopen := database(t)
				f.Store = create()
				c := config(&f)
				c.Published = &outside{f: &f}
				var acknowledged []string
				if f.blind {
					acknowledged = workBlind(t, c, &f)
				} else {
					acknowledged = workFaulty(t, c)
				}
				f.n, f.Store = 0, reopen() // no further faults
				l := must(ledger.Open(t.Context(), c))
				wantError(t, l.CanAppend(t.Context()), nil)
				seal(t, l, "")
				wantOnce(t, l, acknowledged)
				expect.Give(l.Size(t.Context()))(t, 6)
				wantClean(t, damagesOf(t, c))
			})
			if !f.failed {
				break
			}
			runs++
		}
	}
	expect.Hold(t, runs >= 45/step, "only %d writes failed", runs)
}

// workBlind runs work. A blind store can be read again once the failed call has returned.
func workBlind(t *testing.T, c ledger.Config, f *faulty) []string {
	l := must(ledger.Create(t.Context(), unfailing(c, f)))
	var ids []string
	for i := range 5 {
		draft := act(`,"record_id":"` + numbered(i) + `"`)
		_, err := l.Seal(t.Context(), draft, actor)
		if err != nil {
			wantError(t, err, ledger.ErrUnknown)
			wantError(t, err, errFault)
			f.blind = false
			_, err = l.Seal(t.Context(), draft, actor)
			expect.Equal(t, f.stored, errors.Is(err, ledger.ErrDuplicate))
		}
		ids = append(ids, draft.RecordID)
	}
	return ids
}

// unfailing lets Create succeed, because Create does not look up a record after a failure.
func unfailing(c ledger.Config, f *faulty) ledger.Config {
	f.n += 2
	return c
}

// TestShrinks replaces the store under an open ledger by an earlier state.
func TestShrinks(t *testing.T) {
	c := config(fresh(t))
	swap := &swapped{Store: c.Store}
	c.Store = swap
	l := must(ledger.Create(t.Context(), c))
	earlier := fresh(t)
	short := config(earlier)
	sealMany(t, must(ledger.Create(t.Context(), short)), 2)
	sealMany(t, l, 3)
	swap.Store = earlier
	fails(t, ledger.ErrBehind)(l.Seal(t.Context(), act(""), actor))
	fails(t, ledger.ErrBehind)(l.Checkpoint(t.Context()))
	sealMany(t, must(ledger.Open(t.Context(), short)), 2)
	fails(t, ledger.ErrForked)(l.Seal(t.Context(), act(""), actor))
	fails(t, ledger.ErrForked)(l.Checkpoint(t.Context()))
	wantError(t, l.CanAppend(t.Context()), ledger.ErrForked)
}

type swapped struct{ storage.Store }
