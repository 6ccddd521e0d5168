package docket

import (
	"context"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/find"
	"jurat/internal/trial"
	"jurat/verify/trust"
)

// A Reader is who searches, and what they may read.
type Reader struct {
	Scope   find.Scope
	Visible func(*trial.Summary) bool                  // the trials that lists show them; nil: all
	MayRead func(r *evidence.Record) (bool, error)     // asked about each hit; nil: all
	States  func([]trial.Summary) ([]api.State, error) // of trials, as the queue has them; nil: not known
}

// Trials answers a search for trials. get returns its parameters. Its errors are FieldErrors, and those of the index and
// of the log.
func (k *Keeper) Trials(ctx context.Context, get func(string) string, t *trial.Index, by *Reader) (list api.TrialList, err error) {
	q, err := find.ReadTrials(get)
	if err != nil {
		return list, err
	}
	var x *find.Index
	var state api.IndexState
	if q.NeedsIndex() {
		if x, state, err = k.Ready(ctx); err != nil {
			return api.TrialList{}, err
		}
	}
	found, err := q.Trials(ctx, t, x, by.Visible)
	if err != nil {
		return api.TrialList{}, err
	}
	list = List(found)
	list.Index = state
	return list, by.mark(list.Trials, found.Trials)
}

// mark notes the states of trials in their lines.
func (by *Reader) mark(lines []api.TrialLine, trials []trial.Summary) error {
	if by.States == nil || len(trials) == 0 {
		return nil
	}
	states, err := by.States(trials)
	for i := range states {
		lines[i].State = states[i]
	}
	return err
}

// Records answers a search for records. Its errors are those of Trials.
func (k *Keeper) Records(ctx context.Context, get func(string) string, t *trial.Index, by *Reader, trusted *trust.Trust) (api.HitList, error) {
	q, err := find.ReadRecords(get)
	if err != nil {
		return api.HitList{}, err
	}
	x, state, err := k.Ready(ctx)
	if err != nil {
		return api.HitList{}, err
	}
	found, err := x.Records(ctx, q, by.Scope, by.MayRead)
	if err != nil {
		return api.HitList{}, err
	}
	list, err := Hits(found, trusted, t, by.Visible)
	list.Index = state
	return list, err
}

// ScopeOf limits a search to the trials that a party may see, and to its own records if it is an agent.
func ScopeOf(trials []trial.Summary, by interface {
	Name() string
	Has(access.Role) bool
}) find.Scope {
	in := find.Scope{Trials: map[string]bool{}}
	for i := range trials {
		in.Trials[trials[i].ID] = true
	}
	if by.Has(access.Agent) {
		in.Agent = by.Name()
	}
	return in
}
