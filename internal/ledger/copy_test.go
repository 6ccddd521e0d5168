package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
)

// copied makes a log with several pages of records. Some wait for time stamps, some got late ones.
func copied(t *testing.T) (*ledger.Ledger, ledger.Config) {
	t.Helper()
	store := fresh(t)
	c := config(store)
	c.Stamper, c.Settler = halfSilent{silent("one", "other")}, clock{}
	l := must(ledger.Create(t.Context(), c))
	t.Cleanup(func() { l.Close() })
	sealMany(t, l, 1100)
	pending := must(l.Waiting(t.Context(), "one", 0, 3))
	must(l.Settle(t.Context(), lateStamps(pending), actor))
	must(l.Checkpoint(t.Context()))
	sealMany(t, l, 3)
	return l, c
}

// unpacked returns rows without what each store makes of them.
func unpacked(rows []storage.Row) []storage.Row {
	for i := range rows {
		rows[i].Packed = storage.Packed{}
	}
	return rows
}

func wantSameLog(t *testing.T, from, to storage.Store) {
	t.Helper()
	ctx := t.Context()
	head := must(from.Head(ctx))
	if got := must(to.Head(ctx)); got != head {
		t.Errorf("the copy has %v, want %v", got, head)
	}
	wantSame(t, unpacked(must(from.Rows(ctx, 0, head.Size))), unpacked(must(to.Rows(ctx, 0, head.Size))))
	owing := must(from.Owing(ctx))
	if diff := cmp.Diff(owing, must(to.Owing(ctx))); diff != "" || len(owing) == 0 {
		t.Errorf("(-log +copy):\n%s", diff)
	}
	for _, o := range owing {
		wantSame(t, must(from.Waiting(ctx, o.Authority, 0, head.Size)), must(to.Waiting(ctx, o.Authority, 0, head.Size)))
	}
	if signed := must(from.Checkpoint(ctx)); must(to.Checkpoint(ctx)) != signed || signed == "" {
		t.Error("the copy has another checkpoint")
	}
}

// wantSame asks for the differences only where there are some: finding them takes far longer than comparing.
func wantSame[T any](t *testing.T, log, copied []T) {
	t.Helper()
	if reflect.DeepEqual(log, copied) {
		return
	}
	if diff := cmp.Diff(log, copied); diff != "" {
		t.Errorf("(-log +copy):\n%s", diff)
	}
}

// TestCopy copies a log between kinds of stores and back, and compares everything.
func TestCopy(t *testing.T) {
	_, c := copied(t)
	file := must(sqlite.Create(t.Context(), filepath.Join(t.TempDir(), "copy.db")))
	defer file.Close()
	back := fresh(t)
	told := int64(0)
	head, err := storage.Copy(t.Context(), c.Store, file, func(done, total int64) { told = done })
	if err != nil || told != head.Size {
		t.Fatal(told, err)
	}
	if signed := must(file.Checkpoint(t.Context())); signed != "" {
		t.Error("it is a log before it is finished")
	}
	succeeds(t, storage.FinishCopy(t.Context(), c.Store, file))
	wantSameLog(t, c.Store, file)
	must(storage.Copy(t.Context(), file, back, nil))
	succeeds(t, storage.FinishCopy(t.Context(), file, back))
	wantSameLog(t, c.Store, back)
	copied := c
	copied.Store = back
	damages, err := fsck.Run(t.Context(), examined(copied), fsck.Options{Check: genuine})
	if err != nil || len(damages) > 0 {
		t.Error(damages, err)
	}
	if err := storage.FinishCopy(t.Context(), file, back); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("finished twice: %v", err)
	}
}

// TestCopyGoesOn checks that an interrupted copy continues where it was, and refuses another log.
func TestCopyGoesOn(t *testing.T) {
	_, c := copied(t)
	to := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := storage.Copy(ctx, c.Store, to, func(int64, int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if head := must(to.Head(t.Context())); head.Size == 0 || head.Size == must(c.Store.Head(t.Context())).Size {
		t.Fatalf("it was broken off at %v", head)
	}
	must(storage.Copy(t.Context(), c.Store, to, nil))
	must(storage.Copy(t.Context(), c.Store, to, nil)) // there is nothing left to do
	succeeds(t, storage.FinishCopy(t.Context(), c.Store, to))
	wantSameLog(t, c.Store, to)

	_, other := copied(t)
	if _, err := storage.Copy(t.Context(), other.Store, to, nil); !errors.Is(err, storage.ErrOtherLog) {
		t.Errorf("over another log: %v", err)
	}
}
