package acts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/log/access"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/brief"
	"jurat/internal/log/names"
)

// A Party is a person or an agent that acts or reads, with its roles.
type Party interface {
	Name() string // the agent_id of an agent, or the name of a person; "" for a stranger
	Has(role access.Role) bool
}

// Operator is the party that holds the installation's keys. It seals for every agent and reviewer whose key is there.
var Operator Party = operator{}

type operator struct{}

func (operator) Name() string              { return "" }
func (operator) Has(role access.Role) bool { return true }

// Sealable returns an *evidence.FieldError for acts that agents and reviewers do not perform. Acts of a trial and of the operator have
// their own commands.
func Sealable(p *evidence.Payload) error {
	if role := p.Role(); role != evidence.RoleAgent && role != evidence.RoleReviewer {
		return &evidence.FieldError{Field: "action_type", Reason: fmt.Sprintf("%s is an act of the %s: here, agents and reviewers seal theirs", p.ActionType, role)}
	}
	return nil
}

// Acceptable returns an *evidence.FieldError for acts whose keys only the operator holds.
func Acceptable(p *evidence.Payload) error {
	if role := p.Role(); !keys.MayOwn(role) {
		return &evidence.FieldError{Field: "action_type", Reason: fmt.Sprintf("%s is an act of the %s, whose key is the operator's", p.ActionType, role)}
	}
	return nil
}

func (a *Acts) mayAct(ctx context.Context, by Party, draft *evidence.Draft) error {
	if err := maySay(by, draft); err != nil {
		return err
	}
	if draft.ActionType != evidence.HumanReview {
		return nil
	}
	// This comes before the content is checked: errors about the content could reveal who submitted it.
	return a.NotOwnWork(ctx, draft.Actor(), draft.OriginalResponseID)
}

// maySay returns api.ErrForbidden for an act under another name, or in another role, than the party's.
func maySay(by Party, draft *evidence.Draft) error {
	if err := Sealable(&draft.Payload); err != nil {
		return err
	}
	role := draft.Role()
	switch {
	case !by.Has(access.Role(role)):
		return fmt.Errorf("%w: field action_type: %s is for the role %s", api.ErrForbidden, draft.ActionType, role)
	case role == evidence.RoleAgent && inTrial(draft.ChainID):
		return fmt.Errorf("%w: field chain_id: agents do not act in trials", api.ErrForbidden)
	case by != Operator && draft.Actor() != by.Name():
		return fmt.Errorf("%w: the token belongs to %q, but the payload names %q", api.ErrForbidden, by.Name(), draft.Actor())
	}
	return nil
}

// Manages reports whether a party may cancel and resume a trial with this submitter: the submitter may, and the operator.
func Manages(by Party, submitter string) bool {
	return by.Has(access.Operator) || IsSubmitter(by, submitter)
}

// MayManage returns api.ErrForbidden unless a party may cancel and resume an existing trial. A party that may not even read the trial gets
// the error of MayReadTrial. At the keyboard, the party is Operator, who may.
func (a *Acts) MayManage(ctx context.Context, by Party, id string) error {
	if err := a.MayReadTrial(ctx, by, id); err != nil {
		return err
	}
	submitter, err := a.SubmitterOf(ctx, id)
	if err == nil && !Manages(by, submitter) {
		err = fmt.Errorf("%w: %q did not submit this trial", api.ErrForbidden, by.Name())
	}
	return err
}

// MayTake returns an error unless a party may say that a reviewer has taken a trial: a reviewer for themselves, an operator for any reviewer,
// but not for the trial's submitter, who may not decide on it. The caller has checked that the party may read the trial.
func (a *Acts) MayTake(ctx context.Context, by Party, reviewer, id string) error {
	switch self := names.Same(by.Name(), reviewer); {
	case !self && !by.Has(access.Operator):
		return fmt.Errorf("%w: a reviewer takes a case for themselves; an operator assigns it to another", api.ErrForbidden)
	case self && !by.Has(access.Reviewer):
		return fmt.Errorf("%w: %q is not a reviewer; name one", api.ErrForbidden, by.Name())
	}
	submitter, err := a.SubmitterOf(ctx, id)
	if err == nil && names.Same(reviewer, submitter) {
		err = fmt.Errorf("%w: %q submitted this trial", api.ErrOwnWork, reviewer)
	}
	return err
}

