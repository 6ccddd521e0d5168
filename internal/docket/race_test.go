package docket_test

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"jurat/internal/docket"
	"jurat/internal/ledger"
	"jurat/internal/ledger/memory"
	"jurat/jurattest"
	"jurat/timestamp"
)

// meanwhile is a store in which something happens right after somebody has read that nothing more was said in trials.
type meanwhile struct {
	ledger.Store
	happens atomic.Pointer[func()]
}

func (m *meanwhile) InTrials(ctx context.Context, from, n int64) ([]ledger.Row, error) {
	rows, err := m.Store.InTrials(ctx, from, n)
	if f := m.happens.Load(); f != nil && len(rows) == 0 && m.happens.CompareAndSwap(f, nil) {
		(*f)()
	}
	return rows, err
}

// TestStoppedWhileRead: a trial that was submitted and stopped elsewhere between two looks at the log is no damage.
func TestStoppedWhileRead(t *testing.T) {
	h := jurattest.New(t)
	private, public, err := note.GenerateKey(rand.Reader, jurattest.Origin)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	store := &meanwhile{Store: memory.New()}
	h.Ledger, err = ledger.Create(t.Context(), ledger.Config{Store: store, Signer: signer, Verifier: verifier, Stamper: stamped{timestamp.NewMock()}, Now: h.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Ledger.Close() })
	one, other := two(t, h, &bench{})
	id := ""
	happens := func() {
		id = submit(t, other)
		if err := other.Cancel(t.Context(), id, "Reika Mori", "submitted by mistake"); err != nil {
			t.Error(err)
		}
	}
	store.happens.Store(&happens)
	if _, _, err := one.Entries(t.Context(), "", 10, nil); err != nil {
		t.Error(err)
	}
	if e := entry(t, one, id); e.State != docket.Stopped {
		t.Errorf("%+v", e)
	}
}

type stamped struct{ *timestamp.Authority }

func (s stamped) Stamp(_ context.Context, imprint [32]byte) (ledger.Stamped, error) {
	token, err := s.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
	return ledger.Stamped{Tokens: [][]byte{token}}, err
}
