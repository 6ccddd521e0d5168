package continuous

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/schedule"
	"jurat/internal/subject/sealed"
	"jurat/internal/subject/tree"
	"jurat/internal/trial"
	"jurat/reputation/draw"
	"jurat/verify"
)

const (
	tryLock  = "continuous-trial"
	day      = 24 * time.Hour
	atOnce   = 2             // trials of this service that wait or are under way: people's do not wait behind a hundred of them
	tryAgain = 1 * time.Hour // after it was found that a record cannot be tried
)

// A budget is what may still begin.
type budget struct {
	trials  int // began within 24 hours
	micro   int64
	waiting int // not over, and no person has to do something about it
}

// try finds what is owed, and submits as much of it as the budget allows.
func (s *Service) try(ctx context.Context) error {
	if s.config.Settings.Drawn == 0 && s.config.Settings.Sampled == 0 {
		return nil
	}
	witnesses, err := s.witnesses(ctx)
	if err != nil && s.config.Settings.Sampled == 0 {
		return err
	}
	err = errors.Join(err, s.picked.follow(ctx, witnesses), s.picked.name(ctx))
	if failed := s.settle(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	b, failed := s.budget(ctx)
	if failed != nil {
		return errors.Join(err, failed)
	}
	failed = s.alone(ctx, tryLock, func(ctx context.Context) error { return s.submitAll(ctx, &b) })
	s.report(b)
	return errors.Join(err, failed)
}

// settle takes what was tried from the debts.
func (s *Service) settle(ctx context.Context) error {
	if err := s.config.Scheduler.Follow(ctx); err != nil {
		return err
	}
	s.picked.settle(func(d *debt) bool {
		t, known := s.config.Scheduler.Summary(draw.TrialChain(d.of))
		return d.none || known && t.Over
	})
	return nil
}

// budget counts what this service's trials have taken.
func (s *Service) budget(ctx context.Context) (b budget, err error) {
	since := s.config.Now().Add(-day)
	trials, _, err := s.config.Scheduler.Entries(ctx, "", 2*s.config.Settings.TrialsADay+100, func(t *trial.Summary) bool {
		return t.Submitter == Submitter && (t.Submitted.After(since) || !t.Over)
	})
	if err != nil {
		return b, err
	}
	for i := range trials {
		t := &trials[i]
		if t.State == api.Queued || t.State == api.UnderWay || !t.Next.IsZero() {
			b.waiting++
		}
		if !t.Submitted.After(since) {
			continue
		}
		b.trials++
		cost, err := s.costOf(ctx, t)
		if err != nil {
			return b, err
		}
		b.micro += cost
	}
	return b, nil
}

// costOf returns what a trial has cost, or, if it is not over, the most that it may cost.
func (s *Service) costOf(ctx context.Context, t *schedule.Entry) (int64, error) {
	if s.config.Ceiling == 0 {
		return 0, nil
	}
	if !t.Over {
		return s.config.Ceiling, nil
	}
	if cost, known := s.spent[t.ID]; known {
		return cost, nil
	}
	read, err := trial.Reopen(ctx, s.config.Ledger, t.ID)
	if errors.Is(err, trial.ErrUnreadable) || errors.Is(err, ledger.ErrExpired) {
		return s.config.Ceiling, nil
	}
	if err != nil {
		return 0, err
	}
	s.spent[t.ID] = read.Spent
	return read.Spent, nil
}

// allows reports whether another trial may begin.
func (s *Service) allows(b *budget) bool {
	most := s.config.Settings.MicroDollars()
	return b.waiting < atOnce && b.trials < s.config.Settings.TrialsADay && (most == 0 || b.micro+s.config.Ceiling <= most)
}

// submitAll puts the oldest debts before the jury.
func (s *Service) submitAll(ctx context.Context, b *budget) error {
	for _, d := range s.picked.debts {
		if !s.allows(b) || ctx.Err() != nil {
			return nil
		}
		if _, begun := s.config.Scheduler.Summary(draw.TrialChain(d.of)); begun || d.none || s.config.Now().Before(d.again) {
			continue
		}
		submitted, err := s.submit(ctx, d)
		if err != nil {
			return err
		}
		if submitted {
			b.trials, b.waiting, b.micro = b.trials+1, b.waiting+1, b.micro+s.config.Ceiling
		}
	}
	return nil
}

// submit puts one record before the jury. Only errors that concern other records, too, are returned.
func (s *Service) submit(ctx context.Context, d *debt) (bool, error) {
	record, err := s.picked.record(ctx, d)
	if errors.Is(err, ledger.ErrExpired) {
		s.cannot(d, err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if record == nil {
		d.none = true
		return false, nil
	}
	if ready := s.readyAt(d, record); s.config.Now().Before(ready) {
		d.again = ready
		return false, nil
	}
	on, err := s.caseOf(ctx, record)
	if isEvidence(err) {
		s.cannot(d, err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	id, err := s.config.Scheduler.Submit(ctx, schedule.Order{Case: on, Submitter: Submitter, ID: draw.TrialID(d.of)})
	switch {
	case errors.Is(err, ledger.ErrDuplicate), errors.Is(err, lock.ErrTaken):
		return false, nil // somebody else was faster
	case errors.Is(err, schedule.ErrFull), errors.Is(err, schedule.ErrClosing):
		return false, fmt.Errorf("record %s waits: %w", record.Payload.RecordID, err)
	case err != nil:
		return false, err
	}
	d.why = ""
	s.config.Log.Info("a record is put before the jury", "record", record.Payload.RecordID, "agent", d.agent, "trial", id, "drawn by", d.witnesses)
	return true, nil
}

// readyAt returns when a record is old enough. Its own claim can only make it older: one that claims the future counts from when it was seen.
func (s *Service) readyAt(d *debt, record *evidence.Record) time.Time {
	made := d.seen
	if claim, err := evidence.ParseTime(record.Payload.Timestamp); err == nil && claim.Before(made) {
		made = claim
	}
	return made.Add(s.config.Settings.WaitTime())
}

// cannot notes that a record cannot be tried, and why. It stays a debt: what cannot be tried was not tried.
func (s *Service) cannot(d *debt, why error) {
	if d.why == "" {
		s.config.Log.Warn("a record that is to be tried cannot be", "digest", d.of, "agent", d.agent, "error", why)
	}
	d.why, d.again = why.Error(), s.config.Now().Add(tryAgain)
}

// isEvidence reports whether an error says that records cannot be evidence.
func isEvidence(err error) bool {
	var at *tree.Error
	for _, is := range []error{sealed.ErrRefuted, sealed.ErrTrial, sealed.ErrEmpty, sealed.ErrTooMuch, verify.ErrNotOurs, ledger.ErrExpired, errUnreadable} {
		if errors.Is(err, is) {
			return true
		}
	}
	return errors.As(err, &at)
}
