package acts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
)

// Observations is a log as a recorder needs it. Only a recorder on the installation itself has it: nobody can hand in what a recorder is said
// to have seen.
type Observations struct{ acts *Acts }

// Observations returns the log for a recorder.
func (a *Acts) Observations() Observations { return Observations{a} }

// Seal seals what a recorder saw, or an event of its own, with the recorder's keys. Its errors include api.ErrConflict, if the log has another
// record with the draft's id, and those of the keys and the ledger.
func (o Observations) Seal(ctx context.Context, draft *evidence.Draft) (evidence.Digest, error) {
	if role := draft.Role(); role != evidence.RoleRecorder {
		return evidence.Digest{}, &evidence.FieldError{Field: "action_type", Reason: fmt.Sprintf("%s is an act of the %s, and not of a recorder", draft.ActionType, role)}
	}
	done, err := o.acts.signOnce(ctx, draft, false)
	if err != nil {
		return evidence.Digest{}, err
	}
	return done.Record.Digest, nil
}

// Last returns the digest of the last record of a chain and the time that it claims, or zero if the log has no such chain. The time is zero if the record has expired.
func (o Observations) Last(ctx context.Context, chain string) (evidence.Digest, time.Time, error) {
	last, err := o.acts.config.Ledger.LastOf(ctx, chain)
	if err != nil || last.IsZero() {
		return last, time.Time{}, err
	}
	r, err := o.acts.config.Ledger.RecordByDigest(ctx, last)
	if errors.Is(err, ledger.ErrExpired) {
		return last, time.Time{}, nil
	}
	if err != nil {
		return last, time.Time{}, err
	}
	return last, r.Payload.Time(), nil
}

// Has reports whether the log has a record with this id.
func (o Observations) Has(ctx context.Context, recordID string) (bool, error) {
	_, err := o.acts.config.Ledger.Record(ctx, recordID)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return false, nil
	case errors.Is(err, ledger.ErrExpired): // its content was deleted, and it was there
		return true, nil
	}
	return err == nil, err
}

// RequestOf returns the digest of the request that a record of a recorder states; zero if it states none, or if it has expired.
func (o Observations) RequestOf(ctx context.Context, recordID string) (evidence.Digest, error) {
	r, err := o.acts.config.Ledger.Record(ctx, recordID)
	if errors.Is(err, ledger.ErrExpired) {
		return evidence.Digest{}, nil
	}
	if err != nil {
		return evidence.Digest{}, err
	}
	if p := &r.Payload; p.Observed != nil && p.Observed.Request != nil {
		return p.Observed.Request.SHA256, nil
	}
	return evidence.Digest{}, nil
}
