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

// Opened says which chains, records and agents the operator has made public.
type Opened interface {
	Public(ctx context.Context, chain string) (bool, error)
	PublicRecord(ctx context.Context, id string) (bool, error)
	PublicAgent(ctx context.Context, name string) (bool, error)
}

// ReadsEverything reports whether a party is a reviewer, an auditor or the operator.
func ReadsEverything(by Party) bool {
	return by.Has(access.Reviewer) || by.Has(access.Auditor) || by.Has(access.Operator)
}

// Allows turns the error of MayRead into an answer: false if a party may not read. Other errors stay errors.
func Allows(err error) (bool, error) {
	if errors.Is(err, api.ErrForbidden) || errors.Is(err, api.ErrSignIn) {
		return false, nil
	}
	return err == nil, err
}

// NotPublic returns the error for strangers. It does not reveal whether there is a record that is not public.
func NotPublic() error {
	return fmt.Errorf("%w: it is not public, or it does not exist", api.ErrSignIn)
}

// refused returns the error for a party that may not read. A stranger is asked to sign in.
func refused(by Party, what string) error {
	if by.Name() == "" {
		return NotPublic()
	}
	return fmt.Errorf("%w: %q %s", api.ErrForbidden, by.Name(), what)
}

// Own reports whether a party reads a record by a right of its own, and not only because the record is public. Reviewers, auditors and the
// operator read everything. An agent reads its own records and the decisions on them. A submitter reads the trials of their submissions.
// Only these see the texts that are sealed apart. Its errors are those of the ledger.
func (a *Acts) Own(ctx context.Context, by Party, b *brief.Brief) (bool, error) {
	if ReadsEverything(by) || by.Has(access.Agent) && b.Role() == evidence.RoleAgent && b.Actor == by.Name() {
		return true, nil
	}
	if own, err := a.reviewed(ctx, by, b); own || err != nil {
		return own, err
	}
	return a.Submitted(ctx, by, b.ChainID)
}

// MayRead returns an error unless a party may read a record, by a right of its own or because the record is public: api.ErrSignIn for strangers,
// api.ErrForbidden for others. What is sealed apart is for the former alone: Own says who that is.
func (a *Acts) MayRead(ctx context.Context, by Party, b *brief.Brief) error {
	if own, err := a.Own(ctx, by, b); own || err != nil {
		return err
	}
	if public, err := a.public(ctx, b); public || err != nil {
		return err
	}
	return refused(by, "may not read this record")
}

// MayReadTrial returns an error unless a party may read an existing trial. It reads no record, since thousands of readers may come at once.
func (a *Acts) MayReadTrial(ctx context.Context, by Party, id string) error {
	if ReadsEverything(by) {
		return nil
	}
	if public, err := a.config.Opened.Public(ctx, id); public || err != nil {
		return err
	}
	if own, err := a.Submitted(ctx, by, id); own || err != nil {
		return err
	}
	return refused(by, "has not submitted this trial")
}

// MayReadAgent returns an error unless a party may read the reputation of an agent: those who read everything may, and
// everyone if the operator has made it public. An agent's own token does not suffice: who judged is not the agent's to read.
func (a *Acts) MayReadAgent(ctx context.Context, by Party, name string) error {
	if ReadsEverything(by) {
		return nil
	}
	if public, err := a.config.Opened.PublicAgent(ctx, name); public || err != nil {
		return err
	}
	return refused(by, "may not read what the log shows of this agent")
}

// public reports whether everyone may read a record: its chain is public, or, if it is in no chain, the record itself is.
func (a *Acts) public(ctx context.Context, b *brief.Brief) (bool, error) {
	if b.ChainID == "" {
		return a.config.Opened.PublicRecord(ctx, b.RecordID)
	}
	return a.config.Opened.Public(ctx, b.ChainID)
}

// reviewed reports whether an act is a person's decision on a record of the party.
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

// Submitted reports whether a chain is a trial that the party has submitted. Its errors are those of SubmitterOf.
func (a *Acts) Submitted(ctx context.Context, by Party, chain string) (bool, error) {
	if !by.Has(access.Submitter) || !inTrial(chain) {
		return false, nil
	}
	submitter, err := a.SubmitterOf(ctx, chain)
	return IsSubmitter(by, submitter), err
}

// IsSubmitter reports whether a party is the submitter with this name.
func IsSubmitter(by Party, submitter string) bool {
	return by.Has(access.Submitter) && by.Name() == submitter
}
