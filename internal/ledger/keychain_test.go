package ledger_test

import (
	"context"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
)

// TestDamagedKeyChain: where the rows of the key events are not what was logged, the log takes nothing and says why, rather
// than look again for ever for those that it counts.
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
			sealMany(t, l, 20) // beyond what Open looks at
			l.Close()
			f.rewrite(t, statement)
			c := f.config(must(f.store(t)))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			l, err := ledger.Open(ctx, c)
			if err == nil {
				_, err = l.Seal(ctx, act(""), actor, nil)
				wantError(t, err, ledger.ErrDamaged)
				_, err = l.SealNext(ctx, evidence.KeysChain, actor, func([]*evidence.Record) ([]evidence.Payload, error) {
					return []evidence.Payload{{ActionType: evidence.KeyEvent, AgentID: ledger.OperatorName}}, nil
				})
			}
			wantError(t, err, ledger.ErrDamaged)
		})
	}
}
