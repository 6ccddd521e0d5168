package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/ledger/memory"
	"jurat/internal/ledger/storage"
)

// together stamps as clock does, counts the groups, and can fail.
type together struct {
	groups []int // how many each had
	fail   error // the next group gets this, nil: a stamp
}

func (g *together) StampGroup(records []*evidence.Record) (stamps []evidence.Timestamp, err error) {
	g.groups = append(g.groups, len(records))
	if err := g.fail; err != nil {
		g.fail = nil
		return nil, err
	}
	for _, r := range records {
		imprint := r.Imprint()
		stamps = append(stamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: append([]byte("stamped "), imprint[:]...)})
	}
	return stamps, nil
}

// nobody is a stamper without authorities.
type nobody struct{}

func (nobody) Stamp(context.Context, [32]byte) (ledger.Stamped, error) { return ledger.Stamped{}, nil }

func stampedTogether(store storage.Store, g *together) ledger.Config {
	c := config(store)
	c.Stamper, c.Settler, c.Group = nobody{}, clock{}, g
	return c
}

// TestStampedTogether checks that a record without its group stamp is not stored.
func TestStampedTogether(t *testing.T) {
	for name, test := range map[string]struct {
		stamper *together
		want    error
	}{
		"stamped":     {&together{}, nil},
		"not stamped": {&together{fail: errFault}, errFault},
	} {
		t.Run(name, func(t *testing.T) {
			c := stampedTogether(memory.New(), test.stamper)
			l := must(ledger.Create(t.Context(), c))
			_, err := l.Seal(t.Context(), act(""), actor)
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if size := must(l.Size(t.Context())); (size == 1) != (test.want == nil) {
				t.Errorf("%d records", size)
			}
			wantClean(t, damagesOf(t, c))
		})
	}
}

// crowd starts many callers while a transaction is held, each when the one before it is blocked, and returns their
// results.
func crowd(t *testing.T, g *together, callers int, ctx func(i int) context.Context) (results []*error, q *queued) {
	store := &slow{Store: memory.New()}
	q = &queued{t: t, store: store, cfg: stampedTogether(store, g)}
	q.Ledger = must(ledger.Create(t.Context(), q.cfg))
	store.transactions, store.held = 0, make(chan struct{})
	for i := range callers {
		results = append(results, q.seal(ctx(i), i))
	}
	return results, q
}

// wantStamped checks that each of these records is in the log once, with exactly its own stamp.
func (q *queued) wantStamped(ids ...int) {
	q.t.Helper()
	for _, id := range ids {
		record, err := q.Record(q.t.Context(), numbered(id))
		if err != nil {
			q.t.Errorf("record %d: %v", id, err)
			continue
		}
		imprint := record.Imprint()
		if len(record.Timestamps) != 1 || !strings.HasSuffix(string(record.Timestamps[0].Token), string(imprint[:])) {
			q.t.Errorf("record %d has the stamps %v", id, record.Timestamps)
		}
	}
	if size := must(q.Size(q.t.Context())); size != int64(len(ids)) {
		q.t.Errorf("%d records, want %d", size, len(ids))
	}
	wantClean(q.t, damagesOf(q.t, q.cfg))
}

// TestGroupIsStampedOnce checks that records that arrive during a transaction are stamped together when the next one
// begins, each with its own stamp.
func TestGroupIsStampedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &together{}
		results, q := crowd(t, g, 5, func(int) context.Context { return t.Context() })
		q.letGo()
		for i, err := range results {
			if *err != nil {
				t.Errorf("record %d: %v", i, *err)
			}
		}
		if len(g.groups) != 2 || g.groups[0] != 1 || g.groups[1] != 4 {
			t.Errorf("groups of %v, want one record and then the four that came during its transaction", g.groups)
		}
		q.wantStamped(0, 1, 2, 3, 4)
	})
}

// TestGroupFailsOnce checks that a failed group stamp fails one caller only, and that the others are stamped without it.
func TestGroupFailsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &together{}
		results, q := crowd(t, g, 4, func(int) context.Context { return t.Context() })
		g.fail = errFault
		q.letGo()
		var stored []int
		for i, err := range results {
			if *err == nil {
				stored = append(stored, i)
			} else if !errors.Is(*err, errFault) {
				t.Errorf("record %d: %v", i, *err)
			}
		}
		if len(stored) != 3 {
			t.Errorf("%d of 4 are stored", len(stored))
		}
		q.wantStamped(stored...)
	})
}

// TestGoneBeforeTheGroup checks that a caller that leaves before the group is stamped has no stamp and no record in the
// log.
func TestGoneBeforeTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &together{}
		ctx, cancel := context.WithCancel(t.Context())
		results, q := crowd(t, g, 4, func(i int) context.Context { return map[bool]context.Context{true: ctx, false: t.Context()}[i == 2] })
		cancel()
		synctest.Wait()
		wantError(t, *results[2], context.Canceled)
		q.letGo()
		if len(g.groups) != 2 || g.groups[1] != 2 {
			t.Errorf("groups of %v", g.groups)
		}
		q.wantStamped(0, 1, 3)
	})
}
