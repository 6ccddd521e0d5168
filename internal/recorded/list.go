package recorded

import (
	"cmp"
	"context"
	"slices"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
	"jurat/internal/llm"
	"jurat/verify/vantage"
)

// A Selection says which recorded chains are listed.
type Selection struct {
	Agent    string                  // only this agent's; "": every agent's
	May      func(agent string) bool // whose chains the reader may see; nil: every agent's
	Limit    int                     // of chains; 0: all
	Prices   llm.Prices
	Progress func(done, total int64) // records looked at; nil: not told
}

// A List is the recorded chains of a log, the one with the newest record first.
type List struct {
	Chains []Listed `json:"chains"`
	More   bool     `json:"more"` // there are more than the limit
}

// A Listed is one chain of a list.
type Listed struct {
	Chain string `json:"chain"`
	Summary
}

// Chains lists recorded chains. It looks at each record's entry in the index, and reads the records of the chains that it lists.
func Chains(ctx context.Context, l *ledger.Ledger, s Selection) (List, error) {
	list := List{Chains: []Listed{}}
	names, err := s.names(ctx, l)
	if err != nil {
		return list, err
	}
	for _, name := range names {
		wanted, err := s.wants(ctx, l, name)
		if err != nil {
			return list, err
		}
		if !wanted {
			continue
		}
		if s.Limit > 0 && len(list.Chains) == s.Limit {
			list.More = true
			break
		}
		one := Listed{Chain: name}
		for r, err := range l.ChainRecords(ctx, name) {
			if err != nil {
				return list, err
			}
			if vantage.ByRecorder(r) {
				act := actOf(r, s.Prices)
				one.add(&act)
			}
		}
		list.Chains = append(list.Chains, one)
	}
	return list, nil
}

// names lists the chains in which a recorder saw something, the one with the newest record first.
func (s *Selection) names(ctx context.Context, l *ledger.Ledger) ([]string, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return nil, err
	}
	last := map[string]int64{}
	for b, err := range l.Briefs().List(ctx, brief.Listing{}) {
		if err != nil {
			return nil, err
		}
		if s.Progress != nil {
			s.Progress(b.Index, size)
		}
		if b.Action.Observes() && b.ChainID != "" {
			last[b.ChainID] = b.Index
		}
	}
	names := make([]string, 0, len(last))
	for name := range last {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(last[b], last[a]) })
	return names, nil
}

// wants reports whether a chain is of an agent that is asked for. Its first act says whose it is.
func (s *Selection) wants(ctx context.Context, l *ledger.Ledger, chain string) (bool, error) {
	if s.Agent == "" && s.May == nil {
		return true, nil
	}
	for r, err := range l.ChainRecords(ctx, chain) {
		if err != nil {
			return false, err
		}
		if o := r.Payload.Observed; o != nil {
			return (s.Agent == "" || o.Agent == s.Agent) && (s.May == nil || s.May(o.Agent)), nil
		}
	}
	return false, nil
}

// Agent returns whose acts a chain shows: who acted in the first record that a recorder saw. It returns ErrNone if a recorder saw none of it, and
// the errors of reading the log.
func Agent(ctx context.Context, l *ledger.Ledger, chain string) (string, error) {
	for r, err := range l.ChainRecords(ctx, chain) {
		if err != nil {
			return "", err
		}
		if o := r.Payload.Observed; o != nil {
			return o.Agent, nil
		}
	}
	return "", ErrNone
}

// ChainOf returns the chain that a record is in, by its id or digest.
func ChainOf(ctx context.Context, l *ledger.Ledger, name string) (string, *evidence.Record, error) {
	var digest evidence.Digest
	r, err := (*evidence.Record)(nil), error(nil)
	if digest.UnmarshalText([]byte(name)) == nil {
		r, err = l.RecordByDigest(ctx, digest)
	} else {
		r, err = l.Record(ctx, name)
	}
	if err != nil {
		return "", nil, err
	}
	if !vantage.ByRecorder(r) {
		return "", nil, ErrNone
	}
	return r.Payload.ChainID, r, nil
}
