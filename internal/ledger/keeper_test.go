package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/ledger/memory"
	"jurat/internal/ledger/storage"
	"jurat/property"
)

// keeper is a Keeper in memory. It can fail, and reads the log at each call.
type keeper struct {
	store  storage.Store
	kept   map[evidence.Digest][]evidence.Disclosure
	early  []bool // of each call of Keep: whether the record was in the log already
	broken error
	leave  func()   // called at the end of Keep, if set
	always []string // what it has sealed apart without being told
}

func (k *keeper) Keep(ctx context.Context, r *evidence.Record) error {
	_, err := k.store.ByDigest(context.Background(), r.Digest)
	k.early = append(k.early, errors.Is(err, ledger.ErrNotFound))
	k.kept[r.Digest] = r.Disclosures // a keeper may fail when it has half done it
	if k.leave != nil {
		k.leave()
	}
	return k.broken
}

func (k *keeper) Apart(ctx context.Context, draft *evidence.Draft) ([]string, map[string]property.Kind, error) {
	return slices.Concat(draft.Apart(), k.always), draft.Provable(), nil
}

func (k *keeper) Forget(ctx context.Context, r *evidence.Record) error {
	if ctx.Err() == nil {
		delete(k.kept, r.Digest)
	}
	return ctx.Err()
}

func keeping(t *testing.T, store storage.Store) (*ledger.Ledger, *keeper) {
	t.Helper()
	k := &keeper{store: store, kept: map[evidence.Digest][]evidence.Disclosure{}}
	c := config(store)
	c.Apart = k
	return must(ledger.Create(t.Context(), c)), k
}

func TestKeptBeforeAppended(t *testing.T) {
	l, k := keeping(t, memory.New())
	r := must(l.Seal(t.Context(), act("").SealingApart("/prompt", "/response"), actor))
	if len(r.Disclosures) != 2 || !slices.Equal(k.early, []bool{true}) || len(k.kept[r.Digest]) != 2 {
		t.Errorf("disclosed %v, kept %v, before it was appended: %v", r.Disclosures, k.kept, k.early)
	}
	if seal(t, l, ""); len(k.early) != 1 {
		t.Error("the keeper was called for a record that seals nothing apart")
	}
}

// TestNothingAppendedThatIsNotKept checks that no record is appended whose values were not kept.
func TestNothingAppendedThatIsNotKept(t *testing.T) {
	l, k := keeping(t, memory.New())
	k.broken = errFault
	_, err := l.Seal(t.Context(), act("").SealingApart("/prompt"), actor)
	wantError(t, err, errFault)
	if size := must(l.Size(t.Context())); size != 0 || len(k.kept) != 0 {
		t.Errorf("%d records in the log, %v kept", size, k.kept)
	}
}

// TestForgottenThoughTheCallerHasLeft checks that the values of a record that was not appended are removed, even if
// the caller's context has ended.
func TestForgottenThoughTheCallerHasLeft(t *testing.T) {
	l, k := keeping(t, memory.New())
	ctx, leave := context.WithCancel(t.Context())
	k.leave = leave
	_, err := l.Seal(ctx, act("").SealingApart("/prompt"), actor)
	wantError(t, err, context.Canceled)
	if size := must(l.Size(t.Context())); size != 0 || len(k.kept) != 0 {
		t.Errorf("%d records in the log, %v kept", size, k.kept)
	}
}

// TestKeptAsTheLogHasIt fails the append. Values of a record that is not in the log are removed; values of a record
// that may be in it stay.
func TestKeptAsTheLogHasIt(t *testing.T) {
	for _, f := range []faulty{{early: true}, {stored: false}, {stored: true}, {stored: false, blind: true}, {stored: true, blind: true}} {
		t.Run(fmt.Sprintf("early %v, stored %v, blind %v", f.early, f.stored, f.blind), func(t *testing.T) {
			f.Store = memory.New()
			l, k := keeping(t, &f)
			f.n = 1
			_, err := l.Seal(t.Context(), act("").SealingApart("/prompt"), actor)
			if (err == nil) != (f.stored && !f.blind) {
				t.Fatal(err)
			}
			if want := f.stored || f.blind; (len(k.kept) == 1) != want {
				t.Errorf("kept %v, want some values: %v", k.kept, want)
			}
		})
	}
}

// TestSealedApartAgain seals a draft twice: the values in the log stay, the others are removed.
func TestSealedApartAgain(t *testing.T) {
	l, k := keeping(t, memory.New())
	draft := act(`,"record_id":"01890000-0000-7000-8000-000000000001"`)
	r := must(l.Seal(t.Context(), draft.SealingApart("/prompt"), actor))
	_, err := l.Seal(t.Context(), draft.SealingApart("/prompt"), actor)
	wantError(t, err, ledger.ErrDuplicate)
	if len(k.kept) != 1 || len(k.kept[r.Digest]) != 1 {
		t.Errorf("kept %v", k.kept)
	}
}

// garbled fails after it has stored, and returns damaged rows from then on.
type garbled struct{ storage.Store }

func (g garbled) Append(ctx context.Context, plan storage.Plan) error {
	return errors.Join(g.Store.Append(ctx, plan), errFault)
}

func (g garbled) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	row, err := g.Store.ByRecordID(ctx, id)
	row.Payload = append([]byte(" "), row.Payload...)
	return row, err
}

// TestKeptThoughTheLogIsDamaged checks that the values of a stored record that cannot be read are not removed.
func TestKeptThoughTheLogIsDamaged(t *testing.T) {
	l, k := keeping(t, garbled{memory.New()})
	_, err := l.Seal(t.Context(), act("").SealingApart("/prompt"), actor)
	wantError(t, err, ledger.ErrDamaged)
	if len(k.kept) != 1 {
		t.Errorf("kept %v", k.kept)
	}
}

// TestKeeperIsAsked checks that a member that must always be sealed apart is sealed apart for every caller, and is
// refused if it is open.
func TestKeeperIsAsked(t *testing.T) {
	l, k := keeping(t, memory.New())
	k.always = []string{"/prompt"}
	r := must(l.Seal(t.Context(), act("").SealingApart("/response"), actor))
	if !slices.Equal(r.Payload.SealedApart, []string{"/prompt", "/response"}) || len(k.kept[r.Digest]) != 2 {
		t.Errorf("sealed apart %v, kept %v", r.Payload.SealedApart, k.kept)
	}
	k.always = nil
	a := newOwner(t, "a", false)
	a.register(t, l)
	open := a.says(t, "")
	k.always = []string{"/prompt"}
	var field *evidence.FieldError
	if _, err := l.Accept(t.Context(), open); !errors.As(err, &field) || field.Field != "prompt" {
		t.Errorf("signed open: %v", err)
	}
	k.always = nil
	if _, err := l.Accept(t.Context(), open); err != nil {
		t.Error(err)
	}
}
