package ledger_test

import (
	"context"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/keys"
	"jurat/internal/ledger"
)

// TestDamagedKeyChain checks that a log with damaged key events refuses records with an error, and does not retry for
// ever.
func TestDamagedKeyChain(t *testing.T) {
	for name, statement := range map[string]string{
		"counted higher": `UPDATE records SET chain_seq = 7 WHERE idx = 1`,
		"one taken out":  `DELETE FROM records WHERE idx = 0`,
		"the order":      `UPDATE records SET chain_seq = 3 - chain_seq WHERE idx < 2`,
	} {
		t.Run(name, func(t *testing.T) {
			f := folder(t.TempDir())
			l := f.create(t)
			newOwner(t, "a", false).register(t, l)
			newOwner(t, "b", false).register(t, l)
			sealMany(t, l, 20) // not read by Open
			l.Close()
			f.rewrite(t, statement)
			c := f.config(must(f.store(t)))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			l, err := ledger.Open(ctx, c)
			if err == nil {
				_, err = l.Seal(ctx, act(""), actor)
				wantError(t, err, ledger.ErrDamaged)
				_, err = l.SealNext(ctx, operator.KeysChain, actor, func([]*evidence.Record) ([]evidence.Payload, error) {
					return []evidence.Payload{{ActionType: evidence.KeyEvent, AgentID: ledger.OperatorName}}, nil
				})
			}
			wantError(t, err, ledger.ErrDamaged)
		})
	}
}

// TestKeysOfAnotherProcess checks that a key event of one process takes effect in every other at once, even if it has
// cached the keys. Of two events that processes seal at the same time, each is judged after the one before it.
func TestKeysOfAnotherProcess(t *testing.T) {
	onBoth(t, func(t *testing.T, f folder) {
		here := f.create(t)
		elsewhere, err := f.open(t)
		if err != nil {
			t.Fatal(err)
		}
		a, b := newOwner(t, "a", false), newOwner(t, "b", false)
		says := func(l *ledger.Ledger, o *owner) error {
			_, err := l.Accept(t.Context(), o.says(t, ""))
			return err
		}
		if says(elsewhere, a) == nil { // it has read that there are no keys
			t.Error("a key was accepted that is not registered")
		}
		a.register(t, here)
		if err := says(elsewhere, a); err != nil {
			t.Error(err)
		}
		succeeds(t, tell(here, t, a.event(operator.KeyRevoked, 0, evidence.RoleAgent)))
		wantError(t, says(elsewhere, a), keys.ErrEnded)
		_, err = elsewhere.Seal(t.Context(), must(evidence.ParseDraft(signedDraft("a"))), a.signers)
		wantError(t, err, keys.ErrEnded)

		done := make(chan error)
		for _, l := range []*ledger.Ledger{here, elsewhere} {
			go func() { done <- tell(l, t, b.event(operator.KeyRegistered, 0, evidence.RoleAgent)) }()
		}
		if one, two := <-done, <-done; (one == nil) == (two == nil) {
			t.Errorf("of two registrations of one key, one must be refused: %v, %v", one, two)
		}
		for _, l := range []*ledger.Ledger{here, elsewhere} {
			if n := len(must(l.Keys(t.Context())).Active(evidence.RoleAgent, "b", time.Now())); n != 1 {
				t.Errorf("%d keys", n)
			}
			if err := says(l, b); err != nil {
				t.Error(err)
			}
		}
		f.wantSound(t)
	})
}
