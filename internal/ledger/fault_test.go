package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"jurat/internal/ledger"
	"jurat/internal/ledger/memory"
)

var errFault = errors.New("fault")

// faulty fails at the n-th write, before or after it is done, or, where early, before it begins. Where blind it cannot be
// read either after that.
type faulty struct {
	ledger.Store
	n      int
	early  bool
	stored bool
	blind  bool
	failed bool
}

func (f *faulty) fails() bool {
	f.n--
	f.failed = f.failed || f.n == 0
	return f.n == 0
}

func (f *faulty) write(do func() error) error {
	switch {
	case !f.fails():
		return do()
	case f.stored:
		return errors.Join(do(), errFault)
	default:
		return errFault
	}
}

func (f *faulty) Append(ctx context.Context, plan ledger.Plan) error {
	fails := f.fails()
	if fails && f.early {
		return errFault
	}
	err := f.Store.Append(ctx, func(head ledger.Head, log ledger.Committed) (ledger.Batch, error) {
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

func (f *faulty) ByRecordID(ctx context.Context, id string) (ledger.Row, error) {
	if f.blind && f.failed {
		return ledger.Row{}, errFault
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

// work is what every run does. It tries each step again once, as a caller would, and returns what was acknowledged.
func work(t *testing.T, c ledger.Config) (acknowledged []string) {
	l, err := ledger.Create(t.Context(), c)
	if err != nil {
		if l, err = ledger.Create(t.Context(), c); errors.Is(err, ledger.ErrExists) {
			l, err = ledger.Open(t.Context(), c)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		draft := act(fmt.Sprintf(`,"record_id":"01890000-0000-7000-8000-%012d"`, i))
		id := draft.RecordID
		_, err := l.Seal(t.Context(), draft, actor, nil)
		if err != nil {
			wantError(t, err, errFault)
			_, err = l.Seal(t.Context(), draft, actor, nil)
		}
		if err != nil && !errors.Is(err, ledger.ErrDuplicate) {
			t.Errorf("second try: %v", err)
		}
		acknowledged = append(acknowledged, id)
		if i%2 == 0 {
			if _, err := l.Checkpoint(t.Context()); err != nil {
				wantError(t, err, errFault)
				must(l.Checkpoint(t.Context()))
			}
		}
	}
	return acknowledged
}

// TestFaults fails every write in turn, stored or not, and then looks at everything.
func TestFaults(t *testing.T) {
	runs := 0
	for _, mode := range []faulty{{early: true}, {stored: false}, {stored: true}, {stored: false, blind: true}, {stored: true, blind: true}} {
		for n := 1; ; n++ {
			f := mode
			f.Store, f.n = memory.New(), n
			c := config(&f)
			c.Published = &outside{f: &f}
			name := fmt.Sprintf("write %d, early %v, stored %v, blind %v", n, f.early, f.stored, f.blind)
			t.Run(name, func(t *testing.T) {
				acknowledged := workBlind(t, c, &f)
				f.n = 0 // no further faults
				l, err := ledger.Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if err := l.CanAppend(t.Context()); err != nil {
					t.Error(err)
				}
				seal(t, l, "")
				wantOnce(t, l, acknowledged)
				if size, err := l.Size(t.Context()); size != 6 || err != nil {
					t.Errorf("%d records, %v; want 6", size, err)
				}
				wantClean(t, fsck(t, c))
			})
			if !f.failed {
				break
			}
			runs++
		}
	}
	if runs < 40 {
		t.Errorf("only %d writes failed", runs)
	}
}

// workBlind works; where the store is blind it sees again when the failed call is over.
func workBlind(t *testing.T, c ledger.Config, f *faulty) []string {
	if !f.blind {
		return work(t, c)
	}
	l := must(ledger.Create(t.Context(), unfailing(c, f)))
	var ids []string
	for i := range 5 {
		draft := act(fmt.Sprintf(`,"record_id":"01890000-0000-7000-8000-%012d"`, i))
		_, err := l.Seal(t.Context(), draft, actor, nil)
		if err != nil {
			wantError(t, err, ledger.ErrUnknown)
			wantError(t, err, errFault)
			f.blind = false
			_, err = l.Seal(t.Context(), draft, actor, nil)
			if f.stored != errors.Is(err, ledger.ErrDuplicate) {
				t.Errorf("second try after stored %v: %v", f.stored, err)
			}
		}
		ids = append(ids, draft.RecordID)
	}
	return ids
}

// unfailing lets Create succeed: it does not look a record up.
func unfailing(c ledger.Config, f *faulty) ledger.Config {
	f.n += 2
	return c
}

// TestShrinks replaces the store under an open ledger by an earlier state of it.
func TestShrinks(t *testing.T) {
	c := config(memory.New())
	swap := &swapped{Store: c.Store}
	c.Store = swap
	l := must(ledger.Create(t.Context(), c))
	earlier := memory.New()
	short := config(earlier)
	sealMany(t, must(ledger.Create(t.Context(), short)), 2)
	sealMany(t, l, 3)
	swap.Store = earlier
	_, err := l.Seal(t.Context(), act(""), actor, nil)
	wantError(t, err, ledger.ErrBehind)
	_, err = l.Checkpoint(t.Context())
	wantError(t, err, ledger.ErrBehind)
	sealMany(t, must(ledger.Open(t.Context(), short)), 2)
	_, err = l.Seal(t.Context(), act(""), actor, nil)
	wantError(t, err, ledger.ErrForked)
	_, err = l.Checkpoint(t.Context())
	wantError(t, err, ledger.ErrForked)
	wantError(t, l.CanAppend(t.Context()), ledger.ErrForked)
}

type swapped struct{ ledger.Store }
