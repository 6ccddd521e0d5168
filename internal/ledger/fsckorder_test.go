package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
	expect "jurat/internal/must"
)

// TestFsckInOrder checks that damages are reported in log order, on any number of cores and however long each record
// takes.
func TestFsckInOrder(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	sealMany(t, l, 500)
	must(l.Checkpoint(t.Context()))
	l.Close()
	f.rewrite(t, `UPDATE records SET packed = x'7b7d' WHERE idx % 7 = 3;
		UPDATE hashes SET hash = zeroblob(32) WHERE idx % 40 = 9;
		DELETE FROM records WHERE idx IN (64, 65, 66, 499)`)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []fsck.Damage
	for _, cores := range []int{1, 2, 8, 8, 8} {
		runtime.GOMAXPROCS(cores)
		store := must(f.store(t))
		found := must(fsck.Run(t.Context(), examined(f.config(store)), fsck.Options{Check: func(r *evidence.Record, waits bool) error {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			return genuine(r, waits)
		}}))
		if first == nil {
			first = found
		}
		if !slices.Equal(found, first) {
			t.Errorf("%d cores: %d damages, which differ from the %d that one core finds", cores, len(found), len(first))
		}
	}
	if len(first) < 71+4 {
		t.Errorf("only %d damages", len(first))
	}
	last := int64(-1)
	for _, d := range first {
		if d.Kind != fsck.DamageUnreadable && d.Kind != fsck.DamageMissingRow {
			continue
		}
		if d.Index <= last {
			t.Errorf("%v is named after one at %d", d, last)
		}
		last = d.Index
	}
}

// watched counts rows that were read but not merged yet.
type watched struct {
	storage.Store
	read, most atomic.Int64
	taken      atomic.Int64
	fail       int64 // reading this row fails
	returned   atomic.Bool
	late       atomic.Bool // it was read after Fsck had returned
}

func (w *watched) Rows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	if w.returned.Load() {
		w.late.Store(true)
	}
	if w.fail > 0 && from <= w.fail && w.fail < from+n {
		return nil, errFault
	}
	ahead := w.read.Add(n) - w.taken.Load()
	for most := w.most.Load(); ahead > most && !w.most.CompareAndSwap(most, ahead); most = w.most.Load() {
	}
	return w.Store.Rows(ctx, from, n)
}

// TestFsckReadsNotFarAhead checks that one slow record does not make Fsck keep everything behind it in memory.
func TestFsckReadsNotFarAhead(t *testing.T) {
	l, c := alone(t)
	sealMany(t, l, 2000)
	w := &watched{Store: c.Store}
	c.Store = w
	var firstID string
	for r := range l.Records(t.Context(), 0) {
		firstID = r.Payload.RecordID
		break
	}
	found, err := fsck.Run(t.Context(), examined(c), fsck.Options{
		Progress: func(done, _ int64) { w.taken.Store(done) },
		Check: func(r *evidence.Record, _ bool) error {
			if r.Payload.RecordID == firstID {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}})
	if err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	// At most as many pages as there are cores are being examined, as many wait, and one is being handed over on each
	// side.
	if bound := int64(32 * (2*runtime.GOMAXPROCS(0) + 2)); w.most.Load() > bound {
		t.Errorf("%d rows were read ahead, want at most %d", w.most.Load(), bound)
	}
}

// TestFsckBrokenOff checks that no goroutine reads the store after Fsck has returned, for whatever reason.
func TestFsckBrokenOff(t *testing.T) {
	l, c := alone(t)
	sealMany(t, l, 1000)
	for name, want := range map[string]error{"cancelled": context.Canceled, "cannot be read": errFault} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &watched{Store: c.Store}
			if want == errFault {
				w.fail = 500
			}
			broken := c
			broken.Store = w
			_, err := fsck.Run(ctx, examined(broken), fsck.Options{Progress: func(done, _ int64) {
				if done >= 300 && want == context.Canceled {
					cancel()
				}
			}})
			w.returned.Store(true)
			if !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
			time.Sleep(20 * time.Millisecond)
			if w.late.Load() {
				t.Error("the store was read after Fsck returned")
			}
		})
	}
}

// TestFsckManyDamages checks that the time for many damages grows with their number, not with its square.
func TestFsckManyDamages(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	sealMany(t, l, 300)
	l.Close()
	// Every record moves to its neighbour's place.
	f.rewrite(t, `UPDATE records SET idx = idx + 1000000; UPDATE timestamps SET idx = idx + 1000000;
		UPDATE records SET idx = (idx - 1000000) + 1 - 2 * ((idx - 1000000) % 2);
		UPDATE timestamps SET idx = (idx - 1000000) + 1 - 2 * ((idx - 1000000) % 2);
		UPDATE tags SET idx = idx + 1000000; UPDATE tags SET idx = (idx - 1000000) + 1 - 2 * ((idx - 1000000) % 2)`)
	moved := 0
	for _, d := range f.fsck(t) {
		if d.Kind == fsck.DamageMoved && d.Detail == fmt.Sprintf("it was logged at %d", d.Index^1) {
			moved++
		}
	}
	expect.Equal(t, moved, 300)
}

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
	expect.Equal(t, cmp.Diff(log, copied), "")
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
	expect.Equal(t, must(file.Checkpoint(t.Context())), "")
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
	wantError(t, storage.FinishCopy(t.Context(), file, back), ledger.ErrConflict)
}

// TestCopyGoesOn checks that an interrupted copy continues where it was, and refuses another log.
func TestCopyGoesOn(t *testing.T) {
	_, c := copied(t)
	to := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	fails(t, context.Canceled)(storage.Copy(ctx, c.Store, to, func(int64, int64) { cancel() }))
	if head := must(to.Head(t.Context())); head.Size == 0 || head.Size == must(c.Store.Head(t.Context())).Size {
		t.Fatalf("it was broken off at %v", head)
	}
	must(storage.Copy(t.Context(), c.Store, to, nil))
	must(storage.Copy(t.Context(), c.Store, to, nil)) // there is nothing left to do
	succeeds(t, storage.FinishCopy(t.Context(), c.Store, to))
	wantSameLog(t, c.Store, to)

	_, other := copied(t)
	fails(t, storage.ErrOtherLog)(storage.Copy(t.Context(), other.Store, to, nil))
}
