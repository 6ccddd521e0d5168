package links

import (
	"context"
	"fmt"

	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

// admissionPage is how many acts of the operator are read at once.
const admissionPage = 32

// admissions are the operator's acts that admit agents to chains. They are safe for concurrent use.
type admissions struct {
	store storage.Records

	turn storage.Lock    // held while the members below are read or changed
	next int64           // the first index in the log that was not read yet
	of   map[string]bool // by chain and agent
}

func admissionOf(chain, agent string) string { return chain + "\x00" + agent } // no name contains a NUL

// has reports whether the operator has admitted an agent to a chain.
func (a *admissions) has(ctx context.Context, chain, agent string) (bool, error) {
	if err := a.turn.Acquire(ctx); err != nil {
		return false, err
	}
	defer a.turn.Release()
	for {
		rows, err := a.store.InChain(ctx, operator.AccessChain, a.next, admissionPage)
		if err != nil {
			return false, fmt.Errorf("reading the admissions to chain %q: %w", chain, err)
		}
		for i := range rows {
			if err := a.take(&rows[i]); err != nil {
				return false, err
			}
		}
		if len(rows) == 0 {
			return a.of[admissionOf(chain, agent)], nil
		}
	}
}

func (a *admissions) take(row *storage.Row) error {
	if row.Entry == nil {
		record, err := row.Record()
		if err != nil {
			return err
		}
		event, err := operator.ReadAccessEvent(&record.Payload)
		if err != nil {
			return fmt.Errorf("record %s: %w", row.RecordID, err)
		}
		if event.Event == operator.AccessAdmitted {
			a.of[admissionOf(event.Chain, event.Name)] = true
		}
	}
	a.next = row.Index + 1
	return nil
}