// MayGiveBack returns api.ErrForbidden unless a party may say that the reviewer who has a trial gives it back: that reviewer, and an operator.
func MayGiveBack(by Party, reviewer string) error {
	if by.Has(access.Operator) || names.Same(by.Name(), reviewer) {
		return nil
	}
	return fmt.Errorf("%w: %q has this case; that reviewer or an operator gives it back", api.ErrForbidden, reviewer)
}

// NotOwnWork returns api.ErrOwnWork if a person decides on what the same person said or submitted. It cannot tell for a record that is not
// in the log, and returns nil.
func (a *Acts) NotOwnWork(ctx context.Context, reviewer, id string) error {
	original, err := a.config.Ledger.Record(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	p := &original.Payload
	by := ""
	if inTrial(p.ChainID) {
		if by, err = a.SubmitterOf(ctx, p.ChainID); err != nil {
			return err
		}
	}
	if names.Same(reviewer, by) || names.Same(reviewer, p.Actor()) || p.Observed != nil && names.Same(reviewer, p.Observed.Agent) {
		return fmt.Errorf("%w: record %s is by %q, or belongs to a trial that %q submitted", api.ErrOwnWork, id, reviewer, reviewer)
	}
	return nil
}

// SubmitterOf returns the name of the person who submitted a trial, or "" if the chain is not a trial's. Its errors
// are those of the ledger.
func (a *Acts) SubmitterOf(ctx context.Context, chain string) (string, error) {
	first, err := a.config.Ledger.Briefs().FirstOfChain(ctx, chain)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && first.Action != evidence.Submission {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return first.Actor, nil
}

func inTrial(chain string) bool { return strings.HasPrefix(chain, evidence.TrialPrefix) }

// Opened says which chains, records and agents the operator has made public.
type Opened interface {
	Public(ctx context.Context, what access.What) (bool, error)
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
	if by.Has(access.Agent) && b.Role() == evidence.RoleAgent && b.Actor == by.Name() {
		return nil // without a query: an agent reads thousands of its own
	}
	what := access.What{Chain: b.ChainID}
	if b.ChainID == "" {
		what = access.What{Record: b.RecordID}
	}
	return a.mayRead(ctx, by, what, "may not read this record", func() (bool, error) { return a.Own(ctx, by, b) })
}

// mayRead returns an error unless a party reads everything, the operator has made it public, or it is the party's own.
func (a *Acts) mayRead(ctx context.Context, by Party, what access.What, refusal string, own func() (bool, error)) error {
	if ReadsEverything(by) {
		return nil
	}
	if public, err := a.config.Opened.Public(ctx, what); public || err != nil {
		return err
	}
	if is, err := own(); is || err != nil {
		return err
	}
	if by.Name() == "" {
		return NotPublic() // a stranger is asked to sign in
	}
	return fmt.Errorf("%w: %q %s", api.ErrForbidden, by.Name(), refusal)
}

// MayReadTrial returns an error unless a party may read an existing trial. It reads no record, since thousands of readers may come at once.
func (a *Acts) MayReadTrial(ctx context.Context, by Party, id string) error {
	return a.mayRead(ctx, by, access.What{Chain: id}, "has not submitted this trial", func() (bool, error) { return a.Submitted(ctx, by, id) })
}

// MayReadAgent returns an error unless a party may read the reputation of an agent: those who read everything may, and
// everyone if the operator has made it public. An agent's own token does not suffice: who judged is not the agent's to read.
func (a *Acts) MayReadAgent(ctx context.Context, by Party, name string) error {
	return a.mayRead(ctx, by, access.What{Agent: name}, "may not read what the log shows of this agent", func() (bool, error) { return false, nil })
}

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
