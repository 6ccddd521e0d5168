package ledger_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
)

// apart returns a record of the owner's agent. The owner has sealed its prompt apart, and alone keeps the value.
func (o *owner) apart(t *testing.T) *evidence.Record {
	t.Helper()
	now := time.Now()
	r := must(must(evidence.ParseDraft(signedDraft(o.name))).Seal(evidence.Sealing{Signers: o.signers, Time: now,
		RecordID: must(evidence.NewRecordID(now, rand.Reader)), Apart: []string{"/prompt"}, Random: rand.Reader}))
	r.Disclosures = nil
	return r
}

// meanwhile is a clock that runs another function first, once.
type meanwhile struct{ do func() }

func (m *meanwhile) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return clock{}.Stamp(context.WithoutCancel(ctx), imprint)
}

// TestAcceptApart checks that the note about a value sealed apart comes before the record. A failed Accept does not
// remove the note, because a concurrent Accept of the same record may rely on it.
func TestAcceptApart(t *testing.T) {
	store, between := fresh(t), &meanwhile{}
	k := &keeper{store: store, kept: map[evidence.Digest][]evidence.Disclosure{}}
	c := config(store)
	c.Apart, c.Stamper = k, between
	l := must(ledger.Create(t.Context(), c))
	o := newOwner(t, "a", false)
	o.register(t, l)
	r := o.apart(t)
	ctx, cancel := context.WithCancel(t.Context())
	between.do = func() {
		if _, err := l.Accept(t.Context(), r); err != nil {
			t.Error(err)
		}
		cancel()
	}
	if _, err := l.Accept(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if _, noted := k.kept[r.Digest]; !noted || !k.early[0] {
		t.Errorf("noted: %v, before the record was in the log: %v", noted, k.early)
	}
	if _, err := l.Accept(t.Context(), r); !errors.Is(err, ledger.ErrDuplicate) || len(k.kept) != 1 {
		t.Errorf("again: %v, noted: %v", err, k.kept)
	}
	k.broken = errFault
	_, err := l.Accept(t.Context(), o.apart(t))
	wantError(t, err, errFault)
	if size := must(l.Size(t.Context())); size != 2 {
		t.Errorf("%d records, want the event and one", size)
	}
}
