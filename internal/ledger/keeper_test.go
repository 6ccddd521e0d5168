package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	expect "jurat/internal/must"
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
	return keepingOn(t, config(store))
}

func keepingOn(t *testing.T, c ledger.Config) (*ledger.Ledger, *keeper) {
	t.Helper()
	k := &keeper{store: c.Store, kept: map[evidence.Digest][]evidence.Disclosure{}}
	c.Apart = k
	return must(ledger.Create(t.Context(), c)), k
}

var configurations = map[string]func(storage.Store) ledger.Config{"kept before": config, "kept beside": onOneDisk}

// onOneDisk is a log beside whose transactions values are kept.
func onOneDisk(store storage.Store) ledger.Config {
	c := config(store)
	c.OneDisk = true
	return c
}

func TestKeptBeforeAppended(t *testing.T) {
	l, k := keeping(t, fresh(t))
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
	for name, configured := range configurations {
		t.Run(name, func(t *testing.T) {
			l, k := keepingOn(t, configured(fresh(t)))
			k.broken = errFault
			fails(t, errFault)(l.Seal(t.Context(), act("").SealingApart("/prompt"), actor))
			if size := must(l.Size(t.Context())); size != 0 || len(k.kept) != 0 {
				t.Errorf("%d records in the log, %v kept", size, k.kept)
			}
			k.broken = nil
			must(l.Seal(t.Context(), act("").SealingApart("/prompt"), actor))
			if size := must(l.Size(t.Context())); size != 1 || len(k.kept) != 1 {
				t.Errorf("%d records in the log, %v kept", size, k.kept)
			}
		})
	}
}

// TestNobodyWaitsForAKeeperThatPanics: the transaction that waits for it ends.
func TestNobodyWaitsForAKeeperThatPanics(t *testing.T) {
	l, k := keepingOn(t, onOneDisk(fresh(t)))
	k.leave = func() { panic(errFault) }
	fails(t, errFault)(l.Seal(t.Context(), act("").SealingApart("/prompt"), actor))
	k.leave = nil
	must(l.Seal(t.Context(), act("").SealingApart("/prompt"), actor))
	expect.Equal(t, must(l.Size(t.Context())), 1)
}

// told is a store that tells when a transaction is about to commit.
type told struct {
	storage.Store
	prepared chan struct{}
}

func (s told) Append(ctx context.Context, plan storage.Plan) error {
	return s.Store.Append(ctx, func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := plan(head, log)
		before := batch.Before
		batch.Before = func() error {
			s.prepared <- struct{}{}
			if before == nil {
				return nil
			}
			return before()
		}
		return batch, err
	})
}

// TestKeptBesideTheTransaction: the transaction of a lone caller is prepared while its values are kept. A crash at that
// moment leaves no record.
func TestKeptBesideTheTransaction(t *testing.T) {
	f, copied := folder(t.TempDir()), folder(t.TempDir()+"/copy")
	store := told{must(f.createStore(t.Context())), make(chan struct{}, 1)}
	c := onOneDisk(store)
	c.Published = f.published()
	l, k := keepingOn(t, c)
	k.leave = func() {
		<-store.prepared
		wantError(t, os.CopyFS(string(copied), os.DirFS(string(f))), nil)
	}
	r := must(l.Seal(t.Context(), act("").SealingApart("/prompt"), actor))
	if !slices.Equal(k.early, []bool{true}) || len(k.kept[r.Digest]) != 1 || must(l.Size(t.Context())) != 1 {
		t.Errorf("before the record: %v, kept %v", k.early, k.kept)
	}
	wantError(t, l.Close(), nil)
	if has(t, copied, r.Payload.RecordID) || !has(t, f, r.Payload.RecordID) {
		t.Error("the record is in the log before its values are kept, or never")
	}
	copied.goesOn(t, nil)
}

// A signing is a signer that calls first before it signs.
type signing struct {
	evidence.Signer
	first func() error
}

func (s signing) Sign(payload []byte) ([]byte, error) {
	if err := s.first(); err != nil {
		return nil, err
	}
	return s.Signer.Sign(payload)
}

// A stamping is a stamper that calls first before it stamps.
type stamping struct{ first func() error }

func (s stamping) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	if err := s.first(); err != nil {
		return ledger.Stamped{}, err
	}
	return clock{}.Stamp(ctx, imprint)
}

// TestKeptWhileSigned: the values of a lone caller are kept while its record is signed and stamped. If that fails, they are removed, and
// nothing is in the log.
func TestKeptWhileSigned(t *testing.T) {
	good := func() error { return nil }
	fails := func() error { return errFault }
	for name, test := range map[string]struct{ sign, stamp func() error }{"both": {good, good}, "not signed": {fails, good}, "not stamped": {good, fails}} {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{})
			c := onOneDisk(fresh(t))
			c.Stamper = stamping{test.stamp}
			l, k := keepingOn(t, c)
			k.leave = func() { close(began) }
			_, err := l.Seal(t.Context(), act("").SealingApart("/prompt"), []evidence.Signer{signing{actor[0], func() error { <-began; return test.sign() }}})
			if name == "both" {
				if err != nil || len(k.kept) != 1 || must(l.Size(t.Context())) != 1 {
					t.Errorf("%v, kept %v", err, k.kept)
				}
				return
			}
			wantError(t, err, errFault)
			if len(k.kept) != 0 || must(l.Size(t.Context())) != 0 {
				t.Errorf("kept %v", k.kept)
			}
		})
	}
}

