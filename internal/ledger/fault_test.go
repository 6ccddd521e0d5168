package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	expect "jurat/internal/must"
	"jurat/internal/pgtest"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
		f := onPostgres(t, pgtest.Database(t))
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
	if runs < 45/step {
		t.Errorf("only %d writes failed", runs)
	}
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
			if f.stored != errors.Is(err, ledger.ErrDuplicate) {
				t.Errorf("second try after stored %v: %v", f.stored, err)
			}
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
