package trial

import (
	"context"
	"strings"
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
}

// ListUnfinished reads the whole log for trials that have no closing, in the order in which they began.
func ListUnfinished(ctx context.Context, l *ledger.Ledger) ([]Unfinished, error) {
	open := map[string]*Unfinished{}
	var order []string
	for r, err := range l.Records(ctx, 0) {
		if err != nil {
			return nil, err
		}
		p := &r.Payload
		if !strings.HasPrefix(p.ChainID, evidence.TrialPrefix) {
			continue
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
	list := make([]Unfinished, 0, len(open))
	for _, id := range order {
		if u := open[id]; u != nil {
			list = append(list, *u)
			delete(open, id) // should it have begun twice
		}
	}
	return list, nil
}
