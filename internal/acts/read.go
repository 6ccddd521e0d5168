package acts

import (
	"context"
	"errors"
	"fmt"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
)

// Opened says what the operator has opened to everybody.
type Opened interface {
	Public(ctx context.Context, chain string) (bool, error)
	PublicRecord(ctx context.Context, id string) (bool, error)
}

// ReadsEverything reports whether a party decides, audits or operates.
func ReadsEverything(by Party) bool {
	return by.Has(access.Reviewer) || by.Has(access.Auditor) || by.Has(access.Operator)
}

// NotPublic is the answer to strangers. They do not learn whether there is something that is not public.
func NotPublic() error {
	return fmt.Errorf("%w: it is not open to everybody, or it is not there", api.ErrSignIn)
}

// MayRead refuses who may not read a record. Those who decide, audit or operate read everything; an agent reads what it said itself, and what
// was decided on that; a submitter the trials of its submissions; everybody what belongs to a chain that was made public.
func (a *Acts) MayRead(ctx context.Context, by Party, b *brief.Brief) error {
	if ReadsEverything(by) || by.Has(access.Agent) && b.Role() == evidence.RoleAgent && b.Actor == by.Name() {
		return nil
	}
	if public, err := a.public(ctx, b); public || err != nil {
		return err
	}
	if by.Name() == "" {
		return NotPublic()
	}
	if own, err := a.reviewed(ctx, by, b); own || err != nil {
		return err
	}
	if own, err := a.Submitted(ctx, by, b.ChainID); own || err != nil {
		return err
	}
	return fmt.Errorf("%w: the record is not one of %q", api.ErrForbidden, by.Name())
}

// MayReadTrial refuses who may not read a trial that is there. It reads no record: thousands may come to watch at once.
func (a *Acts) MayReadTrial(ctx context.Context, by Party, id string) error {
	if ReadsEverything(by) {
		return nil
	}
	if public, err := a.config.Opened.Public(ctx, id); public || err != nil {
		return err
	}
	if by.Name() == "" {
		return NotPublic()
	}
	if own, err := a.Submitted(ctx, by, id); own || err != nil {
		return err
	}
	return fmt.Errorf("%w: the trial is not one of what %q has submitted", api.ErrForbidden, by.Name())
}

// public reports whether everybody may read a record: its chain was made public, or, if it is in none, the record itself.
func (a *Acts) public(ctx context.Context, b *brief.Brief) (bool, error) {
	if b.ChainID == "" {
		return a.config.Opened.PublicRecord(ctx, b.RecordID)
	}
	return a.config.Opened.Public(ctx, b.ChainID)
}

// reviewed reports whether an act is a person's decision on what the party said.
func (a *Acts) reviewed(ctx context.Context, by Party, b *brief.Brief) (bool, error) {
	if !by.Has(access.Agent) || b.Action != evidence.HumanReview {
		return false, nil
	}
	original, err := a.config.Ledger.Briefs().ByID(ctx, b.Original)
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrExpired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return original.Role() == evidence.RoleAgent && original.Actor == by.Name(), nil
}

// Submitted reports whether a chain is a trial of what the party has submitted.
func (a *Acts) Submitted(ctx context.Context, by Party, chain string) (bool, error) {
	if !by.Has(access.Submitter) || !inTrial(chain) {
		return false, nil
	}
	submitter, err := a.SubmitterOf(ctx, chain)
	return submitter == by.Name(), err
}
