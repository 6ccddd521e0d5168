package acts

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	bodies "jurat/evidence/operator"
	"jurat/internal/ledger"
)

// Compared seals what came of a comparison of recorded calls with a provider's account of usage. It is an act of the operator, because no recorder saw the account. file is the account as a
// JSON string, to be sealed apart; nil: the act has its digest alone. The errors are those of the ledger, and that of an act that its readers would refuse.
func (a *Acts) Compared(ctx context.Context, body bodies.UsageComparisonBody, file jsontext.Value) (*evidence.Record, error) {
	act, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.UsageComparison, Timestamp: evidence.FormatTime(a.config.Now()), Context: file}, body)
	if err != nil {
		return nil, fmt.Errorf("this cannot be stated: %w", err)
	}
	var apart []string
	if file != nil {
		apart = []string{"/context"}
	}
	return ledger.Operator{Ledger: a.config.Ledger, Keys: a.config.Keys}.Seal(ctx, act, apart...)
}
