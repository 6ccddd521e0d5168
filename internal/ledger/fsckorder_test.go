package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
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
	if moved != 300 {
		t.Errorf("Fsck reports %d of 300 records as misplaced", moved)
	}
}
