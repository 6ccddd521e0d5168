package trial

import (
	"context"
	"fmt"
	"time"

	"jurat/evidence"
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
		payloads, next, err := l.InTrials(ctx, from)
		if err != nil {
			return nil, err
		}
		if len(payloads) == 0 {
			break
		}
		for _, doc := range payloads {
			p, err := evidence.ParsePayload(doc)
			if err != nil {
				return nil, fmt.Errorf("%w: what was said in a trial: %w", ledger.ErrDamaged, err)
			}
			u := open[p.ChainID]
			switch {
			case p.ActionType == evidence.Submission:
				open[p.ChainID] = &Unfinished{ID: p.ChainID, Case: p.Case, Acts: 1, From: p.Time(), Last: p.Time()}
				order = append(order, p.ChainID)
			case p.ActionType == evidence.TrialClosing:
				delete(open, p.ChainID)
			case u != nil:
				u.Acts, u.Last = u.Acts+1, p.Time()
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
		changes, next, err := l.InChain(ctx, evidence.TrialsChain, from)
		if err != nil || len(changes) == 0 {
			return err
		}
		for _, r := range changes {
			e, err := evidence.ReadTrialEvent(&r.Payload)
			if err != nil {
				return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
			}
			if u := open[e.Trial]; u != nil {
				if u.Cancelled = ""; e.Event == evidence.TrialCancelled {
					u.Cancelled = e.Reason
				}
			}
		}
		from = next
	}
}