// TestAloneAfterAPanic: a caller whose signer panics is not counted for ever as one that keeps values: the next one is alone.
func TestAloneAfterAPanic(t *testing.T) {
	store := told{fresh(t), make(chan struct{}, 1)}
	l, k := keepingOn(t, onOneDisk(store))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the signer did not panic")
			}
		}()
		_, _ = l.Seal(t.Context(), act("").SealingApart("/prompt"), []evidence.Signer{signing{actor[0], func() error { panic(errFault) }}})
	}()
	alone := false
	k.leave = func() {
		select {
		case <-store.prepared:
			alone = true
		case <-time.After(time.Minute): // its transaction waits for this
		}
	}
	must(l.Seal(t.Context(), act("").SealingApart("/prompt"), actor))
	if !alone {
		t.Error("its values were kept before its transaction was prepared")
	}
}

// twoAtOnce keeps the values of a first record while a second one is sealed, whose values it does not keep.
type twoAtOnce struct {
	keeper
	calls atomic.Int64
	first func() // called while the first one is kept
	both  chan struct{}
}

func (k *twoAtOnce) Keep(context.Context, *evidence.Record) error {
	if k.calls.Add(1) > 1 {
		close(k.both)
		return errFault
	}
	k.first()
	<-k.both
	return nil
}

// TestManyKeepFirst: while a caller keeps its values, no transaction of another is prepared before its values are kept.
func TestManyKeepFirst(t *testing.T) {
	store := told{fresh(t), make(chan struct{}, 2)}
	k, second := &twoAtOnce{both: make(chan struct{})}, make(chan error, 1)
	c := onOneDisk(store)
	c.Apart = k
	l := must(ledger.Create(t.Context(), c))
	k.first = func() {
		go func() {
			_, err := l.Seal(context.WithoutCancel(t.Context()), act("").SealingApart("/prompt"), actor)
			second <- err
		}()
	}
	must(l.Seal(t.Context(), act("").SealingApart("/prompt"), actor))
	wantError(t, <-second, errFault)
	if n := len(store.prepared); n != 1 || must(l.Size(t.Context())) != 1 {
		t.Errorf("%d transactions were prepared", n)
	}
}

// TestForgottenThoughTheCallerHasLeft checks that the values of a record that was not appended are removed, even if
// the caller's context has ended.
func TestForgottenThoughTheCallerHasLeft(t *testing.T) {
	l, k := keeping(t, fresh(t))
	ctx, leave := context.WithCancel(t.Context())
	k.leave = leave
	fails(t, context.Canceled)(l.Seal(ctx, act("").SealingApart("/prompt"), actor))
	if size := must(l.Size(t.Context())); size != 0 || len(k.kept) != 0 {
		t.Errorf("%d records in the log, %v kept", size, k.kept)
	}
}

// TestKeptAsTheLogHasIt fails the append. Values of a record that is not in the log are removed; values of a record
// that may be in it stay.
func TestKeptAsTheLogHasIt(t *testing.T) {
	for name, configured := range configurations {
		for _, f := range []faulty{{early: true}, {stored: false}, {stored: true}, {stored: false, blind: true}, {stored: true, blind: true}} {
			t.Run(fmt.Sprintf("%s, early %v, stored %v, blind %v", name, f.early, f.stored, f.blind), func(t *testing.T) {
				f.Store = fresh(t)
				l, k := keepingOn(t, configured(&f))
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
}

// TestSealedApartAgain seals a draft twice: the values in the log stay, the others are removed.
func TestSealedApartAgain(t *testing.T) {
	l, k := keeping(t, fresh(t))
	draft := act(`,"record_id":"01890000-0000-7000-8000-000000000001"`)
	r := must(l.Seal(t.Context(), draft.SealingApart("/prompt"), actor))
	fails(t, ledger.ErrDuplicate)(l.Seal(t.Context(), draft.SealingApart("/prompt"), actor))
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
	l, k := keeping(t, garbled{fresh(t)})
	fails(t, ledger.ErrDamaged)(l.Seal(t.Context(), act("").SealingApart("/prompt"), actor))
	if len(k.kept) != 1 {
		t.Errorf("kept %v", k.kept)
	}
}

// TestKeeperIsAsked checks that a member that must always be sealed apart is sealed apart for every caller, and is
// refused if it is open.
func TestKeeperIsAsked(t *testing.T) {
	l, k := keeping(t, fresh(t))
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
	fails(t, nil)(l.Accept(t.Context(), open))
}
