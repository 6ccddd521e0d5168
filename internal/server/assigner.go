package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/names"
	"jurat/internal/schedule"
	"jurat/internal/trial"
)

// An assigner is where reviewers take cases and give them back, and operators assign them. It is safe for concurrent use. Its callers have
// checked that the party may read the trial.
type assigner struct {
	scheduler *schedule.Scheduler
	acts      *acts.Acts
	register  *access.Register
}

// take records that the party has taken a trial, or, if another reviewer is named, that an operator has assigned it. An operator who names
// a reviewer also takes it from another. Its errors are those of acts.MayTake and of the Scheduler, and api.ErrInvalid.
func (a *assigner) take(ctx context.Context, by acts.Party, id string, asked api.Taking) error {
	reason, err := checkedReason(asked.Reason)
	if err != nil {
		return err
	}
	to, named := by.Name(), strings.TrimSpace(asked.Reviewer)
	if named != "" {
		to = named
	}
	if err := a.acts.MayTake(ctx, by, to, id); err != nil {
		return err
	}
	if named != "" {
		if to, err = a.reviewer(ctx, named); err != nil {
			return err
		}
	}
	err = a.scheduler.Take(ctx, id, to, by.Name(), reason)
	if !errors.Is(err, schedule.ErrTaken) || named == "" || !by.Has(access.Operator) {
		return err
	}
	err = a.scheduler.GiveBack(ctx, id, by.Name(), reason, func(trial.Taken) error { return nil })
	if err != nil && !errors.Is(err, schedule.ErrNotTaken) {
		return err
	}
	return a.scheduler.Take(ctx, id, to, by.Name(), reason)
}

// giveBack records that the reviewer who has a trial gives it back. Its errors are those of acts.MayGiveBack and of the Scheduler, and
// api.ErrInvalid.
func (a *assigner) giveBack(ctx context.Context, by acts.Party, id string, asked api.GivingBack) error {
	reason, err := checkedReason(asked.Reason)
	if err != nil {
		return err
	}
	return a.scheduler.GiveBack(ctx, id, by.Name(), reason, func(now trial.Taken) error { return acts.MayGiveBack(by, now.Reviewer) })
}

func checkedReason(reason string) (string, error) {
	if reason = strings.TrimSpace(reason); len(reason) > maxReason {
		return "", fmt.Errorf("%w: field reason: want at most %d bytes", api.ErrInvalid, maxReason)
	}
	return reason, nil
}

// reviewer returns the name, as the log has it, of a person who can decide now.
func (a *assigner) reviewer(ctx context.Context, name string) (string, error) {
	grants, err := a.register.Grants(ctx)
	if err != nil {
		return "", err
	}
	for i := range grants {
		if g := &grants[i]; g.Ended == nil && g.Has(access.Reviewer) && names.Same(g.Name, name) {
			return g.Name, nil
		}
	}
	return "", fmt.Errorf("%w: field reviewer: no person of this name has a valid token or session of a reviewer", api.ErrInvalid)
}
