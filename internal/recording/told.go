package recording

import (
	"context"
	"errors"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
)

// A Report is an act that did not pass the recorder: somebody told it of the act, maybe more than once.
type Report struct {
	Agent, Chain string       // Chain is a name: see ChainOf
	Act          observed.Act // the recorder fills in its own name and the chain
	ID           string       // the record's; it follows from what the act is called, so the same act told again has the same id
	OtherID      string       // the record's if the log has another account under ID; it follows from what is told, too
}

// An Account says what became of a report.
type Account string

// The accounts.
const (
	New     Account = "new"     // it is sealed
	Known   Account = "known"   // the log had it
	Another Account = "another" // the log had another account of the act; this one is sealed, and names that
)

// Report seals what was told of an act, and returns when its record is durable. The same account is sealed once, however often it is told. Two accounts
// of one act are both sealed, and the second names the first. The names of agent and chain must be fit for records.
func (r *Recorder) Report(ctx context.Context, told Report) (Account, error) {
	act := told.Act
	act.Recorder, act.ChainID = r.Name, ChainOf(told.Agent, told.Chain)
	act.Agent, act.Request.Earlier = told.Agent, r.earlier(act.ChainID)
	account := New
	whole, err := r.sealNew(ctx, told.ID, act)
	if errors.Is(err, api.ErrConflict) {
		account, whole, err = r.another(ctx, told, act)
	}
	if err != nil {
		return "", err
	}
	if account != Known {
		r.calls.Add(1)
		if whole && len(act.Request.Kept) <= observed.MaxKept { // the record has all of it
			r.bodies.set(act.ChainID, act.Request.Kept)
		}
	}
	return account, nil
}

// another seals an act of which the log has a record, if that has another account of it.
func (r *Recorder) another(ctx context.Context, told Report, act observed.Act) (account Account, whole bool, err error) {
	before, err := r.Log.RequestOf(ctx, told.ID)
	if err != nil || before == act.Request.SHA256 || before.IsZero() { // what has expired does not come back
		return Known, false, err
	}
	act.Missing = append([]string{"which account is true: another one of the same act is in the record " + told.ID}, act.Missing...)
	whole, err = r.sealNew(ctx, told.OtherID, act)
	if errors.Is(err, api.ErrConflict) {
		return Known, false, nil
	}
	return Another, whole, err
}

// sealNew is sealFitting, but looks for the record before: what is told again would cost a time stamp each time, and its texts would take room among those that are sealed
// apart, which is not given back when the log refuses the record.
func (r *Recorder) sealNew(ctx context.Context, id string, act observed.Act) (whole bool, err error) {
	has, err := r.Log.Has(ctx, id)
	if err != nil {
		return false, err
	}
	if has {
		return false, api.ErrConflict
	}
	return r.sealFitting(ctx, id, act)
}

// CheckChain returns an error if no record can have a chain of this name.
func CheckChain(agent, name string) error { return evidence.CheckName(ChainOf(agent, name)) }
