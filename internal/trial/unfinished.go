package trial

import (
	"context"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
)

// An Unfinished trial has no closing in the log: it is under way, or was broken off.
type Unfinished struct {
	ID   string          `json:"id"`
	Case evidence.Digest `json:"case"`
	Acts int             `json:"acts"`
	From time.Time       `json:"from"` // what its first act claims
	Last time.Time       `json:"last"` // what its last act claims

	Cancelled string `json:"cancelled,omitzero"` // why somebody has stopped it; "": nobody has
}

// ListUnfinished reads what was said in trials for those that have no closing, in the order in which they began.
func ListUnfinished(ctx context.Context, l *ledger.Ledger) ([]Unfinished, error) {
	open := map[string]*Unfinished{}
	var order []string
	for from := int64(0); ; {
		said, next, err := l.Briefs().InTrials(ctx, from)
		if err != nil {
			return nil, err
		}
		if len(said) == 0 {
			break
		}
		for _, b := range said {
			u := open[b.ChainID]
			switch {
			case b.Action == evidence.Submission:
				open[b.ChainID] = &Unfinished{ID: b.ChainID, Case: b.Case, Acts: 1, From: b.Time(), Last: b.Time()}
				order = append(order, b.ChainID)
			case b.Action == evidence.TrialClosing:
				delete(open, b.ChainID)
			case u != nil:
				u.Acts, u.Last = u.Acts+1, b.Time()
			}
		}
		from = next
	}
	if err := noteCancelled(ctx, l, open); err != nil {
		return nil, err
	}
	list := make([]Unfinished, 0, len(open))
	for _, id := range order {
		if u := open[id]; u != nil {
			list = append(list, *u)
			delete(open, id) // should it have begun twice
		}
	}
	return list, nil
}

func noteCancelled(ctx context.Context, l *ledger.Ledger, open map[string]*Unfinished) error {
	for from := int64(0); ; {
		changes, next, err := l.InChain(ctx, operator.TrialsChain, from)
		if err != nil || len(changes) == 0 {
			return err
		}
		for _, r := range changes {
			e, err := operator.ReadTrialEvent(&r.Payload)
			if err != nil {
				return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
			}
			if u := open[e.Trial]; u != nil {
				if u.Cancelled = ""; e.Event == operator.TrialCancelled {
					u.Cancelled = e.Reason
				}
			}
		}
		from = next
	}
}
