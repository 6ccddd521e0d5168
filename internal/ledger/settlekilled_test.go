package ledger_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	sqlitedriver "modernc.org/sqlite"

	"jurat/internal/ledger"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/pgtest"
)

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
	for _, after := range []string{"INSERT ON records", "INSERT ON hashes", "DELETE ON waiting", "INSERT ON timestamps", "UPDATE ON head"} {
		t.Run(after, func(t *testing.T) {
			f := folder(t.TempDir())
			f.create(t).Close()
			l := f.with(t, silent("one"))
			sealMany(t, l, 3)
			f.exec(t, `CREATE TRIGGER dies AFTER `+after+` BEGIN SELECT die(); END`)
			child := exec.CommandContext(t.Context(), must(os.Executable()))
			child.Env = append(os.Environ(), settlerFolder+"="+string(f))
			if out, err := child.CombinedOutput(); err == nil || child.ProcessState.Exited() {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			f.exec(t, `DROP TRIGGER dies`)
			f.wantSound(t)
			l = f.with(t, silent("one"))
			wantOwing(t, l, "one 3")
			if acts := lateActs(t, l); len(acts) != 0 {
				t.Errorf("%d acts", len(acts))
			}
			if n, err := l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 10))), actor); n != 3 || err != nil {
				t.Errorf("settled %d, %v", n, err)
			}
			wantOwing(t, l, "")
			f.wantSound(t)
		})
	}
}

// TestCutOffWhileSettling ends the connection to PostgreSQL inside the settling transaction, after each of its
// writes. Everything still waits, no act says otherwise, and the next run settles it.
func TestCutOffWhileSettling(t *testing.T) {
	f := onPostgres(t, pgtest.Database(t))
	f.create(t).Close()
	l := f.with(t, silent("one"))
	sealMany(t, l, 3)
	for _, after := range []string{"DELETE ON jurat.waiting", "INSERT ON jurat.timestamps", "INSERT ON jurat.records"} {
		f.execPostgres(t, `CREATE FUNCTION jurat.die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`,
			`CREATE TRIGGER dies AFTER `+after+` EXECUTE FUNCTION jurat.die()`)
		if n, err := l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 10))), actor); err == nil {
			t.Errorf("%s: settled %d", after, n)
		}
		f.execPostgres(t, `DROP FUNCTION jurat.die CASCADE`)
		wantOwing(t, l, "one 3")
		if acts := lateActs(t, l); len(acts) != 0 {
			t.Errorf("%s: %d acts", after, len(acts))
		}
	}
	if n, err := l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 10))), actor); n != 3 || err != nil {
		t.Errorf("settled %d, %v", n, err)
	}
	wantOwing(t, l, "")
	f.wantSound(t)
}

// execPostgres runs statements as the superuser.
func (f folder) execPostgres(t *testing.T, statements ...string) {
	t.Helper()
	pool := must(pgxpool.New(t.Context(), pgtest.Admin(t, must(f.url()))))
	defer pool.Close()
	for _, statement := range statements {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
